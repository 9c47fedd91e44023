// Frames that the processor itself pushes and pops. Room and pages of a whole frame are secured before its first word
// is written; after that nothing can fault.
#pragma once
#include "cpu/transition/transition.hpp"

namespace emu {

/// A stack as seen by a room: a segment, a pointer, and the privilege level its accesses are made with.
struct StackView {
    const SegmentRegister* segment = nullptr;
    u64 pointer = 0;
    Cpl cpl{};
    bool long64 = false;  // addresses are linear, and must be canonical

    u64 mask() const {
        if (long64) return ~u64{0};
        return segment->attributes.db().value ? 0xFFFFFFFF : 0xFFFF;
    }
    /// Outside 64-bit mode linear addresses wrap at 4 GiB, in compatibility mode too.
    u64 linear(u64 at) const { return long64 ? at : (segment->base + at) & 0xFFFFFFFF; }
    /// True if `size` bytes at `at` lie inside the limit.
    bool admits(u64 at, u64 size) const { return segment->lowest() <= at && at + size - 1 <= segment->highest(); }
};

/// Which words the fault uses: a stack that stays (#SS(0)) or a new one (#SS(selector)).
enum class StackUse : u8 { current, fresh };

template <StackUse use, Observer Obs>
Outcome check_stack_range(Transition<Obs>& t, const StackView& stack, u64 at, u64 size) {
    using namespace checks;
    const Selector selector = stack.segment->selector;
    if (stack.long64) {
        const Flag<"last byte canonical"> last{canonical48(at + size - 1)};
        if constexpr (use == StackUse::fresh)
            return require<stack::new_canonical>(t, selector, Linear{at}, last);
        else
            return require<stack::canonical>(t, nothing, Linear{at}, last);
    }
    const Flag<"inside"> inside{stack.admits(at, size)};
    if constexpr (use == StackUse::fresh)
        return require<stack::new_room>(t, selector, Offset{at}, LastByte{at + size - 1}, inside);
    else
        return require<stack::room>(t, nothing, Offset{at}, LastByte{at + size - 1}, inside);
}

template <Observer Obs>
struct FrameWriter {
    Transition<Obs>& t;
    StackView stack;
    Width width;
    u64 host = 0;  // of the frame's lowest byte if it lies in one page, else 0
    u64 lowest = 0;

    Access access() const { return {.write = true, .user = stack.cpl.value == 3}; }

    /// First the limit or canonical check of the manual, for `slots` words; then the pages. The two parts that can
    /// fault.
    template <StackUse use>
    EMU_ALWAYS_INLINE Outcome check_room(unsigned slots) {
        const u64 total = u64{slots} * bytes(width), mask = stack.mask();
        lowest = (stack.pointer - total) & mask;
        if (stack.long64 || lowest + total - 1 <= mask) [[likely]]
            return check_stack_range<use>(t, stack, lowest, total);
        return each_word(slots, [this](u64 at) { return check_stack_range<use>(t, stack, at, bytes(width)); });
    }
    EMU_ALWAYS_INLINE Outcome secure(unsigned slots) {
        const unsigned total = slots * bytes(width);
        const u64 linear = t.wrap(stack.linear(lowest));
        const TlbEntry* tlb = t.core.translations->array(t.core.access_context(stack.cpl));
        if (lowest + total - 1 <= stack.mask() && write_hit(tlb, linear, total, host)) [[likely]]
            return no_fault;
        host = 0;
        return each_word(slots, [this](u64 at) {
            u64 ignored = 0, physical = 0;
            TRY(translate(t, t.wrap(stack.linear(at)), access(), ignored, physical));
            return translate(t, t.wrap(stack.linear(at + bytes(width) - 1)), access(), ignored, physical);
        });
    }
    EMU_ALWAYS_INLINE void push(Pushed what, u64 value) {
        stack.pointer = advance(stack.pointer, -static_cast<i64>(bytes(width)));
        t.charge(what == Pushed::parameter ? CostEvent::parameter_copy : CostEvent::push);
        const u64 at = stack.pointer & stack.mask();
        if (host != 0) [[likely]] {
            const u64 to = host + (at - lowest);
            if (width == Width::bits64)
                put_unaligned<u64>(to, value);
            else if (width == Width::bits32)
                put_unaligned<u32>(to, static_cast<u32>(value));
            else
                put_unaligned<u16>(to, static_cast<u16>(value));
        } else {
            // Cannot fault: secure() translated the same bytes for the same access.
            static_cast<void>(store_linear(t, t.wrap(stack.linear(at)), bytes(width), access(), value).faulted());
        }
        if constexpr (Obs::listens) t.pushed(what, t.wrap(stack.linear(at)), truncate(value, width), bytes(width));
    }
    /// A 16-bit stack pointer wraps in SP and leaves the rest of ESP alone.
    u64 advance(u64 pointer, i64 by) const {
        const u64 mask = stack.mask();
        return (pointer & ~mask) | ((pointer + static_cast<u64>(by)) & mask);
    }

 private:
    /// A frame that wraps around the end of its segment, or crosses a page, is looked at word by word.
    template <class Look>
    [[gnu::noinline]] Outcome each_word(unsigned slots, Look look) {
        u64 pointer = stack.pointer;
        for (unsigned i = 0; i < slots; ++i) {
            pointer = advance(pointer, -static_cast<i64>(bytes(width)));
            TRY(look(pointer & stack.mask()));
        }
        return no_fault;
    }
};

/// Reads words from the current stack without moving its pointer: a room moves it when it commits.
template <Observer Obs>
struct FrameReader {
    Transition<Obs>& t;
    StackView stack;
    Width width;

    EMU_ALWAYS_INLINE Outcome check(unsigned slots) {
        const u64 total = u64{slots} * bytes(width), mask = stack.mask(), at = stack.pointer & mask;
        if (stack.long64 || at + total - 1 <= mask) [[likely]]
            return check_stack_range<StackUse::current>(t, stack, at, total);
        return check_words(slots);
    }
    EMU_ALWAYS_INLINE Outcome pop(Pushed what, u64& value) {
        const u64 at = stack.pointer & stack.mask(), linear = t.wrap(stack.linear(at));
        u64 host;
        t.charge(CostEvent::pop);
        const TlbEntry* tlb = t.core.translations->array(t.core.access_context(stack.cpl));
        if (read_hit(tlb, linear, bytes(width), host)) [[likely]] {
            value = width == Width::bits64   ? unaligned<u64>(host)
                    : width == Width::bits32 ? unaligned<u32>(host)
                                             : unaligned<u16>(host);
        } else {
            TRY(load_linear(t, linear, bytes(width), {.user = stack.cpl.value == 3}, value));
        }
        if constexpr (Obs::listens) t.popped(what, linear, value, bytes(width));
        skip(bytes(width));
        return no_fault;
    }
    void skip(u64 size) { stack.pointer = (stack.pointer & ~stack.mask()) | ((stack.pointer + size) & stack.mask()); }

 private:
    /// A frame that wraps around the end of its segment is looked at word by word, as it was pushed.
    [[gnu::noinline]] Outcome check_words(unsigned slots) {
        for (unsigned i = 0; i < slots; ++i) {
            const u64 at = (stack.pointer + u64{i} * bytes(width)) & stack.mask();
            TRY(check_stack_range<StackUse::current>(t, stack, at, bytes(width)));
        }
        return no_fault;
    }
};

/// The stack in use.
inline StackView current_stack(const Processor& cpu) {
    return {&cpu.ss(), cpu.gpr[rsp], cpu.cpl, cpu.mode == Mode::long64};
}

}  // namespace emu
