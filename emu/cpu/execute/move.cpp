// MOV, MOVZX, MOVSX, LEA, BSWAP, CBW and CWD with their relatives, SETcc, CMOVcc, NOP, XLAT.
#include <utility>

#include "cpu/execute/forms.hpp"
#include "cpu/execute/handlers.hpp"

namespace emu {

namespace {

/// Copies a value of type S into a register of type T, extended with its sign or with zeros.
template <class T, class S, bool is_signed>
EMU_ALWAYS_INLINE T extend(S value) {
    if constexpr (is_signed) return static_cast<T>(sign_extended(value));
    return static_cast<T>(value);
}

template <class T, class S = T, bool is_signed = false>
struct MoveRegister {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags&, M&) {
        set<T>(core, at.reg, extend<T, S, is_signed>(get<S>(core, at.base)));
        return true;
    }
};
template <class T>
struct MoveImmediate {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags&, M&) {
        set<T>(core, at.reg, immediate<T>(at));
        return true;
    }
};
template <class T, class S = T, bool is_signed = false>
struct Load {
    template <class Address>
    struct At {
        template <class M>
        EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags&, M& memory) {
            S value;
            if (!memory.load(core, at.segment(), Address::of(core, at), value)) return false;
            set<T>(core, at.reg, extend<T, S, is_signed>(value));
            return true;
        }
    };
};
template <class T, bool from_register>
struct Store {
    template <class Address>
    struct At {
        template <class M>
        EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags&, M& memory) {
            const T value = from_register ? get<T>(core, at.reg) : immediate<T>(at);
            return memory.store(core, at.segment(), Address::of(core, at), value);
        }
    };
};
template <class T>
struct Lea {
    template <class Address>
    struct At {
        template <class M>
        EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags&, M&) {
            set<T>(core, at.reg, static_cast<T>(Address::of(core, at)));
            return true;
        }
    };
};

struct Nop {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core&, const Instruction&, LazyFlags&, M&) {
        return true;
    }
};
template <class T>
struct Bswap {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags&, M&) {
        const u64 value = core.cpu.gpr[at.reg];
        if constexpr (sizeof(T) == 8) core.cpu.gpr[at.reg] = __builtin_bswap64(value);
        if constexpr (sizeof(T) == 4) core.cpu.gpr[at.reg] = __builtin_bswap32(static_cast<u32>(value));
        if constexpr (sizeof(T) == 2) set<u16>(core, at.reg, 0);  // undefined; processors give 0
        return true;
    }
};
/// CBW, CWDE, CDQE.
template <class T, class Half>
struct Convert {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction&, LazyFlags&, M&) {
        set<T>(core, rax, static_cast<T>(sign_extended(static_cast<Half>(core.cpu.gpr[rax]))));
        return true;
    }
};
/// CWD, CDQ, CQO.
template <class T>
struct ConvertDouble {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction&, LazyFlags&, M&) {
        const bool negative = static_cast<i64>(sign_extended(get<T>(core, rax))) < 0;
        set<T>(core, rdx, static_cast<T>(negative ? ~T{0} : T{0}));
        return true;
    }
};

template <unsigned condition>
struct SetRegister {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M&) {
        set<u8>(core, at.reg, holds<condition>(flags) ? 1 : 0);
        return true;
    }
};
template <unsigned condition>
struct SetMemory {
    template <class Address>
    struct At {
        template <class M>
        EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M& memory) {
            const u8 value = holds<condition>(flags) ? 1 : 0;
            return memory.store(core, at.segment(), Address::of(core, at), value);
        }
    };
};
/// Memory is read, and the upper half of a 64-bit register cleared, whether the condition holds or not.
template <unsigned condition, class T>
struct CmovRegister {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M&) {
        set<T>(core, at.reg, get<T>(core, holds<condition>(flags) ? at.base : at.reg));
        return true;
    }
};
template <unsigned condition, class T>
struct CmovMemory {
    template <class Address>
    struct At {
        template <class M>
        EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M& memory) {
            T value;
            if (!memory.load(core, at.segment(), Address::of(core, at), value)) return false;
            set<T>(core, at.reg, holds<condition>(flags) ? value : get<T>(core, at.reg));
            return true;
        }
    };
};

Handler mov(const Decoded& decoded) {
    return with_size(decoded, [&decoded]<class T>(T) -> Handler {
        switch (decoded.shape) {
            case Shape::rr:
                return straight<MoveRegister<T>>;
            case Shape::ri:
                return straight<MoveImmediate<T>>;
            case Shape::rm:
                return frequent_form<Load<T>>(decoded.code);
            case Shape::mr:
                return frequent_form<Store<T, true>>(decoded.code);
            default:
                return frequent_form<Store<T, false>>(decoded.code);
        }
    });
}
template <class S, bool is_signed>
Handler extending(const Decoded& decoded) {
    return with_wide_size(decoded, [&decoded]<class T>(T) -> Handler {
        if (decoded.shape == Shape::rr) return straight<MoveRegister<T, S, is_signed>>;
        return frequent_form<Load<T, S, is_signed>>(decoded.code);
    });
}
Handler lea(const Decoded& decoded) {
    return with_wide_size(decoded, [&decoded]<class T>(T) -> Handler { return frequent_form<Lea<T>>(decoded.code); });
}
Handler convert(const Decoded& decoded) {
    switch (decoded.code.size()) {
        case OperandSize::word:
            return straight<Convert<u16, u8>>;
        case OperandSize::dword:
            return straight<Convert<u32, u16>>;
        default:
            return straight<Convert<u64, u32>>;
    }
}

template <unsigned... conditions>
Handler set_handler(const Decoded& decoded, std::integer_sequence<unsigned, conditions...>) {
    static constexpr Handler registers[] = {straight<SetRegister<conditions>>...};
    static constexpr Handler memory[] = {straight<typename SetMemory<conditions>::template At<AnyAddress>>...};
    return decoded.shape == Shape::r ? registers[decoded.condition] : memory[decoded.condition];
}
template <unsigned... conditions>
Handler cmov_handler(const Decoded& decoded, std::integer_sequence<unsigned, conditions...>) {
    return with_wide_size(decoded, [&decoded]<class T>(T) -> Handler {
        static constexpr Handler registers[] = {straight<CmovRegister<conditions, T>>...};
        static constexpr Handler memory[] = {straight<typename CmovMemory<conditions, T>::template At<AnyAddress>>...};
        return decoded.shape == Shape::rr ? registers[decoded.condition] : memory[decoded.condition];
    });
}

/// XLAT: AL from the table at (E)BX.
Outcome xlat(Core& core, const Instruction& at) {
    const u64 where = (core.cpu.gpr[rbx] + get<u8>(core, 0)) & address_mask(at.address_width());
    u8 value;
    TRY(load(core, at.segment(), where, value));
    set<u8>(core, 0, value);
    return no_fault;
}

}  // namespace

Handler move_handler(const Decoded& decoded) {
    constexpr std::make_integer_sequence<unsigned, 16> all_conditions{};
    switch (decoded.operation) {
        case Operation::mov:
            return mov(decoded);
        case Operation::movzx8:
            return extending<u8, false>(decoded);
        case Operation::movzx16:
            return extending<u16, false>(decoded);
        case Operation::movsx8:
            return extending<u8, true>(decoded);
        case Operation::movsx16:
            return extending<u16, true>(decoded);
        case Operation::movsxd:
            return extending<u32, true>(decoded);
        case Operation::lea:
            return lea(decoded);
        case Operation::bswap:
            return with_wide_size(decoded, []<class T>(T) -> Handler { return straight<Bswap<T>>; });
        case Operation::convert:
            return convert(decoded);
        case Operation::convert_double:
            return with_wide_size(decoded, []<class T>(T) -> Handler { return straight<ConvertDouble<T>>; });
        case Operation::set:
            return set_handler(decoded, all_conditions);
        case Operation::cmov:
            return cmov_handler(decoded, all_conditions);
        case Operation::nop:
        case Operation::clflush:
            return straight<Nop>;
        case Operation::xlat:
            return aside<xlat>;
        default:
            return nullptr;
    }
}

}  // namespace emu
