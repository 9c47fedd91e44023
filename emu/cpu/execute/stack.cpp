// PUSH, POP, PUSHA, POPA, ENTER, LEAVE, and PUSH of segment registers. The stack pointer's width S is that of the
// stack segment, whatever the operand's width.
#include "cpu/execute/forms.hpp"
#include "cpu/execute/handlers.hpp"

namespace emu {

namespace {

template <class S>
EMU_ALWAYS_INLINE S stack_pointer(const Core& core) {
    return get<S>(core, rsp);
}

/// What is pushed is read before the stack pointer changes: PUSH ESP pushes the old value.
template <class S, class T, class M>
EMU_ALWAYS_INLINE bool push(Core& core, T value, M& memory) {
    const S top = static_cast<S>(stack_pointer<S>(core) - sizeof(T));
    if (!memory.store(core, SegmentName::ss, u64{top}, value)) return false;
    set<S>(core, rsp, top);
    return true;
}

template <class S, class T>
struct PushRegister {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags&, M& memory) {
        return push<S>(core, get<T>(core, at.reg), memory);
    }
};
template <class S, class T>
struct PushImmediate {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags&, M& memory) {
        return push<S>(core, immediate<T>(at), memory);
    }
};
template <class S, class T>
struct PushMemory {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags&, M& memory) {
        T value;
        if (!memory.load(core, at.segment(), effective(core, at), value)) return false;
        return push<S>(core, value, memory);
    }
};
/// POP ESP: the value popped wins over the increment.
template <class S, class T>
struct PopRegister {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags&, M& memory) {
        const S top = stack_pointer<S>(core);
        T value;
        if (!memory.load(core, SegmentName::ss, u64{top}, value)) return false;
        set<S>(core, rsp, static_cast<S>(top + sizeof(T)));
        set<T>(core, at.reg, value);
        return true;
    }
};
/// The address of a memory operand is computed with the stack pointer already incremented (POP, Description).
template <class S, class T>
Outcome pop_memory(Core& core, const Instruction& at) {
    const u64 before = core.cpu.gpr[rsp];
    const S top = stack_pointer<S>(core);
    T value;
    TRY(load(core, SegmentName::ss, u64{top}, value));
    set<S>(core, rsp, static_cast<S>(top + sizeof(T)));
    const Outcome outcome = store(core, at.segment(), effective(core, at), value);
    if (outcome.faulted()) core.cpu.gpr[rsp] = before;
    return outcome;
}

/// PUSH of a segment register: a selector, zero-extended. Processors write 16 bits and skip the rest with a 32-bit
/// operand (PUSH, Description), which is seen only in the bytes above.
template <class S, class T>
Outcome push_segment(Core& core, const Instruction& at) {
    const u16 selector = core.cpu.segment[at.imm].selector.value;
    const S top = static_cast<S>(stack_pointer<S>(core) - sizeof(T));
    if constexpr (sizeof(T) == 4) {
        TRY(store<u16>(core, SegmentName::ss, top, selector));
    } else {
        TRY(store<T>(core, SegmentName::ss, top, selector));
    }
    set<S>(core, rsp, top);
    return no_fault;
}

template <class S, class T>
Outcome pusha(Core& core, const Instruction&) {
    S top = stack_pointer<S>(core);
    for (u8 number = rax; number <= rdi; ++number) {
        top = static_cast<S>(top - sizeof(T));
        TRY(store<T>(core, SegmentName::ss, top, get<T>(core, number)));  // RSP is still the old one
    }
    set<S>(core, rsp, top);
    return no_fault;
}
template <class S, class T>
Outcome popa(Core& core, const Instruction&) {
    S top = stack_pointer<S>(core);
    T values[8];
    for (u8 number = 8; number-- > 0;) {
        TRY(load(core, SegmentName::ss, u64{top}, values[number]));
        top = static_cast<S>(top + sizeof(T));
    }
    for (u8 number = rax; number <= rdi; ++number)
        if (number != rsp) set<T>(core, number, values[number]);
    set<S>(core, rsp, top);
    return no_fault;
}

/// ENTER, Operation.
template <class S, class T>
Outcome enter(Core& core, const Instruction& at) {
    const unsigned level = at.disp & 31;
    S top = static_cast<S>(stack_pointer<S>(core) - sizeof(T));
    TRY(store<T>(core, SegmentName::ss, top, get<T>(core, rbp)));
    const T frame = static_cast<T>(top);
    S outer = get<S>(core, rbp);
    for (unsigned i = 1; i < level; ++i) {
        outer = static_cast<S>(outer - sizeof(T));
        T link;
        TRY(load(core, SegmentName::ss, u64{outer}, link));
        top = static_cast<S>(top - sizeof(T));
        TRY(store<T>(core, SegmentName::ss, top, link));
    }
    if (level > 0) {
        top = static_cast<S>(top - sizeof(T));
        TRY(store<T>(core, SegmentName::ss, top, frame));
    }
    top = static_cast<S>(top - at.imm);
    T probe;  // the new top must be writable
    TRY(load_to_modify(core, SegmentName::ss, u64{top}, probe));
    set<T>(core, rbp, frame);
    set<S>(core, rsp, top);
    return no_fault;
}
template <class S, class T>
struct Leave {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction&, LazyFlags&, M& memory) {
        const S frame = get<S>(core, rbp);
        T value;
        if (!memory.load(core, SegmentName::ss, u64{frame}, value)) return false;
        set<S>(core, rsp, static_cast<S>(frame + sizeof(T)));
        set<T>(core, rbp, value);
        return true;
    }
};

template <class S, class T>
Handler of_widths(const Decoded& decoded) {
    switch (decoded.operation) {
        case Operation::push:
            if (decoded.shape == Shape::r) return straight<PushRegister<S, T>>;
            if (decoded.shape == Shape::m) return straight<PushMemory<S, T>>;
            return straight<PushImmediate<S, T>>;
        case Operation::pop:
            if (decoded.shape == Shape::m) return aside<pop_memory<S, T>>;
            return straight<PopRegister<S, T>>;
        case Operation::push_segment:
            return aside<push_segment<S, T>>;
        case Operation::pusha:
            return aside<pusha<S, T>>;
        case Operation::popa:
            return aside<popa<S, T>>;
        case Operation::enter:
            return aside<enter<S, T>>;
        case Operation::leave:
            return straight<Leave<S, T>>;
        default:
            return nullptr;
    }
}

}  // namespace

Handler stack_handler(const Decoded& decoded) {
    return with_wide_size(decoded, [&decoded]<class T>(T) -> Handler {
        switch (decoded.code.stack_width()) {
            case Width::bits16:
                return of_widths<u16, T>(decoded);
            case Width::bits32:
                return of_widths<u32, T>(decoded);
            default:
                return of_widths<u64, T>(decoded);
        }
    });
}

}  // namespace emu
