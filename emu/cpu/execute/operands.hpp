// Operands: registers by width, effective addresses, and memory in its two forms: the inline part (Fast), which may
// miss, and the doors (Slow), which may fault.
#pragma once
#include "cpu/decode/instruction.hpp"
#include "cpu/execute/lazy_flags.hpp"
#include "mmu/access.hpp"

namespace emu {

static_assert(std::endian::native == std::endian::little, "byte registers are bytes of the register file");

/// `number` of a byte register is the offset of its byte; see byte_register().
template <class T>
EMU_ALWAYS_INLINE T get(const Core& core, u8 number) {
    if constexpr (sizeof(T) == 1)
        return *(std::bit_cast<const u8*>(core.cpu.gpr.data()) + number);
    else
        return static_cast<T>(core.cpu.gpr[number]);
}
/// A 32-bit result clears the upper half; 8- and 16-bit results leave the rest alone.
template <class T>
EMU_ALWAYS_INLINE void set(Core& core, u8 number, T value) {
    if constexpr (sizeof(T) == 1)
        *(std::bit_cast<u8*>(core.cpu.gpr.data()) + number) = value;
    else if constexpr (sizeof(T) == 2)
        core.cpu.gpr[number] = (core.cpu.gpr[number] & ~u64{0xFFFF}) | value;
    else
        core.cpu.gpr[number] = value;
}

template <class T>
EMU_ALWAYS_INLINE T immediate(const Instruction& at) {
    return static_cast<T>(at.imm);
}

// --- effective addresses ---------------------------------------------------------------------------------------------
// The frequent forms have a type each, which handlers take as an argument; AnyAddress is right for all of them.

constexpr u64 address_mask(Width width) { return low_bits(~u64{0}, 8 * bytes(width)); }

struct AnyAddress {
    static u64 of(const Core& core, const Instruction& at) {
        u64 sum = at.disp;
        if (at.base != no_register) sum += core.cpu.gpr[at.base];
        if (at.index != no_register) sum += core.cpu.gpr[at.index] << at.scale();
        return sum & address_mask(at.address_width());
    }
};
template <class A>  // u64 or u32: the address size
struct BaseAddress {
    static u64 of(const Core& core, const Instruction& at) { return static_cast<A>(at.disp + core.cpu.gpr[at.base]); }
};
template <class A>
struct IndexedAddress {
    static u64 of(const Core& core, const Instruction& at) {
        return static_cast<A>(at.disp + core.cpu.gpr[at.base] + (core.cpu.gpr[at.index] << at.scale()));
    }
};
struct AbsoluteAddress {
    static u64 of(const Core&, const Instruction& at) { return at.disp; }
};

inline u64 effective(const Core& core, const Instruction& at) { return AnyAddress::of(core, at); }

// --- memory ----------------------------------------------------------------------------------------------------------

/// Translations already known; false if not, and then nothing has happened.
struct Fast {
    u64 host = 0;

    template <class T>
    EMU_ALWAYS_INLINE bool load(Core& core, SegmentName name, u64 at, T& value) {
        return try_load(core, core.cpu.seg(name), at, value);
    }
    template <class T>
    EMU_ALWAYS_INLINE bool store(Core& core, SegmentName name, u64 at, T value) {
        return try_store(core, core.cpu.seg(name), at, value);
    }
    /// Loads what `put` will store to.
    template <class T>
    EMU_ALWAYS_INLINE bool open(Core& core, SegmentName name, u64 at, T& value) {
        const SegmentRegister& segment = core.cpu.seg(name);
        if (!segment.admits_write(at) || !write_hit(core.tlb, segment.linear(at), sizeof(T), host)) [[unlikely]]
            return false;
        value = unaligned<T>(host);
        return true;
    }
    template <class T>
    EMU_ALWAYS_INLINE bool put(Core&, SegmentName, u64, T value) {
        put_unaligned<T>(host, value);
        return true;
    }
};

/// Everything else; false if it faulted, and then `outcome` says how.
struct Slow {
    Outcome outcome;

    template <class T>
    bool load(Core& core, SegmentName name, u64 at, T& value) {
        outcome = core.doors->load(core, name, at, sizeof(T));
        value = static_cast<T>(core.memory_value);
        return !outcome.faulted();
    }
    template <class T>
    bool store(Core& core, SegmentName name, u64 at, T value) {
        outcome = core.doors->store(core, name, at, sizeof(T), value);
        return !outcome.faulted();
    }
    template <class T>
    bool open(Core& core, SegmentName name, u64 at, T& value) {
        outcome = core.doors->load_to_modify(core, name, at, sizeof(T));
        value = static_cast<T>(core.memory_value);
        return !outcome.faulted();
    }
    template <class T>
    bool put(Core& core, SegmentName name, u64 at, T value) {
        return store(core, name, at, value);
    }
};

/// For instructions that are not worth two forms: the inline part, then the door.
template <class T>
Outcome load(Core& core, SegmentName name, u64 at, T& value) {
    if (try_load(core, core.cpu.seg(name), at, value)) return no_fault;
    TRY(core.doors->load(core, name, at, sizeof(T)));
    value = static_cast<T>(core.memory_value);
    return no_fault;
}
template <class T>
Outcome store(Core& core, SegmentName name, u64 at, T value) {
    if (try_store(core, core.cpu.seg(name), at, value)) return no_fault;
    return core.doors->store(core, name, at, sizeof(T), value);
}
/// Loads what a store to the same place will follow.
template <class T>
Outcome load_to_modify(Core& core, SegmentName name, u64 at, T& value) {
    Fast memory;
    if (memory.open(core, name, at, value)) return no_fault;
    TRY(core.doors->load_to_modify(core, name, at, sizeof(T)));
    value = static_cast<T>(core.memory_value);
    return no_fault;
}

/// A register or memory operand, where `reg` is the register if there is no memory.
template <class T>
Outcome load_operand(Core& core, const Instruction& at, T& value) {
    if (at.in_memory()) return load(core, at.segment(), effective(core, at), value);
    value = get<T>(core, at.reg);
    return no_fault;
}
template <class T>
Outcome open_operand(Core& core, const Instruction& at, T& value) {
    if (at.in_memory()) return load_to_modify(core, at.segment(), effective(core, at), value);
    value = get<T>(core, at.reg);
    return no_fault;
}
template <class T>
Outcome store_operand(Core& core, const Instruction& at, T value) {
    if (at.in_memory()) return store(core, at.segment(), effective(core, at), value);
    set<T>(core, at.reg, value);
    return no_fault;
}
/// The second operand of a form with two: memory, or the register in `base`.
template <class T>
Outcome load_source(Core& core, const Instruction& at, T& value) {
    if (at.in_memory()) return load(core, at.segment(), effective(core, at), value);
    value = get<T>(core, at.base);
    return no_fault;
}

}  // namespace emu
