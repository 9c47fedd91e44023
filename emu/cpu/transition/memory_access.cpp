// Accesses that the hot path could not do: the checks of segment and page by name, page crossings, pages with code.
#include "cpu/transition/transition.hpp"

namespace emu {

template <Observer Obs>
Outcome load_linear(Transition<Obs>& t, u64 linear, unsigned size, Access access, u64& value) {
    value = 0;
    for (unsigned done = 0; done < size;) {
        const u64 at = t.wrap(linear + done);
        const unsigned room = static_cast<unsigned>(page_size - (at & page_mask));
        const unsigned part = size - done < room ? size - done : room;
        u64 host = 0, physical = 0, piece = 0;
        TRY(translate(t, at, access, host, physical));
        std::memcpy(&piece, std::bit_cast<const void*>(host), part);
        value |= piece << (8 * done);
        done += part;
    }
    return no_fault;
}

/// Writes to pages with decoded code drop what was decoded from them.
template <Observer Obs>
void store_physical(Transition<Obs>& t, u64 physical, u64 host, unsigned size, u64 value) {
    if (!t.core.memory->page(physical).writable) return;  // ROM and nothing ignore writes
    std::memcpy(std::bit_cast<void*>(host), &value, size);
    if (t.core.memory->has_code(physical) && t.core.code_written != nullptr) t.core.code_written(t.core, physical);
}

/// Where the bytes of a store go: to one page, or to two. Both are translated before either is written, so that a
/// fault leaves memory as it was.
struct StorePlace {
    u64 host[2] = {}, physical[2] = {};
    unsigned part = 0;  // bytes in the first page
};

template <Observer Obs>
Outcome find_place(Transition<Obs>& t, u64 linear, unsigned size, Access access, StorePlace& place) {
    place.part = static_cast<unsigned>(std::min<u64>(size, page_size - (linear & page_mask)));
    TRY(translate(t, linear, access, place.host[0], place.physical[0]));
    if (place.part == size) return no_fault;
    return translate(t, t.wrap(linear + place.part), access, place.host[1], place.physical[1]);
}
template <Observer Obs>
void store_in(Transition<Obs>& t, const StorePlace& place, unsigned size, u64 value) {
    store_physical(t, place.physical[0], place.host[0], place.part, value);
    if (place.part == size) return;
    store_physical(t, place.physical[1], place.host[1], size - place.part, value >> (8 * place.part));
}

template <Observer Obs>
Outcome store_linear(Transition<Obs>& t, u64 linear, unsigned size, Access access, u64 value) {
    StorePlace place;
    TRY(find_place(t, linear, size, access, place));
    store_in(t, place, size, value);
    return no_fault;
}

/// Segment, limit and alignment of a data access, in the manual's order; then its linear address.
template <bool write, Observer Obs>
Outcome check_segment(Transition<Obs>& t, SegmentName name, u64 at, u8 size, u64& linear) {
    using namespace checks;
    const SegmentRegister& segment = t.cpu.seg(name);
    const bool stack = name == SegmentName::ss;
    if (t.cpu.mode == Mode::long64) {
        linear = segment.linear(at);
        const Flag<"last byte canonical"> last{canonical48(linear + size - 1)};
        if (stack) {
            TRY(require<access::canonical<"stack_access">>(t, nothing, Linear{linear}, last));
        } else {
            TRY(require<access::canonical<"data_access">>(t, nothing, Linear{linear}, last));
        }
    } else {
        if (t.cpu.protected_mode() && t.cpu.mode != Mode::virtual8086) {
            TRY(require<access::segment_not_null>(t, nothing, segment.selector,
                                                  Flag<"usable">{segment.attributes.present().value}));
            if constexpr (write) {
                TRY(require<access::writable>(t, nothing, segment.attributes.type()));
            } else {
                TRY(require<access::readable>(t, nothing, segment.attributes.type()));
            }
        }
        const u64 last = at + size - 1;
        const Flag<"inside"> inside{segment.lowest() <= at && last <= segment.highest()};
        if (stack) {
            TRY(require<access::within_limit<"stack_access">>(t, nothing, Effective{at}, LastByte{last}, inside));
        } else {
            TRY(require<access::within_limit<"data_access">>(t, nothing, Effective{at}, LastByte{last}, inside));
        }
        linear = segment.linear(at, t.cpu.mode);
    }
    if (t.core.tlb == t.core.translations->array(AccessContext::inspected))
        TRY(require<access::aligned>(t, nothing, Linear{linear}, Size{size}));
    return no_fault;
}

template <Observer Obs>
Outcome load(Core& core, SegmentName name, u64 at, u8 size) {
    Transition<Obs> t{core, Mechanism::memory, at};
    u64 linear = 0;
    TRY(check_segment<false>(t, name, at, size, linear));
    return load_linear(t, linear, size, {.user = core.cpu.cpl.value == 3}, core.memory_value);
}

template <Observer Obs>
Outcome load_to_modify(Core& core, SegmentName name, u64 at, u8 size) {
    Transition<Obs> t{core, Mechanism::memory, at};
    u64 linear = 0;
    TRY(check_segment<true>(t, name, at, size, linear));
    return load_linear(t, linear, size, {.write = true, .user = core.cpu.cpl.value == 3}, core.memory_value);
}

template <Observer Obs>
Outcome store(Core& core, SegmentName name, u64 at, u8 size, u64 value) {
    Transition<Obs> t{core, Mechanism::memory, at};
    u64 linear = 0;
    TRY(check_segment<true>(t, name, at, size, linear));
    StorePlace place;
    TRY(find_place(t, linear, size, {.write = true, .user = core.cpu.cpl.value == 3}, place));
    if (!core.alone) {
        // The block that is running may be the one that this store changes: the run loop redoes the store alone.
        for (const u64 physical : {place.physical[0], place.physical[place.part < size]})
            if (core.memory->has_code(physical)) {
                core.memory_value = physical;
                return Outcome::stop(StopReason::code_write);
            }
    }
    store_in(t, place, size, value);
    return no_fault;
}

/// How often code is fetched is a matter of the block cache, not of the guest: a fetch leaves the books as they were.
template <Observer Obs>
class OffTheBooks {
    Transition<Obs>& t_;
    const std::array<u64, cost_event_count> counts_;

 public:
    explicit OffTheBooks(Transition<Obs>& t) : t_{t}, counts_{t.core.ledger.counts} {}
    OffTheBooks(const OffTheBooks&) = delete;
    OffTheBooks& operator=(const OffTheBooks&) = delete;
    ~OffTheBooks() {
        t_.core.ledger.counts = counts_;
        t_.cycles = 0;
    }
};

/// Code bytes from CS:rip on. More than one page is touched only if `needed` bytes reach into the next one.
template <Observer Obs>
Outcome fetch(Core& core, u64 rip, u8 needed, u8* bytes, u8& count, u64& physical) {
    using namespace checks;
    Transition<Obs> t{core, Mechanism::fetch, rip};
    const OffTheBooks<Obs> books{t};
    const SegmentRegister& cs = core.cpu.cs();
    constexpr u8 longest = 15;
    for (count = 0; count == 0 || count < needed;) {
        const u64 offset = rip + count;
        u64 room = longest - count;
        u64 linear = offset;
        if (core.cpu.mode == Mode::long64) {
            TRY(require<access::fetch_canonical>(t, nothing, Linear{offset}));
        } else {
            TRY(require<access::fetch_within_limit>(t, nothing, Offset{offset}, Limit{cs.limit}));
            room = std::min<u64>(room, u64{cs.limit} - offset + 1);
            linear = cs.linear(offset, core.cpu.mode);
        }
        u64 host = 0, first = 0;
        TRY(translate(t, linear, {.fetch = true, .user = core.cpu.cpl.value == 3}, host, first));
        if (count == 0) physical = first;
        const u64 part = std::min<u64>(room, page_size - (linear & page_mask));
        std::memcpy(bytes + count, std::bit_cast<const void*>(host), part);
        count = static_cast<u8>(count + part);
    }
    return no_fault;
}

}  // namespace emu
