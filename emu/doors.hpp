// Every way from the hot path to the slow one: the index of all rooms.
//
// Contract. Before a handler enters a door, cpu.rip is the address of its instruction, core.next_rip that of the
// following one, and cpu.rflags is whole. A room that transfers control sets cpu.rip itself; after any other room the
// handler goes on at next_rip. A room that faults has changed nothing, and its Outcome goes to the run loop.
// There are two tables: rooms compiled to be silent, and rooms that record. Choosing one is one pointer.
#pragma once
#include "core.hpp"

namespace emu {

enum class SoftwareInterrupt : u8 { int_n, int3, into, int1 };

struct FarPointer {
    u16 selector = 0;
    u64 offset = 0;
    bool indirect = false;  // it came from memory
};

/// Where a selector for a load came from: manuals time these apart.
enum class LoadKind : u8 { move, move_memory, pop, far_pointer };

/// What an ordinary instruction ran into; each names its check.
enum class Trouble : u8 {
    invalid_opcode,        // no such instruction in this mode: #UD
    lock_not_allowed,      // LOCK before an instruction or operand that cannot be locked: #UD
    too_long,              // more than 15 bytes: #GP(0)
    divide,                // DIV, IDIV, AAM: zero divisor or quotient too large: #DE
    bound,                 // BOUND: #BR
    no_fpu,                // x87 or SIMD: unmodelled
    branch_limit,          // near branch outside CS.limit: #GP(0)
    branch_not_canonical,  // near branch in 64-bit mode: #GP(0)
};

struct Doors {
    // memory: what the inline path could not do (no translation yet, page crossing, limit, ROM, code page, ...)
    Outcome (*load)(Core&, SegmentName, u64 at, u8 size);            // value in core.memory_value
    Outcome (*load_to_modify)(Core&, SegmentName, u64 at, u8 size);  // the same, but faults as a store would
    Outcome (*store)(Core&, SegmentName, u64 at, u8 size, u64 value);
    /// Bytes of the instruction at CS:rip, for the decoder: at least 1, up to 15, in `bytes`; the physical address of
    /// the first. Fetching stops at a page's end unless `needed` bytes ask for more.
    Outcome (*fetch)(Core&, u64 rip, u8 needed, u8* bytes, u8& count, u64& physical);

    // transfers between privilege levels
    Outcome (*deliver_exception)(Core&, Fault);  // faults of all the above end here; loops through #DF to shutdown
    Outcome (*software_interrupt)(Core&, SoftwareInterrupt, u8 vector);
    Outcome (*interrupt_return)(Core&, Width);
    Outcome (*far_call)(Core&, FarPointer, Width);
    Outcome (*far_jump)(Core&, FarPointer, Width);
    Outcome (*far_return)(Core&, Width, u16 release);
    Outcome (*sysenter)(Core&);
    Outcome (*sysexit)(Core&, Width);
    Outcome (*syscall)(Core&);
    Outcome (*sysret)(Core&, Width);
    Outcome (*swapgs)(Core&);

    // segment and system registers
    Outcome (*load_segment)(Core&, SegmentName, u16 selector, LoadKind);
    Outcome (*load_ldtr)(Core&, u16 selector, bool from_memory);
    Outcome (*load_task_register)(Core&, u16 selector, bool from_memory);
    Outcome (*load_gdtr)(Core&, u64 base, u16 limit);
    Outcome (*load_idtr)(Core&, u64 base, u16 limit);
    Outcome (*may_store_system_register)(Core&);  // SGDT, SIDT, SLDT, STR, SMSW: CR4.UMIP
    Outcome (*read_control)(Core&, u8 number);    // value in core.memory_value
    Outcome (*write_control)(Core&, u8 number, u64 value);
    Outcome (*read_debug)(Core&, u8 number);  // value in core.memory_value
    Outcome (*write_debug)(Core&, u8 number, u64 value);
    Outcome (*load_machine_status)(Core&, u16 value, bool from_memory);  // LMSW
    Outcome (*clear_task_switched)(Core&);                               // CLTS
    Outcome (*read_msr)(Core&);                                          // RDMSR: ECX -> EDX:EAX
    Outcome (*write_msr)(Core&);
    Outcome (*read_time_stamp)(Core&, bool with_aux);  // RDTSC, RDTSCP
    Outcome (*read_base)(Core&, SegmentName);          // RDFSBASE, RDGSBASE: core.memory_value
    Outcome (*write_base)(Core&, SegmentName, u64 value);
    Outcome (*cpuid)(Core&);
    Outcome (*invalidate_page)(Core&, SegmentName, u64 at);  // INVLPG
    Outcome (*invalidate_caches)(Core&);                     // INVD, WBINVD
    Outcome (*halt)(Core&);
    Outcome (*clear_interrupt_flag)(Core&);
    Outcome (*set_interrupt_flag)(Core&);
    Outcome (*set_alignment_check)(Core&, bool);    // STAC, CLAC
    Outcome (*pop_flags)(Core&, u64 value, Width);  // POPF: what was popped
    Outcome (*push_flags)(Core&, Width);            // PUSHF: what to push, in core.memory_value

    // inspection of descriptors: LAR, LSL, VERR, VERW: ZF in cpu.rflags; LAR and LSL leave their result in memory_value
    Outcome (*load_access_rights)(Core&, u16 selector);
    Outcome (*load_segment_limit)(Core&, u16 selector);
    Outcome (*verify_segment)(Core&, u16 selector, bool for_write);

    // ports
    Outcome (*port_in)(Core&, u16 port, u8 size);  // value in core.memory_value
    Outcome (*port_out)(Core&, u16 port, u8 size, u32 value);

    /// What an ordinary instruction ran into: always returns a fault or a stop.
    Outcome (*trouble)(Core&, Trouble);
    /// The verdict on what is decided anew each time (divide, bound) or when a branch is first linked: passes or
    /// faults.
    Outcome (*judge)(Core&, Trouble, bool holds);
};

extern const Doors silent_doors;
extern const Doors recording_doors;

}  // namespace emu
