// What arithmetic and logic compute, and the shapes their operands come in.
#pragma once
#include "cpu/execute/forms.hpp"

namespace emu::alu {

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
        const u64 carry = LazyFlags::keeps_carry | (flags.cf() ? LazyFlags::kept_carry : 0);
        flags = {sign_extended(result), sign_extended(a), LazyFlags::add_of<T> | carry};
        return result;
    }
};
struct Dec {
    template <class T>
    static T apply(T a, LazyFlags& flags) {
        const T result = static_cast<T>(a - 1);
        const u64 carry = LazyFlags::keeps_carry | (flags.cf() ? LazyFlags::kept_carry : 0);
        flags = {sign_extended(result), sign_extended(a), LazyFlags::sub_of<T> | carry};
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

}  // namespace emu::alu
