// The page walk: 32-bit, PAE and 4-level paging as one algorithm with parameters
// (Intel SDM vol. 3, Paging: 32-Bit Paging; PAE Paging; 4-Level Paging; Determination of Access Rights).
#include "cpu/transition/transition.hpp"

namespace emu {

namespace page {
inline constexpr u64 present = 1u << 0, writable = 1u << 1, user = 1u << 2, accessed = 1u << 5, dirty = 1u << 6;
inline constexpr u64 size = 1u << 7, global = 1u << 8, xd = u64{1} << 63;
// error code of a page fault
inline constexpr u32 code_present = 1, code_write = 2, code_user = 4, code_reserved = 8, code_fetch = 16;
}  // namespace page

/// How the paging structures of a mode are laid out.
struct PagingFormat {
    unsigned levels;      // 4: PML4, 3: PDPT, 2: page directory, 1: page table
    unsigned entry_size;  // bytes
    unsigned index_bits;
    u64 address_mask;      // of the next table or page in an entry
    bool pdpte_registers;  // level 3 is read from registers, not from memory
};

inline PagingFormat paging_format(const Core& core) {
    const Processor& cpu = core.cpu;
    const u64 physical = low_bits(~u64{0}, core.model.physical_address_bits) & ~page_mask;
    if (cpu.ia32e()) return {4, 8, 9, physical, false};
    if ((cpu.cr4 & cr4::pae) != 0) return {3, 8, 9, physical, true};
    return {2, 4, 10, 0xFFFFF000, false};
}

/// Reserved bits of an entry at this level, given whether it maps a page.
inline u64 reserved_bits(const Core& core, const PagingFormat& format, unsigned level, bool maps_page) {
    const Processor& cpu = core.cpu;
    if (format.entry_size == 4) {
        if (!maps_page || level == 1) return 0;
        // 4-MiB pages: bits 20:13 hold address bits 39:32 as far as the processor has them, bit 21 is reserved.
        const unsigned wide = core.model.physical_address_bits > 40 ? 40 : core.model.physical_address_bits;
        const u64 used = wide > 32 ? low_bits(~u64{0}, wide - 32) << 13 : 0;
        return (u64{0x1FF} << 13) & ~used;
    }
    u64 reserved = low_bits(~u64{0}, 52) & ~low_bits(~u64{0}, core.model.physical_address_bits);
    if (!cpu.ia32e()) reserved |= u64{0x7FF} << 52;  // PAE: bits 62:52
    if ((cpu.efer & efer::nxe) == 0) reserved |= page::xd;
    if (level == 4) reserved |= page::size;
    if (level == 3 && !core.model.pages_1gib) reserved |= page::size;
    if (maps_page && level == 2) reserved |= u64{0xFF} << 13;
    if (maps_page && level == 3) reserved |= u64{0x1FFFF} << 13;
    return reserved;
}

struct WalkResult {
    bool rw = true, us = true, xd = false, global = false, dirty = false;
    unsigned level = 0;  // of the entry that maps the page
    u64 physical = 0;
    u64 addresses[4] = {};  // of the entries read, from the top: where accessed and dirty flags go
    u64 entries[4] = {};
    unsigned depth = 0;
};

/// Looks at one entry: present, reserved bits, rights; says in `leaf` whether it maps the page.
template <Observer Obs>
Outcome walk_level(Transition<Obs>& t, const PagingFormat& format, unsigned level, u64 entry, u32 code,
                   WalkResult& walk, bool& leaf) {
    using namespace checks;
    Core& core = t.core;
    TRY(require<paging::present>(t, PageAccess{code}, paging::Entry{entry}, paging::Level{static_cast<u8>(level)}));
    const bool from_register = format.pdpte_registers && level == 3;
    const bool may_be_large = !from_register && (format.entry_size == 8 ? level == 2 || level == 3
                                                                        : level == 2 && (core.cpu.cr4 & cr4::pse) != 0);
    leaf = level == 1 || (may_be_large && (entry & page::size) != 0);
    if (from_register) return no_fault;  // checked when it was loaded; it has no R/W, U/S and XD
    const u64 reserved = reserved_bits(core, format, level, leaf && level > 1);
    TRY(require<paging::reserved_clear>(t, PageAccess{code | page::code_present | page::code_reserved},
                                        paging::Entry{entry}, Quantity<"reserved bits">{reserved},
                                        paging::Level{static_cast<u8>(level)}));
    walk.rw &= (entry & page::writable) != 0;
    walk.us &= (entry & page::user) != 0;
    walk.xd |= format.entry_size == 8 && (entry & page::xd) != 0;
    return no_fault;
}

template <Observer Obs>
Outcome check_rights(Transition<Obs>& t, const WalkResult& walk, Access access, u32 code) {
    using namespace checks;
    const Processor& cpu = t.cpu;
    const PageAccess denied{code | page::code_present};
    const Flag<"U/S"> us{walk.us};
    TRY(require<paging::user_allowed>(t, denied, Flag<"user access">{access.user}, us));
    if (access.fetch) {
        TRY(require<paging::executable>(t, denied, Flag<"XD">{walk.xd && (cpu.efer & efer::nxe) != 0}));
        if (!access.user) TRY(require<paging::smep>(t, denied, Flag<"CR4.SMEP">{(cpu.cr4 & cr4::smep) != 0}, us));
        return no_fault;
    }
    if (!access.user) {
        const bool excused = !access.implicit && (cpu.rflags & rflags::ac) != 0;
        TRY(require<paging::smap>(t, denied, Flag<"CR4.SMAP">{(cpu.cr4 & cr4::smap) != 0}, us,
                                  Flag<"AC and explicit">{excused}));
    }
    if (access.write)
        TRY(require<paging::writable>(t, denied, Flag<"R/W">{walk.rw}, Flag<"user access">{access.user},
                                      Flag<"CR0.WP">{(cpu.cr0 & cr0::wp) != 0}));
    return no_fault;
}

/// Sets accessed flags on the way and the dirty flag of a page written. A page that the access has no right to stays
/// as it is, not the tables on the way to it (Intel SDM vol. 3, Interrupt 14 - Page-Fault Exception).
template <Observer Obs>
void mark_used(Transition<Obs>& t, const PagingFormat& format, WalkResult& walk, bool write, bool refused) {
    for (unsigned i = 0; i < walk.depth; ++i) {
        if (format.pdpte_registers && i == 0) continue;
        const bool leaf = i + 1 == walk.depth;
        if (leaf && refused) return;
        const u64 wanted = walk.entries[i] | page::accessed | (leaf && write ? page::dirty : 0);
        if (leaf) walk.dirty = (wanted & page::dirty) != 0;
        if (wanted == walk.entries[i]) continue;
        u8 raw[8];
        std::memcpy(raw, &wanted, sizeof raw);
        t.core.memory->write(walk.addresses[i], raw, format.entry_size);
        if (t.core.memory->has_code(walk.addresses[i]) && t.core.code_written != nullptr)
            t.core.code_written(t.core, walk.addresses[i]);
        t.charge(CostEvent::walk_write);
        if constexpr (Transition<Obs>::listens)
            t.record(TraceLevel::checks, RecordKind::write, static_cast<u16>(Structure::page_entry), 1,
                     walk.addresses[i], wanted, format.entry_size);
    }
}

template <Observer Obs>
Outcome walk_tables(Transition<Obs>& t, u64 linear, Access access, WalkResult& walk, const PagingFormat& format) {
    Core& core = t.core;
    Processor& cpu = core.cpu;
    // I/D tells something only where fetches have rights of their own (Page-Fault Exceptions, I/D flag).
    const bool reports_fetch = (cpu.cr4 & cr4::smep) != 0 || ((cpu.cr4 & cr4::pae) != 0 && (cpu.efer & efer::nxe) != 0);
    const u32 code = (access.write ? page::code_write : 0) | (access.user ? page::code_user : 0) |
                     (access.fetch && reports_fetch ? page::code_fetch : 0);
    core.fault_linear = linear;
    u64 table = cpu.cr3 & format.address_mask;
    if (format.entry_size == 8 && !cpu.ia32e()) table = 0;
    bool leaf = false;
    for (unsigned level = format.levels; !leaf; --level) {
        const unsigned shift = 12 + format.index_bits * (level - 1);
        const u64 index = field(linear, shift, format.pdpte_registers && level == 3 ? 2 : format.index_bits);
        const u64 address = table + index * format.entry_size;
        u64 entry = 0;
        if (format.pdpte_registers && level == 3) {
            entry = cpu.pdpte[index];
        } else {
            u8 raw[8] = {};
            core.memory->read(address, raw, format.entry_size);
            std::memcpy(&entry, raw, sizeof entry);
            t.charge(CostEvent::walk_step);
            if constexpr (Transition<Obs>::listens)
                t.record(TraceLevel::checks, RecordKind::read, static_cast<u16>(Structure::page_entry), 1, address,
                         entry, format.entry_size, level);
        }
        walk.addresses[walk.depth] = address;
        walk.entries[walk.depth++] = entry;
        TRY(walk_level(t, format, level, entry, code, walk, leaf));
        table = entry & format.address_mask;
        walk.level = level;
    }
    const u64 entry = walk.entries[walk.depth - 1];
    const u64 page_bytes = u64{1} << (12 + format.index_bits * (walk.level - 1));
    u64 base = entry & format.address_mask & ~(page_bytes - 1);
    if (format.entry_size == 4 && walk.level == 2) base |= field(entry, 13, 8) << 32;
    walk.physical = base | (linear & (page_bytes - 1));
    walk.global = (entry & page::global) != 0 && (cpu.cr4 & cr4::pge) != 0;
    const Outcome rights = check_rights(t, walk, access, code);
    mark_used(t, format, walk, access.write, rights.faulted());
    return rights;
}

template <Observer Obs>
Outcome translate(Transition<Obs>& t, u64 linear, Access access, u64& host, u64& physical) {
    Core& core = t.core;
    Processor& cpu = core.cpu;
    WalkResult walk;
    walk.physical = linear;
    walk.dirty = true;
    if (cpu.paging()) {
        walk.dirty = false;
        const PagingFormat format = paging_format(core);
        TRY(walk_tables(t, linear, access, walk, format));
    }
    physical = walk.physical;
    const HostPage page = core.memory->page(physical);
    host = std::bit_cast<u64>(page.host) + (physical & page_mask);
    if (access.fetch) return no_fault;

    const AccessContext context = access.user       ? AccessContext::user
                                  : access.implicit ? AccessContext::supervisor
                                                    : core.access_context(Cpl{0});
    const bool allowed = access.user ? walk.rw : walk.rw || (cpu.cr0 & cr0::wp) == 0;
    const bool may_write = allowed && walk.dirty && page.writable && !core.memory->has_code(physical);
    core.translations->fill(context, linear, page, may_write, walk.global, walk.level > 1, physical);
    return no_fault;
}

}  // namespace emu
