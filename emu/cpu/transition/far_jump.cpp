// JMP (far): to a code segment, and through call gates (Intel SDM vol. 2, JMP, Operation).
#include "cpu/transition/far_common.hpp"

namespace emu {

template <Observer Obs>
Outcome far_jump(Core& core, FarPointer pointer, Width width) {
    using namespace checks;
    static_cast<void>(width);  // the operand size shaped the pointer already
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::far_jump, pointer.selector};
    const Selector selector{pointer.selector};
    t.charge(CostEvent::microcode_entry);
    if (cpu.mode == Mode::real || cpu.mode == Mode::virtual8086) {
        TRY(require<code::pointer_within_limit<"far_target">>(t, nothing, Offset{pointer.offset},
                                                              Limit{cpu.cs().limit}));
        enter_real(t, pointer);
        t.charge(CostEvent::far_jump_real);
        if (pointer.indirect) t.charge(CostEvent::far_indirect_jump_real);
        t.committed();
        return no_fault;
    }

    Descriptor descriptor;
    TRY(fetch_far_target(t, selector, descriptor));
    if (pointer.indirect) t.charge(CostEvent::far_indirect_jump);
    if (segment_type::is_code(descriptor.type())) {
        TRY(check_direct_target(t, selector, descriptor));
        TRY((check_pointer<"far_target">(t, pointer.offset, descriptor)));
        TRY(mark_accessed(t, selector, descriptor));
        enter_code(t, selector, descriptor, pointer.offset, cpu.cpl);
        t.charge(CostEvent::far_jump_segment);
        t.committed();
        return no_fault;
    }
    if (!is_call_gate(descriptor.type())) return unmodelled(Unmodelled::task_switch);

    CallGate gate;
    Descriptor target;
    TRY(fetch_call_gate(t, selector, descriptor, gate));
    TRY(fetch_gate_target(t, gate, target));
    if (!target.conforming()) TRY(require<gate_target::jump_keeps_privilege>(t, gate.target, target.dpl(), cpu.cpl));
    TRY(check_gate_target(t, gate, target));
    TRY((check_pointer<"gate_target">(t, gate.offset, target)));
    TRY(mark_accessed(t, gate.target, target));
    enter_code(t, gate.target, target, gate.offset, cpu.cpl);
    t.charge(CostEvent::far_jump_gate);
    t.committed();
    return no_fault;
}

}  // namespace emu
