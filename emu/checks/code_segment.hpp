// The code segment that a transfer enters: by a gate, directly, or by a return.
#pragma once
#include "arch/descriptor.hpp"
#include "checks/descriptor_table.hpp"

namespace emu::checks {

namespace code {
template <Text use>
inline constexpr Check is_code{.name = joined<use, "is_code">,
                               .says = "the descriptor must be a code segment",
                               .sdm = where<use>,
                               .fault = gp(Names::selector),
                               .holds = [](TypeField type) { return segment_type::is_code(type); }};

template <Text use>
inline constexpr Check dpl_not_above_cpl{
    .name = joined<use, "dpl_not_above_cpl">,
    .says = "the code segment must not be less privileged than the caller (DPL <= CPL)",
    .sdm = where<use>,
    .fault = gp(Names::selector),
    .holds = [](Dpl dpl, Cpl cpl) { return dpl.value <= cpl.value; }};

template <Text use>
inline constexpr Check is_64_bit{.name = joined<use, "is_64_bit">,
                                 .says = "a gate in IA-32e mode must lead to a 64-bit code segment (L = 1, D = 0)",
                                 .sdm = where<use>,
                                 .fault = gp(Names::selector),
                                 .holds = [](LongBit l, DefaultBit d) { return l.value && !d.value; }};

template <Text use>
inline constexpr Check long_and_default_exclusive{
    .name = joined<use, "long_and_default_exclusive">,
    .says = "in IA-32e mode a code segment must not have both L = 1 and D = 1",
    .sdm = where<use>,
    .fault = gp(Names::selector),
    .holds = [](LongBit l, DefaultBit d) { return !(l.value && d.value); }};

template <Text use>
inline constexpr Check pointer_within_limit{
    .name = joined<use, "pointer_within_limit">,
    .says = "the instruction pointer must lie within the limit of the code segment",
    .sdm = where<use>,
    .fault = gp(Names::nothing),
    .holds = [](Offset offset, Limit limit) { return offset.value <= limit.value; }};

template <Text use>
inline constexpr Check pointer_canonical{.name = joined<use, "pointer_canonical">,
                                         .says = "the instruction pointer must be canonical",
                                         .sdm = where<use>,
                                         .fault = gp(Names::nothing),
                                         .holds = [](Offset offset) { return canonical48(offset.value); }};
}  // namespace code

namespace far_target {
inline constexpr Check type_allowed{
    .name = "far_target.type_allowed",
    .says =
        "a far CALL or JMP may name a code segment, a call gate, a task gate or an available TSS "
        "(in IA-32e mode: a code segment or a 64-bit call gate)",
    .sdm = "CALL and JMP (far), PROTECTED-MODE and IA-32e-MODE",
    .fault = gp(Names::selector),
    .holds = [](TypeField type, Flag<"IA-32e mode"> ia32e) {
        if (segment_type::is_code(type) || type.value == system_type::call_gate32) return true;
        return !ia32e.value &&
               (type.value == system_type::call_gate16 || type.value == system_type::task_gate ||
                type.value == system_type::available_tss16 || type.value == system_type::available_tss32);
    }};
inline constexpr Check conforming_dpl_not_above_cpl{.name = "far_target.conforming_dpl_not_above_cpl",
                                                    .says = "a conforming code segment needs DPL <= CPL",
                                                    .sdm = "CALL and JMP (far), CONFORMING-CODE-SEGMENT",
                                                    .fault = gp(Names::selector),
                                                    .holds = [](Dpl dpl, Cpl cpl) { return dpl.value <= cpl.value; }};
inline constexpr Check rpl_not_above_cpl{.name = "far_target.rpl_not_above_cpl",
                                         .says = "a non-conforming code segment needs RPL <= CPL",
                                         .sdm = "CALL and JMP (far), NONCONFORMING-CODE-SEGMENT",
                                         .fault = gp(Names::selector),
                                         .holds = [](Rpl rpl, Cpl cpl) { return rpl.value <= cpl.value; }};
inline constexpr Check dpl_equals_cpl{
    .name = "far_target.dpl_equals_cpl",
    .says = "a non-conforming code segment needs DPL = CPL: only gates and returns change privilege",
    .sdm = "CALL and JMP (far), NONCONFORMING-CODE-SEGMENT",
    .fault = gp(Names::selector),
    .holds = [](Dpl dpl, Cpl cpl) { return dpl.value == cpl.value; }};
}  // namespace far_target

namespace gate_target {
inline constexpr Check jump_keeps_privilege{
    .name = "gate_target.jump_keeps_privilege",
    .says = "a JMP through a call gate cannot change privilege: a non-conforming code segment needs DPL = CPL",
    .sdm = "JMP (far), CALL-GATE",
    .fault = gp(Names::selector),
    .holds = [](Dpl dpl, Cpl cpl) { return dpl.value == cpl.value; }};
}  // namespace gate_target

namespace return_target {
inline constexpr Check rpl_not_below_cpl{
    .name = "return_target.rpl_not_below_cpl",
    .says = "a return cannot go to more privilege: RPL of the return CS must be >= CPL",
    .sdm = "RET (far), PROTECTED-MODE-RETURN; IRET, PROTECTED-MODE-RETURN",
    .fault = gp(Names::selector),
    .holds = [](Rpl rpl, Cpl cpl) { return rpl.value >= cpl.value; }};
inline constexpr Check conforming_dpl_not_above_rpl{
    .name = "return_target.conforming_dpl_not_above_rpl",
    .says = "a conforming return code segment needs DPL <= RPL of the return CS",
    .sdm = "RET (far), PROTECTED-MODE-RETURN; IRET, PROTECTED-MODE-RETURN",
    .fault = gp(Names::selector),
    .holds = [](Dpl dpl, Rpl rpl) { return dpl.value <= rpl.value; }};
inline constexpr Check dpl_equals_rpl{.name = "return_target.dpl_equals_rpl",
                                      .says = "a non-conforming return code segment needs DPL = RPL of the return CS",
                                      .sdm = "RET (far), PROTECTED-MODE-RETURN; IRET, PROTECTED-MODE-RETURN",
                                      .fault = gp(Names::selector),
                                      .holds = [](Dpl dpl, Rpl rpl) { return dpl.value == rpl.value; }};
}  // namespace return_target

}  // namespace emu::checks
