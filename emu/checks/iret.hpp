// What is IRET's alone; the rest it shares with the far RET (code_segment.hpp, stack_segment.hpp).
#pragma once
#include "checks/check.hpp"
#include "checks/subjects.hpp"

namespace emu::checks::iret {

inline constexpr Check no_nested_task{.name = "iret.no_nested_task",
                                      .says = "IRET in IA-32e mode needs RFLAGS.NT = 0: there is no task to go back to",
                                      .sdm = "IRET, IA-32e-MODE",
                                      .fault = gp(Names::nothing),
                                      .holds = [](Flag<"NT"> nt) { return !nt.value; }};

}  // namespace emu::checks::iret
