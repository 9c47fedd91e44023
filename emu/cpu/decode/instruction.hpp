// An instruction as the hot path runs it, and what the decoder knows beyond that.
#pragma once
#include "arch/cpu_model.hpp"
#include "core.hpp"
#include "cpu/decode/operation.hpp"

namespace emu {

struct Instruction;

#ifdef EMU_LOOP_DISPATCH
/// What tail calls keep in argument registers.
struct HotRegisters {
    i64 budget;
    u64 result, operand, kind;
};
using Handler = const Instruction* (*)(Core*, const Instruction*, HotRegisters&);
#else
/// Six arguments: all in registers. `budget`: instructions left. The last three are the lazy flags.
using Handler = void (*)(Core*, const Instruction*, i64 budget, u64 result, u64 operand, u64 kind);
#endif

/// Two to the power of it is the operand's size in bytes.
enum class OperandSize : u8 { byte, word, dword, qword };
constexpr unsigned bytes(OperandSize size) { return 1u << static_cast<unsigned>(size); }

enum class Repeat : u8 { none, rep, repne };  // F3 (REP, REPE) and F2

inline constexpr u8 no_register = 0xFF;

/// Byte registers are named by the offset of their byte in the register file: AH is byte 1 of RAX.
constexpr u8 byte_register(u8 number, bool has_rex) {
    return static_cast<u8>(!has_rex && number >= 4 && number < 8 ? (number - 4) * 8 + 1 : number * 8);
}

struct alignas(32) Instruction {
    Handler run = nullptr;
    u64 imm = 0;            // immediate, sign-extended; target of a near branch
    u64 disp = 0;           // displacement; RIP-relative: the whole address; near CALL: the return address
    u8 reg = 0;             // the register operand: the destination if there are two
    u8 base = no_register;  // of the memory operand; if there is none: the other register operand
    u8 index = no_register;
    u8 how = 0;     // 1-0: scale | 4-2: segment | 6-5: address width | 7: operand is memory
    u8 place = 0;   // which instruction of its block it is
    u8 offset = 0;  // of its first byte from that of the block
    u8 length = 0;
    u8 kind = 0;  // 1-0: operand size | 3-2: Repeat | 5-4: Width of the stack

    unsigned scale() const { return how & 3u; }
    SegmentName segment() const { return static_cast<SegmentName>((how >> 2) & 7); }
    Width address_width() const { return static_cast<Width>((how >> 5) & 3); }
    bool in_memory() const { return (how & 0x80) != 0; }
    OperandSize size() const { return static_cast<OperandSize>(kind & 3); }
    Repeat repeat() const { return static_cast<Repeat>((kind >> 2) & 3); }
    Width stack_width() const { return static_cast<Width>((kind >> 4) & 3); }
};
static_assert(sizeof(Instruction) == 32);

/// How the operands lie. First the destination; m: memory, r: register, i: immediate.
enum class Shape : u8 { none, r, m, rr, rm, mr, ri, mi };

struct Decoded {
    Instruction code;
    Operation operation = Operation::invalid;
    Shape shape = Shape::none;
    CostEvent cost = CostEvent::other;
    u8 condition = 0;   // of Jcc, SETcc, CMOVcc
    u8 components = 0;  // the 80386 manual's m
    bool ends_block = false;
};

/// What decoding depends on beside the bytes.
struct DecodeContext {
    u64 rip = 0;
    Width code = Width::bits16;
    Width stack = Width::bits16;
    Mode mode = Mode::real;
    const CpuModel* model = nullptr;
};
inline DecodeContext decode_context(const Core& core, u64 rip) {
    return {rip, static_cast<Width>((core.context >> context::code_width_shift) & 3),
            static_cast<Width>((core.context >> context::stack_width_shift) & 3),
            static_cast<Mode>((core.context >> context::mode_shift) & 7), &core.model};
}

}  // namespace emu
