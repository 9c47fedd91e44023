#include "mmu/tlb.hpp"

#include <bit>

namespace emu {

void Tlb::fill(AccessContext context, u64 linear, const HostPage& page, bool may_write, bool global, bool large,
               u64 physical) {
    const auto which = static_cast<std::size_t>(context);
    const std::size_t at = index(linear);
    TlbEntry& entry = arrays_[which][at];
    const u64 tag = linear & ~page_mask;
    if (entry.read_tag == TlbEntry::never) filled_[filled_count_++] = static_cast<u32>(which * size + at);
    entry = {tag, may_write ? tag : TlbEntry::never, std::bit_cast<u64>(page.host) - tag};
    details_[which][at] = {physical & ~page_mask, global};
    large_cached_ |= large;
}

void Tlb::flush(bool also_global) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < filled_count_; ++i) {
        const u32 slot = filled_[i];
        if (!also_global && details_[slot / size][slot % size].global) {
            filled_[kept++] = slot;
            continue;
        }
        arrays_[slot / size][slot % size] = TlbEntry{};
    }
    filled_count_ = kept;
    if (kept == 0) large_cached_ = false;
    ++generation_;
}

void Tlb::drop(u64 linear) {
    if (large_cached_) return flush(true);
    const u64 tag = linear & ~page_mask;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < filled_count_; ++i) {
        const u32 slot = filled_[i];
        TlbEntry& entry = arrays_[slot / size][slot % size];
        if (entry.read_tag == tag)
            entry = TlbEntry{};
        else
            filled_[kept++] = slot;
    }
    filled_count_ = kept;
    ++generation_;
}

void Tlb::forbid_writes(u64 physical) {
    const u64 page = physical & ~page_mask;
    for (std::size_t i = 0; i < filled_count_; ++i) {
        const u32 slot = filled_[i];
        if (details_[slot / size][slot % size].physical == page)
            arrays_[slot / size][slot % size].write_tag = TlbEntry::never;
    }
}

}  // namespace emu
