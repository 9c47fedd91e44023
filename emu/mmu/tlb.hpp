// The page verdict: linear page -> host page, for one kind of access context each.
//
// What drops which entries (Intel SDM vol. 3, Invalidation of TLBs and Paging-Structure Caches):
//   MOV to CR3                          all but global pages
//   MOV to CR0 (PG, WP), CR4 (PGE, PAE, PSE, SMEP, SMAP), EFER.NXE   everything
//   INVLPG                              the page (everything, if fragments of a large page are cached)
//   a page becoming one with decoded code    its write tags
// Privilege is not tagged: user, supervisor and supervisor-with-AC accesses have an array each, so a change of CPL is
// a change of one pointer. A fourth array stays empty for ever: in force when every access must be looked at.
#pragma once
#include <array>

#include "mmu/physical_memory.hpp"

namespace emu {

struct TlbEntry {
    static constexpr u64 never = 1;  // no page address has bit 0 set
    u64 read_tag = never;
    u64 write_tag = never;
    u64 to_host = 0;  // host address minus linear address
};

enum class AccessContext : u8 { user, supervisor, supervisor_ac, inspected };

class Tlb {
 public:
    static constexpr std::size_t size = 512;
    using Array = std::array<TlbEntry, size>;

    TlbEntry* array(AccessContext context) { return arrays_[static_cast<std::size_t>(context)].data(); }
    static std::size_t index(u64 linear) { return (linear >> 12) & (size - 1); }

    void fill(AccessContext context, u64 linear, const HostPage& page, bool may_write, bool global, bool large,
              u64 physical);
    void flush(bool also_global);
    void drop(u64 linear);
    /// The page at `physical` now holds decoded code: stores to it must be looked at.
    void forbid_writes(u64 physical);
    /// Changes whenever a translation may have been dropped; guards everything derived from translations.
    u32 generation() const { return generation_; }

 private:
    struct Detail {
        u64 physical = ~u64{0};
        bool global = false;
    };
    std::array<Array, 4> arrays_{};
    std::array<std::array<Detail, size>, 3> details_{};
    std::array<u32, 3 * size> filled_{};
    std::size_t filled_count_ = 0;
    bool large_cached_ = false;
    u32 generation_ = 1;
};

}  // namespace emu
