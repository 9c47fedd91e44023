// Strong types that carry the manual's word for what they hold. Two of them never convert into one another, so
// swapped arguments do not compile, and a record of bare numbers can be labelled again when somebody reads it.
#pragma once
#include <algorithm>
#include <compare>
#include <string_view>

#include "arch/integers.hpp"

namespace emu {

template <std::size_t N>
struct Text {
    char characters[N]{};
    constexpr Text(const char (&source)[N]) { std::copy_n(source, N, characters); }
    constexpr std::string_view view() const { return {characters, N - 1}; }
};

template <Text label_, class Rep = u64>
struct Quantity {
    static constexpr std::string_view label = label_.view();
    Rep value{};
    friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;
};

using Cpl = Quantity<"CPL", u8>;
using NewCpl = Quantity<"new CPL", u8>;  // of the code segment being entered, while CPL is still the old one
using Dpl = Quantity<"DPL", u8>;
using Rpl = Quantity<"RPL", u8>;
using Iopl = Quantity<"IOPL", u8>;
using Limit = Quantity<"limit">;
using LastByte = Quantity<"last byte">;  // offset of the last byte of what is accessed
using Offset = Quantity<"offset">;
using Linear = Quantity<"linear">;
using Effective = Quantity<"effective">;
using TypeField = Quantity<"type", u8>;  // S and the 4-bit type field: bit 4 is S
using Present = Quantity<"P", bool>;
using LongBit = Quantity<"L", bool>;
using DefaultBit = Quantity<"D", bool>;
using Size = Quantity<"size", u8>;
using Msr = Quantity<"MSR", u32>;
using Value = Quantity<"value">;
template <Text name>
using Flag = Quantity<name, bool>;  // a control bit or a fact, by its own name: Flag<"CR0.PE">

template <class T>
concept Labelled = requires(const T& t) {
    { T::label } -> std::convertible_to<std::string_view>;
    t.value;
};
constexpr u64 word(const Labelled auto& quantity) { return static_cast<u64>(quantity.value); }

enum class Width : u8 { bits16, bits32, bits64 };
constexpr unsigned bytes(Width width) { return 2u << static_cast<unsigned>(width); }
constexpr u64 truncate(u64 value, Width width) { return low_bits(value, bytes(width) * 8); }

enum class Mode : u8 { real, protected_mode, compatibility, long64, virtual8086 };

constexpr bool canonical48(u64 address) { return static_cast<u64>(static_cast<i64>(address << 16) >> 16) == address; }

}  // namespace emu
