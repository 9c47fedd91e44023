// What may be written to control, debug, model-specific and descriptor-table registers.
#pragma once
#include "arch/control.hpp"
#include "arch/descriptor.hpp"
#include "checks/check.hpp"
#include "checks/subjects.hpp"

namespace emu::checks {

namespace control {
inline constexpr Check register_exists{
    .name = "control.register_exists",
    .says = "only CR0, CR2, CR3, CR4 and (in 64-bit mode) CR8 exist",
    .sdm = "MOV - Move to/from Control Registers, Protected and 64-Bit Mode Exceptions",
    .fault = ud,
    .holds = [](Quantity<"CR"> number, Flag<"64-bit mode"> mode64) {
        return number.value == 0 || (number.value >= 2 && number.value <= 4) || (number.value == 8 && mode64.value);
    }};
inline constexpr Check cr0_upper_clear{.name = "control.cr0_upper_clear",
                                       .says = "bits 63:32 of CR0 are reserved",
                                       .sdm = "MOV - Move to/from Control Registers, 64-Bit Mode Exceptions",
                                       .fault = gp(Names::nothing),
                                       .holds = [](Value cr0) { return (cr0.value >> 32) == 0; }};
inline constexpr Check paging_needs_protection{
    .name = "control.paging_needs_protection",
    .says = "CR0.PG = 1 needs CR0.PE = 1",
    .sdm = "MOV - Move to/from Control Registers, Protected Mode Exceptions",
    .fault = gp(Names::nothing),
    .holds = [](Value cr0) { return (cr0.value & cr0::pg) == 0 || (cr0.value & cr0::pe) != 0; }};
inline constexpr Check write_through_needs_cache_disable{
    .name = "control.write_through_needs_cache_disable",
    .says = "CR0.NW = 1 needs CR0.CD = 1",
    .sdm = "MOV - Move to/from Control Registers, Protected Mode Exceptions",
    .fault = gp(Names::nothing),
    .holds = [](Value cr0) { return (cr0.value & cr0::nw) == 0 || (cr0.value & cr0::cd) != 0; }};
inline constexpr Check long_paging_needs_pae{
    .name = "control.long_paging_needs_pae",
    .says = "setting CR0.PG with EFER.LME = 1 needs CR4.PAE = 1",
    .sdm = "MOV - Move to/from Control Registers; vol. 3, Initializing IA-32e Mode",
    .fault = gp(Names::nothing),
    .holds = [](Flag<"EFER.LME"> lme, Flag<"CR4.PAE"> pae) { return !lme.value || pae.value; }};
inline constexpr Check long_paging_from_legacy_code{
    .name = "control.long_paging_from_legacy_code",
    .says = "setting CR0.PG with EFER.LME = 1 needs CS.L = 0",
    .sdm = "Vol. 3, IA-32e Mode Operation; Initializing IA-32e Mode",
    .fault = gp(Names::nothing),
    .holds = [](Flag<"EFER.LME"> lme, LongBit l) { return !lme.value || !l.value; }};
inline constexpr Check long_paging_needs_32_bit_tss{
    .name = "control.long_paging_needs_32_bit_tss",
    .says = "setting CR0.PG with EFER.LME = 1 needs a task register that holds no 16-bit TSS",
    .sdm = "Vol. 3, Initializing IA-32e Mode",
    .fault = gp(Names::nothing),
    .holds = [](Flag<"EFER.LME"> lme, TypeField tss) {
        return !lme.value || (tss.value != system_type::available_tss16 && tss.value != system_type::busy_tss16);
    }};
inline constexpr Check paging_stays_in_64_bit{
    .name = "control.paging_stays_in_64_bit",
    .says = "CR0.PG cannot be cleared in 64-bit mode",
    .sdm = "MOV - Move to/from Control Registers, 64-Bit Mode Exceptions",
    .fault = gp(Names::nothing),
    .holds = [](Value cr0, Flag<"64-bit mode"> mode64) { return (cr0.value & cr0::pg) != 0 || !mode64.value; }};
inline constexpr Check cr3_reserved_clear{
    .name = "control.cr3_reserved_clear",
    .says = "bits 63:MAXPHYADDR of CR3 are reserved",
    .sdm = "MOV - Move to/from Control Registers, 64-Bit Mode Exceptions",
    .fault = gp(Names::nothing),
    .holds = [](Value cr3, Quantity<"reserved bits"> reserved) { return (cr3.value & reserved.value) == 0; }};
inline constexpr Check pdpte_reserved_clear{
    .name = "control.pdpte_reserved_clear",
    .says = "the reserved bits of every present PDPTE must be 0 when PAE paging loads the four PDPTE registers",
    .sdm = "Vol. 3, PDPTE Registers; MOV - Move to/from Control Registers",
    .fault = gp(Names::nothing),
    .holds = [](Quantity<"PDPTE"> pdpte, Quantity<"reserved bits"> reserved) {
        return (pdpte.value & 1) == 0 || (pdpte.value & reserved.value) == 0;
    }};
inline constexpr Check cr4_reserved_clear{
    .name = "control.cr4_reserved_clear",
    .says = "bits of CR4 that this processor does not have must be 0",
    .sdm = "MOV - Move to/from Control Registers, Protected Mode Exceptions",
    .fault = gp(Names::nothing),
    .holds = [](Value cr4, Quantity<"bits this CPU has"> known) { return (cr4.value & ~known.value) == 0; }};
inline constexpr Check pae_stays_in_long_mode{
    .name = "control.pae_stays_in_long_mode",
    .says = "CR4.PAE cannot be cleared in IA-32e mode",
    .sdm = "MOV - Move to/from Control Registers, Protected Mode Exceptions",
    .fault = gp(Names::nothing),
    .holds = [](Value cr4, Flag<"EFER.LMA"> lma) { return (cr4.value & cr4::pae) != 0 || !lma.value; }};
inline constexpr Check cr8_reserved_clear{.name = "control.cr8_reserved_clear",
                                          .says = "bits 63:4 of CR8 are reserved",
                                          .sdm = "MOV - Move to/from Control Registers, 64-Bit Mode Exceptions",
                                          .fault = gp(Names::nothing),
                                          .holds = [](Value cr8) { return (cr8.value >> 4) == 0; }};
}  // namespace control

namespace debug {
inline constexpr Check register_exists{
    .name = "debug.register_exists",
    .says = "DR4 and DR5 exist only as other names of DR6 and DR7 while CR4.DE = 0; DR8 and above do not exist",
    .sdm = "MOV - Move to/from Debug Registers, Operation",
    .fault = ud,
    .holds = [](Quantity<"DR"> number, Flag<"CR4.DE"> de) {
        return number.value < 8 && !(de.value && (number.value == 4 || number.value == 5));
    }};
inline constexpr Check upper_clear{.name = "debug.upper_clear",
                                   .says = "bits 63:32 of DR6 and DR7 are reserved",
                                   .sdm = "MOV - Move to/from Debug Registers, 64-Bit Mode Exceptions",
                                   .fault = gp(Names::nothing),
                                   .holds = [](Value value) { return (value.value >> 32) == 0; }};
}  // namespace debug

namespace model_specific {
inline constexpr Check exists{
    .name = "msr.exists",
    .says = "ECX must name a model-specific register that this processor has",
    .sdm = "RDMSR and WRMSR, Protected Mode Exceptions",
    .fault = gp(Names::nothing),
    .holds = [](Msr number, Flag<"implemented"> known) { return static_cast<void>(number), known.value; }};
inline constexpr Check reserved_clear{.name = "msr.reserved_clear",
                                      .says = "the reserved bits of a model-specific register must be 0",
                                      .sdm = "WRMSR, Protected Mode Exceptions",
                                      .fault = gp(Names::nothing),
                                      .holds = [](Msr number, Value value, Quantity<"reserved bits"> reserved) {
                                          return static_cast<void>(number), (value.value & reserved.value) == 0;
                                      }};
inline constexpr Check canonical{
    .name = "msr.canonical",
    .says = "a model-specific register that holds a linear address takes canonical values only",
    .sdm = "WRMSR, Protected Mode Exceptions",
    .fault = gp(Names::nothing),
    .holds = [](Msr number, Value value) { return static_cast<void>(number), canonical48(value.value); }};
inline constexpr Check long_mode_stays_while_paging{
    .name = "msr.long_mode_stays_while_paging",
    .says = "EFER.LME cannot change while CR0.PG = 1",
    .sdm = "Vol. 3, IA-32e Mode Operation",
    .fault = gp(Names::nothing),
    .holds = [](Flag<"LME changes"> changes, Flag<"CR0.PG"> pg) { return !(changes.value && pg.value); }};
inline constexpr Check memory_types_valid{.name = "msr.memory_types_valid",
                                          .says = "each byte of IA32_PAT must hold a memory type: 0, 1, 4, 5, 6 or 7",
                                          .sdm = "Vol. 3, IA32_PAT MSR",
                                          .fault = gp(Names::nothing),
                                          .holds = [](Value pat) {
                                              for (unsigned i = 0; i < 8; ++i)
                                                  if (const u64 type = field(pat.value, 8 * i, 8);
                                                      type > 7 || type == 2 || type == 3)
                                                      return false;
                                              return true;
                                          }};
}  // namespace model_specific

namespace table_register {
inline constexpr Check base_canonical{.name = "table_register.base_canonical",
                                      .says = "in 64-bit mode LGDT and LIDT take canonical bases only",
                                      .sdm = "LGDT/LIDT, 64-Bit Mode Exceptions",
                                      .fault = gp(Names::nothing),
                                      .holds = [](Linear base) { return canonical48(base.value); }};
}  // namespace table_register

}  // namespace emu::checks
