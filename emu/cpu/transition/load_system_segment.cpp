// LLDT, LTR, LGDT, LIDT and the inspection of descriptors: LAR, LSL, VERR, VERW (Intel SDM vol. 2).
#include "cpu/transition/descriptors.hpp"

namespace emu {

/// A system descriptor from the GDT; in 64-bit mode it has 16 bytes, in compatibility mode 8 as ever.
template <Text use, Observer Obs>
Outcome fetch_system_descriptor(Transition<Obs>& t, Selector selector, Descriptor& descriptor) {
    using namespace checks;
    const u64 size = t.cpu.mode == Mode::long64 ? 16 : 8;
    TRY((require<table::selector_in_gdt<use>>(t, selector, Flag<"TI">{selector.in_ldt()})));
    TRY((require<table::selector_in_table<use, Vector::GP>>(t, selector, LastByte{selector.table_offset() + size - 1},
                                                            Limit{t.cpu.gdtr.limit})));
    t.charge(CostEvent::descriptor_fetch);
    descriptor.address = t.cpu.gdtr.base + selector.table_offset();
    TRY(t.read(Structure::gdt, descriptor.address, descriptor.low));
    if (size == 16) {
        TRY(t.read(Structure::gdt, descriptor.address + 8, descriptor.high));
    }
    return no_fault;
}

template <Observer Obs>
Outcome load_ldtr(Core& core, u16 word, bool from_memory) {
    using namespace checks;
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::load_ldtr, word};
    const Selector selector{word};
    TRY(require<protected_mode_only<"lldt">>(t, no_code, Flag<"CR0.PE">{cpu.protected_mode()}));
    TRY(require<ring_0_only<"lldt">>(t, nothing, cpu.cpl));
    t.charge(CostEvent::lldt);
    if (from_memory) t.charge(CostEvent::load_segment_memory);
    if (selector.is_null()) {  // marks LDTR as invalid; no fault
        cpu.ldtr = {selector, Attributes{}, 0, 0};
        return no_fault;
    }
    Descriptor descriptor;
    TRY((fetch_system_descriptor<"ldt_load">(t, selector, descriptor)));
    TRY(require<ldt_load::is_ldt>(t, selector, descriptor.type()));
    TRY((require<table::present<"ldt_load">>(t, selector, descriptor.present())));
    cpu.ldtr = {selector, descriptor.attributes(), descriptor.limit(), descriptor.base()};
    t.charge(CostEvent::segment_refill);
    return no_fault;
}

template <Observer Obs>
Outcome load_task_register(Core& core, u16 word, bool from_memory) {
    using namespace checks;
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::load_task_register, word};
    const Selector selector{word};
    TRY(require<protected_mode_only<"ltr">>(t, no_code, Flag<"CR0.PE">{cpu.protected_mode()}));
    TRY(require<ring_0_only<"ltr">>(t, nothing, cpu.cpl));
    TRY(require<table::selector_not_null<"task_load">>(t, nothing, selector));
    Descriptor descriptor;
    TRY((fetch_system_descriptor<"task_load">(t, selector, descriptor)));
    TRY(require<task_load::is_available_tss>(t, selector, descriptor.type(), Flag<"IA-32e mode">{cpu.ia32e()}));
    if (cpu.mode == Mode::long64)
        TRY(require<table::upper_type_zero<"task_load">>(t, selector, descriptor.upper_type()));
    TRY((require<table::present<"task_load">>(t, selector, descriptor.present())));
    descriptor.low |= u64{2} << 40;  // busy
    t.charge(CostEvent::accessed_write);
    TRY(t.write(Structure::gdt, descriptor.address + 5, static_cast<u8>(descriptor.low >> 40)));
    cpu.tr = {selector, descriptor.attributes(), descriptor.limit(), descriptor.base()};
    t.charge(CostEvent::segment_refill);
    t.charge(CostEvent::ltr);
    if (from_memory) t.charge(CostEvent::load_segment_memory);
    return no_fault;
}

template <Observer Obs>
Outcome load_table(Core& core, TableRegister& table, u64 base, u16 limit) {
    using namespace checks;
    Transition<Obs> t{core, Mechanism::load_table_register, base};
    TRY(require<ring_0_only<"lgdt">>(t, nothing, core.cpu.cpl));
    if (core.cpu.mode == Mode::long64) TRY(require<table_register::base_canonical>(t, nothing, Linear{base}));
    table = {base, limit};
    t.charge(CostEvent::lgdt);
    return no_fault;
}
template <Observer Obs>
Outcome load_gdtr(Core& core, u64 base, u16 limit) {
    return load_table<Obs>(core, core.cpu.gdtr, base, limit);
}
template <Observer Obs>
Outcome load_idtr(Core& core, u64 base, u16 limit) {
    return load_table<Obs>(core, core.cpu.idtr, base, limit);
}

template <Observer Obs>
Outcome may_store_system_register(Core& core) {
    Transition<Obs> t{core, Mechanism::privileged, 0};
    return require<checks::umip::permitted>(t, nothing, Flag<"CR4.UMIP">{(core.cpu.cr4 & cr4::umip) != 0},
                                            core.cpu.cpl);
}

/// LAR, LSL, VERR and VERW fault only outside protected mode; what they find out goes to ZF.
template <Observer Obs>
Outcome inspect_descriptor(Transition<Obs>& t, Selector selector, Descriptor& descriptor, bool& found) {
    const Processor& cpu = t.cpu;
    TRY(require<checks::protected_mode_only<"inspect">>(
        t, no_code, Flag<"CR0.PE">{cpu.protected_mode() && cpu.mode != Mode::virtual8086}));
    found = false;
    if (selector.is_null() || (selector.in_ldt() && !cpu.ldtr.attributes.present().value)) return no_fault;
    const u64 limit = selector.in_ldt() ? cpu.ldtr.limit : cpu.gdtr.limit;
    if (selector.table_offset() + 7 > limit) return no_fault;
    t.charge(CostEvent::descriptor_fetch);
    descriptor.address = (selector.in_ldt() ? cpu.ldtr.base : cpu.gdtr.base) + selector.table_offset();
    TRY(t.read(selector.in_ldt() ? Structure::ldt : Structure::gdt, descriptor.address, descriptor.low));
    found = true;
    return no_fault;
}

inline bool visible(const Processor& cpu, Selector selector, const Descriptor& descriptor) {
    return descriptor.conforming() ||
           (cpu.cpl.value <= descriptor.dpl().value && selector.rpl().value <= descriptor.dpl().value);
}
inline void answer(Processor& cpu, bool yes) { cpu.rflags = yes ? cpu.rflags | rflags::zf : cpu.rflags & ~rflags::zf; }

template <Observer Obs>
Outcome load_access_rights(Core& core, u16 word) {
    using namespace system_type;
    Transition<Obs> t{core, Mechanism::privileged, word};
    Processor& cpu = core.cpu;
    Descriptor descriptor;
    bool found = false;
    TRY(inspect_descriptor(t, Selector{word}, descriptor, found));
    const u8 type = descriptor.type().value;
    const bool legacy = type == available_tss16 || type == busy_tss16 || type == call_gate16 || type == task_gate;
    const bool valid = (type & segment_type::s) != 0 || type == ldt || type == available_tss32 || type == busy_tss32 ||
                       type == call_gate32 || (legacy && !cpu.ia32e());
    const bool yes = found && valid && visible(cpu, Selector{word}, descriptor);
    core.memory_value = yes ? (descriptor.low >> 32) & 0x00F0FF00 : 0;
    answer(cpu, yes);
    return no_fault;
}

template <Observer Obs>
Outcome load_segment_limit(Core& core, u16 word) {
    using namespace system_type;
    Transition<Obs> t{core, Mechanism::privileged, word};
    Processor& cpu = core.cpu;
    Descriptor descriptor;
    bool found = false;
    TRY(inspect_descriptor(t, Selector{word}, descriptor, found));
    const u8 type = descriptor.type().value;
    const bool legacy = type == available_tss16 || type == busy_tss16;
    const bool valid = (type & segment_type::s) != 0 || type == ldt || type == available_tss32 || type == busy_tss32 ||
                       (legacy && !cpu.ia32e());
    const bool yes = found && valid && visible(cpu, Selector{word}, descriptor);
    core.memory_value = yes ? descriptor.limit() : 0;
    answer(cpu, yes);
    return no_fault;
}

template <Observer Obs>
Outcome verify_segment(Core& core, u16 word, bool for_write) {
    Transition<Obs> t{core, Mechanism::privileged, word};
    Processor& cpu = core.cpu;
    Descriptor descriptor;
    bool found = false;
    TRY(inspect_descriptor(t, Selector{word}, descriptor, found));
    const TypeField type = descriptor.type();
    const bool right = for_write ? segment_type::is_writable(type) : segment_type::is_readable(type);
    answer(cpu, found && right && visible(cpu, Selector{word}, descriptor));
    return no_fault;
}

}  // namespace emu
