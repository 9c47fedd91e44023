// The core: processor, memory, translations, books, trace and doors in one plain aggregate. Rooms and handlers get it
// by reference; nothing here is virtual, nothing allocates while running.
#pragma once
#include "arch/cpu_model.hpp"
#include "cost/ledger.hpp"
#include "cpu/state.hpp"
#include "mmu/tlb.hpp"
#include "outcome.hpp"
#include "trace/recorder.hpp"

namespace emu {

struct Doors;
class BlockCache;

/// Where port accesses end up; the machine fills it in. Size is 1, 2 or 4 bytes.
struct Ports {
    void* owner = nullptr;
    u32 (*read)(void* owner, u16 port, u8 size) = nullptr;
    Outcome (*write)(void* owner, u16 port, u8 size, u32 value) = nullptr;
};

/// What the run under way keeps here for the handlers; whole whenever a door is entered.
struct Running {
    i64 budget = 0;         // instructions that this run may still retire
    u64 horizon = 0;        // core.instructions when the budget is used up
    Outcome outcome;        // why the handlers were left
    u32 code_epoch = 1;     // changes when blocks or translations may have been dropped: guards what leads to blocks
    bool arriving = false;  // a taken branch whose target is not decoded yet: next_component is still to be charged
};

struct Core {
    Processor cpu;
    Running running;
    TlbEntry* tlb = nullptr;  // the array in force for data accesses of the current instruction
    Ledger ledger;
    u64 next_rip = 0;      // set by a handler before it enters a door: where the next instruction would be
    u64 memory_value = 0;  // what a memory door loaded
    u64 fault_linear = 0;  // linear address of the last page fault: becomes CR2 on delivery
    u64 instructions = 0;  // retired so far, counting each block as a whole when it is entered
    u32 context = 0;       // mode, CPL and widths as one number; see context_of()
    bool alone = false;    // the block running is one instruction that may write to pages with code
    const Doors* doors = nullptr;
    PhysicalMemory* memory = nullptr;
    BlockCache* blocks = nullptr;
    Tlb* translations = nullptr;
    Ring ring;
    TraceLevel level = TraceLevel::off;
    u32 span = 0;  // the passage under way, and how many there were
    u32 spans = 0;
    CpuModel model;
    Ports ports;
    /// A room wrote to a page with decoded code, which ends its block anyway: drops the blocks of that page.
    void (*code_written)(Core&, u64 physical) = nullptr;

    /// Sets what follows from mode, CPL, CR0, CR4 and RFLAGS.AC: called by every commit that changes one of them.
    void refresh();
    /// refresh() and the verdicts of all segment registers: when the mode changes.
    void refresh_mode();
    AccessContext access_context(Cpl cpl) const {
        if (cpl.value == 3) return AccessContext::user;
        if ((cpu.rflags & rflags::ac) != 0 && (cpu.cr4 & cr4::smap) != 0) return AccessContext::supervisor_ac;
        return AccessContext::supervisor;
    }
};

/// Everything the decoding of an instruction depends on, and what a cached translation of code depends on.
namespace context {
inline constexpr u32 code_width_shift = 0;   // Width of code: 2 bits
inline constexpr u32 stack_width_shift = 2;  // Width of the stack: 2 bits
inline constexpr u32 cpl_shift = 4;          // 2 bits
inline constexpr u32 mode_shift = 6;         // Mode: 3 bits
}  // namespace context

}  // namespace emu
