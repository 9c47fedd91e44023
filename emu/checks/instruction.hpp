// What ordinary instructions can run into. The hot path decides these by a compare of its own and comes here when it
// fails, so that the fault has a name.
#pragma once
#include "checks/check.hpp"
#include "checks/subjects.hpp"

namespace emu::checks::instruction {

inline constexpr Check opcode_defined{
    .name = "instruction.opcode_defined",
    .says = "the opcode must be defined in this mode, with these operands, on this processor",
    .sdm = "Vol. 3, Interrupt 6 - Invalid Opcode Exception",
    .fault = ud,
    .holds = [](Flag<"defined"> defined) { return defined.value; }};

inline constexpr Check lock_allowed{
    .name = "instruction.lock_allowed",
    .says = "LOCK is allowed only before an instruction that reads, modifies and writes memory",
    .sdm = "LOCK, Exceptions (All Operating Modes)",
    .fault = ud,
    .holds = [](Flag<"lockable"> lockable) { return lockable.value; }};

inline constexpr Check length_at_most_15{.name = "instruction.length_at_most_15",
                                         .says = "an instruction is at most 15 bytes long",
                                         .sdm = "Vol. 3, Interrupt 13 - General Protection Exception",
                                         .fault = gp(Names::nothing),
                                         .holds = [](Quantity<"length"> length) { return length.value <= 15; }};

inline constexpr Check quotient_fits{
    .name = "instruction.quotient_fits",
    .says = "a division needs a divisor other than 0 and a quotient that fits its register",
    .sdm = "DIV, IDIV and AAM, Operation",
    .fault = de,
    .holds = [](Flag<"fits"> fits) { return fits.value; }};

inline constexpr Check index_within_bounds{.name = "instruction.index_within_bounds",
                                           .says = "BOUND needs an index between the two bounds",
                                           .sdm = "BOUND, Operation",
                                           .fault = {Vector::BR, Names::no_code},
                                           .holds = [](Flag<"within"> within) { return within.value; }};

inline constexpr Check branch_within_limit{.name = "instruction.branch_within_limit",
                                           .says = "a near branch must stay within the limit of the code segment",
                                           .sdm = "JMP, CALL, RET and Jcc, Protected Mode Exceptions",
                                           .fault = gp(Names::nothing),
                                           .holds = [](Flag<"within"> within) { return within.value; }};

inline constexpr Check branch_canonical{.name = "instruction.branch_canonical",
                                        .says = "a near branch must go to a canonical address",
                                        .sdm = "JMP, CALL and RET, 64-Bit Mode Exceptions",
                                        .fault = gp(Names::nothing),
                                        .holds = [](Flag<"canonical"> canonical) { return canonical.value; }};

}  // namespace emu::checks::instruction
