// A segment register: the selector, the hidden part the manual describes, and the verdict the hot path uses.
//
// The hidden part caches the outcome of the checks of a segment load. The verdict caches what limit, type and mode
// together admit, so that an access compares one number: a miss goes to the checks by name (memory_access.cpp).
#pragma once
#include "arch/descriptor.hpp"
#include "arch/selector.hpp"

namespace emu {

enum class SegmentName : u8 { es, cs, ss, ds, fs, gs };
inline constexpr std::size_t segment_count = 6;

struct SegmentRegister {
    Selector selector;
    Attributes attributes;
    u32 limit = 0;
    u64 base = 0;

    // The verdict. An access of up to 16 bytes at `at` is admitted if at - first < room.
    u64 linear_base = 0;
    u64 first = 0;
    u64 read_room = 0;
    u64 write_room = 0;

    EMU_ALWAYS_INLINE bool admits_read(u64 at) const { return at - first < read_room; }
    EMU_ALWAYS_INLINE bool admits_write(u64 at) const { return at - first < write_room; }
    EMU_ALWAYS_INLINE u64 linear(u64 at) const { return linear_base + at; }
    /// For what the verdict does not admit: outside 64-bit mode linear addresses have 32 bits and wrap.
    u64 linear(u64 at, Mode mode) const { return mode == Mode::long64 ? linear(at) : (base + at) & 0xFFFFFFFF; }

    /// First and last offset that the limit admits (Intel SDM vol. 3, Limit Checking); empty if first > last.
    constexpr u64 lowest() const { return segment_type::is_expand_down(attributes.type()) ? u64{limit} + 1 : 0; }
    constexpr u64 highest() const {
        if (!segment_type::is_expand_down(attributes.type())) return limit;
        return attributes.db().value ? 0xFFFFFFFF : 0xFFFF;
    }

    /// Rebuilds the verdict; called after a load, and for all six when the mode changes.
    void judge(SegmentName name, Mode mode) {
        if (mode == Mode::long64) {
            linear_base = name >= SegmentName::fs ? base : 0;
            first = 0;
            read_room = write_room = ~u64{0};
            return;
        }
        const bool checked = mode != Mode::real && mode != Mode::virtual8086;
        const TypeField type = attributes.type();
        const u64 low = lowest(), high = highest();
        // Fifteen bytes are held back, so that an access that passes ends inside; nothing wraps at 4 GiB either.
        const u64 wrap = (u64{1} << 32) - (base & 0xFFFFFFFF);
        const u64 end = high + 1 < wrap ? high + 1 : wrap;
        const u64 room = low + 15 < end ? end - low - 15 : 0;
        linear_base = base;
        first = low;
        read_room = !checked || (attributes.present().value && segment_type::is_readable(type)) ? room : 0;
        write_room = !checked || (attributes.present().value && segment_type::is_writable(type)) ? room : 0;
    }
};

/// LDTR and TR: a selector with a hidden part. GDTR and IDTR: base and limit alone.
struct SystemSegment {
    Selector selector;
    Attributes attributes;
    u32 limit = 0;
    u64 base = 0;
};
struct TableRegister {
    u64 base = 0;
    u32 limit = 0xFFFF;
};

}  // namespace emu
