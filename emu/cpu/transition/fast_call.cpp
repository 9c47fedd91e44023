// SYSENTER, SYSEXIT, SYSCALL, SYSRET, SWAPGS: no descriptor is read, hidden parts are fixed
// (Intel SDM vol. 2, the instructions' Operation sections; AMD APM vol. 3 where the vendors differ).
#include "cpu/transition/descriptors.hpp"

namespace emu {

/// Flat segments as the pseudo-code writes them: base 0, limit FFFFF with G = 1, present, accessed.
constexpr Attributes flat_code(u8 dpl, bool long64) {
    return Attributes{static_cast<u16>(0x809B | (long64 ? 0x2000 : 0x4000))}.with_dpl(dpl);
}
constexpr Attributes flat_stack(u8 dpl) { return Attributes{0xC093}.with_dpl(dpl); }

/// Enters a flat code and stack segment at a privilege level. Nothing here can fault.
template <Observer Obs>
EMU_ALWAYS_INLINE void enter_flat(Transition<Obs>& t, Selector cs, Selector ss, Cpl cpl, bool long64) {
    Processor& cpu = t.cpu;
    const Mode before = cpu.mode;
    const Mode after = mode_of(cpu, LongBit{long64});
    load_fixed(cpu.cs(), SegmentName::cs, cs, flat_code(cpl.value, long64), after);
    load_fixed(cpu.ss(), SegmentName::ss, ss, flat_stack(cpl.value), after);
    t.charge(CostEvent::segment_constant, 2);
    t.charge(CostEvent::privilege_change);
    cpu.cpl = cpl;
    settle_mode(t.core, before);
}

template <Observer Obs>
Outcome sysenter(Core& core) {
    using namespace checks;
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::sysenter, cpu.sysenter_cs};
    t.charge(CostEvent::microcode_entry);
    TRY(require<sysenter::mode_allows>(t, no_code, Flag<"AMD rules">{core.model.vendor == Vendor::amd},
                                       Flag<"EFER.LMA">{cpu.ia32e()}));
    TRY(require<sysenter::protected_mode>(t, nothing, Flag<"CR0.PE">{cpu.protected_mode()}));
    const Selector target{static_cast<u16>(cpu.sysenter_cs)};
    TRY(require<sysenter::target_not_null>(t, nothing, target));

    t.charge(CostEvent::msr_use, 3);
    cpu.rflags &= ~(rflags::vm | rflags::if_ | rflags::rf);
    const bool long64 = cpu.ia32e();
    cpu.gpr[rsp] = long64 ? cpu.sysenter_esp : cpu.sysenter_esp & 0xFFFFFFFF;
    cpu.rip = long64 ? cpu.sysenter_eip : cpu.sysenter_eip & 0xFFFFFFFF;
    enter_flat(t, target.with_rpl(0), Selector{static_cast<u16>((target.value & 0xFFFC) + 8)}, Cpl{0}, long64);
    t.charge(CostEvent::sysenter);
    t.committed();
    return no_fault;
}

/// Width::bits64 with REX.W, else a return to 32-bit code.
template <Observer Obs>
Outcome sysexit(Core& core, Width width) {
    using namespace checks;
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::sysexit, cpu.sysenter_cs};
    t.charge(CostEvent::microcode_entry);
    TRY(require<sysenter::mode_allows>(t, no_code, Flag<"AMD rules">{core.model.vendor == Vendor::amd},
                                       Flag<"EFER.LMA">{cpu.ia32e()}));
    const Selector base{static_cast<u16>(cpu.sysenter_cs)};
    TRY(require<sysexit::target_not_null>(t, nothing, base));
    TRY(require<sysexit::protected_mode>(t, nothing, Flag<"CR0.PE">{cpu.protected_mode()}));
    TRY(require<sysexit::from_ring_0>(t, nothing, cpu.cpl));
    const bool long64 = width == Width::bits64;
    if (long64) {
        TRY(require<sysexit::pointer_canonical>(t, nothing, Offset{cpu.gpr[rdx]}));
        TRY(require<sysexit::stack_canonical>(t, nothing, Offset{cpu.gpr[rcx]}));
    }

    t.charge(CostEvent::msr_use);
    cpu.gpr[rsp] = long64 ? cpu.gpr[rcx] : cpu.gpr[rcx] & 0xFFFFFFFF;
    cpu.rip = long64 ? cpu.gpr[rdx] : cpu.gpr[rdx] & 0xFFFFFFFF;
    const u16 cs = static_cast<u16>((base.value & 0xFFFC) + (long64 ? 32 : 16));
    enter_flat(t, Selector{cs}.with_rpl(3), Selector{static_cast<u16>(cs + 8)}.with_rpl(3), Cpl{3}, long64);
    t.charge(CostEvent::sysexit);
    t.committed();
    return no_fault;
}

template <Observer Obs>
Outcome syscall(Core& core) {
    using namespace checks;
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::syscall, field(cpu.star, 32, 16)};
    t.charge(CostEvent::microcode_entry);
    TRY(require<syscall::mode_allows>(t, no_code, Flag<"64-bit mode">{cpu.mode == Mode::long64},
                                      Flag<"AMD rules">{core.model.vendor == Vendor::amd},
                                      Flag<"CR0.PE">{cpu.protected_mode()}));
    TRY(require<syscall::enabled>(t, no_code, Flag<"EFER.SCE">{(cpu.efer & efer::sce) != 0}));

    t.charge(CostEvent::msr_use, 3);
    const Selector target{static_cast<u16>(field(cpu.star, 32, 16))};
    cpu.gpr[rcx] = core.next_rip;
    if (cpu.ia32e()) {
        cpu.gpr[r11] = cpu.rflags & ~rflags::rf;
        cpu.rip = cpu.mode == Mode::long64 ? cpu.lstar : cpu.cstar;
        cpu.rflags = (cpu.rflags & ~(cpu.fmask | rflags::rf)) | rflags::reserved_one;
    } else {  // AMD, legacy mode: EIP from STAR[31:0]; IF, RF and VM are cleared
        cpu.rip = cpu.star & 0xFFFFFFFF;
        cpu.rflags &= ~(rflags::if_ | rflags::rf | rflags::vm);
    }
    t.charge(CostEvent::flags_write);
    enter_flat(t, target.with_rpl(0), Selector{static_cast<u16>(target.value + 8)}, Cpl{0}, cpu.ia32e());
    t.charge(CostEvent::syscall);
    t.committed();
    return no_fault;
}

/// The attributes of SS after SYSRET: Intel loads fixed ones; AMD changes the selector alone, with STAR's RPL kept.
template <Observer Obs>
EMU_ALWAYS_INLINE void return_flat(Transition<Obs>& t, Selector cs, Selector ss, bool long64) {
    Processor& cpu = t.cpu;
    if (t.core.model.vendor == Vendor::intel) return enter_flat(t, cs, ss.with_rpl(3), Cpl{3}, long64);
    const SegmentRegister kept = cpu.ss();
    enter_flat(t, cs, ss, Cpl{3}, long64);
    cpu.ss() = kept;
    cpu.ss().selector = ss;
    cpu.ss().judge(SegmentName::ss, cpu.mode);
    t.core.refresh();
}

/// Width::bits64 with REX.W, else a return to compatibility mode.
template <Observer Obs>
Outcome sysret(Core& core, Width width) {
    using namespace checks;
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::sysret, field(cpu.star, 48, 16)};
    t.charge(CostEvent::microcode_entry);
    const bool amd = core.model.vendor == Vendor::amd, long64 = width == Width::bits64;
    TRY(require<sysret::mode_allows>(t, no_code, Flag<"64-bit mode">{cpu.mode == Mode::long64},
                                     Flag<"AMD rules">{amd}));
    TRY(require<sysret::enabled>(t, no_code, Flag<"EFER.SCE">{(cpu.efer & efer::sce) != 0}));
    TRY(require<sysret::protected_mode>(t, nothing, Flag<"CR0.PE">{cpu.protected_mode()}));
    TRY(require<sysret::from_ring_0>(t, nothing, cpu.cpl));
    if (long64 && !amd) TRY(require<sysret::pointer_canonical>(t, nothing, Offset{cpu.gpr[rcx]}));

    t.charge(CostEvent::msr_use);
    const u16 base = static_cast<u16>(field(cpu.star, 48, 16));
    const Selector cs = Selector{static_cast<u16>(base + (long64 ? 16 : 0))}.with_rpl(3);
    cpu.rip = long64 ? cpu.gpr[rcx] : cpu.gpr[rcx] & 0xFFFFFFFF;
    if (cpu.mode == Mode::long64)
        cpu.rflags = (cpu.gpr[r11] & 0x3C7FD7) | rflags::reserved_one;  // RF and VM cleared, reserved bits fixed
    else
        cpu.rflags |= rflags::if_;  // AMD, compatibility and legacy mode: R11 is not read
    t.charge(CostEvent::flags_write);
    return_flat(t, cs, Selector{static_cast<u16>(base + 8)}, long64);
    t.charge(CostEvent::sysret);
    t.committed();
    return no_fault;
}

template <Observer Obs>
Outcome swapgs(Core& core) {
    using namespace checks;
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::swapgs, cpu.kernel_gs_base};
    TRY(require<swapgs::mode_allows>(t, no_code, Flag<"64-bit mode">{cpu.mode == Mode::long64}));
    TRY(require<swapgs::from_ring_0>(t, nothing, cpu.cpl));
    SegmentRegister& gs = cpu.seg(SegmentName::gs);
    const u64 base = gs.base;
    gs.base = cpu.kernel_gs_base;
    cpu.kernel_gs_base = base;
    gs.judge(SegmentName::gs, cpu.mode);
    t.charge(CostEvent::swapgs);
    return no_fault;
}

}  // namespace emu
