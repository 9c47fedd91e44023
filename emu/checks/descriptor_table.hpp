// Selectors: null or not, and inside their table. The same rules for every use; the fault is the use's own.
#pragma once
#include "checks/check.hpp"
#include "checks/subjects.hpp"

namespace emu::checks {

/// How the pseudo-code of each use is called in the manual.
template <Text use>
inline constexpr std::string_view where = "?";
template <>
inline constexpr std::string_view where<"handler"> = "INT n, TRAP-OR-INTERRUPT-GATE";
template <>
inline constexpr std::string_view where<"far_target"> = "CALL and JMP (far), PROTECTED-MODE";
template <>
inline constexpr std::string_view where<"gate_target"> = "CALL and JMP (far), CALL-GATE";
template <>
inline constexpr std::string_view where<"call_gate"> = "CALL (far), IA-32e-MODE, CALL-GATE";
template <>
inline constexpr std::string_view where<"return_target"> = "RET (far) and IRET, RETURN-TO-OUTER/SAME-PRIVILEGE-LEVEL";
template <>
inline constexpr std::string_view where<"stack_load"> = "MOV and POP, loading SS";
template <>
inline constexpr std::string_view where<"stack_switch"> =
    "INT n, INTER-PRIVILEGE-LEVEL-INTERRUPT; CALL, MORE-PRIVILEGE";
template <>
inline constexpr std::string_view where<"stack_return"> = "RET (far) and IRET, RETURN-TO-OUTER-PRIVILEGE-LEVEL";
template <>
inline constexpr std::string_view where<"data_load"> = "MOV, POP and LDS...LGS, loading DS, ES, FS, GS";
template <>
inline constexpr std::string_view where<"ldt_load"> = "LLDT, Operation";
template <>
inline constexpr std::string_view where<"task_load"> = "LTR, Operation";

namespace table {
template <Text use, Vector V = Vector::GP>
inline constexpr Check selector_not_null{.name = joined<use, "selector_not_null">,
                                         .says = "the selector must not be null",
                                         .sdm = where<use>,
                                         .fault = {V, Names::nothing},
                                         .holds = [](Selector selector) { return !selector.is_null(); }};

template <Text use, Vector V = Vector::GP>
inline constexpr Check ldt_loaded{.name = joined<use, "ldt_loaded">,
                                  .says = "a selector with TI = 1 needs an LDT, that is an LDTR that is not null",
                                  .sdm = where<use>,
                                  .fault = {V, Names::selector},
                                  .holds = [](Flag<"LDTR is loaded"> loaded) { return loaded.value; }};

template <Text use, Vector V = Vector::GP>
inline constexpr Check selector_in_table{.name = joined<use, "selector_in_table">,
                                         .says = "the descriptor must lie within the limit of its table",
                                         .sdm = where<use>,
                                         .fault = {V, Names::selector},
                                         .holds = [](LastByte last, Limit limit) { return last.value <= limit.value; }};

template <Text use>
inline constexpr Check selector_in_gdt{.name = joined<use, "selector_in_gdt">,
                                       .says = "the selector must name the GDT (TI = 0)",
                                       .sdm = where<use>,
                                       .fault = gp(Names::selector),
                                       .holds = [](Flag<"TI"> ti) { return !ti.value; }};

template <Text use, Vector V = Vector::NP>
inline constexpr Check present{.name = joined<use, "present">,
                               .says = "the segment must be present (P = 1)",
                               .sdm = where<use>,
                               .fault = {V, Names::selector},
                               .holds = [](Present p) { return p.value; }};

template <Text use>
inline constexpr Check upper_type_zero{.name = joined<use, "upper_type_zero">,
                                       .says = "bits 12:8 of the second half of a 16-byte descriptor must be 0",
                                       .sdm = where<use>,
                                       .fault = gp(Names::selector),
                                       .holds = [](TypeField upper) { return upper.value == 0; }};
}  // namespace table
}  // namespace emu::checks
