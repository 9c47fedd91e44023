// ROL, ROR, RCL, RCR, SHL, SHR, SAR, SHLD, SHRD. The count is masked to 5 bits, or 6 with a 64-bit operand; a masked
// count of 0 changes no flag. What the manual leaves undefined is what Intel processors do.
#include "cpu/execute/forms.hpp"
#include "cpu/execute/handlers.hpp"

namespace emu {

namespace {

template <class T>
constexpr unsigned masked(u64 count) {
    return static_cast<unsigned>(count & (sizeof(T) == 8 ? 63 : 31));
}
template <class T>
constexpr bool top(T value) {
    return (value >> (width_of<T> - 1)) != 0;
}
constexpr u64 cf_of(bool carry, bool overflow) { return (carry ? rflags::cf : 0) | (overflow ? rflags::of : 0); }

/// Rotates change CF and OF alone.
constexpr LazyFlags with_carry(const LazyFlags& flags, bool carry, bool overflow) {
    const u64 kept = flags.arithmetic() & ~(rflags::cf | rflags::of);
    return LazyFlags::of_register(kept | cf_of(carry, overflow));
}

struct Shl {
    template <class T>
    static T apply(T value, unsigned count, LazyFlags& flags) {
        const u64 wide = count < 64 ? u64{value} << count : 0;
        const T result = static_cast<T>(wide);
        const bool carry = count <= width_of<T> && ((u64{value} >> (width_of<T> - count)) & 1) != 0;
        flags = LazyFlags::of_result(result, cf_of(carry, top(result) != carry));
        return result;
    }
};
struct Shr {
    template <class T>
    static T apply(T value, unsigned count, LazyFlags& flags) {
        const T result = static_cast<T>(u64{value} >> count);
        const bool carry = ((u64{value} >> (count - 1)) & 1) != 0;
        flags = LazyFlags::of_result(result, cf_of(carry, top(result) != top(static_cast<T>(result << 1))));
        return result;
    }
};
struct Sar {
    template <class T>
    static T apply(T value, unsigned count, LazyFlags& flags) {
        const i64 wide = static_cast<i64>(sign_extended(value));
        const T result = static_cast<T>(wide >> count);
        flags = LazyFlags::of_result(result, cf_of(((wide >> (count - 1)) & 1) != 0, false));
        return result;
    }
};
struct Rol {
    template <class T>
    static T apply(T value, unsigned count, LazyFlags& flags) {
        const unsigned by = count % width_of<T>;
        const T result = by == 0 ? value : static_cast<T>((value << by) | (value >> (width_of<T> - by)));
        const bool carry = (result & 1) != 0;
        flags = with_carry(flags, carry, top(result) != carry);
        return result;
    }
};
struct Ror {
    template <class T>
    static T apply(T value, unsigned count, LazyFlags& flags) {
        const unsigned by = count % width_of<T>;
        const T result = by == 0 ? value : static_cast<T>((value >> by) | (value << (width_of<T> - by)));
        flags = with_carry(flags, top(result), top(result) != top(static_cast<T>(result << 1)));
        return result;
    }
};
/// RCL and RCR rotate CF as well, bit by bit.
struct Rcl {
    template <class T>
    static T apply(T value, unsigned count, LazyFlags& flags) {
        bool carry = flags.cf();
        for (unsigned i = count % (width_of<T> + 1); i > 0; --i) {
            const bool out = top(value);
            value = static_cast<T>((value << 1) | (carry ? 1 : 0));
            carry = out;
        }
        flags = with_carry(flags, carry, top(value) != carry);
        return value;
    }
};
struct Rcr {
    template <class T>
    static T apply(T value, unsigned count, LazyFlags& flags) {
        bool carry = flags.cf();
        for (unsigned i = count % (width_of<T> + 1); i > 0; --i) {
            const bool out = (value & 1) != 0;
            value = static_cast<T>((value >> 1) | (carry ? T{1} << (width_of<T> - 1) : 0));
            carry = out;
        }
        flags = with_carry(flags, carry, top(value) != top(static_cast<T>(value << 1)));
        return value;
    }
};

enum class Count { immediate, one, cl };

template <Count from>
EMU_ALWAYS_INLINE u64 count_of(const Core& core, const Instruction& at) {
    if constexpr (from == Count::one) return 1;
    if constexpr (from == Count::cl) return core.cpu.gpr[rcx];
    return at.imm;
}

template <class Op, class T, Count from>
struct ShiftRegister {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M&) {
        const unsigned count = masked<T>(count_of<from>(core, at));
        const T value = get<T>(core, at.reg);
        set<T>(core, at.reg, count == 0 ? value : Op::template apply<T>(value, count, flags));
        return true;
    }
};
template <class Op, class T, Count from>
struct ShiftMemory {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M& memory) {
        const unsigned count = masked<T>(count_of<from>(core, at));
        const u64 where = effective(core, at);
        T value;
        if (!memory.open(core, at.segment(), where, value)) return false;
        if (count != 0) value = Op::template apply<T>(value, count, flags);
        return memory.put(core, at.segment(), where, value);
    }
};

/// SHLD and SHRD. With 16-bit operands and a count above 16 the result is undefined; Intel's go on with the operands
/// repeated.
template <class T, bool left>
EMU_ALWAYS_INLINE T shift_double(T into, T from, unsigned count, LazyFlags& flags) {
    constexpr unsigned width = width_of<T>;
    T result;
    bool carry;
    if constexpr (sizeof(T) == 2) {
        const u64 all =
            left ? (u64{into} << 32) | (u64{from} << 16) | into : (u64{into} << 32) | (u64{from} << 16) | into;
        if constexpr (left) {
            result = static_cast<T>((all << count) >> 32);
            carry = ((all >> (48 - count)) & 1) != 0;
        } else {
            result = static_cast<T>(all >> count);
            carry = ((all >> (count - 1)) & 1) != 0;
        }
    } else if constexpr (left) {
        result = static_cast<T>((into << count) | (from >> (width - count)));
        carry = ((into >> (width - count)) & 1) != 0;
    } else {
        result = static_cast<T>((into >> count) | (from << (width - count)));
        carry = ((into >> (count - 1)) & 1) != 0;
    }
    const bool overflow = left ? top(result) != carry : top(result) != top(static_cast<T>(result << 1));
    flags = LazyFlags::of_result(result, cf_of(carry, overflow));
    return result;
}
template <class T, bool left, Count from>
struct ShiftDouble {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M& memory) {
        const unsigned count = masked<T>(count_of<from>(core, at));
        if (!at.in_memory()) {
            const T value = get<T>(core, at.reg);
            set<T>(core, at.reg,
                   count == 0 ? value : shift_double<T, left>(value, get<T>(core, at.base), count, flags));
            return true;
        }
        const u64 where = effective(core, at);
        T value;
        if (!memory.open(core, at.segment(), where, value)) return false;
        if (count != 0) value = shift_double<T, left>(value, get<T>(core, at.reg), count, flags);
        return memory.put(core, at.segment(), where, value);
    }
};

template <class Op, Count from>
Handler shift(const Decoded& decoded) {
    const bool in_memory = decoded.code.in_memory();
    return with_size(decoded, [in_memory]<class T>(T) -> Handler {
        if (in_memory) return straight<ShiftMemory<Op, T, from>>;
        return straight<ShiftRegister<Op, T, from>>;
    });
}
template <Count from>
Handler by_operation(const Decoded& decoded, Operation first) {
    switch (static_cast<unsigned>(decoded.operation) - static_cast<unsigned>(first)) {
        case 0:
            return shift<Rol, from>(decoded);
        case 1:
            return shift<Ror, from>(decoded);
        case 2:
            return shift<Rcl, from>(decoded);
        case 3:
            return shift<Rcr, from>(decoded);
        case 4:
        case 6:
            return shift<Shl, from>(decoded);  // SAL is SHL
        case 5:
            return shift<Shr, from>(decoded);
        default:
            return shift<Sar, from>(decoded);
    }
}
template <bool left, Count from>
Handler double_shift(const Decoded& decoded) {
    return with_wide_size(decoded, []<class T>(T) -> Handler { return straight<ShiftDouble<T, left, from>>; });
}

}  // namespace

Handler shift_handler(const Decoded& decoded) {
    const Operation operation = decoded.operation;
    if (operation >= Operation::rol && operation <= Operation::sar)
        return by_operation<Count::immediate>(decoded, Operation::rol);
    if (operation >= Operation::rol_1 && operation <= Operation::sar_1)
        return by_operation<Count::one>(decoded, Operation::rol_1);
    if (operation >= Operation::rol_cl && operation <= Operation::sar_cl)
        return by_operation<Count::cl>(decoded, Operation::rol_cl);
    switch (operation) {
        case Operation::shld:
            return double_shift<true, Count::immediate>(decoded);
        case Operation::shrd:
            return double_shift<false, Count::immediate>(decoded);
        case Operation::shld_cl:
            return double_shift<true, Count::cl>(decoded);
        case Operation::shrd_cl:
            return double_shift<false, Count::cl>(decoded);
        default:
            return nullptr;
    }
}

}  // namespace emu
