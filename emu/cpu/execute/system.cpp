// Control, debug and model-specific registers, system flags, HLT, ports: operands here, rules in the rooms.
#include "cpu/execute/forms.hpp"
#include "cpu/execute/handlers.hpp"

namespace emu {

namespace {

/// MOV of control and debug registers is 32 bits wide, in 64-bit mode 64.
u64 natural(const Instruction& at, u64 value) { return at.size() == OperandSize::qword ? value : value & 0xFFFFFFFF; }

Outcome mov_from_cr(Core& core, const Instruction& at) {
    TRY(core.doors->read_control(core, at.base));
    core.cpu.gpr[at.reg] = natural(at, core.memory_value);
    return no_fault;
}
Outcome mov_to_cr(Core& core, const Instruction& at) {
    return core.doors->write_control(core, at.reg, natural(at, core.cpu.gpr[at.base]));
}
Outcome mov_from_dr(Core& core, const Instruction& at) {
    TRY(core.doors->read_debug(core, at.base));
    core.cpu.gpr[at.reg] = natural(at, core.memory_value);
    return no_fault;
}
Outcome mov_to_dr(Core& core, const Instruction& at) {
    return core.doors->write_debug(core, at.reg, natural(at, core.cpu.gpr[at.base]));
}

Outcome clts(Core& core, const Instruction&) { return core.doors->clear_task_switched(core); }
Outcome rdmsr(Core& core, const Instruction&) { return core.doors->read_msr(core); }
Outcome wrmsr(Core& core, const Instruction&) { return core.doors->write_msr(core); }
Outcome rdtsc(Core& core, const Instruction&) { return core.doors->read_time_stamp(core, false); }
Outcome rdtscp(Core& core, const Instruction&) { return core.doors->read_time_stamp(core, true); }
Outcome cpuid(Core& core, const Instruction&) { return core.doors->cpuid(core); }
Outcome invd(Core& core, const Instruction&) { return core.doors->invalidate_caches(core); }
Outcome hlt(Core& core, const Instruction&) { return core.doors->halt(core); }
Outcome stac(Core& core, const Instruction&) { return core.doors->set_alignment_check(core, true); }
Outcome clac(Core& core, const Instruction&) { return core.doors->set_alignment_check(core, false); }
Outcome invlpg(Core& core, const Instruction& at) {
    return core.doors->invalidate_page(core, at.segment(), effective(core, at));
}
Outcome monitor(Core&, const Instruction&) { return unmodelled(Unmodelled::monitor_mwait); }

template <class T, SegmentName name>
Outcome read_base(Core& core, const Instruction& at) {
    TRY(core.doors->read_base(core, name));
    set<T>(core, at.reg, static_cast<T>(core.memory_value));
    return no_fault;
}
template <class T, SegmentName name>
Outcome write_base(Core& core, const Instruction& at) {
    return core.doors->write_base(core, name, get<T>(core, at.reg));
}

Outcome cli(Core& core, const Instruction&) { return core.doors->clear_interrupt_flag(core); }
/// STI holds interrupts off until after the next instruction, if they were off before (STI, Description).
Outcome sti(Core& core, const Instruction&) {
    const bool before = (core.cpu.rflags & rflags::if_) != 0;
    TRY(core.doors->set_interrupt_flag(core));
    core.cpu.interrupt_shadow = !before && (core.cpu.rflags & rflags::if_) != 0;
    return no_fault;
}

Width width_of_operand(const Instruction& at) { return static_cast<Width>(static_cast<unsigned>(at.size()) - 1); }

template <class S, class T>
Outcome pushf(Core& core, const Instruction& at) {
    TRY(core.doors->push_flags(core, width_of_operand(at)));
    const S top = static_cast<S>(get<S>(core, rsp) - sizeof(T));
    TRY(store<T>(core, SegmentName::ss, top, static_cast<T>(core.memory_value)));
    set<S>(core, rsp, top);
    return no_fault;
}
template <class S, class T>
Outcome popf(Core& core, const Instruction& at) {
    const S top = get<S>(core, rsp);
    T value;
    TRY(load(core, SegmentName::ss, u64{top}, value));
    TRY(core.doors->pop_flags(core, value, width_of_operand(at)));
    set<S>(core, rsp, static_cast<S>(top + sizeof(T)));
    return no_fault;
}

template <class T, bool by_immediate>
Outcome port_in(Core& core, const Instruction& at) {
    const u16 port = by_immediate ? static_cast<u8>(at.imm) : get<u16>(core, rdx);
    TRY(core.doors->port_in(core, port, sizeof(T)));
    set<T>(core, rax, static_cast<T>(core.memory_value));
    return no_fault;
}
template <class T, bool by_immediate>
Outcome port_out(Core& core, const Instruction& at) {
    const u16 port = by_immediate ? static_cast<u8>(at.imm) : get<u16>(core, rdx);
    return core.doors->port_out(core, port, sizeof(T), get<T>(core, rax));
}

template <class S, class T>
Handler flags_of_widths(const Decoded& decoded) {
    if (decoded.operation == Operation::pushf) return aside<pushf<S, T>>;
    return ending<popf<S, T>>;
}
Handler flags_on_stack(const Decoded& decoded) {
    return with_wide_size(decoded, [&decoded]<class T>(T) -> Handler {
        switch (decoded.code.stack_width()) {
            case Width::bits16:
                return flags_of_widths<u16, T>(decoded);
            case Width::bits32:
                return flags_of_widths<u32, T>(decoded);
            default:
                return flags_of_widths<u64, T>(decoded);
        }
    });
}
template <bool by_immediate>
Handler port(const Decoded& decoded, bool out) {
    switch (decoded.code.size()) {
        case OperandSize::byte:
            return out ? aside<port_out<u8, by_immediate>> : aside<port_in<u8, by_immediate>>;
        case OperandSize::word:
            return out ? aside<port_out<u16, by_immediate>> : aside<port_in<u16, by_immediate>>;
        default:
            return out ? aside<port_out<u32, by_immediate>> : aside<port_in<u32, by_immediate>>;
    }
}
template <SegmentName name>
Handler base(const Decoded& decoded, bool write) {
    if (decoded.code.size() == OperandSize::qword)
        return write ? aside<write_base<u64, name>> : aside<read_base<u64, name>>;
    return write ? aside<write_base<u32, name>> : aside<read_base<u32, name>>;
}

}  // namespace

Handler system_handler(const Decoded& decoded) {
    switch (decoded.operation) {
        case Operation::mov_from_cr:
            return aside<mov_from_cr>;
        case Operation::mov_to_cr:
            return ending<mov_to_cr>;
        case Operation::mov_from_dr:
            return aside<mov_from_dr>;
        case Operation::mov_to_dr:
            return ending<mov_to_dr>;
        case Operation::clts:
            return aside<clts>;
        case Operation::rdmsr:
            return aside<rdmsr>;
        case Operation::wrmsr:
            return ending<wrmsr>;
        case Operation::rdtsc:
            return aside<rdtsc>;
        case Operation::rdtscp:
            return aside<rdtscp>;
        case Operation::cpuid:
            return aside<cpuid>;
        case Operation::invlpg:
            return ending<invlpg>;
        case Operation::invd:
        case Operation::wbinvd:
            return aside<invd>;
        case Operation::hlt:
            return ending<hlt>;
        case Operation::stac:
            return aside<stac>;
        case Operation::clac:
            return aside<clac>;
        case Operation::monitor:
        case Operation::mwait:
            return aside<monitor>;
        case Operation::cli:
            return aside<cli>;
        case Operation::sti:
            return ending<sti>;
        case Operation::pushf:
        case Operation::popf:
            return flags_on_stack(decoded);
        case Operation::in_imm:
            return port<true>(decoded, false);
        case Operation::in_dx:
            return port<false>(decoded, false);
        case Operation::out_imm:
            return port<true>(decoded, true);
        case Operation::out_dx:
            return port<false>(decoded, true);
        case Operation::rdfsbase:
            return base<SegmentName::fs>(decoded, false);
        case Operation::rdgsbase:
            return base<SegmentName::gs>(decoded, false);
        case Operation::wrfsbase:
            return base<SegmentName::fs>(decoded, true);
        case Operation::wrgsbase:
            return base<SegmentName::gs>(decoded, true);
        default:
            return nullptr;
    }
}

}  // namespace emu
