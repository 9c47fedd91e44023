// CALL (far): to a code segment, and through call gates (Intel SDM vol. 2, CALL, Operation).
#include "cpu/transition/far_common.hpp"

namespace emu {

/// REAL-ADDRESS-MODE.
template <Observer Obs>
Outcome far_call_real(Transition<Obs>& t, FarPointer pointer, Width width) {
    using namespace checks;
    Processor& cpu = t.cpu;
    FrameWriter<Obs> frame{t, current_stack(cpu), width};
    TRY(frame.template check_room<StackUse::current>(2));
    TRY(require<code::pointer_within_limit<"far_target">>(t, nothing, Offset{pointer.offset}, Limit{cpu.cs().limit}));
    TRY(frame.secure(2));
    frame.push(Pushed::cs, cpu.cs().selector.value);
    frame.push(Pushed::instruction_pointer, t.core.next_rip);
    cpu.gpr[rsp] = frame.stack.pointer;
    enter_real(t, pointer);
    t.charge(CostEvent::far_call_real);
    if (pointer.indirect) t.charge(CostEvent::far_indirect_call_real);
    t.committed();
    return no_fault;
}

/// CONFORMING- and NONCONFORMING-CODE-SEGMENT.
template <Observer Obs>
Outcome far_call_segment(Transition<Obs>& t, FarPointer pointer, Width width, Descriptor& target) {
    Processor& cpu = t.cpu;
    const Selector selector = Selector{pointer.selector};
    TRY(check_direct_target(t, selector, target));
    if (mode_of(cpu, target.l()) == Mode::compatibility) pointer.offset &= 0xFFFFFFFF;
    FrameWriter<Obs> frame{t, current_stack(cpu), width};
    TRY(frame.template check_room<StackUse::current>(2));
    TRY((check_pointer<"far_target">(t, pointer.offset, target)));
    TRY(mark_accessed(t, selector, target));
    TRY(frame.secure(2));
    frame.push(Pushed::cs, cpu.cs().selector.value);
    frame.push(Pushed::instruction_pointer, t.core.next_rip);
    cpu.gpr[rsp] = frame.stack.pointer;
    enter_code(t, selector, target, pointer.offset, cpu.cpl);
    t.charge(CostEvent::far_call_segment);
    t.committed();
    return no_fault;
}

/// SAME-PRIVILEGE of CALL-GATE.
template <Observer Obs>
Outcome call_gate_same(Transition<Obs>& t, const CallGate& gate, Descriptor& target) {
    Processor& cpu = t.cpu;
    StackView stack = current_stack(cpu);
    stack.long64 = cpu.ia32e();  // a 64-bit gate pushes on the stack of the 64-bit code it leads to
    FrameWriter<Obs> frame{t, stack, gate.width};
    TRY(frame.template check_room<StackUse::current>(2));
    TRY((check_pointer<"gate_target">(t, gate.offset, target)));
    TRY(mark_accessed(t, gate.target, target));
    TRY(frame.secure(2));
    frame.push(Pushed::cs, cpu.cs().selector.value);
    frame.push(Pushed::instruction_pointer, t.core.next_rip);
    cpu.gpr[rsp] = frame.stack.pointer;
    enter_code(t, gate.target, target, gate.offset, cpu.cpl);
    t.charge(CostEvent::call_gate_same);
    t.committed();
    return no_fault;
}

/// The stack of MORE-PRIVILEGE: from a 64-bit TSS with a null SS, else SSn:ESPn of the TSS.
template <Observer Obs>
Outcome select_gate_stack(Transition<Obs>& t, NewCpl cpl, SegmentRegister& new_ss, StackView& stack) {
    using namespace checks;
    Processor& cpu = t.cpu;
    stack = {&new_ss, 0, Cpl{cpl.value}, cpu.ia32e()};
    if (!cpu.ia32e()) return fetch_inner_stack(t, cpl, new_ss, stack.pointer);
    const u64 offset = tss::stack_pointer_offset(Width::bits64, cpl.value);
    TRY(require<stack::tss_field_within_limit>(t, cpu.tr.selector, LastByte{offset + 7}, Limit{cpu.tr.limit}));
    t.charge(CostEvent::tss_read);
    TRY(t.read(Structure::tss, cpu.tr.base + offset, stack.pointer));
    load_null(new_ss, SegmentName::ss, Selector{cpl.value}, Mode::long64, cpl.value);
    t.charge(CostEvent::segment_constant);
    t.charge(CostEvent::stack_switch);
    return no_fault;
}

/// MORE-PRIVILEGE of CALL-GATE: new stack, the caller's SS:ESP, copied parameters, the caller's CS:EIP.
template <Observer Obs>
Outcome call_gate_inner(Transition<Obs>& t, const CallGate& gate, Descriptor& target) {
    Processor& cpu = t.cpu;
    const NewCpl cpl{target.dpl().value};
    SegmentRegister new_ss;
    StackView stack;
    TRY(select_gate_stack(t, cpl, new_ss, stack));
    const unsigned words = 4 + gate.parameters;
    FrameWriter<Obs> frame{t, stack, gate.width};
    TRY(frame.template check_room<StackUse::fresh>(words));
    TRY((check_pointer<"gate_target">(t, gate.offset, target)));

    u64 parameters[31] = {};
    FrameReader<Obs> old_stack{t, current_stack(cpu), gate.width};
    if (gate.parameters != 0) TRY(old_stack.check(gate.parameters));
    for (unsigned i = 0; i < gate.parameters; ++i) TRY(old_stack.pop(Pushed::parameter, parameters[i]));
    const Selector selector = gate.target.with_rpl(cpl.value);
    TRY(mark_accessed(t, selector, target));
    TRY(frame.secure(words));

    frame.push(Pushed::ss, cpu.ss().selector.value);
    frame.push(Pushed::stack_pointer, cpu.gpr[rsp]);
    for (unsigned i = gate.parameters; i > 0; --i) frame.push(Pushed::parameter, parameters[i - 1]);
    frame.push(Pushed::cs, cpu.cs().selector.value);
    frame.push(Pushed::instruction_pointer, t.core.next_rip);
    cpu.ss() = new_ss;
    cpu.gpr[rsp] = frame.stack.pointer;
    enter_code(t, selector, target, gate.offset, Cpl{cpl.value});
    t.charge(gate.parameters != 0 ? CostEvent::call_gate_inner_parameters : CostEvent::call_gate_inner);
    t.charge(CostEvent::call_gate_parameter, gate.parameters);
    t.committed();
    return no_fault;
}

template <Observer Obs>
Outcome far_call(Core& core, FarPointer pointer, Width width) {
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::far_call, pointer.selector};
    t.charge(CostEvent::microcode_entry);
    if (cpu.mode == Mode::real || cpu.mode == Mode::virtual8086) return far_call_real(t, pointer, width);
    Descriptor descriptor;
    TRY(fetch_far_target(t, Selector{pointer.selector}, descriptor));
    if (pointer.indirect) t.charge(CostEvent::far_indirect);
    if (segment_type::is_code(descriptor.type())) return far_call_segment(t, pointer, width, descriptor);
    if (!is_call_gate(descriptor.type())) return unmodelled(Unmodelled::task_switch);

    CallGate gate;
    Descriptor target;
    TRY(fetch_call_gate(t, Selector{pointer.selector}, descriptor, gate));
    TRY(fetch_gate_target(t, gate, target));
    TRY(check_gate_target(t, gate, target));
    if (!target.conforming() && target.dpl().value < cpu.cpl.value) return call_gate_inner(t, gate, target);
    gate.target = gate.target.with_rpl(cpu.cpl.value);
    return call_gate_same(t, gate, target);
}

}  // namespace emu
