// XCHG, XADD, CMPXCHG, CMPXCHG8B, CMPXCHG16B.
#include "cpu/execute/forms.hpp"
#include "cpu/execute/handlers.hpp"

namespace emu {

namespace {

template <class T>
struct ExchangeRegisters {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags&, M&) {
        const T a = get<T>(core, at.reg), b = get<T>(core, at.base);
        set<T>(core, at.reg, b);
        set<T>(core, at.base, a);
        return true;
    }
};
template <class T>
struct ExchangeMemory {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags&, M& memory) {
        const u64 where = effective(core, at);
        T old;
        if (!memory.open(core, at.segment(), where, old)) return false;
        if (!memory.put(core, at.segment(), where, get<T>(core, at.reg))) return false;
        set<T>(core, at.reg, old);
        return true;
    }
};

template <class T>
T add(T a, T b, LazyFlags& flags) {
    const T result = static_cast<T>(a + b);
    flags = {sign_extended(result), sign_extended(a), LazyFlags::add_of<T>};
    return result;
}
/// The destination is written last: XADD with twice the same register leaves the sum.
template <class T>
struct Xadd {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M& memory) {
        if (!at.in_memory()) {
            const T old = get<T>(core, at.reg), sum = add<T>(old, get<T>(core, at.base), flags);
            set<T>(core, at.base, old);
            set<T>(core, at.reg, sum);
            return true;
        }
        const u64 where = effective(core, at);
        T old;
        if (!memory.open(core, at.segment(), where, old)) return false;
        if (!memory.put(core, at.segment(), where, add<T>(old, get<T>(core, at.reg), flags))) return false;
        set<T>(core, at.reg, old);
        return true;
    }
};
/// Memory is written in any case (CMPXCHG, Description).
template <class T>
struct CompareExchange {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M& memory) {
        const T expected = get<T>(core, rax);
        const u64 where = at.in_memory() ? effective(core, at) : 0;
        T old;
        if (!at.in_memory())
            old = get<T>(core, at.reg);
        else if (!memory.open(core, at.segment(), where, old))
            return false;
        const bool equal = old == expected;
        const T wanted = get<T>(core, at.in_memory() ? at.reg : at.base);
        if (at.in_memory()) {
            if (!memory.put(core, at.segment(), where, equal ? wanted : old)) return false;
        } else {
            set<T>(core, at.reg, equal ? wanted : old);
        }
        const T difference = static_cast<T>(expected - old);
        flags = {sign_extended(difference), sign_extended(expected), LazyFlags::sub_of<T>};
        if (!equal) set<T>(core, rax, old);
        return true;
    }
};

/// CMPXCHG8B and CMPXCHG16B, in two halves.
template <class T>
Outcome compare_exchange_pair(Core& core, const Instruction& at) {
    const u64 where = effective(core, at), next = (where + sizeof(T)) & address_mask(at.address_width());
    T low, high;
    // CMPXCHG16B, Exceptions: the operand must be aligned.
    if (sizeof(T) == 8 && (core.cpu.seg(at.segment()).linear(where) & 15) != 0) return Fault{Vector::GP};
    TRY(load_to_modify(core, at.segment(), where, low));
    TRY(load_to_modify(core, at.segment(), next, high));
    const bool equal = low == get<T>(core, rax) && high == get<T>(core, rdx);
    TRY(store<T>(core, at.segment(), where, equal ? get<T>(core, rbx) : low));
    TRY(store<T>(core, at.segment(), next, equal ? get<T>(core, rcx) : high));
    core.cpu.rflags = equal ? core.cpu.rflags | rflags::zf : core.cpu.rflags & ~rflags::zf;
    if (equal) return no_fault;
    set<T>(core, rax, low);
    set<T>(core, rdx, high);
    return no_fault;
}

}  // namespace

Handler exchange_handler(const Decoded& decoded) {
    switch (decoded.operation) {
        case Operation::xchg:
            return with_size(decoded, [&decoded]<class T>(T) -> Handler {
                if (decoded.code.in_memory()) return straight<ExchangeMemory<T>>;
                return straight<ExchangeRegisters<T>>;
            });
        case Operation::xadd:
            return with_size(decoded, []<class T>(T) -> Handler { return straight<Xadd<T>>; });
        case Operation::cmpxchg:
            return with_size(decoded, []<class T>(T) -> Handler { return straight<CompareExchange<T>>; });
        case Operation::cmpxchg8b:
            return aside<compare_exchange_pair<u32>>;
        case Operation::cmpxchg16b:
            return aside<compare_exchange_pair<u64>>;
        default:
            return nullptr;
    }
}

}  // namespace emu
