// The gate that an interrupt or exception names (Intel SDM vol. 2, INT n, PROTECTED-MODE, IA-32e-MODE,
// REAL-ADDRESS-MODE).
#pragma once
#include "arch/descriptor.hpp"
#include "checks/check.hpp"
#include "checks/subjects.hpp"

namespace emu::checks::idt {

inline constexpr Check entry_within_limit{
    .name = "idt.entry_within_limit",
    .says = "the gate must lie within the limit of the IDT",
    .sdm = "INT n, PROTECTED-MODE and IA-32e-MODE",
    .fault = gp(Names::idt_entry),
    .holds = [](LastByte last, Limit limit) { return last.value <= limit.value; }};

inline constexpr Check gate_type_allowed{
    .name = "idt.gate_type_allowed",
    .says = "the entry must be an interrupt, trap or task gate (in IA-32e mode: a 64-bit interrupt or trap gate)",
    .sdm = "INT n, PROTECTED-MODE and IA-32e-MODE",
    .fault = gp(Names::idt_entry),
    .holds = [](TypeField type, Flag<"IA-32e mode"> ia32e) {
        if (ia32e.value) return type.value == system_type::interrupt_gate64 || type.value == system_type::trap_gate64;
        return type.value == system_type::task_gate || type.value == system_type::interrupt_gate16 ||
               type.value == system_type::trap_gate16 || type.value == system_type::interrupt_gate32 ||
               type.value == system_type::trap_gate32;
    }};

inline constexpr Check gate_dpl_permits{.name = "idt.gate_dpl_permits",
                                        .says = "a software interrupt needs CPL <= DPL of the gate",
                                        .sdm = "INT n, PROTECTED-MODE and IA-32e-MODE",
                                        .fault = gp(Names::idt_entry),
                                        .holds = [](Cpl cpl, Dpl dpl) { return cpl.value <= dpl.value; }};

inline constexpr Check gate_present{.name = "idt.gate_present",
                                    .says = "the gate must be present (P = 1)",
                                    .sdm = "INT n, PROTECTED-MODE and IA-32e-MODE",
                                    .fault = np(Names::idt_entry),
                                    .holds = [](Present p) { return p.value; }};

inline constexpr Check vector_within_ivt{.name = "idt.vector_within_ivt",
                                         .says = "the entry must lie within the limit of the interrupt vector table",
                                         .sdm = "INT n, REAL-ADDRESS-MODE",
                                         .fault = gp(Names::nothing),
                                         .holds = [](LastByte last, Limit limit) { return last.value <= limit.value; }};

}  // namespace emu::checks::idt
