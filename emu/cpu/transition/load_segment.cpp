// Loads of segment registers: MOV, POP, LDS, LES, LSS, LFS, LGS (Intel SDM vol. 2, MOV, Operation).
#include "cpu/transition/descriptors.hpp"

namespace emu {

constexpr CostEvent load_cost(SegmentName name, LoadKind kind, bool real) {
    switch (kind) {
        case LoadKind::pop:
            return real ? CostEvent::pop_segment_real : CostEvent::pop_segment;
        case LoadKind::far_pointer:
            if (real) return CostEvent::load_far_pointer_real;
            return name >= SegmentName::fs ? CostEvent::load_far_pointer_fs : CostEvent::load_far_pointer_ds;
        default:
            return real ? CostEvent::load_segment_real : CostEvent::load_segment;
    }
}

/// "IF SS is loaded".
template <Observer Obs>
Outcome load_stack_segment(Transition<Obs>& t, Selector selector) {
    using namespace checks;
    Processor& cpu = t.cpu;
    if (selector.is_null()) {
        const Flag<"64-bit code"> code64{cpu.mode == Mode::long64};
        TRY(require<stack::null_only_in_64_bit<"stack_load">>(t, nothing, code64, NewCpl{cpu.cpl.value}));
        TRY(require<stack::null_rpl_equals_cpl<"stack_load">>(t, nothing, selector.rpl(), NewCpl{cpu.cpl.value}));
        load_null(cpu.ss(), SegmentName::ss, selector, cpu.mode, cpu.cpl.value);
        t.charge(CostEvent::segment_constant);
        return no_fault;
    }
    Descriptor descriptor;
    TRY((fetch_descriptor<"stack_load", Vector::GP>(t, selector, descriptor)));
    TRY((require<stack::rpl_equals_cpl<"stack_load", Vector::GP>>(t, selector, selector.rpl(), NewCpl{cpu.cpl.value})));
    TRY((require<stack::writable_data<"stack_load", Vector::GP>>(t, selector, descriptor.type())));
    TRY((require<stack::dpl_equals_cpl<"stack_load", Vector::GP>>(t, selector, descriptor.dpl(),
                                                                  NewCpl{cpu.cpl.value})));
    TRY((require<table::present<"stack_load", Vector::SS>>(t, selector, descriptor.present())));
    TRY(mark_accessed(t, selector, descriptor));
    load_hidden(cpu.ss(), SegmentName::ss, selector, descriptor, cpu.mode);
    t.charge(CostEvent::segment_refill);
    return no_fault;
}

/// "IF DS, ES, FS, or GS is loaded" with a selector that is null or not.
template <Observer Obs>
Outcome load_data_segment(Transition<Obs>& t, SegmentName name, Selector selector) {
    using namespace checks;
    Processor& cpu = t.cpu;
    if (selector.is_null()) {
        load_null(cpu.seg(name), name, selector, cpu.mode);
        t.charge(CostEvent::segment_constant);
        return no_fault;
    }
    Descriptor descriptor;
    TRY((fetch_descriptor<"data_load", Vector::GP>(t, selector, descriptor)));
    TRY(require<data_load::readable>(t, selector, descriptor.type()));
    if (!descriptor.conforming()) {
        TRY(require<data_load::rpl_not_above_dpl>(t, selector, selector.rpl(), descriptor.dpl()));
        TRY(require<data_load::cpl_not_above_dpl>(t, selector, cpu.cpl, descriptor.dpl()));
    }
    TRY((require<table::present<"data_load">>(t, selector, descriptor.present())));
    TRY(mark_accessed(t, selector, descriptor));
    load_hidden(cpu.seg(name), name, selector, descriptor, cpu.mode);
    t.charge(CostEvent::segment_refill);
    return no_fault;
}

template <Observer Obs>
Outcome load_segment(Core& core, SegmentName name, u16 selector, LoadKind kind) {
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::load_segment, selector | (u64{static_cast<u8>(name)} << 16)};
    const bool real = cpu.mode == Mode::real || cpu.mode == Mode::virtual8086;
    t.charge(load_cost(name, kind, real));
    if (kind == LoadKind::move_memory) t.charge(CostEvent::load_segment_memory);
    if (real) {
        load_real(cpu.seg(name), name, selector);
    } else if (name == SegmentName::ss) {
        TRY(load_stack_segment(t, Selector{selector}));
    } else {
        TRY(load_data_segment(t, name, Selector{selector}));
    }
    if (name == SegmentName::ss) core.refresh();  // the width of the stack may be another one
    return no_fault;
}

}  // namespace emu
