// The widths the manual speaks of, by short names.
#pragma once
#include <cstddef>
#include <cstdint>

namespace emu {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

#define EMU_ALWAYS_INLINE [[gnu::always_inline]] inline

/// Sixteen bytes read from memory at once: a 64-bit gate or system descriptor.
struct Pair {
    u64 low = 0;
    u64 high = 0;
};

constexpr u64 low_bits(u64 value, unsigned count) { return count >= 64 ? value : value & ((u64{1} << count) - 1); }
constexpr u64 field(u64 value, unsigned first, unsigned count) { return low_bits(value >> first, count); }
constexpr bool bit(u64 value, unsigned at) { return ((value >> at) & 1) != 0; }

}  // namespace emu
