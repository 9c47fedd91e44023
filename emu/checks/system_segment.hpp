// LLDT and LTR (Intel SDM vol. 2).
#pragma once
#include "arch/descriptor.hpp"
#include "checks/descriptor_table.hpp"

namespace emu::checks {

namespace ldt_load {
inline constexpr Check is_ldt{.name = "ldt_load.is_ldt",
                              .says = "the descriptor must be an LDT",
                              .sdm = "LLDT, Operation",
                              .fault = gp(Names::selector),
                              .holds = [](TypeField type) { return type.value == system_type::ldt; }};
}  // namespace ldt_load

namespace task_load {
inline constexpr Check is_available_tss{
    .name = "task_load.is_available_tss",
    .says = "the descriptor must be an available TSS, not a busy one (in IA-32e mode: a 64-bit TSS)",
    .sdm = "LTR, Operation",
    .fault = gp(Names::selector),
    .holds = [](TypeField type, Flag<"IA-32e mode"> ia32e) {
        return type.value == system_type::available_tss32 ||
               (type.value == system_type::available_tss16 && !ia32e.value);
    }};
}  // namespace task_load

}  // namespace emu::checks
