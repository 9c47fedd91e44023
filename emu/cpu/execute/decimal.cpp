// DAA, DAS, AAA, AAS, AAM, AAD (their Operation sections), SALC, BOUND.
#include "cpu/execute/forms.hpp"
#include "cpu/execute/handlers.hpp"

namespace emu {

namespace {

constexpr u8 al = byte_register(0, false), ah = byte_register(4, false);

template <class T>
void set_flags(Core& core, T result, u64 carry_flags) {
    core.cpu.rflags = LazyFlags::of_result(result, carry_flags).merged_into(core.cpu.rflags);
}

/// DAA and DAS.
template <bool subtract>
Outcome adjust_packed(Core& core, const Instruction&) {
    const u8 old = get<u8>(core, al);
    const bool old_carry = (core.cpu.rflags & rflags::cf) != 0;
    const bool low = (old & 0xF) > 9 || (core.cpu.rflags & rflags::af) != 0;
    const bool high = old > 0x99 || old_carry;
    const unsigned by = (low ? 0x06u : 0) + (high ? 0x60u : 0);
    const u8 result = static_cast<u8>(subtract ? old - by : old + by);
    // DAS: borrowing from the first step counts as well.
    const bool borrow = subtract && low && old < 6;
    set<u8>(core, al, result);
    set_flags(core, result, (high || borrow ? rflags::cf : 0) | (low ? rflags::af : 0));
    return no_fault;
}
/// AAA and AAS.
template <bool subtract>
Outcome adjust_unpacked(Core& core, const Instruction&) {
    const u8 old = get<u8>(core, al);
    const bool adjust = (old & 0xF) > 9 || (core.cpu.rflags & rflags::af) != 0;
    if (adjust) {
        const u16 ax = get<u16>(core, rax);
        set<u16>(core, rax, static_cast<u16>(subtract ? ax - 0x106 : ax + 0x106));
    }
    const u8 result = get<u8>(core, al) & 0xF;
    set<u8>(core, al, result);
    set_flags(core, result, adjust ? rflags::cf | rflags::af : 0);
    return no_fault;
}
Outcome aam(Core& core, const Instruction& at) {
    const u8 base = static_cast<u8>(at.imm), old = get<u8>(core, al);
    TRY(core.doors->judge(core, Trouble::divide, base != 0));
    set<u8>(core, ah, static_cast<u8>(old / base));
    set<u8>(core, al, static_cast<u8>(old % base));
    set_flags(core, get<u8>(core, al), 0);
    return no_fault;
}
Outcome aad(Core& core, const Instruction& at) {
    const u8 result = static_cast<u8>(get<u8>(core, al) + get<u8>(core, ah) * static_cast<u8>(at.imm));
    set<u16>(core, rax, result);
    set_flags(core, result, 0);
    return no_fault;
}
/// SALC, undocumented: AL = CF ? FF : 0.
Outcome salc(Core& core, const Instruction&) {
    set<u8>(core, al, (core.cpu.rflags & rflags::cf) != 0 ? 0xFF : 0);
    return no_fault;
}

template <class T>
Outcome bound(Core& core, const Instruction& at) {
    const u64 where = effective(core, at), next = (where + sizeof(T)) & address_mask(at.address_width());
    T lower, upper;
    TRY(load(core, at.segment(), where, lower));
    TRY(load(core, at.segment(), next, upper));
    const i64 index = static_cast<i64>(sign_extended(get<T>(core, at.reg)));
    const bool inside =
        index >= static_cast<i64>(sign_extended(lower)) && index <= static_cast<i64>(sign_extended(upper));
    return core.doors->judge(core, Trouble::bound, inside);
}

}  // namespace

Handler decimal_handler(const Decoded& decoded) {
    switch (decoded.operation) {
        case Operation::daa:
            return aside<adjust_packed<false>>;
        case Operation::das:
            return aside<adjust_packed<true>>;
        case Operation::aaa:
            return aside<adjust_unpacked<false>>;
        case Operation::aas:
            return aside<adjust_unpacked<true>>;
        case Operation::aam:
            return aside<aam>;
        case Operation::aad:
            return aside<aad>;
        case Operation::salc:
            return aside<salc>;
        case Operation::bound:
            return decoded.code.size() == OperandSize::word ? aside<bound<u16>> : aside<bound<u32>>;
        default:
            return nullptr;
    }
}

}  // namespace emu
