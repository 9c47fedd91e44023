// Descriptors of long mode, and the one table of them.
// Volume 3, "Protected-Mode Memory Management", "Protection" and "Interrupt and Exception Handling".
#pragma once

#include "processor.hpp"

// SYSENTER, SYSEXIT, SYSCALL and SYSRET add constants to a selector from an MSR; this order suits all four.
enum class Selector : u16 {
    kernel_code = 0x08,
    kernel_data = 0x10,
    user_code_32 = 0x18 | 3,  // IA32_STAR[63:48]; never used as a code segment
    user_data = 0x20 | 3,
    user_code = 0x28 | 3,
    sysexit_data = 0x30 | 3,  // SYSEXIT to 64-bit mode: IA32_SYSENTER_CS + 40
    task_state = 0x38,
    call_gate = 0x48 | 3,
};

enum class Dpl : u64 { kernel = 0, user = 3 };

// System descriptors have 16 bytes in long mode: two entries of the table.
struct SystemDescriptor {
    u64 low, high;
};

enum class GateType : u64 { call = 0xC, interrupt = 0xE };

inline SystemDescriptor gate(GateType type, Dpl dpl, void (*handler)()) {
    const u64 offset = reinterpret_cast<u64>(handler);
    return {.low = (offset & 0xFFFF) | u64(Selector::kernel_code) << 16 | u64(type) << 40 | u64(dpl) << 45 | 1ul << 47 |
                   (offset >> 16 & 0xFFFF) << 48,
            .high = offset >> 32};
}

struct [[gnu::packed]] TaskStateSegment {
    u32 reserved_0;
    u64 rsp[3];
    u64 reserved_1;
    u64 ist[7];
    u64 reserved_2;
    u16 reserved_3;
    u16 io_permission_bitmap = sizeof(TaskStateSegment);  // beyond the limit: there is none
};
static_assert(sizeof(TaskStateSegment) == 104);

inline SystemDescriptor available_tss(const TaskStateSegment& tss) {
    const u64 base = reinterpret_cast<u64>(&tss);
    return {.low = (sizeof tss - 1) | (base & 0xFFFFFF) << 16 | 0x89ul << 40 | (base >> 24 & 0xFF) << 56,
            .high = base >> 32};
}

// The accessed bits are set already, so the processor never has to write one.
struct GlobalDescriptorTable {
    u64 null = 0;
    u64 kernel_code = 0x00AF9B000000FFFF;
    u64 kernel_data = 0x00CF93000000FFFF;
    u64 user_code_32 = 0x00CFFB000000FFFF;
    u64 user_data = 0x00CFF3000000FFFF;
    u64 user_code = 0x00AFFB000000FFFF;
    u64 sysexit_data = 0x00CFF3000000FFFF;
    SystemDescriptor task_state{};
    SystemDescriptor call_gate{};
};
static_assert(sizeof(GlobalDescriptorTable) == 0x58);
