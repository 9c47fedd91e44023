// What instructions do, by the manual's mnemonics. One operation may have many encodings (opcode_table.hpp) and a
// handler for each shape of its operands (cpu/execute).
#pragma once
#include "arch/integers.hpp"

namespace emu {

// clang-format off
enum class Operation : u8 {
    invalid,  // no such instruction: the decoder says which trouble in `imm`
    no_fpu,  // x87, MMX, SSE and later: not modelled
    // arithmetic and logic
    add, or_, adc, sbb, and_, sub, xor_, cmp, test, not_, neg, inc, dec,
    // data movement
    mov, movzx8, movzx16, movsx8, movsx16, movsxd, lea, xchg, bswap, convert, convert_double, set, cmov,
    // stack
    push, pop, push_segment, pusha, popa, enter, leave,
    // shifts, in the order of the group's /digit
    rol, ror, rcl, rcr, shl, shr, sal, sar, rol_1, ror_1, rcl_1, rcr_1, shl_1, shr_1, sal_1, sar_1, rol_cl,
    ror_cl, rcl_cl, rcr_cl, shl_cl, shr_cl, sal_cl, sar_cl, shld, shrd, shld_cl, shrd_cl,
    // bits
    bt, bts, btr, btc, bt_imm, bts_imm, btr_imm, btc_imm, bsf, bsr, tzcnt, lzcnt, popcnt,
    // multiplication and division
    mul, imul, imul2, imul3, div, idiv,
    // exchange with a condition
    xadd, cmpxchg, cmpxchg8b, cmpxchg16b,
    // near branches
    jcc, jmp, jmp_indirect, call, call_indirect, ret, ret_release, loop, loope, loopne, jcxz, fall_through,
    // strings
    movs, cmps, stos, lods, scas, ins, outs,
    // flags and decimal arithmetic
    clc, stc, cmc, cld, std_, lahf, sahf, daa, das, aaa, aas, aam, aad, salc, xlat, nop, clflush, bound, arpl,
    // transfers between privilege levels
    int_n, int3, into, int1, iret, call_far, jmp_far, call_far_indirect, jmp_far_indirect, ret_far,
    ret_far_release, sysenter, sysexit, syscall, sysret, swapgs,
    // segment and system registers
    mov_from_segment, mov_to_segment, pop_segment, load_far_pointer, sgdt, sidt, lgdt, lidt, smsw, lmsw, sldt,
    str, lldt, ltr, verr, verw, lar, lsl, invlpg, clts, invd, wbinvd, hlt, mov_from_cr, mov_to_cr, mov_from_dr,
    mov_to_dr, rdmsr, wrmsr, rdtsc, rdtscp, cpuid, pushf, popf, cli, sti, stac, clac, rdfsbase, rdgsbase,
    wrfsbase, wrgsbase, monitor, mwait,
    // ports
    in_imm, in_dx, out_imm, out_dx,
};
// clang-format on

}  // namespace emu
