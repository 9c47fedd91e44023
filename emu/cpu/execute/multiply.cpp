// MUL, IMUL, DIV, IDIV.
#include "cpu/execute/forms.hpp"
#include "cpu/execute/handlers.hpp"

namespace emu {

namespace {

__extension__ using u128 = unsigned __int128;
__extension__ using i128 = __int128;

/// Twice as wide.
template <class T>
struct Double;
template <>
struct Double<u8> {
    using type = u16;
    using signed_type = i16;
};
template <>
struct Double<u16> {
    using type = u32;
    using signed_type = i32;
};
template <>
struct Double<u32> {
    using type = u64;
    using signed_type = i64;
};
template <>
struct Double<u64> {
    using type = u128;
    using signed_type = i128;
};
template <class T>
using Wide = typename Double<T>::type;
template <class T>
using SignedWide = typename Double<T>::signed_type;

/// AH, or the register that holds the upper half of a double-width accumulator.
template <class T>
constexpr u8 upper = sizeof(T) == 1 ? byte_register(4, false) : u8{rdx};

template <class T>
SignedWide<T> signed_wide(T value) {
    return static_cast<SignedWide<T>>(static_cast<i64>(sign_extended(value)));
}

/// CF and OF say that the upper half matters; the others are undefined and follow the lower half, as in Intel's.
template <class T>
LazyFlags product_flags(T low, bool matters) {
    return LazyFlags::of_result(low, matters ? rflags::cf | rflags::of : 0);
}

template <class T, bool is_signed>
EMU_ALWAYS_INLINE LazyFlags multiply_accumulator(Core& core, T by) {
    const T a = get<T>(core, rax);
    Wide<T> product;
    if constexpr (is_signed)
        product = static_cast<Wide<T>>(signed_wide(a) * signed_wide(by));
    else
        product = static_cast<Wide<T>>(static_cast<Wide<T>>(a) * by);
    const T low = static_cast<T>(product), high = static_cast<T>(product >> width_of<T>);
    set<T>(core, rax, low);
    set<T>(core, upper<T>, high);
    const T expected = is_signed ? static_cast<T>(sign_extended(low) >> 63 != 0 ? ~T{0} : T{0}) : T{0};
    return product_flags(low, high != expected);
}
template <class T, bool is_signed>
struct Multiply {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M& memory) {
        T by;
        if (!at.in_memory())
            by = get<T>(core, at.reg);
        else if (!memory.load(core, at.segment(), effective(core, at), by))
            return false;
        flags = multiply_accumulator<T, is_signed>(core, by);
        return true;
    }
};
/// IMUL with two or three operands.
template <class T, bool with_immediate>
struct MultiplyInto {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction& at, LazyFlags& flags, M& memory) {
        T source;
        if (!at.in_memory())
            source = get<T>(core, at.base);
        else if (!memory.load(core, at.segment(), effective(core, at), source))
            return false;
        const T other = with_immediate ? immediate<T>(at) : get<T>(core, at.reg);
        const SignedWide<T> product = static_cast<SignedWide<T>>(signed_wide(source) * signed_wide(other));
        const T low = static_cast<T>(product);
        set<T>(core, at.reg, low);
        flags = product_flags(low, signed_wide(low) != product);
        return true;
    }
};

/// Flags are undefined and stay.
template <class T>
Outcome divide(Core& core, const Instruction& at) {
    T by;
    TRY(load_operand(core, at, by));
    const Wide<T> dividend =
        static_cast<Wide<T>>((static_cast<Wide<T>>(get<T>(core, upper<T>)) << width_of<T>) | get<T>(core, rax));
    if (by == 0) return core.doors->trouble(core, Trouble::divide);
    const Wide<T> quotient = static_cast<Wide<T>>(dividend / by);
    TRY(core.doors->judge(core, Trouble::divide, quotient == static_cast<T>(quotient)));
    set<T>(core, rax, static_cast<T>(quotient));
    set<T>(core, upper<T>, static_cast<T>(dividend % by));
    return no_fault;
}
template <class T>
Outcome divide_signed(Core& core, const Instruction& at) {
    T by;
    TRY(load_operand(core, at, by));
    const Wide<T> raw =
        static_cast<Wide<T>>((static_cast<Wide<T>>(get<T>(core, upper<T>)) << width_of<T>) | get<T>(core, rax));
    const SignedWide<T> dividend = static_cast<SignedWide<T>>(raw);
    const SignedWide<T> divisor = signed_wide(by);
    constexpr Wide<T> most_negative = static_cast<Wide<T>>(Wide<T>{1} << (2 * width_of<T> - 1));
    // The most negative dividend by -1 overflows even the host's division.
    if (by == 0 || (divisor == -1 && raw == most_negative)) return core.doors->trouble(core, Trouble::divide);
    const SignedWide<T> quotient = static_cast<SignedWide<T>>(dividend / divisor);
    TRY(core.doors->judge(core, Trouble::divide, quotient == signed_wide(static_cast<T>(quotient))));
    set<T>(core, rax, static_cast<T>(quotient));
    set<T>(core, upper<T>, static_cast<T>(dividend % divisor));
    return no_fault;
}

}  // namespace

Handler multiply_handler(const Decoded& decoded) {
    switch (decoded.operation) {
        case Operation::mul:
            return with_size(decoded, []<class T>(T) -> Handler { return straight<Multiply<T, false>>; });
        case Operation::imul:
            return with_size(decoded, []<class T>(T) -> Handler { return straight<Multiply<T, true>>; });
        case Operation::imul2:
            return with_wide_size(decoded, []<class T>(T) -> Handler { return straight<MultiplyInto<T, false>>; });
        case Operation::imul3:
            return with_wide_size(decoded, []<class T>(T) -> Handler { return straight<MultiplyInto<T, true>>; });
        case Operation::div:
            return with_size(decoded, []<class T>(T) -> Handler { return aside<divide<T>>; });
        case Operation::idiv:
            return with_size(decoded, []<class T>(T) -> Handler { return aside<divide_signed<T>>; });
        default:
            return nullptr;
    }
}

}  // namespace emu
