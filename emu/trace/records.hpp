// The one append-only stream in which the core says what happened: fixed-size events. Explanations, traces, autopsies
// and cost tables are views of it, made in Python.
#pragma once
#include "arch/integers.hpp"

namespace emu {

enum class Mechanism : u8 {
    none,
    interrupt_delivery,  // INT n, INT3, INTO, INT1
    exception_delivery,
    interrupt_return,
    far_call,
    far_jump,
    far_return,
    sysenter,
    sysexit,
    syscall,
    sysret,
    swapgs,
    load_segment,
    load_ldtr,
    load_task_register,
    load_table_register,
    control_register,
    debug_register,
    model_specific_register,
    port,
    privileged,  // HLT, CLTS, INVD, WBINVD, INVLPG, LMSW, CLI, STI, POPF
    memory,      // a data access that left the hot path
    fetch,       // decoding code that was not decoded yet; not counted (see memory_access.cpp)
    decode,
    count
};

enum class RecordKind : u8 {
    begin,   // a room is entered      id: Mechanism  a: RIP      b: place  c: vector, selector or register  d: next RIP
    check,   // a check was made       id: CheckId    a, b, c: operands, in order        d: what was examined; held
    read,    // a structure was read   id: Structure  a: linear   b: value   c: size
    write,   // a structure was written               a: linear   b: value   c: size
    push,    // a value went on a stack               id: Pushed  a: linear   b: value   c: size
    pop,     // a value came off a stack              id: Pushed  a: linear   b: value   c: size
    commit,  // the new state is in force             a: RIP      b: place   c: RSP      d: RFLAGS
    fault,   // a fault is raised      id: CheckId    a: vector   b: error code  c: CR2 if #PF   d: RIP of the
             // instruction
    escalate,  // while delivering one fault another came    a: first vector  b: second vector  c: becomes (8: #DF, 255:
               // shutdown)
    cost,      // an act was charged     id: CostEvent  a: how many
    end,       // the room is left      id: Mechanism
};

/// What a read or write of memory by the processor itself was for.
enum class Structure : u8 { gdt, ldt, idt, tss, page_entry, ivt, io_map, count };

/// What a value pushed or popped by the processor is.
enum class Pushed : u8 {
    ss,
    stack_pointer,
    flags,
    cs,
    instruction_pointer,
    error_code,
    parameter,
    es,
    ds,
    fs,
    gs,
    count
};

/// "place": CS selector, CPL and mode packed in one word, so that begin and commit say where the processor was.
struct Place {
    static constexpr u64 pack(u16 cs, u8 cpl, u8 mode) { return u64{cs} | (u64{cpl} << 16) | (u64{mode} << 24); }
};

struct Record {
    u64 cycles;        // thousandths, at the moment of the event
    u64 instructions;  // retired before the instruction that caused it
    u16 id;
    RecordKind kind;
    u8 held;   // check: 1 if the condition held
    u32 span;  // which passage through a room it belongs to; 0: none
    u64 a, b, c, d;
};
static_assert(sizeof(Record) == 56);

/// How much a run writes down.
enum class TraceLevel : u8 {
    off,          // only what an autopsy needs: failed checks, faults, escalations
    transitions,  // begin, commit and end of each room as well
    checks,       // everything
};

}  // namespace emu
