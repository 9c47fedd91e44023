// MOVS, CMPS, STOS, LODS, SCAS, INS, OUTS, alone and repeated.
//
// A repeated instruction can be interrupted after any iteration: registers are up to date, RIP is still on it. Each
// iteration uses up one unit of the run's budget, so that no count can keep the host busy for long.
#include "cpu/execute/forms.hpp"
#include "cpu/execute/handlers.hpp"

namespace emu {

namespace {

template <class A, class T>
EMU_ALWAYS_INLINE void advance(Core& core, Gpr pointer) {
    const u64 step = (core.cpu.rflags & rflags::df) != 0 ? u64{0} - sizeof(T) : sizeof(T);
    set<A>(core, pointer, static_cast<A>(core.cpu.gpr[pointer] + step));
}
template <class A, class T>
EMU_ALWAYS_INLINE Outcome load_from(Core& core, SegmentName segment, Gpr pointer, T& value) {
    return load(core, segment, u64{get<A>(core, pointer)}, value);
}

// Each operation: one iteration that either faults and has changed nothing, or is done. `difference` is what CMPS and
// SCAS compared.

template <class T>
struct Compared {
    T first = 0, second = 0;
};

template <class T, class A>
struct Movs {
    static constexpr bool compares = false;
    static Outcome once(Core& core, const Instruction& at, Compared<T>&) {
        T value;
        TRY((load_from<A, T>(core, at.segment(), rsi, value)));
        TRY(store<T>(core, SegmentName::es, get<A>(core, rdi), value));
        advance<A, T>(core, rsi);
        advance<A, T>(core, rdi);
        return no_fault;
    }
};
template <class T, class A>
struct Stos {
    static constexpr bool compares = false;
    static Outcome once(Core& core, const Instruction&, Compared<T>&) {
        TRY(store<T>(core, SegmentName::es, get<A>(core, rdi), get<T>(core, rax)));
        advance<A, T>(core, rdi);
        return no_fault;
    }
};
template <class T, class A>
struct Lods {
    static constexpr bool compares = false;
    static Outcome once(Core& core, const Instruction& at, Compared<T>&) {
        T value;
        TRY((load_from<A, T>(core, at.segment(), rsi, value)));
        set<T>(core, rax, value);
        advance<A, T>(core, rsi);
        return no_fault;
    }
};
template <class T, class A>
struct Cmps {
    static constexpr bool compares = true;
    static Outcome once(Core& core, const Instruction& at, Compared<T>& compared) {
        Compared<T> now;
        TRY((load_from<A, T>(core, at.segment(), rsi, now.first)));
        TRY((load_from<A, T>(core, SegmentName::es, rdi, now.second)));
        compared = now;
        advance<A, T>(core, rsi);
        advance<A, T>(core, rdi);
        return no_fault;
    }
};
template <class T, class A>
struct Scas {
    static constexpr bool compares = true;
    static Outcome once(Core& core, const Instruction&, Compared<T>& compared) {
        Compared<T> now{get<T>(core, rax), 0};
        TRY((load_from<A, T>(core, SegmentName::es, rdi, now.second)));
        compared = now;
        advance<A, T>(core, rdi);
        return no_fault;
    }
};
/// The destination is seen to be writable before the port is read: reading may change the device.
template <class T, class A>
struct Ins {
    static constexpr bool compares = false;
    static Outcome once(Core& core, const Instruction&, Compared<T>&) {
        T before;
        const u64 to = get<A>(core, rdi);
        TRY(load_to_modify(core, SegmentName::es, to, before));
        TRY(core.doors->port_in(core, get<u16>(core, rdx), sizeof(T)));
        TRY(store<T>(core, SegmentName::es, to, static_cast<T>(core.memory_value)));
        advance<A, T>(core, rdi);
        return no_fault;
    }
};
template <class T, class A>
struct Outs {
    static constexpr bool compares = false;
    static Outcome once(Core& core, const Instruction& at, Compared<T>&) {
        T value;
        TRY((load_from<A, T>(core, at.segment(), rsi, value)));
        TRY(core.doors->port_out(core, get<u16>(core, rdx), sizeof(T), static_cast<u32>(value)));
        advance<A, T>(core, rsi);
        return no_fault;
    }
};

template <class Op, class T, class A>
Outcome repeat(Core& core, const Instruction& at, Compared<T>& compared, u64& iterations) {
    const bool until_equal = at.repeat() == Repeat::repne;
    while (get<A>(core, rcx) != 0) {
        // The first iteration uses the unit that the instruction itself was charged.
        if (iterations != 0 && core.running.budget == 0) return Outcome::stop(StopReason::budget);
        TRY(Op::once(core, at, compared));
        if (iterations++ != 0) {
            --core.running.budget;
            --core.running.horizon;
        }
        set<A>(core, rcx, static_cast<A>(core.cpu.gpr[rcx] - 1));
        if (Op::compares && (compared.first == compared.second) == until_equal) break;
    }
    return no_fault;
}

/// Books and flags around the iterations, in whatever way they ended.
template <template <class, class> class Kind, class T, class A>
Outcome string(Core& core, const Instruction& at) {
    using Op = Kind<T, A>;
    Compared<T> compared;
    u64 iterations = 0;
    Outcome outcome;
    if (at.repeat() == Repeat::none) {
        outcome = Op::once(core, at, compared);
        iterations = outcome.faulted() ? 0 : 1;
    } else {
        outcome = repeat<Op, T, A>(core, at, compared, iterations);
    }
    core.ledger.charge(CostEvent::string_step, iterations);
    if (Op::compares && iterations != 0) {
        const T difference = static_cast<T>(compared.first - compared.second);
        const LazyFlags flags{sign_extended(difference), sign_extended(compared.first), LazyFlags::sub_of<T>};
        core.cpu.rflags = flags.merged_into(core.cpu.rflags);
    }
    if (outcome.stopped() && outcome.stop_reason() == StopReason::budget) {
        --core.running.budget;  // the unit of the first iteration, which giving up will return
        --core.running.horizon;
    }
    return outcome;
}

template <template <class, class> class Kind>
Handler of_sizes(const Decoded& decoded) {
    return with_size(decoded, [&decoded]<class T>(T) -> Handler {
        switch (decoded.code.address_width()) {
            case Width::bits16:
                return aside<string<Kind, T, u16>>;
            case Width::bits32:
                return aside<string<Kind, T, u32>>;
            default:
                return aside<string<Kind, T, u64>>;
        }
    });
}
/// Ports have at most 32 bits.
template <template <class, class> class Kind>
Handler of_port_sizes(const Decoded& decoded) {
    Decoded narrow = decoded;
    if (decoded.code.size() == OperandSize::qword) narrow.code.kind = static_cast<u8>((decoded.code.kind & ~3u) | 2u);
    return of_sizes<Kind>(narrow);
}

}  // namespace

Handler string_handler(const Decoded& decoded) {
    switch (decoded.operation) {
        case Operation::movs:
            return of_sizes<Movs>(decoded);
        case Operation::cmps:
            return of_sizes<Cmps>(decoded);
        case Operation::stos:
            return of_sizes<Stos>(decoded);
        case Operation::lods:
            return of_sizes<Lods>(decoded);
        case Operation::scas:
            return of_sizes<Scas>(decoded);
        case Operation::ins:
            return of_port_sizes<Ins>(decoded);
        case Operation::outs:
            return of_port_sizes<Outs>(decoded);
        default:
            return nullptr;
    }
}

}  // namespace emu
