// Transfers between code segments and privilege levels: INT, IRET, far CALL, JMP and RET, SYSENTER, SYSCALL and their
// returns. What they check and do is the rooms' affair (cpu/transition); operands are fetched here.
#include "cpu/execute/forms.hpp"
#include "cpu/execute/handlers.hpp"

namespace emu {

namespace {

Width width_of_operand(const Instruction& at) { return static_cast<Width>(static_cast<unsigned>(at.size()) - 1); }

Outcome int_n(Core& core, const Instruction& at) {
    return core.doors->software_interrupt(core, SoftwareInterrupt::int_n, static_cast<u8>(at.imm));
}
Outcome int3(Core& core, const Instruction&) {
    return core.doors->software_interrupt(core, SoftwareInterrupt::int3, static_cast<u8>(Vector::BP));
}
Outcome int1(Core& core, const Instruction&) {
    return core.doors->software_interrupt(core, SoftwareInterrupt::int1, static_cast<u8>(Vector::DB));
}
Outcome into(Core& core, const Instruction&) {
    if ((core.cpu.rflags & rflags::of) != 0)
        return core.doors->software_interrupt(core, SoftwareInterrupt::into, static_cast<u8>(Vector::OF));
    core.ledger.charge(CostEvent::other);
    core.cpu.rip = core.next_rip;
    return no_fault;
}
Outcome iret(Core& core, const Instruction& at) { return core.doors->interrupt_return(core, width_of_operand(at)); }

/// m16:16, m16:32 or m16:64; AMD's have no 64-bit far pointers in memory (AMD64 vol. 3, JMP Far).
template <class T>
Outcome load_pointer(Core& core, const Instruction& at, FarPointer& pointer) {
    const u64 where = effective(core, at), next = (where + sizeof(T)) & address_mask(at.address_width());
    T offset;
    TRY(load(core, at.segment(), where, offset));
    TRY(load(core, at.segment(), next, pointer.selector));
    pointer.offset = offset;
    pointer.indirect = true;
    return no_fault;
}
Outcome load_pointer(Core& core, const Instruction& at, FarPointer& pointer, Width& width) {
    width = width_of_operand(at);
    if (width == Width::bits64 && core.model.vendor == Vendor::amd) width = Width::bits32;
    switch (width) {
        case Width::bits16:
            return load_pointer<u16>(core, at, pointer);
        case Width::bits32:
            return load_pointer<u32>(core, at, pointer);
        default:
            return load_pointer<u64>(core, at, pointer);
    }
}
FarPointer immediate_pointer(const Instruction& at) { return {static_cast<u16>(at.imm), at.disp, false}; }

/// The clocks that the 80386 manual gives for far transfers contain m, except for a return to an outer level.
Outcome arrived(Core& core, Outcome outcome) {
    core.running.arriving = !outcome.faulted();
    return outcome;
}
Outcome call_far(Core& core, const Instruction& at) {
    return arrived(core, core.doors->far_call(core, immediate_pointer(at), width_of_operand(at)));
}
Outcome jmp_far(Core& core, const Instruction& at) {
    return arrived(core, core.doors->far_jump(core, immediate_pointer(at), width_of_operand(at)));
}
Outcome call_far_indirect(Core& core, const Instruction& at) {
    FarPointer pointer;
    Width width;
    TRY(load_pointer(core, at, pointer, width));
    return arrived(core, core.doors->far_call(core, pointer, width));
}
Outcome jmp_far_indirect(Core& core, const Instruction& at) {
    FarPointer pointer;
    Width width;
    TRY(load_pointer(core, at, pointer, width));
    return arrived(core, core.doors->far_jump(core, pointer, width));
}
Outcome ret_far(Core& core, const Instruction& at) {
    const Cpl before = core.cpu.cpl;
    const Outcome outcome = core.doors->far_return(core, width_of_operand(at), static_cast<u16>(at.imm));
    return core.cpu.cpl == before ? arrived(core, outcome) : outcome;
}

Outcome sysenter(Core& core, const Instruction&) { return core.doors->sysenter(core); }
Outcome sysexit(Core& core, const Instruction& at) {
    return core.doors->sysexit(core, at.size() == OperandSize::qword ? Width::bits64 : Width::bits32);
}
Outcome syscall(Core& core, const Instruction&) { return core.doors->syscall(core); }
Outcome sysret(Core& core, const Instruction& at) {
    return core.doors->sysret(core, at.size() == OperandSize::qword ? Width::bits64 : Width::bits32);
}
Outcome swapgs(Core& core, const Instruction&) { return core.doors->swapgs(core); }

}  // namespace

Handler transfer_handler(const Decoded& decoded) {
    switch (decoded.operation) {
        case Operation::int_n:
            return transferring<int_n>;
        case Operation::int3:
            return transferring<int3>;
        case Operation::int1:
            return transferring<int1>;
        case Operation::into:
            return transferring<into>;
        case Operation::iret:
            return transferring<iret>;
        case Operation::call_far:
            return transferring<call_far>;
        case Operation::jmp_far:
            return transferring<jmp_far>;
        case Operation::call_far_indirect:
            return transferring<call_far_indirect>;
        case Operation::jmp_far_indirect:
            return transferring<jmp_far_indirect>;
        case Operation::ret_far:
        case Operation::ret_far_release:
            return transferring<ret_far>;
        case Operation::sysenter:
            return transferring<sysenter>;
        case Operation::sysexit:
            return transferring<sysexit>;
        case Operation::syscall:
            return transferring<syscall>;
        case Operation::sysret:
            return transferring<sysret>;
        case Operation::swapgs:
            return aside<swapgs>;
        default:
            return nullptr;
    }
}

}  // namespace emu
