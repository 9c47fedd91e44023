// Segment and descriptor-table registers: MOV, POP and LDS...LGS of segment registers, SGDT, LGDT and their relatives,
// LAR, LSL, VERR, VERW, ARPL.
#include "cpu/execute/forms.hpp"
#include "cpu/execute/handlers.hpp"

namespace emu {

namespace {

/// A selector that goes to memory is 16 bits wide, whatever the operand size.
template <class T>
Outcome store_selector(Core& core, const Instruction& at, u64 value) {
    if (at.in_memory()) return store<u16>(core, at.segment(), effective(core, at), static_cast<u16>(value));
    set<T>(core, at.reg, static_cast<T>(value));
    return no_fault;
}
template <class T>
Outcome mov_from_segment(Core& core, const Instruction& at) {
    return store_selector<T>(core, at, core.cpu.segment[at.imm].selector.value);
}

/// A load of SS holds interrupts off until after the next instruction (MOV, Description).
Outcome load_register(Core& core, SegmentName name, u16 selector, LoadKind kind) {
    TRY(core.doors->load_segment(core, name, selector, kind));
    if (name == SegmentName::ss) core.cpu.interrupt_shadow = true;
    return no_fault;
}
Outcome mov_to_segment(Core& core, const Instruction& at) {
    u16 selector;
    TRY(load_operand(core, at, selector));
    const LoadKind kind = at.in_memory() ? LoadKind::move_memory : LoadKind::move;
    return load_register(core, static_cast<SegmentName>(at.imm), selector, kind);
}
template <class S, class T>
Outcome pop_segment(Core& core, const Instruction& at) {
    const S top = get<S>(core, rsp);
    u16 selector;
    TRY(load(core, SegmentName::ss, u64{top}, selector));
    TRY(load_register(core, static_cast<SegmentName>(at.imm), selector, LoadKind::pop));
    set<S>(core, rsp, static_cast<S>(top + sizeof(T)));
    return no_fault;
}
template <class T>
Outcome load_far_pointer(Core& core, const Instruction& at) {
    const u64 where = effective(core, at), next = (where + sizeof(T)) & address_mask(at.address_width());
    T offset;
    u16 selector;
    TRY(load(core, at.segment(), where, offset));
    TRY(load(core, at.segment(), next, selector));
    TRY(load_register(core, static_cast<SegmentName>(at.imm), selector, LoadKind::far_pointer));
    core.cpu.interrupt_shadow = false;  // LSS holds nothing off
    set<T>(core, at.reg, offset);
    return no_fault;
}

// --- table registers -------------------------------------------------------------------------------------------------

Outcome store_table(Core& core, const Instruction& at, const TableRegister& table) {
    TRY(core.doors->may_store_system_register(core));
    const u64 where = effective(core, at), base = (where + 2) & address_mask(at.address_width());
    TRY(store<u16>(core, at.segment(), where, static_cast<u16>(table.limit)));
    if (core.cpu.mode == Mode::long64) return store<u64>(core, at.segment(), base, table.base);
    return store<u32>(core, at.segment(), base, static_cast<u32>(table.base));
}
/// With a 16-bit operand, 24 bits of the base are loaded (LGDT, Operation).
Outcome load_table(Core& core, const Instruction& at, u64& base, u16& limit) {
    const u64 where = effective(core, at), next = (where + 2) & address_mask(at.address_width());
    TRY(load(core, at.segment(), where, limit));
    if (core.cpu.mode == Mode::long64) return load(core, at.segment(), next, base);
    u32 narrow;
    TRY(load(core, at.segment(), next, narrow));
    base = at.size() == OperandSize::word ? narrow & 0xFFFFFF : narrow;
    return no_fault;
}
Outcome sgdt(Core& core, const Instruction& at) { return store_table(core, at, core.cpu.gdtr); }
Outcome sidt(Core& core, const Instruction& at) { return store_table(core, at, core.cpu.idtr); }
Outcome lgdt(Core& core, const Instruction& at) {
    u64 base = 0;
    u16 limit;
    TRY(load_table(core, at, base, limit));
    return core.doors->load_gdtr(core, base, limit);
}
Outcome lidt(Core& core, const Instruction& at) {
    u64 base = 0;
    u16 limit;
    TRY(load_table(core, at, base, limit));
    return core.doors->load_idtr(core, base, limit);
}

template <class T>
Outcome smsw(Core& core, const Instruction& at) {
    TRY(core.doors->may_store_system_register(core));
    return store_selector<T>(core, at, core.cpu.cr0);
}
template <class T>
Outcome sldt(Core& core, const Instruction& at) {
    TRY(core.doors->may_store_system_register(core));
    return store_selector<T>(core, at, core.cpu.ldtr.selector.value);
}
template <class T>
Outcome str(Core& core, const Instruction& at) {
    TRY(core.doors->may_store_system_register(core));
    return store_selector<T>(core, at, core.cpu.tr.selector.value);
}
Outcome lmsw(Core& core, const Instruction& at) {
    u16 value;
    TRY(load_operand(core, at, value));
    return core.doors->load_machine_status(core, value, at.in_memory());
}
Outcome lldt(Core& core, const Instruction& at) {
    u16 selector;
    TRY(load_operand(core, at, selector));
    return core.doors->load_ldtr(core, selector, at.in_memory());
}
Outcome ltr(Core& core, const Instruction& at) {
    u16 selector;
    TRY(load_operand(core, at, selector));
    return core.doors->load_task_register(core, selector, at.in_memory());
}

// --- inspection ------------------------------------------------------------------------------------------------------

Outcome verr(Core& core, const Instruction& at) {
    u16 selector;
    TRY(load_operand(core, at, selector));
    return core.doors->verify_segment(core, selector, false);
}
Outcome verw(Core& core, const Instruction& at) {
    u16 selector;
    TRY(load_operand(core, at, selector));
    return core.doors->verify_segment(core, selector, true);
}
template <class T>
Outcome keep_if_visible(Core& core, const Instruction& at) {
    if ((core.cpu.rflags & rflags::zf) != 0) set<T>(core, at.reg, static_cast<T>(core.memory_value));
    return no_fault;
}
template <class T>
Outcome lar(Core& core, const Instruction& at) {
    u16 selector;
    TRY(load_source(core, at, selector));
    TRY(core.doors->load_access_rights(core, selector));
    return keep_if_visible<T>(core, at);
}
template <class T>
Outcome lsl(Core& core, const Instruction& at) {
    u16 selector;
    TRY(load_source(core, at, selector));
    TRY(core.doors->load_segment_limit(core, selector));
    return keep_if_visible<T>(core, at);
}
Outcome arpl(Core& core, const Instruction& at) {
    const u8 source = at.in_memory() ? at.reg : at.base;
    const u16 wanted = get<u16>(core, source) & 3;
    u16 selector;
    TRY(open_operand(core, at, selector));
    const bool raised = (selector & 3) < wanted;
    if (raised) TRY(store_operand<u16>(core, at, static_cast<u16>((selector & ~3u) | wanted)));
    core.cpu.rflags = raised ? core.cpu.rflags | rflags::zf : core.cpu.rflags & ~rflags::zf;
    return no_fault;
}

template <class S>
Handler pop_of_width(const Decoded& decoded) {
    const bool ends = decoded.ends_block;
    return with_wide_size(decoded, [ends]<class T>(T) -> Handler {
        if (ends) return ending<pop_segment<S, T>>;
        return aside<pop_segment<S, T>>;
    });
}
Handler pop_segment_handler(const Decoded& decoded) {
    switch (decoded.code.stack_width()) {
        case Width::bits16:
            return pop_of_width<u16>(decoded);
        case Width::bits32:
            return pop_of_width<u32>(decoded);
        default:
            return pop_of_width<u64>(decoded);
    }
}

}  // namespace

Handler segment_handler(const Decoded& decoded) {
    const bool ends = decoded.ends_block;
    switch (decoded.operation) {
        case Operation::mov_from_segment:
            return with_wide_size(decoded, []<class T>(T) -> Handler { return aside<mov_from_segment<T>>; });
        case Operation::mov_to_segment:
            return ends ? ending<mov_to_segment> : aside<mov_to_segment>;
        case Operation::pop_segment:
            return pop_segment_handler(decoded);
        case Operation::load_far_pointer:
            return with_wide_size(decoded, [ends]<class T>(T) -> Handler {
                if (ends) return ending<load_far_pointer<T>>;
                return aside<load_far_pointer<T>>;
            });
        case Operation::sgdt:
            return aside<sgdt>;
        case Operation::sidt:
            return aside<sidt>;
        case Operation::lgdt:
            return aside<lgdt>;
        case Operation::lidt:
            return aside<lidt>;
        case Operation::smsw:
            return with_wide_size(decoded, []<class T>(T) -> Handler { return aside<smsw<T>>; });
        case Operation::sldt:
            return with_wide_size(decoded, []<class T>(T) -> Handler { return aside<sldt<T>>; });
        case Operation::str:
            return with_wide_size(decoded, []<class T>(T) -> Handler { return aside<str<T>>; });
        case Operation::lmsw:
            return ending<lmsw>;
        case Operation::lldt:
            return aside<lldt>;
        case Operation::ltr:
            return aside<ltr>;
        case Operation::verr:
            return aside<verr>;
        case Operation::verw:
            return aside<verw>;
        case Operation::lar:
            return with_wide_size(decoded, []<class T>(T) -> Handler { return aside<lar<T>>; });
        case Operation::lsl:
            return with_wide_size(decoded, []<class T>(T) -> Handler { return aside<lsl<T>>; });
        case Operation::arpl:
            return aside<arpl>;
        default:
            return nullptr;
    }
}

}  // namespace emu
