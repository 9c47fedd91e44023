// The instructions C++ has no words for, one function each.
// "memory" where the processor reads or will read tables: the stores that fill them must come before.
#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long;

namespace processor {

enum class Msr : u32 {
    sysenter_cs = 0x174,
    sysenter_esp = 0x175,
    sysenter_eip = 0x176,
    star = 0xC0000081,
    lstar = 0xC0000082,
    fmask = 0xC0000084,
};

inline void write(Msr number, u64 value) {
    asm volatile("wrmsr" ::"c"(number), "a"(u32(value)), "d"(u32(value >> 32)) : "memory");
}

inline void out(u16 port, u8 value) { asm volatile("out %0, %1" ::"Nd"(port), "a"(value)); }

// Not serialising: over many thousand rounds, the few instructions that slip past it do not count.
inline u64 time_stamp() {
    u32 low, high;
    asm volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
    return u64{high} << 32 | low;
}

struct [[gnu::packed]] TableRegister {
    u16 limit;
    const void* base;
};

inline void load_gdt(const TableRegister& table) { asm volatile("lgdt %0" ::"m"(table) : "memory"); }
inline void load_idt(const TableRegister& table) { asm volatile("lidt %0" ::"m"(table) : "memory"); }
inline void load_task_register(u16 selector) { asm volatile("ltr %0" ::"r"(selector) : "memory"); }
inline void load_ss(u16 selector) { asm volatile("mov ss, %0" ::"r"(selector) : "memory"); }

[[noreturn]] inline void stop() {
    for (;;) asm volatile("cli; hlt");
}

}  // namespace processor
