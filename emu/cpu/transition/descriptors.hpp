// Reading descriptors and loading hidden parts: shared by every room.
#pragma once
#include "cpu/transition/transition.hpp"

namespace emu {

/// Reads the 8 bytes of a descriptor; its table and the selector are checked by the use's own names.
template <Text use, Vector V, Observer Obs>
EMU_ALWAYS_INLINE Outcome fetch_descriptor(Transition<Obs>& t, Selector selector, Descriptor& descriptor) {
    using namespace checks;
    TableRegister table = t.cpu.gdtr;
    if (selector.in_ldt()) {
        TRY(require<table::ldt_loaded<use, V>>(t, selector,
                                               Flag<"LDTR is loaded">{t.cpu.ldtr.attributes.present().value}));
        table = {t.cpu.ldtr.base, t.cpu.ldtr.limit};
    }
    TRY(require<table::selector_in_table<use, V>>(t, selector, LastByte{selector.table_offset() + 7},
                                                  Limit{table.limit}));
    t.charge(CostEvent::descriptor_fetch);
    descriptor.address = table.base + selector.table_offset();
    descriptor.high = 0;
    return t.read(selector.in_ldt() ? Structure::ldt : Structure::gdt, descriptor.address, descriptor.low);
}

/// Sets the accessed bit, as every load of a segment register does.
template <Observer Obs>
EMU_ALWAYS_INLINE Outcome mark_accessed(Transition<Obs>& t, Selector selector, Descriptor& descriptor) {
    constexpr u64 accessed = u64{segment_type::accessed} << 40;
    if ((descriptor.low & accessed) != 0) [[likely]]
        return no_fault;
    descriptor.low |= accessed;
    t.charge(CostEvent::accessed_write);
    return t.write(selector.in_ldt() ? Structure::ldt : Structure::gdt, descriptor.address + 5,
                   static_cast<u8>(descriptor.low >> 40));
}

/// Loads the hidden part from a descriptor. `mode` is the mode in force afterwards.
EMU_ALWAYS_INLINE void load_hidden(SegmentRegister& segment, SegmentName name, Selector selector,
                                   const Descriptor& descriptor, Mode mode) {
    segment.selector = selector;
    segment.attributes = descriptor.attributes();
    segment.limit = descriptor.limit();
    segment.base = descriptor.base() & 0xFFFFFFFF;
    segment.judge(name, mode);
}

/// A null selector: unusable outside 64-bit mode. Intel keeps base and limit out of the architecture here; they are 0.
inline void load_null(SegmentRegister& segment, SegmentName name, Selector selector, Mode mode, u8 dpl = 0) {
    segment.selector = selector;
    segment.attributes = Attributes{}.with_dpl(dpl);
    segment.limit = 0;
    segment.base = 0;
    segment.judge(name, mode);
}

/// A flat segment with fixed attributes, as SYSCALL, SYSENTER and their returns load them.
inline void load_fixed(SegmentRegister& segment, SegmentName name, Selector selector, Attributes attributes,
                       Mode mode) {
    segment.selector = selector;
    segment.attributes = attributes;
    segment.limit = 0xFFFFFFFF;
    segment.base = 0;
    segment.judge(name, mode);
}

/// Real-address mode: the base is the selector times 16; limit and attributes stay.
inline void load_real(SegmentRegister& segment, SegmentName name, u16 selector) {
    segment.selector = {selector};
    segment.base = u64{selector} << 4;
    if (name == SegmentName::cs) segment.attributes = {0x93};
    segment.judge(name, Mode::real);
}

/// The mode that a code segment puts the processor in.
inline Mode mode_of(const Processor& cpu, LongBit l) {
    if (!cpu.ia32e()) return Mode::protected_mode;
    return l.value ? Mode::long64 : Mode::compatibility;
}

/// After CS, CPL, SS or flags changed: derives what follows; all verdicts if the mode is another one.
inline void settle_mode(Core& core, Mode before) {
    core.refresh();
    if (core.cpu.mode != before) core.refresh_mode();
}

/// RET (far) and IRET to an outer level: a data segment that the new level may not use becomes null, and a null
/// selector becomes 0 whatever its RPL was.
inline void drop_inner_segments(Processor& cpu, NewCpl cpl, Mode mode) {
    for (const SegmentName name : {SegmentName::es, SegmentName::fs, SegmentName::gs, SegmentName::ds}) {
        SegmentRegister& segment = cpu.seg(name);
        const TypeField type = segment.attributes.type();
        const bool guarded =
            segment_type::is_data(type) || (segment_type::is_code(type) && !segment_type::is_conforming(type));
        if (segment.selector.is_null()) segment.selector = Selector{0};
        if (!segment.attributes.present().value || !guarded || segment.attributes.dpl().value >= cpl.value) continue;
        // The base stays: in 64-bit mode it is what WRMSR put there, and FS and GS go on using it.
        segment.selector = Selector{0};
        segment.attributes = Attributes{};
        segment.judge(name, mode);
    }
}

}  // namespace emu
