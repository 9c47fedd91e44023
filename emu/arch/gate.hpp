// Gate descriptors: call, interrupt, trap and task gates (Intel SDM vol. 3, Call Gates; IDT Descriptors).
//   63              48 47 46 45 44 43   40 39 37 36 32 31              16 15              0
//  +------------------+--+-----+--+-------+-----+-----+------------------+-----------------+
//  |   offset high    |P | DPL |0 | type  | 000 |count|     selector     |    offset low   |
//  +------------------+--+-----+--+-------+-----+-----+------------------+-----------------+
// In IA-32e mode `count` is the IST index (interrupt and trap gates), and the second 8 bytes hold offset 63:32.
#pragma once
#include "arch/descriptor.hpp"
#include "arch/selector.hpp"

namespace emu {

struct Gate {
    u64 low = 0;
    u64 high = 0;

    constexpr TypeField type() const { return {static_cast<u8>(field(low, 40, 5))}; }
    constexpr Dpl dpl() const { return {static_cast<u8>(field(low, 45, 2))}; }
    constexpr Present present() const { return {bit(low, 47)}; }
    constexpr Selector selector() const { return {static_cast<u16>(field(low, 16, 16))}; }
    constexpr u8 parameter_count() const { return static_cast<u8>(field(low, 32, 5)); }
    constexpr u8 ist() const { return static_cast<u8>(field(low, 32, 3)); }
    /// 286 gates (types 4, 6, 7) name a 16-bit offset; the high word of the descriptor is not used.
    constexpr u64 offset(Width width) const {
        const u64 low16 = field(low, 0, 16);
        if (width == Width::bits16) return low16;
        const u64 low32 = low16 | (field(low, 48, 16) << 16);
        return width == Width::bits32 ? low32 : low32 | (high << 32);
    }
};

}  // namespace emu
