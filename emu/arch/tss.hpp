// Where the task-state segments keep their stacks and the I/O map base (Intel SDM vol. 3, Task Management).
#pragma once
#include "arch/quantities.hpp"

namespace emu::tss {

/// 16-bit TSS: SP and SS for rings 0-2 as words from offset 2. 32-bit TSS: ESP and SS as dwords from offset 4.
constexpr u64 stack_pointer_offset(Width width, u8 cpl) {
    switch (width) {
        case Width::bits16:
            return 2 + 4u * cpl;
        case Width::bits32:
            return 4 + 8u * cpl;
        default:
            return 4 + 8u * cpl;  // RSPn in the 64-bit TSS
    }
}
constexpr u64 stack_segment_offset(Width width, u8 cpl) {
    return stack_pointer_offset(width, cpl) + (width == Width::bits16 ? 2 : 4);
}
constexpr u64 ist_offset(u8 ist) { return 28 + 8u * ist; }  // IST1 at 36
inline constexpr u64 io_map_base_offset = 102;

}  // namespace emu::tss
