// BT, BTS, BTR, BTC, BSF, BSR, TZCNT, LZCNT, POPCNT.
#include "cpu/execute/forms.hpp"
#include "cpu/execute/handlers.hpp"

namespace emu {

namespace {

/// Only CF is defined; processors leave the other flags alone.
constexpr LazyFlags with_cf(const LazyFlags& flags, bool carry) {
    return LazyFlags::of_register((flags.arithmetic() & ~rflags::cf) | (carry ? rflags::cf : 0));
}

struct Test {
    static constexpr bool writes = false;
    template <class T>
    static T apply(T value, T) {
        return value;
    }
};
struct Set {
    static constexpr bool writes = true;
    template <class T>
    static T apply(T value, T mask) {
        return value | mask;
    }
};
struct Reset {
    static constexpr bool writes = true;
    template <class T>
    static T apply(T value, T mask) {
        return value & static_cast<T>(~mask);
    }
};
struct Complement {
    static constexpr bool writes = true;
    template <class T>
    static T apply(T value, T mask) {
        return value ^ mask;
    }
};

template <class Op, class T, bool by_immediate>
struct BitRegister {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M&) {
        const u64 number = (by_immediate ? at.imm : core.cpu.gpr[at.base]) & (width_of<T> - 1);
        const T value = get<T>(core, at.reg), mask = static_cast<T>(T{1} << number);
        flags = with_cf(flags, (value & mask) != 0);
        if constexpr (Op::writes) set<T>(core, at.reg, Op::apply(value, mask));
        return true;
    }
};
/// A register bit offset is signed and reaches beyond the operand (BT, Operation: bit strings in memory).
template <class Op, class T, bool by_immediate>
struct BitMemory {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M& memory) {
        u64 where = effective(core, at), number = at.imm;
        if constexpr (!by_immediate) {
            number = sign_extended(get<T>(core, at.reg));
            const i64 element = static_cast<i64>(number) >> (sizeof(T) == 2 ? 4 : sizeof(T) == 4 ? 5 : 6);
            where = (where + static_cast<u64>(element) * sizeof(T)) & address_mask(at.address_width());
        }
        const T mask = static_cast<T>(T{1} << (number & (width_of<T> - 1)));
        T value;
        if constexpr (Op::writes) {
            if (!memory.open(core, at.segment(), where, value)) return false;
            if (!memory.put(core, at.segment(), where, Op::apply(value, mask))) return false;
        } else {
            if (!memory.load(core, at.segment(), where, value)) return false;
        }
        flags = with_cf(flags, (value & mask) != 0);
        return true;
    }
};

template <class T>
constexpr unsigned leading_zeros(T value) {
    return static_cast<unsigned>(__builtin_clzll(value)) - (64 - width_of<T>);
}

/// BSF and BSR of 0 leave the destination alone (as processors do; the manual says undefined) and set ZF.
template <class T, bool forward>
struct Scan {
    static void apply(Core& core, u8 to, T value, LazyFlags& flags) {
        if (value == 0) {
            flags = LazyFlags::of_result<T>(0);
            return;
        }
        const unsigned found =
            forward ? static_cast<unsigned>(__builtin_ctzll(value)) : width_of<T> - 1 - leading_zeros(value);
        flags = LazyFlags::of_result(value);
        set<T>(core, to, static_cast<T>(found));
    }
};
/// TZCNT and LZCNT: CF for a source of 0, ZF for a result of 0.
template <class T, bool trailing>
struct CountZeros {
    static void apply(Core& core, u8 to, T value, LazyFlags& flags) {
        unsigned count = width_of<T>;
        if (value != 0) count = trailing ? static_cast<unsigned>(__builtin_ctzll(value)) : leading_zeros(value);
        flags = LazyFlags::of_result(static_cast<T>(count), value == 0 ? rflags::cf : 0);
        set<T>(core, to, static_cast<T>(count));
    }
};
template <class T>
struct CountOnes {
    static void apply(Core& core, u8 to, T value, LazyFlags& flags) {
        flags = LazyFlags::of_register(value == 0 ? rflags::zf : 0);
        set<T>(core, to, static_cast<T>(__builtin_popcountll(value)));
    }
};

template <class Op, class T>
struct FromSource {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M& memory) {
        T value;
        if (!at.in_memory())
            value = get<T>(core, at.base);
        else if (!memory.load(core, at.segment(), effective(core, at), value))
            return false;
        Op::apply(core, at.reg, value, flags);
        return true;
    }
};

template <class Op, bool by_immediate>
Handler bit(const Decoded& decoded) {
    const bool in_memory = decoded.code.in_memory();
    return with_wide_size(decoded, [in_memory]<class T>(T) -> Handler {
        if (in_memory) return straight<BitMemory<Op, T, by_immediate>>;
        return straight<BitRegister<Op, T, by_immediate>>;
    });
}
template <template <class, bool> class Op, bool which>
Handler scan(const Decoded& decoded) {
    return with_wide_size(decoded, []<class T>(T) -> Handler { return straight<FromSource<Op<T, which>, T>>; });
}

}  // namespace

Handler bit_handler(const Decoded& decoded) {
    switch (decoded.operation) {
        case Operation::bt:
            return bit<Test, false>(decoded);
        case Operation::bts:
            return bit<Set, false>(decoded);
        case Operation::btr:
            return bit<Reset, false>(decoded);
        case Operation::btc:
            return bit<Complement, false>(decoded);
        case Operation::bt_imm:
            return bit<Test, true>(decoded);
        case Operation::bts_imm:
            return bit<Set, true>(decoded);
        case Operation::btr_imm:
            return bit<Reset, true>(decoded);
        case Operation::btc_imm:
            return bit<Complement, true>(decoded);
        case Operation::bsf:
            return scan<Scan, true>(decoded);
        case Operation::bsr:
            return scan<Scan, false>(decoded);
        case Operation::tzcnt:
            return scan<CountZeros, true>(decoded);
        case Operation::lzcnt:
            return scan<CountZeros, false>(decoded);
        case Operation::popcnt:
            return with_wide_size(decoded, []<class T>(T) -> Handler { return straight<FromSource<CountOnes<T>, T>>; });
        default:
            return nullptr;
    }
}

}  // namespace emu
