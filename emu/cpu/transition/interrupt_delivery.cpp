// Interrupts and exceptions through the IDT (Intel SDM vol. 2, INT n/INTO/INT3/INT1, Operation).
#include "cpu/transition/descriptors.hpp"
#include "cpu/transition/interrupt_event.hpp"
#include "cpu/transition/stack.hpp"

namespace emu {

constexpr bool is_interrupt_gate(TypeField type) { return (type.value & 7) == 6; }
/// Types 6 and 7 are 286 gates, 14 and 15 have 32 bits, or 64 in IA-32e mode.
constexpr Width gate_width(TypeField type, bool ia32e) {
    if (ia32e) return Width::bits64;
    return type.value >= 8 ? Width::bits32 : Width::bits16;
}

/// What is decided before the stack is written: gate, handler, and the privilege level it runs at.
struct Entry {
    Gate gate;
    Width width = Width::bits32;
    Descriptor code;
    NewCpl cpl{};
    u64 offset = 0;
    Mode mode = Mode::protected_mode;  // of the handler
};

/// REAL-ADDRESS-MODE.
template <Observer Obs>
Outcome real_address_mode(Transition<Obs>& t, const InterruptEvent& event) {
    using namespace checks;
    Processor& cpu = t.cpu;
    TRY(require<idt::vector_within_ivt>(t, nothing, LastByte{event.vector * 4u + 3u}, Limit{cpu.idtr.limit}));
    FrameWriter<Obs> frame{t, current_stack(cpu), Width::bits16};
    TRY(frame.template check_room<StackUse::current>(3));
    TRY(frame.secure(3));
    u32 vector = 0;
    TRY(t.read(Structure::ivt, cpu.idtr.base + event.vector * 4u, vector));

    frame.push(Pushed::flags, cpu.rflags);
    frame.push(Pushed::cs, cpu.cs().selector.value);
    frame.push(Pushed::instruction_pointer, event.return_rip);
    cpu.gpr[rsp] = frame.stack.pointer;
    cpu.rflags &= ~(rflags::if_ | rflags::tf | rflags::ac | rflags::rf);
    load_real(cpu.cs(), SegmentName::cs, static_cast<u16>(vector >> 16));
    cpu.rip = vector & 0xFFFF;
    t.core.refresh();
    t.charge(event.kind == EventSource::int3   ? CostEvent::interrupt_breakpoint_real
             : event.kind == EventSource::into ? CostEvent::interrupt_overflow_real
                                               : CostEvent::interrupt_real);
    t.committed();
    return no_fault;
}

/// The gate: PROTECTED-MODE and IA-32e-MODE up to the jump to TRAP-OR-INTERRUPT-GATE or TASK-GATE.
template <Observer Obs>
EMU_ALWAYS_INLINE Outcome fetch_gate(Transition<Obs>& t, const InterruptEvent& event, Entry& entry) {
    using namespace checks;
    Processor& cpu = t.cpu;
    const IdtEntry named{event.vector};
    const bool ia32e = cpu.ia32e();
    const unsigned size = ia32e ? 16 : 8;
    const u64 at = cpu.idtr.base + u64{event.vector} * size;
    TRY(require<idt::entry_within_limit>(t, named, LastByte{u64{event.vector} * size + size - 1},
                                         Limit{cpu.idtr.limit}));
    t.charge(CostEvent::gate_fetch);
    TRY(t.read(Structure::idt, at, entry.gate.low));
    if (ia32e) TRY(t.read(Structure::idt, at + 8, entry.gate.high));
    const TypeField type = entry.gate.type();
    TRY(require<idt::gate_type_allowed>(t, named, type, Flag<"IA-32e mode">{ia32e}));
    if (event.from_software()) TRY(require<idt::gate_dpl_permits>(t, named, cpu.cpl, entry.gate.dpl()));
    TRY(require<idt::gate_present>(t, named, entry.gate.present()));
    if (type.value == system_type::task_gate) return unmodelled(Unmodelled::task_gate);
    entry.width = gate_width(type, ia32e);
    entry.offset = entry.gate.offset(entry.width);
    return no_fault;
}

/// TRAP-OR-INTERRUPT-GATE: the code segment that the gate names.
template <Observer Obs>
EMU_ALWAYS_INLINE Outcome fetch_handler(Transition<Obs>& t, Entry& entry) {
    using namespace checks;
    const Selector selector = entry.gate.selector();
    TRY(require<table::selector_not_null<"handler">>(t, nothing, selector));
    TRY((fetch_descriptor<"handler", Vector::GP>(t, selector, entry.code)));
    TRY(require<code::is_code<"handler">>(t, selector, entry.code.type()));
    TRY(require<code::dpl_not_above_cpl<"handler">>(t, selector, entry.code.dpl(), t.cpu.cpl));
    if (t.cpu.ia32e()) TRY(require<code::is_64_bit<"handler">>(t, selector, entry.code.l(), entry.code.db()));
    TRY(require<table::present<"handler">>(t, selector, entry.code.present()));
    entry.cpl = NewCpl{entry.code.conforming() ? t.cpu.cpl.value : entry.code.dpl().value};
    entry.mode = mode_of(t.cpu, entry.code.l());
    return no_fault;
}

template <Observer Obs>
EMU_ALWAYS_INLINE Outcome check_pointer(Transition<Obs>& t, const Entry& entry) {
    using namespace checks;
    if (entry.mode == Mode::long64)
        return require<code::pointer_canonical<"handler">>(t, nothing, Offset{entry.offset});
    return require<code::pointer_within_limit<"handler">>(t, nothing, Offset{entry.offset}, Limit{entry.code.limit()});
}

/// The frame, then the point of no return, then the registers.
template <StackUse use, Observer Obs>
EMU_ALWAYS_INLINE Outcome push_and_enter(Transition<Obs>& t, const InterruptEvent& event, Entry& entry, StackView stack,
                                         const SegmentRegister* new_ss) {
    Processor& cpu = t.cpu;
    const Mode before = cpu.mode;
    const bool with_stack = new_ss != nullptr || entry.width == Width::bits64;
    const unsigned words = (with_stack ? 5 : 3) + (event.has_error_code ? 1 : 0);
    FrameWriter<Obs> frame{t, stack, entry.width};
    TRY(frame.template check_room<use>(words));
    TRY(check_pointer(t, entry));
    const Selector selector = entry.gate.selector().with_rpl(entry.cpl.value);
    TRY(mark_accessed(t, selector, entry.code));
    TRY(frame.secure(words));

    if (with_stack) {
        frame.push(Pushed::ss, cpu.ss().selector.value);
        frame.push(Pushed::stack_pointer, cpu.gpr[rsp]);
    }
    frame.push(Pushed::flags, event.pushed_flags(cpu.rflags));
    frame.push(Pushed::cs, cpu.cs().selector.value);
    frame.push(Pushed::instruction_pointer, event.return_rip);
    if (event.has_error_code) frame.push(Pushed::error_code, event.error_code);

    load_hidden(cpu.cs(), SegmentName::cs, selector, entry.code, entry.mode);
    t.charge(CostEvent::segment_refill);
    if (new_ss != nullptr) cpu.ss() = *new_ss;
    cpu.cpl = Cpl{entry.cpl.value};
    cpu.rip = entry.offset;
    cpu.gpr[rsp] = frame.stack.pointer;
    const u64 cleared =
        rflags::tf | rflags::nt | rflags::rf | rflags::vm | (is_interrupt_gate(entry.gate.type()) ? rflags::if_ : 0);
    cpu.rflags &= ~cleared;
    t.charge(CostEvent::flags_write);
    settle_mode(t.core, before);
    t.committed();
    return no_fault;
}

/// INTER-PRIVILEGE-LEVEL-INTERRUPT in IA-32e mode, and any use of the IST: the stack pointer comes from the 64-bit TSS.
template <Observer Obs>
EMU_ALWAYS_INLINE Outcome stack_from_tss64(Transition<Obs>& t, u64 offset, u64& pointer) {
    using namespace checks;
    Processor& cpu = t.cpu;
    TRY(require<stack::tss_field_within_limit>(t, cpu.tr.selector, LastByte{offset + 7}, Limit{cpu.tr.limit}));
    t.charge(CostEvent::tss_read);
    return t.read(Structure::tss, cpu.tr.base + offset, pointer);
}

template <Observer Obs>
EMU_ALWAYS_INLINE Outcome enter_64(Transition<Obs>& t, const InterruptEvent& event, Entry& entry) {
    Processor& cpu = t.cpu;
    const bool inner = entry.cpl.value < cpu.cpl.value;
    const u8 ist = entry.gate.ist();
    u64 pointer = cpu.gpr[rsp];
    if (ist != 0) {
        TRY(stack_from_tss64(t, tss::ist_offset(ist), pointer));
    } else if (inner) {
        TRY(stack_from_tss64(t, tss::stack_pointer_offset(Width::bits64, entry.cpl.value), pointer));
    }
    pointer &= ~u64{15};  // the frame is aligned to 16 bytes
    t.charge(CostEvent::stack_switch, inner || ist != 0 ? 1 : 0);
    if (inner) {
        SegmentRegister null_ss = cpu.ss();  // NULL with RPL = the new CPL
        load_null(null_ss, SegmentName::ss, Selector{entry.cpl.value}, Mode::long64, entry.cpl.value);
        t.charge(CostEvent::segment_constant);
        t.charge(CostEvent::privilege_change);
        TRY(push_and_enter<StackUse::fresh>(t, event, entry, {&null_ss, pointer, Cpl{entry.cpl.value}, true},
                                            &null_ss));
        t.charge(CostEvent::interrupt_inner);
        return no_fault;
    }
    t.charge(CostEvent::pipeline_refill);
    TRY(push_and_enter<StackUse::current>(t, event, entry, {&cpu.ss(), pointer, cpu.cpl, true}, nullptr));
    t.charge(CostEvent::interrupt_same);
    return no_fault;
}

/// INTER-PRIVILEGE-LEVEL-INTERRUPT and INTRA-PRIVILEGE-LEVEL-INTERRUPT outside IA-32e mode.
template <Observer Obs>
EMU_ALWAYS_INLINE Outcome enter_legacy(Transition<Obs>& t, const InterruptEvent& event, Entry& entry) {
    Processor& cpu = t.cpu;
    if (entry.cpl.value >= cpu.cpl.value) {
        t.charge(CostEvent::pipeline_refill);
        TRY(push_and_enter<StackUse::current>(t, event, entry, current_stack(cpu), nullptr));
        t.charge(CostEvent::interrupt_same);
        return no_fault;
    }
    SegmentRegister new_ss;
    u64 pointer = 0;
    TRY(fetch_inner_stack(t, entry.cpl, new_ss, pointer));
    t.charge(CostEvent::privilege_change);
    TRY(push_and_enter<StackUse::fresh>(t, event, entry, {&new_ss, pointer, Cpl{entry.cpl.value}, false}, &new_ss));
    t.charge(CostEvent::interrupt_inner);
    return no_fault;
}

template <Observer Obs>
Outcome deliver_event(Core& core, const InterruptEvent& event) {
    Transition<Obs> t{core, event.from_software() ? Mechanism::interrupt_delivery : Mechanism::exception_delivery,
                      event.vector | (u64{static_cast<u8>(event.kind)} << 8)};
    t.ext = event.external;
    t.charge(CostEvent::microcode_entry);
    if (!event.from_software()) t.charge(CostEvent::exception_entry);
    if (core.cpu.mode == Mode::real) return real_address_mode(t, event);
    if (core.cpu.mode == Mode::virtual8086) return unmodelled(Unmodelled::virtual_8086_mode);
    Entry entry;
    TRY(fetch_gate(t, event, entry));
    TRY(fetch_handler(t, entry));
    return core.cpu.ia32e() ? enter_64(t, event, entry) : enter_legacy(t, event, entry);
}

}  // namespace emu
