// HLT, INVLPG, INVD, CLI, STI, POPF, PUSHF, STAC, CLAC, IN, OUT, and the faults of ordinary instructions (Intel SDM
// vol. 2).
#include "arch/tss.hpp"
#include "cpu/transition/transition.hpp"

namespace emu {

template <Observer Obs>
Outcome halt(Core& core) {
    Transition<Obs> t{core, Mechanism::privileged, 0};
    TRY(require<checks::ring_0_only<"hlt">>(t, nothing, core.cpu.cpl));
    t.charge(CostEvent::hlt);
    core.cpu.rip = core.next_rip;
    return Outcome::stop(StopReason::halted);  // nothing in this machine raises interrupts
}

template <Observer Obs>
Outcome invalidate_page(Core& core, SegmentName name, u64 at) {
    Transition<Obs> t{core, Mechanism::privileged, at};
    TRY(require<checks::ring_0_only<"invlpg">>(t, nothing, core.cpu.cpl));
    core.translations->drop(core.cpu.seg(name).linear(at, core.cpu.mode));
    t.charge(CostEvent::invlpg);
    return no_fault;
}

template <Observer Obs>
Outcome invalidate_caches(Core& core) {
    Transition<Obs> t{core, Mechanism::privileged, 0};
    TRY(require<checks::ring_0_only<"invd">>(t, nothing, core.cpu.cpl));
    t.charge(CostEvent::serialise);
    return no_fault;
}

template <Observer Obs>
Outcome change_interrupt_flag(Core& core, bool set) {
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::privileged, set};
    if (cpu.mode != Mode::real) TRY(require<checks::interrupt_flag::iopl_permits>(t, nothing, cpu.cpl, cpu.iopl()));
    t.charge(CostEvent::cli_sti);
    cpu.rflags = set ? cpu.rflags | rflags::if_ : cpu.rflags & ~rflags::if_;
    return no_fault;
}
template <Observer Obs>
Outcome clear_interrupt_flag(Core& core) {
    return change_interrupt_flag<Obs>(core, false);
}
template <Observer Obs>
Outcome set_interrupt_flag(Core& core) {
    return change_interrupt_flag<Obs>(core, true);
}

template <Observer Obs>
Outcome set_alignment_check(Core& core, bool set) {
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::privileged, set};
    TRY(require<checks::alignment_flag::ring_0_only>(t, no_code, cpu.cpl));
    cpu.rflags = set ? cpu.rflags | rflags::ac : cpu.rflags & ~rflags::ac;
    core.refresh();
    return no_fault;
}

/// POPF faults nowhere outside virtual-8086 mode: what the privilege level may not change simply stays.
template <Observer Obs>
Outcome pop_flags(Core& core, u64 value, Width width) {
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::privileged, value};
    if (cpu.mode == Mode::virtual8086) return unmodelled(Unmodelled::virtual_8086_mode);
    u64 loaded = rflags::arithmetic | rflags::tf | rflags::df | rflags::nt;
    if (width != Width::bits16) loaded |= rflags::ac | rflags::id;
    if (cpu.cpl.value <= cpu.iopl().value) loaded |= rflags::if_;
    if (cpu.cpl.value == 0) loaded |= rflags::iopl;
    cpu.rflags = (cpu.rflags & ~loaded) | (value & loaded) | rflags::reserved_one;
    if (width != Width::bits16) cpu.rflags &= ~rflags::rf;
    t.charge(CostEvent::popf);
    core.refresh();
    return no_fault;
}

/// The image that PUSHF pushes has VM and RF clear.
template <Observer Obs>
Outcome push_flags(Core& core, Width width) {
    Transition<Obs> t{core, Mechanism::privileged, 0};
    if (core.cpu.mode == Mode::virtual8086) return unmodelled(Unmodelled::virtual_8086_mode);
    core.memory_value = truncate(core.cpu.rflags & ~(rflags::vm | rflags::rf), width);
    t.charge(CostEvent::pushf);
    return no_fault;
}

/// The I/O permission map of the TSS decides when CPL > IOPL (Intel SDM vol. 1, I/O Permission Bit Map).
template <Observer Obs>
Outcome check_port(Transition<Obs>& t, u16 number, u8 size) {
    using namespace checks;
    Processor& cpu = t.cpu;
    if (cpu.mode == Mode::real || (cpu.mode != Mode::virtual8086 && cpu.cpl.value <= cpu.iopl().value)) return no_fault;
    const bool has_map = (cpu.tr.attributes.type().value & 0x1D) == system_type::available_tss32 &&
                         cpu.tr.attributes.present().value && cpu.tr.limit >= tss::io_map_base_offset + 1;
    u16 base = 0;
    t.charge(CostEvent::tss_read);
    if (has_map) TRY(t.read(Structure::tss, cpu.tr.base + tss::io_map_base_offset, base));
    const u64 at = u64{base} + number / 8;
    TRY(require<port::map_in_tss>(t, nothing, Flag<"TSS has a map">{has_map}, LastByte{at + 1}, Limit{cpu.tr.limit}));
    u16 bits = 0;
    TRY(t.read(Structure::io_map, cpu.tr.base + at, bits));
    const u64 set = field(bits, number & 7, size);
    return require<port::map_permits>(t, nothing, Quantity<"port">{number}, Quantity<"bits set">{set});
}

template <Observer Obs>
Outcome port_in(Core& core, u16 number, u8 size) {
    Transition<Obs> t{core, Mechanism::port, number};
    TRY(check_port(t, number, size));
    t.charge(CostEvent::port_read);
    core.memory_value = low_bits(core.ports.read(core.ports.owner, number, size), size * 8u);
    return no_fault;
}

template <Observer Obs>
Outcome port_out(Core& core, u16 number, u8 size, u32 value) {
    Transition<Obs> t{core, Mechanism::port, number};
    TRY(check_port(t, number, size));
    t.charge(CostEvent::port_write);
    return core.ports.write(core.ports.owner, number, size, static_cast<u32>(low_bits(value, size * 8u)));
}

/// Names what an ordinary instruction ran into, and before that what it passed: whoever gets to divide was decoded.
template <Observer Obs>
Outcome trouble(Core& core, Trouble what) {
    using namespace checks::instruction;
    Transition<Obs> t{core, Mechanism::decode, static_cast<u64>(what)};
    const u64 length = what == Trouble::too_long ? 16 : static_cast<u8>(core.next_rip - core.cpu.rip);
    TRY(require<length_at_most_15>(t, nothing, Quantity<"length">{length}));
    TRY(require<opcode_defined>(t, no_code, Flag<"defined">{what != Trouble::invalid_opcode}));
    TRY(require<lock_allowed>(t, no_code, Flag<"lockable">{what != Trouble::lock_not_allowed}));
    switch (what) {
        case Trouble::divide:
            return require<quotient_fits>(t, no_code, Flag<"fits">{false});
        case Trouble::bound:
            return require<index_within_bounds>(t, no_code, Flag<"within">{false});
        case Trouble::branch_limit:
            return require<branch_within_limit>(t, nothing, Flag<"within">{false});
        case Trouble::branch_not_canonical:
            return require<branch_canonical>(t, nothing, Flag<"canonical">{false});
        default:
            return unmodelled(Unmodelled::x87_mmx_sse);
    }
}

/// A branch is judged when it is linked, and how often that happens is a matter of the block cache: off the books.
template <Observer Obs>
Outcome judge(Core& core, Trouble what, bool holds) {
    using namespace checks::instruction;
    if (!holds) return trouble<Obs>(core, what);
    if (what == Trouble::divide || what == Trouble::bound) {
        Transition<Obs> t{core, Mechanism::decode, static_cast<u64>(what)};
        if (what == Trouble::divide) return require<quotient_fits>(t, no_code, Flag<"fits">{true});
        return require<index_within_bounds>(t, no_code, Flag<"within">{true});
    }
    Transition<Obs> t{core, Mechanism::fetch, core.next_rip};
    const OffTheBooks<Obs> books{t};
    if (what == Trouble::branch_limit) return require<branch_within_limit>(t, nothing, Flag<"within">{true});
    return require<branch_canonical>(t, nothing, Flag<"canonical">{true});
}

}  // namespace emu
