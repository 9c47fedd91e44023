// What CALL (far) and JMP (far) share: the descriptor named, direct targets, call gates and their targets.
#pragma once
#include "arch/tss.hpp"
#include "cpu/transition/descriptors.hpp"
#include "cpu/transition/stack.hpp"

namespace emu {

struct CallGate {
    Width width = Width::bits32;
    Selector target;
    u64 offset = 0;
    u8 parameters = 0;
};

constexpr bool is_call_gate(TypeField type) {
    return type.value == system_type::call_gate16 || type.value == system_type::call_gate32;
}

template <Observer Obs>
Outcome fetch_inner_stack(Transition<Obs>& t, NewCpl cpl, SegmentRegister& new_ss, u64& pointer);

/// PROTECTED-MODE and IA-32e-MODE: the descriptor that the far pointer names, and whether it can be a target at all.
template <Observer Obs>
EMU_ALWAYS_INLINE Outcome fetch_far_target(Transition<Obs>& t, Selector selector, Descriptor& descriptor) {
    using namespace checks;
    TRY(require<table::selector_not_null<"far_target">>(t, nothing, selector));
    TRY((fetch_descriptor<"far_target", Vector::GP>(t, selector, descriptor)));
    return require<far_target::type_allowed>(t, selector, descriptor.type(), Flag<"IA-32e mode">{t.cpu.ia32e()});
}

/// CONFORMING-CODE-SEGMENT and NONCONFORMING-CODE-SEGMENT up to the presence check.
template <Observer Obs>
EMU_ALWAYS_INLINE Outcome check_direct_target(Transition<Obs>& t, Selector selector, const Descriptor& target) {
    using namespace checks;
    const Processor& cpu = t.cpu;
    if (cpu.ia32e()) TRY(require<code::long_and_default_exclusive<"far_target">>(t, selector, target.l(), target.db()));
    if (target.conforming()) {
        TRY(require<far_target::conforming_dpl_not_above_cpl>(t, selector, target.dpl(), cpu.cpl));
    } else {
        TRY(require<far_target::rpl_not_above_cpl>(t, selector, selector.rpl(), cpu.cpl));
        TRY(require<far_target::dpl_equals_cpl>(t, selector, target.dpl(), cpu.cpl));
    }
    return require<table::present<"far_target">>(t, selector, target.present());
}

template <Text use, Observer Obs>
EMU_ALWAYS_INLINE Outcome check_pointer(Transition<Obs>& t, u64 offset, const Descriptor& target) {
    using namespace checks;
    if (mode_of(t.cpu, target.l()) == Mode::long64)
        return require<code::pointer_canonical<use>>(t, nothing, Offset{offset});
    return require<code::pointer_within_limit<use>>(t, nothing, Offset{offset}, Limit{target.limit()});
}

/// CALL-GATE: privilege and presence of the gate; in IA-32e mode its second half.
template <Observer Obs>
EMU_ALWAYS_INLINE Outcome fetch_call_gate(Transition<Obs>& t, Selector selector, const Descriptor& descriptor,
                                          CallGate& gate) {
    using namespace checks;
    const Processor& cpu = t.cpu;
    Gate raw{descriptor.low, 0};
    TRY(require<call_gate::dpl_not_below_cpl>(t, selector, cpu.cpl, raw.dpl()));
    TRY(require<call_gate::rpl_not_above_dpl>(t, selector, selector.rpl(), raw.dpl()));
    if (cpu.ia32e()) {
        const u32 limit = selector.in_ldt() ? cpu.ldtr.limit : cpu.gdtr.limit;
        TRY(require<table::selector_in_table<"far_target">>(t, selector, LastByte{selector.table_offset() + 15},
                                                            Limit{limit}));
        TRY(t.read(selector.in_ldt() ? Structure::ldt : Structure::gdt, descriptor.address + 8, raw.high));
        TRY(require<table::upper_type_zero<"call_gate">>(t, selector,
                                                         TypeField{static_cast<u8>(field(raw.high, 40, 5))}));
    }
    TRY(require<call_gate::present>(t, selector, raw.present()));
    gate.width = cpu.ia32e()                                    ? Width::bits64
                 : raw.type().value == system_type::call_gate32 ? Width::bits32
                                                                : Width::bits16;
    gate.target = raw.selector();
    gate.offset = raw.offset(gate.width);
    gate.parameters = cpu.ia32e() ? 0 : raw.parameter_count();
    return no_fault;
}

/// CALL-GATE: the code segment that the gate names, up to its privilege.
template <Observer Obs>
EMU_ALWAYS_INLINE Outcome fetch_gate_target(Transition<Obs>& t, const CallGate& gate, Descriptor& target) {
    using namespace checks;
    TRY(require<table::selector_not_null<"gate_target">>(t, nothing, gate.target));
    TRY((fetch_descriptor<"gate_target", Vector::GP>(t, gate.target, target)));
    TRY(require<code::is_code<"gate_target">>(t, gate.target, target.type()));
    return require<code::dpl_not_above_cpl<"gate_target">>(t, gate.target, target.dpl(), t.cpu.cpl);
}

/// CALL-GATE: what that segment must be besides.
template <Observer Obs>
EMU_ALWAYS_INLINE Outcome check_gate_target(Transition<Obs>& t, const CallGate& gate, const Descriptor& target) {
    using namespace checks;
    if (t.cpu.ia32e()) TRY(require<code::is_64_bit<"gate_target">>(t, gate.target, target.l(), target.db()));
    return require<table::present<"gate_target">>(t, gate.target, target.present());
}

/// Arrival in real-address mode.
template <Observer Obs>
void enter_real(Transition<Obs>& t, FarPointer pointer) {
    load_real(t.cpu.cs(), SegmentName::cs, pointer.selector);
    t.cpu.rip = pointer.offset;
    t.core.refresh();
}

/// Arrival in a code segment: CS with RPL = CPL, RIP, CPL. Nothing here can fault.
template <Observer Obs>
EMU_ALWAYS_INLINE void enter_code(Transition<Obs>& t, Selector selector, const Descriptor& target, u64 offset,
                                  Cpl cpl) {
    Processor& cpu = t.cpu;
    const Mode before = cpu.mode;
    t.charge(cpl == cpu.cpl ? CostEvent::pipeline_refill : CostEvent::privilege_change);
    load_hidden(cpu.cs(), SegmentName::cs, selector.with_rpl(cpl.value), target, mode_of(cpu, target.l()));
    t.charge(CostEvent::segment_refill);
    cpu.cpl = cpl;
    cpu.rip = offset;
    settle_mode(t.core, before);
}

}  // namespace emu
