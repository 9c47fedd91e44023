// IRET, IRETD, IRETQ (Intel SDM vol. 2, IRET/IRETD/IRETQ, Operation).
#include "cpu/transition/return_common.hpp"

namespace emu {

/// REAL-ADDRESS-MODE.
template <Observer Obs>
Outcome interrupt_return_real(Transition<Obs>& t, Width width) {
    using namespace checks;
    Processor& cpu = t.cpu;
    FrameReader<Obs> frame{t, current_stack(cpu), width};
    u64 rip = 0, cs = 0, flags = 0;
    TRY(frame.check(3));
    TRY(frame.pop(Pushed::instruction_pointer, rip));
    TRY(frame.pop(Pushed::cs, cs));
    TRY(frame.pop(Pushed::flags, flags));
    TRY(require<code::pointer_within_limit<"return_target">>(t, nothing, Offset{rip}, Limit{cpu.cs().limit}));

    const u64 all = rflags::arithmetic | rflags::tf | rflags::if_ | rflags::df | rflags::iopl | rflags::nt;
    const u64 loaded = width == Width::bits16 ? all : all | rflags::rf | rflags::ac | rflags::id;
    cpu.rflags = (cpu.rflags & ~loaded) | (flags & loaded) | rflags::reserved_one;
    cpu.gpr[rsp] = frame.stack.pointer;
    cpu.rip = rip;
    load_real(cpu.cs(), SegmentName::cs, static_cast<u16>(cs));
    t.core.refresh();
    t.charge(CostEvent::iret_real);
    t.committed();
    return no_fault;
}

/// Which flags IRET loads: IOPL only at CPL 0, IF only if CPL <= IOPL (RETURN-TO-SAME- and OUTER-PRIVILEGE-LEVEL).
inline u64 flags_after_iret(const Processor& cpu, u64 popped, Width width) {
    u64 loaded = rflags::arithmetic | rflags::tf | rflags::df | rflags::nt;
    if (width != Width::bits16) loaded |= rflags::rf | rflags::ac | rflags::id;
    if (cpu.cpl.value <= cpu.iopl().value) loaded |= rflags::if_;
    if (cpu.cpl.value == 0) loaded |= rflags::iopl | (width != Width::bits16 ? rflags::vif | rflags::vip : 0);
    return (cpu.rflags & ~loaded) | (popped & loaded) | rflags::reserved_one;
}

template <Observer Obs>
Outcome interrupt_return(Core& core, Width width) {
    using namespace checks;
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::interrupt_return, static_cast<u64>(width)};
    t.charge(CostEvent::microcode_entry);
    t.charge(CostEvent::serialise);
    if (cpu.mode == Mode::real) return interrupt_return_real(t, width);
    if (cpu.mode == Mode::virtual8086) return unmodelled(Unmodelled::virtual_8086_mode);
    const bool nt = (cpu.rflags & rflags::nt) != 0;
    if (cpu.ia32e()) {
        TRY(require<iret::no_nested_task>(t, nothing, Flag<"NT">{nt}));
    } else if (nt) {
        return unmodelled(Unmodelled::task_switch);
    }

    FrameReader<Obs> frame{t, current_stack(cpu), width};
    Return target;
    u64 flags = 0;
    TRY(frame.check(3));
    TRY(frame.pop(Pushed::instruction_pointer, target.offset));
    TRY(frame.pop(Pushed::cs, target.selector_word));
    TRY(frame.pop(Pushed::flags, flags));
    if (!cpu.ia32e() && (flags & rflags::vm) != 0 && cpu.cpl.value == 0 && width != Width::bits16)
        return unmodelled(Unmodelled::virtual_8086_mode);
    TRY(fetch_return_code(t, target));
    const u64 new_flags = flags_after_iret(cpu, flags, width);

    // In 64-bit mode IRET pops SS:RSP whatever the privilege level.
    if (target.outer(cpu) || cpu.mode == Mode::long64) {
        TRY(pop_return_stack(t, frame, target));
        TRY(check_return_pointer(t, target));
        TRY(mark_return_accessed(t, target));
        const bool outer = target.outer(cpu);
        cpu.rflags = new_flags;
        enter_outer(t, target, 0);
        t.charge(outer ? CostEvent::iret_outer : CostEvent::iret_same);
    } else {
        TRY(check_return_pointer(t, target));
        TRY(mark_return_accessed(t, target));
        cpu.rflags = new_flags;
        enter_same(t, target, frame.stack.pointer);
        t.charge(CostEvent::iret_same);
    }
    t.charge(CostEvent::flags_write);
    t.committed();
    return no_fault;
}

}  // namespace emu
