// What the ledger counts. Counts are facts; a profile gives each of them a price.
//   acts          what a room does, one by one: comparisons, fetches, pushes, refills, ...
//   arms          which way a room went, once per passage: a manual that documents clocks per path prices these
//   instructions  ordinary instructions, by the classes that manuals time apart
// A profile prices acts or arms, never both for the same work.
#pragma once
#include <array>
#include <string_view>

#include "arch/integers.hpp"

namespace emu {

enum class EventKind : u8 { act, arm, instruction };

struct EventInfo {
    std::string_view name;
    EventKind kind;
    std::string_view says;
};

// One line per event: identifier, kind, sentence.
#define EMU_COST_EVENTS(E)                                                                                 \
    E(comparison, act, "one protection check")                                                             \
    E(microcode_entry, act, "leaving the decoders for the microcode of a system instruction or event")     \
    E(gate_fetch, act, "reading a gate from the IDT")                                                      \
    E(descriptor_fetch, act, "reading a segment descriptor or a call gate from the GDT or LDT")            \
    E(accessed_write, act, "setting the accessed or busy bit of a descriptor, with a locked cycle")        \
    E(tss_read, act, "reading a stack or I/O-map field of the TSS")                                        \
    E(segment_refill, act, "loading the hidden part of a segment register from a descriptor")              \
    E(segment_constant, act, "loading the hidden part of a segment register with fixed values")            \
    E(stack_switch, act, "changing to another stack")                                                      \
    E(push, act, "one value written to the stack by the processor")                                        \
    E(pop, act, "one value read from the stack by the processor")                                          \
    E(parameter_copy, act, "one parameter copied by a call gate")                                          \
    E(msr_use, act, "reading a model-specific register for a target")                                      \
    E(flags_write, act, "loading RFLAGS as a whole")                                                       \
    E(privilege_change, act, "emptying and refilling the pipeline at another privilege level")             \
    E(pipeline_refill, act, "emptying and refilling the pipeline at the same privilege level")             \
    E(serialise, act, "waiting until everything before is done")                                           \
    E(walk_step, act, "one paging-structure entry read by a page walk")                                    \
    E(walk_write, act, "an accessed or dirty flag written by a page walk")                                 \
    E(tlb_flush, act, "dropping cached translations")                                                      \
    E(exception_entry, act, "giving up the faulting instruction and everything after it")                  \
    E(interrupt_real, arm, "interrupt or exception in real mode")                                          \
    E(interrupt_same, arm, "interrupt or trap gate, same privilege")                                       \
    E(interrupt_inner, arm, "interrupt or trap gate, to more privilege")                                   \
    E(iret_real, arm, "IRET in real mode")                                                                 \
    E(iret_same, arm, "IRET, same privilege")                                                              \
    E(iret_outer, arm, "IRET, to less privilege")                                                          \
    E(far_call_real, arm, "far CALL in real mode")                                                         \
    E(far_call_segment, arm, "far CALL to a code segment")                                                 \
    E(call_gate_same, arm, "far CALL through a call gate, same privilege")                                 \
    E(call_gate_inner, arm, "far CALL through a call gate, to more privilege, no parameters")              \
    E(call_gate_inner_parameters, arm, "far CALL through a call gate, to more privilege, with parameters") \
    E(call_gate_parameter, arm, "each parameter that a call gate copies")                                  \
    E(far_jump_real, arm, "far JMP in real mode")                                                          \
    E(far_jump_segment, arm, "far JMP to a code segment")                                                  \
    E(far_jump_gate, arm, "far JMP through a call gate")                                                   \
    E(far_return_real, arm, "far RET in real mode")                                                        \
    E(far_return_same, arm, "far RET, same privilege")                                                     \
    E(far_return_outer, arm, "far RET, to less privilege")                                                 \
    E(far_indirect, arm, "a far CALL in protected mode that takes its pointer from memory")                \
    E(far_indirect_call_real, arm, "a far CALL in real mode that takes its pointer from memory")           \
    E(far_indirect_jump, arm, "a far JMP in protected mode that takes its pointer from memory")            \
    E(far_indirect_jump_real, arm, "a far JMP in real mode that takes its pointer from memory")            \
    E(interrupt_breakpoint_real, arm, "INT3 in real mode, instead of interrupt_real")                      \
    E(interrupt_overflow_real, arm, "INTO taken in real mode, instead of interrupt_real")                  \
    E(sysenter, arm, "SYSENTER")                                                                           \
    E(sysexit, arm, "SYSEXIT")                                                                             \
    E(syscall, arm, "SYSCALL")                                                                             \
    E(sysret, arm, "SYSRET")                                                                               \
    E(swapgs, arm, "SWAPGS")                                                                               \
    E(load_segment_real, arm, "MOV to a segment register in real mode")                                    \
    E(load_segment, arm, "MOV to a segment register in protected mode")                                    \
    E(pop_segment_real, arm, "POP to a segment register in real mode")                                     \
    E(pop_segment, arm, "POP to a segment register in protected mode")                                     \
    E(load_far_pointer_real, arm, "LDS, LES, LSS, LFS, LGS in real mode")                                  \
    E(load_far_pointer_ds, arm, "LDS, LES, LSS in protected mode")                                         \
    E(load_far_pointer_fs, arm, "LFS, LGS in protected mode")                                              \
    E(load_segment_memory, arm, "a segment register or LLDT, LTR, LMSW operand that comes from memory")    \
    E(lldt, arm, "LLDT")                                                                                   \
    E(ltr, arm, "LTR")                                                                                     \
    E(lgdt, arm, "LGDT or LIDT")                                                                           \
    E(lmsw, arm, "LMSW")                                                                                   \
    E(clts, arm, "CLTS")                                                                                   \
    E(cli_sti, arm, "CLI or STI")                                                                          \
    E(pushf, arm, "PUSHF")                                                                                 \
    E(popf, arm, "POPF")                                                                                   \
    E(hlt, arm, "HLT")                                                                                     \
    E(read_cr, arm, "MOV from a control register")                                                         \
    E(write_cr0, arm, "MOV to CR0")                                                                        \
    E(write_cr2, arm, "MOV to CR2")                                                                        \
    E(write_cr3, arm, "MOV to CR3")                                                                        \
    E(write_cr4, arm, "MOV to CR4 or CR8")                                                                 \
    E(read_dr, arm, "MOV from DR0-DR3")                                                                    \
    E(read_dr67, arm, "MOV from DR4-DR7")                                                                  \
    E(write_dr, arm, "MOV to DR0-DR3")                                                                     \
    E(write_dr67, arm, "MOV to DR4-DR7")                                                                   \
    E(rdmsr, arm, "RDMSR")                                                                                 \
    E(wrmsr, arm, "WRMSR")                                                                                 \
    E(cpuid, arm, "CPUID")                                                                                 \
    E(rdtsc, arm, "RDTSC or RDTSCP")                                                                       \
    E(invlpg, arm, "INVLPG")                                                                               \
    E(port_read, arm, "IN")                                                                                \
    E(port_write, arm, "OUT")                                                                              \
    E(next_component, arm, "each component of the instruction a transfer goes to (the 386 manual's m)")    \
    E(move, instruction, "MOV between registers, or of an immediate")                                      \
    E(load, instruction, "MOV, MOVZX or MOVSX from memory")                                                \
    E(store, instruction, "MOV to memory")                                                                 \
    E(extend, instruction, "MOVZX or MOVSX between registers, CBW, CWD")                                   \
    E(alu, instruction, "arithmetic or logic on registers")                                                \
    E(alu_load, instruction, "arithmetic or logic with a memory source, or CMP and TEST with memory")      \
    E(alu_modify, instruction, "arithmetic or logic that reads and writes memory")                         \
    E(lea, instruction, "LEA")                                                                             \
    E(nop, instruction, "NOP, PAUSE, prefetches and fences without work")                                  \
    E(shift, instruction, "shift or rotate of a register")                                                 \
    E(shift_modify, instruction, "shift or rotate of memory")                                              \
    E(bit_test, instruction, "BT, BTS, BTR, BTC, BSF, BSR, BSWAP")                                         \
    E(multiply, instruction, "MUL or IMUL")                                                                \
    E(divide, instruction, "DIV or IDIV")                                                                  \
    E(push_register, instruction, "PUSH of a register or immediate")                                       \
    E(push_memory, instruction, "PUSH of memory")                                                          \
    E(pop_register, instruction, "POP")                                                                    \
    E(call_near, instruction, "near CALL")                                                                 \
    E(return_near, instruction, "near RET")                                                                \
    E(jump_near, instruction, "near JMP")                                                                  \
    E(jump_conditional, instruction, "Jcc, whether taken or not")                                          \
    E(jump_taken, instruction, "what a taken Jcc costs beside jump_conditional")                           \
    E(loop, instruction, "LOOP, LOOPE, LOOPNE, JCXZ")                                                      \
    E(string_start, instruction, "starting a string instruction")                                          \
    E(string_step, instruction, "one iteration of a string instruction")                                   \
    E(exchange, instruction, "XCHG, XADD, CMPXCHG")                                                        \
    E(flag_change, instruction, "CLC, STC, CMC, CLD, STD, LAHF, SAHF, SETcc, CMOVcc")                      \
    E(frame, instruction, "ENTER, LEAVE, PUSHA, POPA")                                                     \
    E(decimal, instruction, "the BCD group, XLAT, SALC")                                                   \
    E(store_segment, instruction, "MOV or PUSH from a segment register, SGDT, SIDT, SLDT, STR, SMSW")      \
    E(inspect, instruction, "LAR, LSL, VERR, VERW, ARPL")                                                  \
    E(other, instruction, "anything not named above")

enum class CostEvent : u8 {
#define EMU_COST_EVENT(name, kind, says) name,
    EMU_COST_EVENTS(EMU_COST_EVENT)
#undef EMU_COST_EVENT
        count
};

inline constexpr std::size_t cost_event_count = static_cast<std::size_t>(CostEvent::count);
constexpr std::size_t index(CostEvent event) { return static_cast<std::size_t>(event); }

inline constexpr std::array<EventInfo, cost_event_count> cost_events{{
#define EMU_COST_EVENT(name, kind, says) {#name, EventKind::kind, says},
    EMU_COST_EVENTS(EMU_COST_EVENT)
#undef EMU_COST_EVENT
}};

}  // namespace emu
