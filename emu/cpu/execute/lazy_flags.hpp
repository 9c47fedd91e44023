// The six arithmetic flags as the operation left them: a result, an operand and a kind, turned into flags when asked.
//
//   kind        operand           CF                     AF, OF
//   bits        CF, AF, OF as in RFLAGS; SF and PF are XORed to what the result says, so that any flags fit
//   add         first operand     result < operand       from the carries
//   sub         first operand     result > operand       from the borrows
//
// Results and operands are sign-extended from their width. That keeps the unsigned order within a width, so one
// comparison serves all widths; only AF and OF need to know where the sign was: bits 5-0 of kind.
#pragma once
#include "arch/flags.hpp"

namespace emu {

template <class T>
constexpr unsigned width_of = 8 * sizeof(T);

template <class T>
constexpr u64 sign_extended(T value) {
    constexpr unsigned unused = 64 - width_of<T>;
    return static_cast<u64>(static_cast<i64>(u64{value} << unused) >> unused);
}

struct LazyFlags {
    u64 result = 1;
    u64 operand = 0;
    u64 kind = 0;

    static constexpr u64 bits = 0, add = 0x100, sub = 0x200;
    static constexpr u64 keeps_carry = 0x400, kept_carry = 0x800;  // INC and DEC: add and sub, but CF is kept_carry
    template <class T>
    static constexpr u64 add_of = add | (width_of<T> - 1);
    template <class T>
    static constexpr u64 sub_of = sub | (width_of<T> - 1);

    constexpr bool zf() const { return result == 0; }
    constexpr bool cf() const {
        if ((kind & keeps_carry) != 0) return (kind & kept_carry) != 0;
        if ((kind & sub) != 0) return result > operand;
        if ((kind & add) != 0) return result < operand;
        return (operand & rflags::cf) != 0;
    }
    constexpr bool sf() const {
        const bool negative = static_cast<i64>(result) < 0;
        return kind == bits ? negative != ((operand & rflags::sf) != 0) : negative;
    }
    constexpr bool even_parity() const {
        constexpr unsigned odd_nibbles = 0x6996;  // bit n: n has an odd number of ones
        return ((odd_nibbles >> ((result ^ (result >> 4)) & 15)) & 1) == 0;
    }
    constexpr bool pf() const {
        const bool even = even_parity();
        return kind == bits ? even != ((operand & rflags::pf) != 0) : even;
    }
    constexpr bool of() const {
        if (kind == bits) return (operand & rflags::of) != 0;
        const u64 other = (kind & sub) != 0 ? operand - result : result - operand;
        const u64 same = (kind & sub) != 0 ? operand ^ other : other ^ result;
        return ((((operand ^ result) & same) >> (kind & 63)) & 1) != 0;
    }
    constexpr bool af() const {
        if (kind == bits) return (operand & rflags::af) != 0;
        const u64 other = (kind & sub) != 0 ? operand - result : result - operand;
        return ((operand ^ other ^ result) & 0x10) != 0;
    }

    constexpr u64 arithmetic() const {
        const u64 shown = (even_parity() ? rflags::pf : 0) | (result == 0 ? rflags::zf : 0) | ((result >> 63) << 7);
        if (kind == bits) return shown ^ operand;  // operand has no ZF, and the others are not in `shown`
        return shown | (cf() ? rflags::cf : 0) | (af() ? rflags::af : 0) | (of() ? rflags::of : 0);
    }
    constexpr u64 merged_into(u64 all) const { return (all & ~rflags::arithmetic) | arithmetic(); }

    /// The flags that RFLAGS holds.
    static constexpr LazyFlags of_register(u64 all) {
        const u64 shown = (all & rflags::zf) != 0 ? 0 : 1;  // what ZF asks for; it would mean SF = 0
        const u64 natural = shown == 0 ? rflags::pf : 0;    // and this PF
        return {shown, (all & (rflags::cf | rflags::af | rflags::of | rflags::sf | rflags::pf)) ^ natural, bits};
    }
    /// ZF, SF and PF of a result; CF, AF and OF as given.
    template <class T>
    static constexpr LazyFlags of_result(T result, u64 carry_flags = 0) {
        return {sign_extended(result), carry_flags, bits};
    }
};

/// The manual's conditions, by the low four bits of the opcode (Intel SDM vol. 1, EFLAGS Condition Codes).
template <unsigned code>
EMU_ALWAYS_INLINE bool holds(const LazyFlags& flags) {
    constexpr unsigned positive = code >> 1;
    bool yes = false;
    if constexpr (positive == 0) yes = flags.of();
    if constexpr (positive == 1) yes = flags.cf();
    if constexpr (positive == 2) yes = flags.zf();
    if constexpr (positive == 3) yes = flags.cf() || flags.zf();
    if constexpr (positive == 4) yes = flags.sf();
    if constexpr (positive == 5) yes = flags.pf();
    if constexpr (positive == 6) yes = flags.sf() != flags.of();
    if constexpr (positive == 7) yes = flags.zf() || flags.sf() != flags.of();
    return yes != ((code & 1) != 0);
}

}  // namespace emu
