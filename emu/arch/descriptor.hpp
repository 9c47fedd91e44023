// Segment and system descriptors as typed views of raw bits (Intel SDM vol. 3, Segment Descriptors).
//   63      56 55 54 53 52 51     48 47 46 45 44 43   40 39              16 15             0
//  +----------+--+--+--+---+---------+--+-----+--+-------+------------------+---------------+
//  | base hi  |G |DB|L |AVL|limit hi |P | DPL |S | type  |    base low      |   limit low   |
//  +----------+--+--+--+---+---------+--+-----+--+-------+------------------+---------------+
#pragma once
#include "arch/quantities.hpp"

namespace emu {

/// Types of system descriptors (S = 0): Intel SDM vol. 3, System-Segment and Gate-Descriptor Types.
namespace system_type {
inline constexpr u8 available_tss16 = 1, ldt = 2, busy_tss16 = 3, call_gate16 = 4, task_gate = 5, interrupt_gate16 = 6;
inline constexpr u8 trap_gate16 = 7, available_tss32 = 9, busy_tss32 = 11, call_gate32 = 12, interrupt_gate32 = 14;
inline constexpr u8 trap_gate32 = 15;
inline constexpr u8 available_tss64 = 9, busy_tss64 = 11, call_gate64 = 12, interrupt_gate64 = 14, trap_gate64 = 15;
}  // namespace system_type

/// S and the type field together: bit 4 is S, so code and data types never look like system types.
namespace segment_type {
inline constexpr u8 s = 0x10, code = 0x08, conforming = 0x04, expand_down = 0x04, readable = 0x02, writable = 0x02;
inline constexpr u8 accessed = 0x01;
constexpr bool is_code(TypeField t) { return (t.value & (s | code)) == (s | code); }
constexpr bool is_data(TypeField t) { return (t.value & (s | code)) == s; }
constexpr bool is_conforming(TypeField t) { return is_code(t) && (t.value & conforming) != 0; }
constexpr bool is_readable(TypeField t) { return is_data(t) || (is_code(t) && (t.value & readable) != 0); }
constexpr bool is_writable(TypeField t) { return is_data(t) && (t.value & writable) != 0; }
constexpr bool is_expand_down(TypeField t) { return is_data(t) && (t.value & expand_down) != 0; }
}  // namespace segment_type

/// Bits 40-47 and 52-55 of a descriptor, as bits 0-7 and 12-15: the attributes a segment register keeps.
struct Attributes {
    u16 value = 0;
    constexpr TypeField type() const { return {static_cast<u8>(value & 0x1F)}; }
    constexpr Dpl dpl() const { return {static_cast<u8>((value >> 5) & 3)}; }
    constexpr Present present() const { return {bit(value, 7)}; }
    constexpr LongBit l() const { return {bit(value, 13)}; }
    constexpr DefaultBit db() const { return {bit(value, 14)}; }
    constexpr bool g() const { return bit(value, 15); }
    constexpr Attributes with_dpl(u8 dpl) const { return {static_cast<u16>((value & ~0x60u) | (u32{dpl} << 5))}; }
};

struct Descriptor {
    u64 low = 0;
    u64 high = 0;     // second half of a 16-byte system descriptor in IA-32e mode, else 0
    u64 address = 0;  // linear address it was read from: where the accessed or busy bit is written

    constexpr Attributes attributes() const { return {static_cast<u16>((low >> 40) & 0xF0FF)}; }
    constexpr TypeField type() const { return attributes().type(); }
    constexpr Dpl dpl() const { return attributes().dpl(); }
    constexpr Present present() const { return attributes().present(); }
    constexpr LongBit l() const { return attributes().l(); }
    constexpr DefaultBit db() const { return attributes().db(); }
    constexpr bool conforming() const { return segment_type::is_conforming(type()); }
    constexpr u64 base() const { return field(low, 16, 24) | (field(low, 56, 8) << 24) | (high << 32); }
    /// Where the second half of a 16-byte descriptor would have its type, if it were a descriptor by itself.
    constexpr TypeField upper_type() const { return {static_cast<u8>(field(high, 40, 5))}; }
    /// Limit in bytes: with G set, the 20-bit limit counts 4-KiB units and the low 12 bits are ones.
    constexpr u32 limit() const {
        const u32 raw = static_cast<u32>(field(low, 0, 16) | (field(low, 48, 4) << 16));
        return attributes().g() ? (raw << 12) | 0xFFF : raw;
    }
};

}  // namespace emu
