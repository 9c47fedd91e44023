// What RET (far) and IRET share: the return code segment, the return stack, and the two ways to arrive.
#pragma once
#include "cpu/transition/descriptors.hpp"
#include "cpu/transition/stack.hpp"

namespace emu {

/// What was popped, and what the tables say of it.
struct Return {
    u64 offset = 0, selector_word = 0, pointer = 0, stack_word = 0;
    Descriptor code, stack;
    bool null_stack = true;  // until the descriptor of a stack segment is read

    Selector selector() const { return {static_cast<u16>(selector_word)}; }
    Selector stack_selector() const { return {static_cast<u16>(stack_word)}; }
    NewCpl cpl() const { return {selector().rpl().value}; }
    bool outer(const Processor& cpu) const { return cpl().value > cpu.cpl.value; }
    Mode mode(const Processor& cpu) const { return mode_of(cpu, code.l()); }
};

/// PROTECTED-MODE-RETURN: the code segment popped.
template <Observer Obs>
EMU_ALWAYS_INLINE Outcome fetch_return_code(Transition<Obs>& t, Return& target) {
    using namespace checks;
    const Selector selector = target.selector();
    TRY(require<table::selector_not_null<"return_target">>(t, nothing, selector));
    TRY((fetch_descriptor<"return_target", Vector::GP>(t, selector, target.code)));
    TRY(require<code::is_code<"return_target">>(t, selector, target.code.type()));
    if (t.cpu.ia32e())
        TRY(require<code::long_and_default_exclusive<"return_target">>(t, selector, target.code.l(), target.code.db()));
    TRY(require<return_target::rpl_not_below_cpl>(t, selector, selector.rpl(), t.cpu.cpl));
    if (target.code.conforming()) {
        TRY(require<return_target::conforming_dpl_not_above_rpl>(t, selector, target.code.dpl(), selector.rpl()));
    } else {
        TRY(require<return_target::dpl_equals_rpl>(t, selector, target.code.dpl(), selector.rpl()));
    }
    return require<table::present<"return_target">>(t, selector, target.code.present());
}

/// RETURN-TO-OUTER-PRIVILEGE-LEVEL: the stack popped.
template <Observer Obs>
EMU_ALWAYS_INLINE Outcome pop_return_stack(Transition<Obs>& t, FrameReader<Obs>& frame, Return& target) {
    using namespace checks;
    TRY(frame.check(2));
    TRY(frame.pop(Pushed::stack_pointer, target.pointer));
    TRY(frame.pop(Pushed::ss, target.stack_word));
    const Selector selector = target.stack_selector();
    if (selector.is_null()) {
        const Flag<"64-bit code"> code64{target.mode(t.cpu) == Mode::long64};
        TRY(require<stack::null_only_in_64_bit<"stack_return">>(t, nothing, code64, target.cpl()));
        return require<stack::null_rpl_equals_cpl<"stack_return">>(t, nothing, selector.rpl(), target.cpl());
    }
    TRY((fetch_descriptor<"stack_return", Vector::GP>(t, selector, target.stack)));
    target.null_stack = false;
    TRY((require<stack::rpl_equals_cpl<"stack_return", Vector::GP>>(t, selector, selector.rpl(), target.cpl())));
    TRY((require<stack::writable_data<"stack_return", Vector::GP>>(t, selector, target.stack.type())));
    TRY((require<stack::dpl_equals_cpl<"stack_return", Vector::GP>>(t, selector, target.stack.dpl(), target.cpl())));
    return require<table::present<"stack_return", Vector::SS>>(t, selector, target.stack.present());
}

template <Observer Obs>
EMU_ALWAYS_INLINE Outcome check_return_pointer(Transition<Obs>& t, const Return& target) {
    using namespace checks;
    if (target.mode(t.cpu) == Mode::long64)
        return require<code::pointer_canonical<"return_target">>(t, nothing, Offset{target.offset});
    return require<code::pointer_within_limit<"return_target">>(t, nothing, Offset{target.offset},
                                                                Limit{target.code.limit()});
}

template <Observer Obs>
EMU_ALWAYS_INLINE Outcome mark_return_accessed(Transition<Obs>& t, Return& target) {
    TRY(mark_accessed(t, target.selector(), target.code));
    if (!target.null_stack) TRY(mark_accessed(t, target.stack_selector(), target.stack));
    return no_fault;
}

/// RETURN-TO-SAME-PRIVILEGE-LEVEL: nothing here can fault.
template <Observer Obs>
EMU_ALWAYS_INLINE void enter_same(Transition<Obs>& t, const Return& target, u64 pointer) {
    Processor& cpu = t.cpu;
    const Mode before = cpu.mode;
    load_hidden(cpu.cs(), SegmentName::cs, target.selector(), target.code, target.mode(cpu));
    t.charge(CostEvent::segment_refill);
    t.charge(CostEvent::pipeline_refill);
    cpu.rip = target.offset;
    cpu.gpr[rsp] = pointer;
    settle_mode(t.core, before);
}

/// RETURN-TO-OUTER-PRIVILEGE-LEVEL (and IRETQ to the same level): nothing here can fault.
template <Observer Obs>
EMU_ALWAYS_INLINE void enter_outer(Transition<Obs>& t, const Return& target, u16 release) {
    Processor& cpu = t.cpu;
    const Mode before = cpu.mode, after = target.mode(cpu);
    const bool outer = target.outer(cpu);
    load_hidden(cpu.cs(), SegmentName::cs, target.selector(), target.code, after);
    t.charge(CostEvent::segment_refill);
    if (target.null_stack) {
        load_null(cpu.ss(), SegmentName::ss, target.stack_selector(), after, target.cpl().value);
        t.charge(CostEvent::segment_constant);
    } else {
        load_hidden(cpu.ss(), SegmentName::ss, target.stack_selector(), target.stack, after);
        t.charge(CostEvent::segment_refill);
    }
    cpu.cpl = Cpl{target.cpl().value};
    cpu.rip = target.offset;
    const u64 pointer = target.pointer + release;
    if (after == Mode::long64)
        cpu.gpr[rsp] = pointer;
    else if (cpu.ss().attributes.db().value)
        cpu.gpr[rsp] = pointer & 0xFFFFFFFF;
    else
        cpu.gpr[rsp] = (cpu.gpr[rsp] & ~u64{0xFFFF}) | (pointer & 0xFFFF);
    t.charge(outer ? CostEvent::privilege_change : CostEvent::pipeline_refill);
    t.charge(CostEvent::stack_switch);
    if (outer) drop_inner_segments(cpu, target.cpl(), after);
    settle_mode(t.core, before);
}

}  // namespace emu
