// A segment selector: index, table indicator, requested privilege level (Intel SDM vol. 3, Segment Selectors).
//   15            3  2  1 0
//  +---------------+--+----+
//  |     index     |TI|RPL |
//  +---------------+--+----+
#pragma once
#include "arch/quantities.hpp"
#include "checks/names.hpp"

namespace emu {

struct Selector {
    static constexpr std::string_view label = "selector";
    static constexpr Names names = Names::selector;
    u16 value = 0;

    constexpr Rpl rpl() const { return {static_cast<u8>(value & 3)}; }
    constexpr bool in_ldt() const { return (value & 4) != 0; }
    constexpr u64 table_offset() const { return value & 0xFFF8u; }
    constexpr bool is_null() const { return (value & 0xFFFCu) == 0; }
    /// Selector error code: index and TI of the selector, EXT in place of RPL's low bit.
    constexpr u32 error_code(bool ext) const { return (value & 0xFFFCu) | static_cast<u32>(ext); }
    constexpr Selector with_rpl(u8 rpl) const { return {static_cast<u16>((value & 0xFFFCu) | rpl)}; }
    friend constexpr auto operator<=>(const Selector&, const Selector&) = default;
};

constexpr u64 word(Selector selector) { return selector.value; }

}  // namespace emu
