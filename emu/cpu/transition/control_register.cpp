// Moves to and from control and debug registers, CLTS, LMSW (Intel SDM vol. 2, MOV - Move to/from Control Registers;
// MOV - Move to/from Debug Registers).
#include "cpu/transition/transition.hpp"

namespace emu {

template <Observer Obs>
Outcome read_control(Core& core, u8 number) {
    using namespace checks;
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::control_register, number};
    TRY(require<control::register_exists>(t, no_code, Quantity<"CR">{number},
                                          Flag<"64-bit mode">{cpu.mode == Mode::long64}));
    TRY(require<ring_0_only<"mov_cr">>(t, nothing, cpu.cpl));
    const u64 values[] = {cpu.cr0, 0, cpu.cr2, cpu.cr3, cpu.cr4, 0, 0, 0, cpu.cr8};
    core.memory_value = values[number];
    t.charge(CostEvent::read_cr);
    return no_fault;
}

/// Every change that can make a cached translation wrong drops it (see the table in mmu/tlb.hpp).
template <Observer Obs>
void flush(Transition<Obs>& t, bool also_global) {
    t.core.translations->flush(also_global);
    t.charge(CostEvent::tlb_flush);
}

/// PAE paging keeps the four PDPTEs in registers: MOV to CR3, and MOV to CR0 or CR4 that changes paging, load them.
template <Observer Obs>
Outcome load_pdptes(Transition<Obs>& t, u64 cr3) {
    const unsigned width = t.core.model.physical_address_bits;
    const u64 reserved = ~low_bits(~u64{0}, width) | 0x1E6;  // bits 63:MAXPHYADDR, 8:5, 2:1
    std::array<u64, 4> pdpte{};
    for (unsigned i = 0; i < 4; ++i) {
        const u64 at = (cr3 & 0xFFFFFFE0) + 8 * i;
        u8 raw[8];
        t.core.memory->read(at, raw, sizeof raw);
        std::memcpy(&pdpte[i], raw, sizeof raw);
        t.charge(CostEvent::walk_step);
        if constexpr (Transition<Obs>::listens)
            t.record(TraceLevel::checks, RecordKind::read, static_cast<u16>(Structure::page_entry), 1, at, pdpte[i], 8,
                     3);
        TRY(require<checks::control::pdpte_reserved_clear>(t, nothing, Quantity<"PDPTE">{pdpte[i]},
                                                           Quantity<"reserved bits">{reserved}));
    }
    t.cpu.pdpte = pdpte;
    return no_fault;
}
constexpr bool uses_pdptes(u64 cr0, u64 cr4, u64 efer) {
    return (cr0 & cr0::pg) != 0 && (cr4 & cr4::pae) != 0 && (efer & efer::lme) == 0;
}

template <Observer Obs>
Outcome write_cr0(Transition<Obs>& t, u64 value) {
    using namespace checks;
    Core& core = t.core;
    Processor& cpu = t.cpu;
    const Value cr0{value};
    if (cpu.mode == Mode::long64) TRY(require<control::cr0_upper_clear>(t, nothing, cr0));
    TRY(require<control::paging_needs_protection>(t, nothing, cr0));
    TRY(require<control::write_through_needs_cache_disable>(t, nothing, cr0));
    const bool paging_on = (value & cr0::pg) != 0 && !cpu.paging(), paging_off = (value & cr0::pg) == 0 && cpu.paging();
    const bool lme = (cpu.efer & efer::lme) != 0;
    if (paging_on) {
        TRY(require<control::long_paging_needs_pae>(t, nothing, Flag<"EFER.LME">{lme},
                                                    Flag<"CR4.PAE">{(cpu.cr4 & cr4::pae) != 0}));
        TRY(require<control::long_paging_from_legacy_code>(t, nothing, Flag<"EFER.LME">{lme}, cpu.cs().attributes.l()));
        TRY(require<control::long_paging_needs_32_bit_tss>(t, nothing, Flag<"EFER.LME">{lme},
                                                           cpu.tr.attributes.type()));
    }
    TRY(require<control::paging_stays_in_64_bit>(t, nothing, cr0, Flag<"64-bit mode">{cpu.mode == Mode::long64}));
    constexpr u64 structure = cr0::pg | cr0::cd | cr0::nw;
    if (((value ^ cpu.cr0) & structure) != 0 && uses_pdptes(value, cpu.cr4, cpu.efer)) TRY(load_pdptes(t, cpu.cr3));

    const u64 old = cpu.cr0;
    cpu.cr0 = (value & cr0::defined) | cr0::et;
    if (paging_on && lme) cpu.efer |= efer::lma;
    if (paging_off) cpu.efer &= ~efer::lma;
    if (((old ^ cpu.cr0) & (cr0::pg | cr0::wp | cr0::pe)) != 0) flush(t, true);
    if ((cpu.cr0 & cr0::pe) != 0 && (old & cr0::pe) == 0) cpu.cpl = Cpl{0};
    core.refresh_mode();
    t.charge(CostEvent::write_cr0);
    return no_fault;
}

template <Observer Obs>
Outcome write_cr3(Transition<Obs>& t, u64 value) {
    using namespace checks;
    Processor& cpu = t.cpu;
    if (cpu.ia32e()) {
        const u64 reserved = ~low_bits(~u64{0}, t.core.model.physical_address_bits);
        TRY(require<control::cr3_reserved_clear>(t, nothing, Value{value}, Quantity<"reserved bits">{reserved}));
    } else {
        value &= 0xFFFFFFFF;
        if (uses_pdptes(cpu.cr0, cpu.cr4, cpu.efer)) TRY(load_pdptes(t, value));
    }
    cpu.cr3 = value;
    flush(t, false);
    t.charge(CostEvent::write_cr3);
    return no_fault;
}

/// CR4 bits that this processor has.
inline u64 known_cr4(const CpuModel& model) {
    u64 known = cr4::tsd | cr4::de | cr4::mce | cr4::pce | cr4::osfxsr | cr4::osxmmexcpt;
    if (model.page_size_extension) known |= cr4::pse;
    if (model.pae) known |= cr4::pae;
    if (model.global_pages) known |= cr4::pge;
    if (model.smep) known |= cr4::smep;
    if (model.smap) known |= cr4::smap;
    if (model.umip) known |= cr4::umip;
    if (model.fsgsbase) known |= cr4::fsgsbase;
    return known;
}

template <Observer Obs>
Outcome write_cr4(Transition<Obs>& t, u64 value) {
    using namespace checks;
    Processor& cpu = t.cpu;
    TRY(require<control::cr4_reserved_clear>(t, nothing, Value{value},
                                             Quantity<"bits this CPU has">{known_cr4(t.core.model)}));
    TRY(require<control::pae_stays_in_long_mode>(t, nothing, Value{value}, Flag<"EFER.LMA">{cpu.ia32e()}));
    constexpr u64 structure = cr4::pae | cr4::pse | cr4::pge | cr4::smep;
    if (((value ^ cpu.cr4) & structure) != 0 && uses_pdptes(cpu.cr0, value, cpu.efer)) TRY(load_pdptes(t, cpu.cr3));
    const u64 changed = value ^ cpu.cr4;
    cpu.cr4 = value;
    if ((changed & (structure | cr4::smap)) != 0) flush(t, true);
    t.core.refresh();
    t.charge(CostEvent::write_cr4);
    return no_fault;
}

template <Observer Obs>
Outcome write_control(Core& core, u8 number, u64 value) {
    using namespace checks;
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::control_register, number};
    TRY(require<control::register_exists>(t, no_code, Quantity<"CR">{number},
                                          Flag<"64-bit mode">{cpu.mode == Mode::long64}));
    TRY(require<ring_0_only<"mov_cr">>(t, nothing, cpu.cpl));
    switch (number) {
        case 0:
            return write_cr0(t, value);
        case 3:
            return write_cr3(t, value);
        case 4:
            return write_cr4(t, value);
        case 8:
            TRY(require<control::cr8_reserved_clear>(t, nothing, Value{value}));
            cpu.cr8 = value;
            t.charge(CostEvent::write_cr4);
            return no_fault;
        default:
            cpu.cr2 = value;
            t.charge(CostEvent::write_cr2);
            return no_fault;
    }
}

/// LMSW: the low four bits of CR0; PE can be set but not cleared.
template <Observer Obs>
Outcome load_machine_status(Core& core, u16 value, bool from_memory) {
    using namespace checks;
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::control_register, 0};
    TRY(require<ring_0_only<"lmsw">>(t, nothing, cpu.cpl));
    const u64 low = (value & 0xF) | (cpu.cr0 & cr0::pe);
    const bool entering = (low & cr0::pe) != 0 && (cpu.cr0 & cr0::pe) == 0;
    cpu.cr0 = (cpu.cr0 & ~u64{0xF}) | low;
    if (entering) {
        cpu.cpl = Cpl{0};
        core.translations->flush(true);
        core.refresh_mode();
    }
    t.charge(CostEvent::lmsw);
    if (from_memory) t.charge(CostEvent::load_segment_memory);
    return no_fault;
}

template <Observer Obs>
Outcome clear_task_switched(Core& core) {
    Transition<Obs> t{core, Mechanism::control_register, 0};
    TRY(require<checks::ring_0_only<"clts">>(t, nothing, core.cpu.cpl));
    core.cpu.cr0 &= ~cr0::ts;
    t.charge(CostEvent::clts);
    return no_fault;
}

/// DR4 and DR5 are other names of DR6 and DR7 while CR4.DE = 0.
template <Observer Obs>
Outcome name_debug_register(Transition<Obs>& t, u8& number) {
    using namespace checks;
    TRY(require<debug::register_exists>(t, no_code, Quantity<"DR">{number},
                                        Flag<"CR4.DE">{(t.cpu.cr4 & cr4::de) != 0}));
    TRY(require<ring_0_only<"mov_dr">>(t, nothing, t.cpu.cpl));
    if (number == 4 || number == 5) number = static_cast<u8>(number + 2);
    return no_fault;
}

inline constexpr u64 dr7_general_detect = 1u << 13, dr7_enables = 0xFF;

template <Observer Obs>
Outcome read_debug(Core& core, u8 number) {
    Transition<Obs> t{core, Mechanism::debug_register, number};
    TRY(name_debug_register(t, number));
    core.memory_value = core.cpu.dr[number];
    t.charge(number >= 6 ? CostEvent::read_dr67 : CostEvent::read_dr);
    return no_fault;
}

template <Observer Obs>
Outcome write_debug(Core& core, u8 number, u64 value) {
    using namespace checks;
    Transition<Obs> t{core, Mechanism::debug_register, number};
    TRY(name_debug_register(t, number));
    if (number >= 6 && core.cpu.mode == Mode::long64) TRY(require<debug::upper_clear>(t, nothing, Value{value}));
    if (number == 7 && (value & (dr7_enables | dr7_general_detect)) != 0)
        return unmodelled(Unmodelled::debug_registers);
    if (number == 6) value = (value & 0xE00F) | 0xFFFF0FF0;
    if (number == 7) value = (value & 0xFFFF23FF) | 0x400;
    core.cpu.dr[number] = value;
    t.charge(number >= 6 ? CostEvent::write_dr67 : CostEvent::write_dr);
    return no_fault;
}

}  // namespace emu
