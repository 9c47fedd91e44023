// Ring 0 and ring 3 of the four mechanisms; the code is in mechanisms.S.
#pragma once

#include "processor.hpp"

extern "C" {

// Entered from ring 3; each only returns there.
void int_gate_handler();
void call_gate_handler();
void syscall_handler();
void sysenter_handler();

// Called in ring 3: so many round trips.
void int_gate_rounds(u64 rounds);
void call_gate_rounds(u64 rounds);
void syscall_rounds(u64 rounds);
void sysenter_rounds(u64 rounds);

// 256 entries, one for each vector, `unexpected_entry_size` bytes apart. They call `unexpected`.
void unexpected_entries();
[[noreturn]] void unexpected(u64 vector);

// What call_gate_rounds calls through. 64-bit mode has far calls only through a pointer in memory.
struct [[gnu::packed]] FarPointer {
    u32 offset;  // ignored: the gate has the offset
    u16 selector;
};
extern const FarPointer call_gate_pointer;
}

inline constexpr u64 unexpected_entry_size = 16;
inline constexpr u8 system_call_vector = 0x80;  // also in mechanisms.S
