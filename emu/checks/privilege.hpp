// Instructions that only ring 0 has, and the flags and ports that IOPL guards.
#pragma once
#include "checks/check.hpp"
#include "checks/subjects.hpp"

namespace emu::checks {

/// "IF CPL != 0 THEN #GP(0)", the first line of many instructions; named after each.
template <Text use>
inline constexpr Check ring_0_only{.name = joined<use, "ring_0_only">,
                                   .says = "this instruction needs CPL = 0",
                                   .sdm = "the instruction's own page, Protected Mode Exceptions",
                                   .fault = gp(Names::nothing),
                                   .holds = [](Cpl cpl) { return cpl.value == 0; }};

/// Instructions that exist in protected mode only.
template <Text use>
inline constexpr Check protected_mode_only{.name = joined<use, "protected_mode_only">,
                                           .says = "this instruction is not recognised in real-address mode",
                                           .sdm = "the instruction's own page, Real-Address Mode Exceptions",
                                           .fault = ud,
                                           .holds = [](Flag<"CR0.PE"> pe) { return pe.value; }};

namespace interrupt_flag {
inline constexpr Check iopl_permits{.name = "interrupt_flag.iopl_permits",
                                    .says = "CLI and STI need CPL <= IOPL",
                                    .sdm = "CLI and STI, Operation",
                                    .fault = gp(Names::nothing),
                                    .holds = [](Cpl cpl, Iopl iopl) { return cpl.value <= iopl.value; }};
}  // namespace interrupt_flag

namespace port {
inline constexpr Check map_in_tss{
    .name = "port.map_in_tss",
    .says = "with CPL > IOPL the port's bits must lie within the I/O permission map of a 32- or 64-bit TSS",
    .sdm = "IN and OUT, Operation; vol. 1, I/O Permission Bit Map",
    .fault = gp(Names::nothing),
    .holds = [](Flag<"TSS has a map"> has_map, LastByte last, Limit limit) {
        return has_map.value && last.value <= limit.value;
    }};
inline constexpr Check map_permits{
    .name = "port.map_permits",
    .says = "with CPL > IOPL every bit of the ports accessed must be 0 in the I/O permission map",
    .sdm = "IN and OUT, Operation; vol. 1, I/O Permission Bit Map",
    .fault = gp(Names::nothing),
    .holds = [](Quantity<"port"> port, Quantity<"bits set"> bits) { return static_cast<void>(port), bits.value == 0; }};
}  // namespace port

namespace time_stamp {
inline constexpr Check permitted{.name = "time_stamp.permitted",
                                 .says = "RDTSC needs CPL = 0 when CR4.TSD = 1",
                                 .sdm = "RDTSC, Operation",
                                 .fault = gp(Names::nothing),
                                 .holds = [](Flag<"CR4.TSD"> tsd, Cpl cpl) { return !tsd.value || cpl.value == 0; }};
}  // namespace time_stamp

namespace umip {
inline constexpr Check permitted{.name = "umip.permitted",
                                 .says = "SGDT, SIDT, SLDT, STR and SMSW need CPL = 0 when CR4.UMIP = 1",
                                 .sdm = "SGDT, Protected Mode Exceptions",
                                 .fault = gp(Names::nothing),
                                 .holds = [](Flag<"CR4.UMIP"> umip, Cpl cpl) { return !umip.value || cpl.value == 0; }};
}  // namespace umip

namespace fsgsbase {
inline constexpr Check enabled{.name = "fsgsbase.enabled",
                               .says = "RDFSBASE, RDGSBASE, WRFSBASE and WRGSBASE need CR4.FSGSBASE = 1",
                               .sdm = "RDFSBASE, 64-Bit Mode Exceptions",
                               .fault = ud,
                               .holds = [](Flag<"CR4.FSGSBASE"> set) { return set.value; }};
inline constexpr Check canonical{.name = "fsgsbase.canonical",
                                 .says = "the base written must be canonical",
                                 .sdm = "WRFSBASE, 64-Bit Mode Exceptions",
                                 .fault = gp(Names::nothing),
                                 .holds = [](Value base) { return canonical48(base.value); }};
}  // namespace fsgsbase

namespace alignment_flag {
inline constexpr Check ring_0_only{.name = "alignment_flag.ring_0_only",
                                   .says = "STAC and CLAC need CPL = 0",
                                   .sdm = "STAC, Operation",
                                   .fault = ud,
                                   .holds = [](Cpl cpl) { return cpl.value == 0; }};
}  // namespace alignment_flag

}  // namespace emu::checks
