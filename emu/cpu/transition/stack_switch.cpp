// The stack of a more privileged level, as the TSS names it: interrupts through legacy gates and legacy call gates.
#include "arch/tss.hpp"
#include "cpu/transition/descriptors.hpp"
#include "cpu/transition/stack.hpp"

namespace emu {

/// Reads SSn:ESPn from a 16- or 32-bit TSS and checks the stack segment; faults are #TS, absence is #SS.
template <Observer Obs>
Outcome fetch_inner_stack(Transition<Obs>& t, NewCpl cpl, SegmentRegister& new_ss, u64& pointer) {
    using namespace checks;
    Processor& cpu = t.cpu;
    const bool tss32 = (cpu.tr.attributes.type().value & 8) != 0;
    const Width width = tss32 ? Width::bits32 : Width::bits16;
    const u64 pointer_at = tss::stack_pointer_offset(width, cpl.value),
              segment_at = tss::stack_segment_offset(width, cpl.value);
    TRY(require<stack::tss_field_within_limit>(t, cpu.tr.selector, LastByte{segment_at + 1}, Limit{cpu.tr.limit}));
    t.charge(CostEvent::tss_read, 2);
    if (tss32) {
        u32 pointer32 = 0;
        TRY(t.read(Structure::tss, cpu.tr.base + pointer_at, pointer32));
        pointer = pointer32;
    } else {
        u16 pointer16 = 0;
        TRY(t.read(Structure::tss, cpu.tr.base + pointer_at, pointer16));
        pointer = pointer16;
    }
    Selector selector;
    TRY(t.read(Structure::tss, cpu.tr.base + segment_at, selector.value));

    Descriptor descriptor;
    TRY((require<table::selector_not_null<"stack_switch", Vector::TS>>(t, nothing, selector)));
    TRY((fetch_descriptor<"stack_switch", Vector::TS>(t, selector, descriptor)));
    TRY((require<stack::rpl_equals_cpl<"stack_switch", Vector::TS>>(t, selector, selector.rpl(), cpl)));
    TRY((require<stack::dpl_equals_cpl<"stack_switch", Vector::TS>>(t, selector, descriptor.dpl(), cpl)));
    TRY((require<stack::writable_data<"stack_switch", Vector::TS>>(t, selector, descriptor.type())));
    TRY((require<table::present<"stack_switch", Vector::SS>>(t, selector, descriptor.present())));
    TRY(mark_accessed(t, selector, descriptor));
    load_hidden(new_ss, SegmentName::ss, selector, descriptor, Mode::protected_mode);
    t.charge(CostEvent::segment_refill);
    t.charge(CostEvent::stack_switch);
    return no_fault;
}

}  // namespace emu
