// RFLAGS, bit by bit (Intel SDM vol. 1, EFLAGS Register; vol. 3, System Flags and Fields in the EFLAGS Register).
#pragma once
#include "arch/integers.hpp"

namespace emu::rflags {

inline constexpr u64 cf = 1u << 0, reserved_one = 1u << 1, pf = 1u << 2, af = 1u << 4, zf = 1u << 6, sf = 1u << 7;
inline constexpr u64 tf = 1u << 8, if_ = 1u << 9, df = 1u << 10, of = 1u << 11, iopl = 3u << 12, nt = 1u << 14;
inline constexpr u64 rf = 1u << 16, vm = 1u << 17, ac = 1u << 18, vif = 1u << 19, vip = 1u << 20, id = 1u << 21;

/// The six flags that arithmetic sets; all others are system flags or DF.
inline constexpr u64 arithmetic = cf | pf | af | zf | sf | of;
inline constexpr u64 defined = arithmetic | tf | if_ | df | iopl | nt | rf | vm | ac | vif | vip | id;
inline constexpr unsigned iopl_shift = 12;

}  // namespace emu::rflags
