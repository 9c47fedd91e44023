// RET (far), with and without an immediate (Intel SDM vol. 2, RET, Operation).
#include "cpu/transition/return_common.hpp"

namespace emu {

/// REAL-ADDRESS-MODE.
template <Observer Obs>
Outcome far_return_real(Transition<Obs>& t, Width width, u16 release) {
    using namespace checks;
    Processor& cpu = t.cpu;
    FrameReader<Obs> frame{t, current_stack(cpu), width};
    FarPointer target;
    u64 selector = 0;
    TRY(frame.check(2));
    TRY(frame.pop(Pushed::instruction_pointer, target.offset));
    TRY(frame.pop(Pushed::cs, selector));
    TRY(require<code::pointer_within_limit<"return_target">>(t, nothing, Offset{target.offset}, Limit{cpu.cs().limit}));
    frame.skip(release);
    cpu.gpr[rsp] = frame.stack.pointer;
    cpu.rip = target.offset;
    load_real(cpu.cs(), SegmentName::cs, static_cast<u16>(selector));
    t.core.refresh();
    t.charge(CostEvent::far_return_real);
    t.committed();
    return no_fault;
}

/// `release` bytes of parameters are dropped from the stack returned from, and from the outer stack too.
template <Observer Obs>
Outcome far_return(Core& core, Width width, u16 release) {
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::far_return, release};
    t.charge(CostEvent::microcode_entry);
    if (cpu.mode == Mode::real || cpu.mode == Mode::virtual8086) return far_return_real(t, width, release);

    FrameReader<Obs> frame{t, current_stack(cpu), width};
    Return target;
    TRY(frame.check(2));
    TRY(frame.pop(Pushed::instruction_pointer, target.offset));
    TRY(frame.pop(Pushed::cs, target.selector_word));
    TRY(fetch_return_code(t, target));
    frame.skip(release);
    if (target.outer(cpu)) {
        TRY(pop_return_stack(t, frame, target));
        TRY(check_return_pointer(t, target));
        TRY(mark_return_accessed(t, target));
        enter_outer(t, target, release);
        t.charge(CostEvent::far_return_outer);
    } else {
        TRY(check_return_pointer(t, target));
        TRY(mark_return_accessed(t, target));
        enter_same(t, target, frame.stack.pointer);
        t.charge(CostEvent::far_return_same);
    }
    t.committed();
    return no_fault;
}

}  // namespace emu
