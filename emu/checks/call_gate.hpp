// The call gate itself (Intel SDM vol. 2, CALL and JMP, CALL-GATE).
#pragma once
#include "checks/check.hpp"
#include "checks/subjects.hpp"

namespace emu::checks::call_gate {

inline constexpr Check dpl_not_below_cpl{
    .name = "call_gate.dpl_not_below_cpl",
    .says = "the caller must be privileged enough for the gate (CPL <= DPL of the gate)",
    .sdm = "CALL and JMP (far), CALL-GATE",
    .fault = gp(Names::selector),
    .holds = [](Cpl cpl, Dpl dpl) { return cpl.value <= dpl.value; }};

inline constexpr Check rpl_not_above_dpl{
    .name = "call_gate.rpl_not_above_dpl",
    .says = "the selector of the gate must not ask for less privilege than the gate grants (RPL <= DPL of the gate)",
    .sdm = "CALL and JMP (far), CALL-GATE",
    .fault = gp(Names::selector),
    .holds = [](Rpl rpl, Dpl dpl) { return rpl.value <= dpl.value; }};

inline constexpr Check present{.name = "call_gate.present",
                               .says = "the gate must be present (P = 1)",
                               .sdm = "CALL and JMP (far), CALL-GATE",
                               .fault = np(Names::selector),
                               .holds = [](Present p) { return p.value; }};

}  // namespace emu::checks::call_gate
