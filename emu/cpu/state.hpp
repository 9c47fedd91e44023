// The processor's registers: plain data. Rooms read it, compute, then write it in one place (commit).
#pragma once
#include <array>

#include "arch/control.hpp"
#include "arch/flags.hpp"
#include "mmu/segment_register.hpp"

namespace emu {

/// Numbered as instructions encode them.
enum Gpr : u8 { rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15 };

struct Processor {
    std::array<u64, 16> gpr{};
    u64 rip = 0;                        // of the instruction being executed, whenever a room is entered
    u64 rflags = rflags::reserved_one;  // whole whenever a room is entered; in hot code the arithmetic bits are lazy
    std::array<SegmentRegister, segment_count> segment{};
    SystemSegment ldtr, tr;
    TableRegister gdtr, idtr;
    u64 cr0 = cr0::et | cr0::cd | cr0::nw, cr2 = 0, cr3 = 0, cr4 = 0, cr8 = 0, efer = 0;
    std::array<u64, 8> dr{};
    std::array<u64, 4> pdpte{};  // PAE paging: loaded by MOV to CR3, not walked (Intel SDM vol. 3, PDPTE Registers)
    u64 star = 0, lstar = 0, cstar = 0, fmask = 0, kernel_gs_base = 0;
    u64 sysenter_cs = 0, sysenter_esp = 0, sysenter_eip = 0;
    u64 tsc_offset = 0, tsc_aux = 0, pat = 0x0007040600070406, apic_base = 0xFEE00900, misc_enable = 1;
    Cpl cpl{0};
    Mode mode = Mode::real;
    bool interrupt_shadow = false;  // the instruction before was STI or a load of SS

    SegmentRegister& seg(SegmentName name) { return segment[static_cast<std::size_t>(name)]; }
    const SegmentRegister& seg(SegmentName name) const { return segment[static_cast<std::size_t>(name)]; }
    SegmentRegister& cs() { return seg(SegmentName::cs); }
    SegmentRegister& ss() { return seg(SegmentName::ss); }
    const SegmentRegister& cs() const { return seg(SegmentName::cs); }
    const SegmentRegister& ss() const { return seg(SegmentName::ss); }

    bool protected_mode() const { return (cr0 & cr0::pe) != 0; }
    bool paging() const { return (cr0 & cr0::pg) != 0; }
    bool ia32e() const { return (efer & efer::lma) != 0; }
    Iopl iopl() const { return {static_cast<u8>(field(rflags, rflags::iopl_shift, 2))}; }

    /// Width of code, of the stack pointer, and of operands by default.
    Width code_width() const {
        if (mode == Mode::long64) return Width::bits64;
        return cs().attributes.db().value ? Width::bits32 : Width::bits16;
    }
    Width stack_width() const {
        if (mode == Mode::long64) return Width::bits64;
        return ss().attributes.db().value ? Width::bits32 : Width::bits16;
    }
    u64 place() const;
};

}  // namespace emu
