// Stack segments: loaded by MOV and POP, taken from a TSS on the way in, popped on the way out. And room on stacks.
#pragma once
#include "arch/descriptor.hpp"
#include "checks/descriptor_table.hpp"

namespace emu::checks::stack {

/// The privilege level a stack segment must have: CPL for a load, that of the code segment entered for the others.
template <Text use, Vector V>
inline constexpr Check rpl_equals_cpl{.name = joined<use, "rpl_equals_cpl">,
                                      .says = "RPL of the stack selector must equal the privilege level it is for",
                                      .sdm = where<use>,
                                      .fault = {V, Names::selector},
                                      .holds = [](Rpl rpl, NewCpl cpl) { return rpl.value == cpl.value; }};

template <Text use, Vector V>
inline constexpr Check writable_data{.name = joined<use, "writable_data">,
                                     .says = "a stack segment must be a writable data segment",
                                     .sdm = where<use>,
                                     .fault = {V, Names::selector},
                                     .holds = [](TypeField type) { return segment_type::is_writable(type); }};

template <Text use, Vector V>
inline constexpr Check dpl_equals_cpl{.name = joined<use, "dpl_equals_cpl">,
                                      .says = "DPL of the stack segment must equal the privilege level it is for",
                                      .sdm = where<use>,
                                      .fault = {V, Names::selector},
                                      .holds = [](Dpl dpl, NewCpl cpl) { return dpl.value == cpl.value; }};

template <Text use>
inline constexpr Check null_only_in_64_bit{
    .name = joined<use, "null_only_in_64_bit">,
    .says = "a null stack selector is allowed only for 64-bit code more privileged than ring 3",
    .sdm = where<use>,
    .fault = gp(Names::nothing),
    .holds = [](Flag<"64-bit code"> code64, NewCpl cpl) { return code64.value && cpl.value < 3; }};

template <Text use>
inline constexpr Check null_rpl_equals_cpl{
    .name = joined<use, "null_rpl_equals_cpl">,
    .says = "RPL of a null stack selector must equal the privilege level it is for",
    .sdm = where<use>,
    .fault = gp(Names::nothing),
    .holds = [](Rpl rpl, NewCpl cpl) { return rpl.value == cpl.value; }};

inline constexpr Check tss_field_within_limit{
    .name = "stack_switch.tss_field_within_limit",
    .says = "the stack's field must lie within the limit of the TSS",
    .sdm = "INT n, INTER-PRIVILEGE-LEVEL-INTERRUPT; CALL, MORE-PRIVILEGE",
    .fault = ts(Names::selector),
    .holds = [](LastByte last, Limit limit) { return last.value <= limit.value; }};

/// Room for everything that is pushed on a stack that stays the same, and for everything popped.
inline constexpr Check room{.name = "stack.room",
                            .says = "what is pushed or popped must lie within the limit of the stack segment",
                            .sdm = "INT n, INTRA-PRIVILEGE-LEVEL-INTERRUPT; CALL, RET, IRET",
                            .fault = ss(Names::nothing),
                            .holds = [](Offset lowest, LastByte last, Flag<"inside"> inside) {
                                return lowest.value <= last.value && inside.value;
                            }};
inline constexpr Check canonical{
    .name = "stack.canonical",
    .says = "what is pushed or popped must lie at canonical addresses",
    .sdm = "INT n, IA-32e mode; CALL, RET, IRET in 64-bit mode",
    .fault = ss(Names::nothing),
    .holds = [](Linear lowest, Flag<"last byte canonical"> last) { return canonical48(lowest.value) && last.value; }};
/// The same on a new stack: the error code names its selector.
inline constexpr Check new_room{.name = "stack_switch.room",
                                .says = "the new stack must have room for the frame",
                                .sdm = "INT n, INTER-PRIVILEGE-LEVEL-INTERRUPT; CALL, MORE-PRIVILEGE",
                                .fault = ss(Names::selector),
                                .holds = [](Offset lowest, LastByte last, Flag<"inside"> inside) {
                                    return lowest.value <= last.value && inside.value;
                                }};
inline constexpr Check new_canonical{
    .name = "stack_switch.canonical",
    .says = "the frame on the new stack must lie at canonical addresses",
    .sdm = "INT n, INTER-PRIVILEGE-LEVEL-INTERRUPT; CALL, MORE-PRIVILEGE",
    .fault = ss(Names::selector),
    .holds = [](Linear lowest, Flag<"last byte canonical"> last) { return canonical48(lowest.value) && last.value; }};

}  // namespace emu::checks::stack
