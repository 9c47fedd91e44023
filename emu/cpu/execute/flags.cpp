// CLC, STC, CMC, CLD, STD, LAHF, SAHF.
#include "cpu/execute/forms.hpp"
#include "cpu/execute/handlers.hpp"

namespace emu {

namespace {

constexpr u8 ah = byte_register(4, false);

enum class Carry { clear, set, complement };
template <Carry to>
struct ChangeCarry {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core&, const Instruction&, LazyFlags& flags, M&) {
        const bool carry = to == Carry::set || (to == Carry::complement && !flags.cf());
        flags = LazyFlags::of_register((flags.arithmetic() & ~rflags::cf) | (carry ? rflags::cf : 0));
        return true;
    }
};
template <bool down>
struct ChangeDirection {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction&, LazyFlags&, M&) {
        core.cpu.rflags = down ? core.cpu.rflags | rflags::df : core.cpu.rflags & ~rflags::df;
        return true;
    }
};
struct Lahf {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction&, LazyFlags& flags, M&) {
        set<u8>(core, ah, static_cast<u8>((flags.arithmetic() & 0xFF) | rflags::reserved_one));
        return true;
    }
};
struct Sahf {
    template <class M>
    EMU_ALWAYS_INLINE static bool run(Core& core, const Instruction&, LazyFlags& flags, M&) {
        constexpr u64 loaded = rflags::arithmetic & ~rflags::of;
        flags = LazyFlags::of_register((flags.arithmetic() & rflags::of) | (get<u8>(core, ah) & loaded));
        return true;
    }
};

}  // namespace

Handler flag_handler(const Decoded& decoded) {
    switch (decoded.operation) {
        case Operation::clc:
            return straight<ChangeCarry<Carry::clear>>;
        case Operation::stc:
            return straight<ChangeCarry<Carry::set>>;
        case Operation::cmc:
            return straight<ChangeCarry<Carry::complement>>;
        case Operation::cld:
            return straight<ChangeDirection<false>>;
        case Operation::std_:
            return straight<ChangeDirection<true>>;
        case Operation::lahf:
            return straight<Lahf>;
        case Operation::sahf:
            return straight<Sahf>;
        default:
            return nullptr;
    }
}

}  // namespace emu
