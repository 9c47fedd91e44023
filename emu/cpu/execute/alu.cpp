// ADD, OR, ADC, SBB, AND, SUB, XOR, CMP, TEST, NOT, NEG, INC, DEC in all shapes and widths.
#include "cpu/execute/forms.hpp"
#include "cpu/execute/handlers.hpp"

namespace emu {

namespace {

/// CF, AF and OF from the carries (or borrows) out of each bit.
template <class T>
constexpr u64 carry_flags(T carries) {
    constexpr unsigned top = width_of<T> - 1;
    const u64 wide = carries;
    const u64 overflow = (wide >> top) ^ (wide >> (top - 1));
    return (wide >> top) | ((wide >> 3) & 1) << 4 | (overflow & 1) << 11;
}

struct Add {
    template <class T>
    static T apply(T a, T b, LazyFlags& flags) {
        const T result = static_cast<T>(a + b);
        flags = {sign_extended(result), sign_extended(a), LazyFlags::add_of<T>};
        return result;
    }
};
struct Sub {
    template <class T>
    static T apply(T a, T b, LazyFlags& flags) {
        const T result = static_cast<T>(a - b);
        flags = {sign_extended(result), sign_extended(a), LazyFlags::sub_of<T>};
        return result;
    }
};
struct Adc {
    template <class T>
    static T apply(T a, T b, LazyFlags& flags) {
        const T result = static_cast<T>(a + b + (flags.cf() ? 1 : 0));
        flags = LazyFlags::of_result(result, carry_flags(static_cast<T>((a & b) | ((a | b) & ~result))));
        return result;
    }
};
struct Sbb {
    template <class T>
    static T apply(T a, T b, LazyFlags& flags) {
        const T result = static_cast<T>(a - b - (flags.cf() ? 1 : 0));
        flags = LazyFlags::of_result(result, carry_flags(static_cast<T>((~a & b) | ((~a | b) & result))));
        return result;
    }
};
struct And {
    template <class T>
    static T apply(T a, T b, LazyFlags& flags) {
        const T result = a & b;
        flags = LazyFlags::of_result(result);
        return result;
    }
};
struct Or {
    template <class T>
    static T apply(T a, T b, LazyFlags& flags) {
        const T result = a | b;
        flags = LazyFlags::of_result(result);
        return result;
    }
};
struct Xor {
    template <class T>
    static T apply(T a, T b, LazyFlags& flags) {
        const T result = a ^ b;
        flags = LazyFlags::of_result(result);
        return result;
    }
};

struct Not {
    template <class T>
    static T apply(T a, LazyFlags&) {
        return static_cast<T>(~a);
    }
};
struct Neg {
    template <class T>
    static T apply(T a, LazyFlags& flags) {
        return Sub::apply<T>(0, a, flags);
    }
};
/// INC and DEC leave CF alone.
struct Inc {
    template <class T>
    static T apply(T a, LazyFlags& flags) {
        const T result = static_cast<T>(a + 1);
        const u64 overflow = result == static_cast<T>(T{1} << (width_of<T> - 1)) ? rflags::of : 0;
        const u64 half = (result & 15) == 0 ? rflags::af : 0;
        flags = LazyFlags::of_result(result, (flags.cf() ? rflags::cf : 0) | half | overflow);
        return result;
    }
};
struct Dec {
    template <class T>
    static T apply(T a, LazyFlags& flags) {
        const T result = static_cast<T>(a - 1);
        const u64 overflow = a == static_cast<T>(T{1} << (width_of<T> - 1)) ? rflags::of : 0;
        const u64 half = (a & 15) == 0 ? rflags::af : 0;
        flags = LazyFlags::of_result(result, (flags.cf() ? rflags::cf : 0) | half | overflow);
        return result;
    }
};

// --- shapes ----------------------------------------------------------------------------------------------------------
// `keeps`: CMP and TEST compute, but keep nothing.

template <class Op, class T, bool keeps>
struct RegisterRegister {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M&) {
        const T result = Op::template apply<T>(get<T>(core, at.reg), get<T>(core, at.base), flags);
        if constexpr (keeps) set<T>(core, at.reg, result);
        return true;
    }
};
template <class Op, class T, bool keeps>
struct RegisterImmediate {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M&) {
        const T result = Op::template apply<T>(get<T>(core, at.reg), immediate<T>(at), flags);
        if constexpr (keeps) set<T>(core, at.reg, result);
        return true;
    }
};
template <class Op, class T, bool keeps>
struct RegisterMemory {
    template <class Address>
    struct At {
        template <class M>
        EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M& memory) {
            T source;
            if (!memory.load(core, at.segment(), Address::of(core, at), source)) return false;
            const T result = Op::template apply<T>(get<T>(core, at.reg), source, flags);
            if constexpr (keeps) set<T>(core, at.reg, result);
            return true;
        }
    };
};
template <class Op, class T, bool from_register>
struct MemoryModify {
    template <class Address>
    struct At {
        template <class M>
        EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M& memory) {
            const u64 where = Address::of(core, at);
            T old;
            if (!memory.open(core, at.segment(), where, old)) return false;
            const T source = from_register ? get<T>(core, at.reg) : immediate<T>(at);
            return memory.put(core, at.segment(), where, Op::template apply<T>(old, source, flags));
        }
    };
};
template <class Op, class T, bool from_register>
struct MemoryCompare {
    template <class Address>
    struct At {
        template <class M>
        EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M& memory) {
            T old;
            if (!memory.load(core, at.segment(), Address::of(core, at), old)) return false;
            const T source = from_register ? get<T>(core, at.reg) : immediate<T>(at);
            Op::template apply<T>(old, source, flags);
            return true;
        }
    };
};
template <class Op, class T>
struct UnaryRegister {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M&) {
        set<T>(core, at.reg, Op::template apply<T>(get<T>(core, at.reg), flags));
        return true;
    }
};
template <class Op, class T>
struct UnaryMemory {
    template <class Address>
    struct At {
        template <class M>
        EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M& memory) {
            const u64 where = Address::of(core, at);
            T old;
            if (!memory.open(core, at.segment(), where, old)) return false;
            return memory.put(core, at.segment(), where, Op::template apply<T>(old, flags));
        }
    };
};

template <class Op>
Handler binary(const Decoded& decoded) {
    return with_size(decoded, [&decoded]<class T>(T) -> Handler {
        switch (decoded.shape) {
            case Shape::rr: return straight<RegisterRegister<Op, T, true>>;
            case Shape::ri: return straight<RegisterImmediate<Op, T, true>>;
            case Shape::rm: return frequent_form<RegisterMemory<Op, T, true>>(decoded.code);
            case Shape::mr: return any_form<MemoryModify<Op, T, true>>(decoded.code);
            default: return any_form<MemoryModify<Op, T, false>>(decoded.code);
        }
    });
}
template <class Op>
Handler comparison(const Decoded& decoded) {
    return with_size(decoded, [&decoded]<class T>(T) -> Handler {
        switch (decoded.shape) {
            case Shape::rr: return straight<RegisterRegister<Op, T, false>>;
            case Shape::ri: return straight<RegisterImmediate<Op, T, false>>;
            case Shape::rm: return frequent_form<RegisterMemory<Op, T, false>>(decoded.code);
            case Shape::mr: return frequent_form<MemoryCompare<Op, T, true>>(decoded.code);
            default: return frequent_form<MemoryCompare<Op, T, false>>(decoded.code);
        }
    });
}
template <class Op>
Handler unary(const Decoded& decoded) {
    return with_size(decoded, [&decoded]<class T>(T) -> Handler {
        if (decoded.shape == Shape::r) return straight<UnaryRegister<Op, T>>;
        return any_form<UnaryMemory<Op, T>>(decoded.code);
    });
}

}  // namespace

Handler alu_handler(const Decoded& decoded) {
    switch (decoded.operation) {
        case Operation::add: return binary<Add>(decoded);
        case Operation::or_: return binary<Or>(decoded);
        case Operation::adc: return binary<Adc>(decoded);
        case Operation::sbb: return binary<Sbb>(decoded);
        case Operation::and_: return binary<And>(decoded);
        case Operation::sub: return binary<Sub>(decoded);
        case Operation::xor_: return binary<Xor>(decoded);
        case Operation::cmp: return comparison<Sub>(decoded);
        case Operation::test: return comparison<And>(decoded);
        case Operation::not_: return unary<Not>(decoded);
        case Operation::neg: return unary<Neg>(decoded);
        case Operation::inc: return unary<Inc>(decoded);
        case Operation::dec: return unary<Dec>(decoded);
        default: return nullptr;
    }
}

}  // namespace emu
