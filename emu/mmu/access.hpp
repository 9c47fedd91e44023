// Loads and stores of the hot path. A hit compares the segment's room and one tag; everything else goes through a door
// (cpu/transition/memory_access.cpp), where the checks have names.
#pragma once
#include <bit>
#include <cstring>

#include "doors.hpp"

namespace emu {

template <class T>
EMU_ALWAYS_INLINE T unaligned(u64 host) {
    T value;
    std::memcpy(&value, std::bit_cast<const void*>(host), sizeof(T));
    return value;
}
template <class T>
EMU_ALWAYS_INLINE void put_unaligned(u64 host, T value) {
    std::memcpy(std::bit_cast<void*>(host), &value, sizeof(T));
}

EMU_ALWAYS_INLINE bool read_hit(const TlbEntry* tlb, u64 linear, unsigned size, u64& host) {
    const TlbEntry& entry = tlb[Tlb::index(linear)];
    host = linear + entry.to_host;
    return (entry.read_tag == (linear & ~page_mask)) & ((linear & page_mask) <= page_size - size);
}
EMU_ALWAYS_INLINE bool write_hit(const TlbEntry* tlb, u64 linear, unsigned size, u64& host) {
    const TlbEntry& entry = tlb[Tlb::index(linear)];
    host = linear + entry.to_host;
    return (entry.write_tag == (linear & ~page_mask)) & ((linear & page_mask) <= page_size - size);
}

/// The inline part alone: false if the access is not a plain hit. Raises nothing.
template <class T>
EMU_ALWAYS_INLINE bool try_load(const Core& core, const SegmentRegister& segment, u64 at, T& value) {
    u64 host;
    if (!segment.admits_read(at) || !read_hit(core.tlb, segment.linear(at), sizeof(T), host)) [[unlikely]]
        return false;
    value = unaligned<T>(host);
    return true;
}
template <class T>
EMU_ALWAYS_INLINE bool try_store(const Core& core, const SegmentRegister& segment, u64 at, T value) {
    u64 host;
    if (!segment.admits_write(at) || !write_hit(core.tlb, segment.linear(at), sizeof(T), host)) [[unlikely]]
        return false;
    put_unaligned<T>(host, value);
    return true;
}

}  // namespace emu
