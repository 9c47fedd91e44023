// Choosing a handler by address form. A family of operations is a struct with a template `At<Address>`; the frequent
// address forms get handlers of their own, all others share the one for AnyAddress.
#pragma once
#include "cpu/execute/dispatch.hpp"

namespace emu {

template <class Family, class Address>
inline constexpr Handler straight_at =
    straight<typename Family::template At<Address>, typename Family::template At<AnyAddress>>;

inline bool is_base(const Instruction& code) { return code.base != no_register && code.index == no_register; }
inline bool is_indexed(const Instruction& code) { return code.base != no_register && code.index != no_register; }

/// For operations that guests spend their time in.
template <class Family>
Handler frequent_form(const Instruction& code) {
    const Width width = code.address_width();
    if (width == Width::bits64) {
        if (is_base(code)) return straight_at<Family, BaseAddress<u64>>;
        if (is_indexed(code)) return straight_at<Family, IndexedAddress<u64>>;
        if (code.index == no_register) return straight_at<Family, AbsoluteAddress>;
    }
    if (width == Width::bits32) {
        if (is_base(code)) return straight_at<Family, BaseAddress<u32>>;
        if (is_indexed(code)) return straight_at<Family, IndexedAddress<u32>>;
    }
    return straight_at<Family, AnyAddress>;
}
template <class Family>
Handler any_form(const Instruction&) {
    return straight_at<Family, AnyAddress>;
}

/// Calls `pick` with a value of the type that is as wide as the operand.
template <class Pick>
Handler with_size(const Decoded& decoded, Pick pick) {
    switch (decoded.code.size()) {
        case OperandSize::byte:
            return pick(u8{});
        case OperandSize::word:
            return pick(u16{});
        case OperandSize::dword:
            return pick(u32{});
        default:
            return pick(u64{});
    }
}
/// The same for instructions without a byte form.
template <class Pick>
Handler with_wide_size(const Decoded& decoded, Pick pick) {
    switch (decoded.code.size()) {
        case OperandSize::word:
            return pick(u16{});
        case OperandSize::dword:
            return pick(u32{});
        default:
            return pick(u64{});
    }
}

}  // namespace emu
