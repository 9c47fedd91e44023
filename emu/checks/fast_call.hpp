// SYSENTER, SYSEXIT, SYSCALL, SYSRET, SWAPGS (Intel SDM vol. 2; AMD APM vol. 3 where it differs).
#pragma once
#include "arch/cpu_model.hpp"
#include "checks/check.hpp"
#include "checks/subjects.hpp"

namespace emu::checks {

namespace sysenter {
inline constexpr Check mode_allows{
    .name = "sysenter.mode_allows",
    .says = "AMD processors have SYSENTER and SYSEXIT only outside long mode",
    .sdm = "AMD APM vol. 3, SYSENTER and SYSEXIT",
    .fault = ud,
    .holds = [](Flag<"AMD rules"> amd, Flag<"EFER.LMA"> lma) { return !(amd.value && lma.value); }};
inline constexpr Check protected_mode{.name = "sysenter.protected_mode",
                                      .says = "SYSENTER needs protected mode (CR0.PE = 1)",
                                      .sdm = "SYSENTER, Operation",
                                      .fault = gp(Names::nothing),
                                      .holds = [](Flag<"CR0.PE"> pe) { return pe.value; }};
inline constexpr Check target_not_null{.name = "sysenter.target_not_null",
                                       .says = "IA32_SYSENTER_CS must hold a selector that is not null",
                                       .sdm = "SYSENTER, Operation",
                                       .fault = gp(Names::nothing),
                                       .holds = [](Selector selector) { return !selector.is_null(); }};
}  // namespace sysenter

namespace sysexit {
inline constexpr Check protected_mode{.name = "sysexit.protected_mode",
                                      .says = "SYSEXIT needs protected mode (CR0.PE = 1)",
                                      .sdm = "SYSEXIT, Operation",
                                      .fault = gp(Names::nothing),
                                      .holds = [](Flag<"CR0.PE"> pe) { return pe.value; }};
inline constexpr Check target_not_null{.name = "sysexit.target_not_null",
                                       .says = "IA32_SYSENTER_CS must hold a selector that is not null",
                                       .sdm = "SYSEXIT, Operation",
                                       .fault = gp(Names::nothing),
                                       .holds = [](Selector selector) { return !selector.is_null(); }};
inline constexpr Check from_ring_0{.name = "sysexit.from_ring_0",
                                   .says = "SYSEXIT needs CPL = 0",
                                   .sdm = "SYSEXIT, Operation",
                                   .fault = gp(Names::nothing),
                                   .holds = [](Cpl cpl) { return cpl.value == 0; }};
inline constexpr Check pointer_canonical{.name = "sysexit.pointer_canonical",
                                         .says = "with REX.W the return address in RDX must be canonical",
                                         .sdm = "SYSEXIT, 64-Bit Mode Exceptions",
                                         .fault = gp(Names::nothing),
                                         .holds = [](Offset rdx) { return canonical48(rdx.value); }};
inline constexpr Check stack_canonical{.name = "sysexit.stack_canonical",
                                       .says = "with REX.W the stack pointer in RCX must be canonical",
                                       .sdm = "SYSEXIT, 64-Bit Mode Exceptions",
                                       .fault = gp(Names::nothing),
                                       .holds = [](Offset rcx) { return canonical48(rcx.value); }};
}  // namespace sysexit

namespace syscall {
inline constexpr Check enabled{.name = "syscall.enabled",
                               .says = "SYSCALL needs EFER.SCE = 1",
                               .sdm = "SYSCALL, Operation",
                               .fault = ud,
                               .holds = [](Flag<"EFER.SCE"> sce) { return sce.value; }};
inline constexpr Check mode_allows{
    .name = "syscall.mode_allows",
    .says = "Intel processors have SYSCALL in 64-bit mode only (AMD: in protected mode and long mode)",
    .sdm = "SYSCALL, Operation; AMD APM vol. 3, SYSCALL",
    .fault = ud,
    .holds = [](Flag<"64-bit mode"> mode64, Flag<"AMD rules"> amd, Flag<"CR0.PE"> pe) {
        return mode64.value || (amd.value && pe.value);
    }};
}  // namespace syscall

namespace sysret {
inline constexpr Check enabled{.name = "sysret.enabled",
                               .says = "SYSRET needs EFER.SCE = 1",
                               .sdm = "SYSRET, Operation",
                               .fault = ud,
                               .holds = [](Flag<"EFER.SCE"> sce) { return sce.value; }};
inline constexpr Check mode_allows{
    .name = "sysret.mode_allows",
    .says = "Intel processors have SYSRET in 64-bit mode only (AMD: in all modes)",
    .sdm = "SYSRET, Operation; AMD APM vol. 3, SYSRET",
    .fault = ud,
    .holds = [](Flag<"64-bit mode"> mode64, Flag<"AMD rules"> amd) { return mode64.value || amd.value; }};
inline constexpr Check protected_mode{.name = "sysret.protected_mode",
                                      .says = "SYSRET needs protected mode (CR0.PE = 1)",
                                      .sdm = "AMD APM vol. 3, SYSRET",
                                      .fault = gp(Names::nothing),
                                      .holds = [](Flag<"CR0.PE"> pe) { return pe.value; }};
inline constexpr Check from_ring_0{.name = "sysret.from_ring_0",
                                   .says = "SYSRET needs CPL = 0",
                                   .sdm = "SYSRET, Operation",
                                   .fault = gp(Names::nothing),
                                   .holds = [](Cpl cpl) { return cpl.value == 0; }};
inline constexpr Check pointer_canonical{.name = "sysret.pointer_canonical",
                                         .says =
                                             "Intel: with REX.W the return address in RCX must be canonical, and the "
                                             "#GP comes in ring 0, on the user's stack",
                                         .sdm = "SYSRET, Operation",
                                         .fault = gp(Names::nothing),
                                         .holds = [](Offset rcx) { return canonical48(rcx.value); }};
}  // namespace sysret

namespace swapgs {
inline constexpr Check mode_allows{.name = "swapgs.mode_allows",
                                   .says = "SWAPGS exists in 64-bit mode only",
                                   .sdm = "SWAPGS, Operation",
                                   .fault = ud,
                                   .holds = [](Flag<"64-bit mode"> mode64) { return mode64.value; }};
inline constexpr Check from_ring_0{.name = "swapgs.from_ring_0",
                                   .says = "SWAPGS needs CPL = 0",
                                   .sdm = "SWAPGS, Operation",
                                   .fault = gp(Names::nothing),
                                   .holds = [](Cpl cpl) { return cpl.value == 0; }};
}  // namespace swapgs

}  // namespace emu::checks
