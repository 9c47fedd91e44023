// Operands of an instruction whose encoding is known: ModR/M, SIB, displacements and immediates.
#include "cpu/decode/decoding.hpp"

namespace emu::decoding {

namespace {

/// LES, LDS; 0F LSS, LFS, LGS.
constexpr u8 far_pointer_segment(u8 opcode) {
    switch (opcode) {
        case 0xC4:
            return segment_number(SegmentName::es);
        case 0xC5:
            return segment_number(SegmentName::ds);
        case 0xB2:
            return segment_number(SegmentName::ss);
        case 0xB4:
            return segment_number(SegmentName::fs);
        default:
            return segment_number(SegmentName::gs);
    }
}

}  // namespace

void Decoder::memory(u8 base, u8 index, unsigned scale, unsigned displacement_size) {
    Instruction& code = out.code;
    code.base = base;
    code.index = index;
    code.how = static_cast<u8>(code.how | scale);
    if (displacement_size != 0) {
        code.disp = bytes.signed_value(displacement_size);
        ++displacements;
    }
}

/// Intel SDM vol. 2, 16-Bit Addressing Forms with the ModR/M Byte.
void Decoder::read_memory_operand16() {
    struct Pair16 {
        u8 base, index;
    };
    static constexpr Pair16 pairs[8] = {{rbx, rsi},         {rbx, rdi},         {rbp, rsi},         {rbp, rdi},
                                        {rsi, no_register}, {rdi, no_register}, {rbp, no_register}, {rbx, no_register}};
    if (modrm.mod == 0 && modrm.rm == 6) return memory(no_register, no_register, 0, 2);
    memory(pairs[modrm.rm].base, pairs[modrm.rm].index, 0, modrm.mod);
}

void Decoder::read_sib() {
    const u8 sib = bytes.next();
    ++out.components;
    const u8 index_number = static_cast<u8>(((sib >> 3) & 7) | prefix.x());
    const u8 index = index_number == rsp ? no_register : index_number;
    const unsigned scale = index == no_register ? 0 : sib >> 6;
    const bool no_base = (sib & 7) == rbp && modrm.mod == 0;
    const u8 base = no_base ? no_register : static_cast<u8>((sib & 7) | prefix.b());
    memory(base, index, scale, no_base || modrm.mod == 2 ? 4 : modrm.mod);
}

void Decoder::read_memory_operand() {
    out.code.how |= 0x80;
    if (address == Width::bits16)
        read_memory_operand16();
    else if (modrm.rm == rsp)
        read_sib();
    else if (modrm.mod == 0 && modrm.rm == rbp) {
        memory(no_register, no_register, 0, 4);
        relative = long64();
    } else
        memory(modrm_rm(), no_register, 0, modrm.mod == 2 ? 4 : modrm.mod);

    const u8 base = out.code.base;
    const bool on_stack = (base == rsp || base == rbp) && prefix.segment == no_register;
    const unsigned segment = on_stack ? segment_number(SegmentName::ss) : data_segment();
    out.code.how = static_cast<u8>(out.code.how | (segment << 2));
}

/// E alone.
void Decoder::single() {
    if (modrm.is_memory()) {
        out.shape = Shape::m;
        read_memory_operand();
    } else {
        out.shape = Shape::r;
        out.code.reg = register_number(modrm_rm(), size == OperandSize::byte);
    }
}

void Decoder::reg_and_rm(bool register_is_destination, bool rm_is_byte) {
    const bool byte = size == OperandSize::byte;
    const u8 g = register_number(modrm_reg(), byte);
    if (modrm.is_memory()) {
        out.code.reg = g;
        out.shape = register_is_destination ? Shape::rm : Shape::mr;
        read_memory_operand();
        return;
    }
    const u8 e = register_number(modrm_rm(), byte || rm_is_byte);
    out.code.reg = register_is_destination ? g : e;
    out.code.base = register_is_destination ? e : g;
    out.shape = Shape::rr;
}

void Decoder::branch_target(unsigned displacement_size) {
    const u64 displacement = bytes.signed_value(displacement_size);
    ++displacements;
    const u64 next = context.rip + bytes.used;
    out.code.disp = long64() ? next : next & 0xFFFFFFFF;
    out.code.imm = low_bits(next + displacement, 8 * emu::bytes(size));
}

/// MOV of control and debug registers: ModR/M's E is always a register, whatever mod says.
void Decoder::special_register(bool is_destination) {
    const u8 general = modrm_rm();
    out.code.reg = is_destination ? modrm_reg() : general;
    out.code.base = is_destination ? general : modrm_reg();
    out.shape = Shape::rr;
}

void Decoder::segment_operand(const Row& row) {
    const bool load = row.form == Form::S_E;
    const u8 segment = modrm.reg;
    if (segment >= segment_count || (load && segment == segment_number(SegmentName::cs))) {
        if (modrm.is_memory()) read_memory_operand();
        return trouble(Trouble::invalid_opcode);
    }
    single();
    out.code.imm = segment;
    if (load && segment == segment_number(SegmentName::ss)) out.ends_block = true;
}

void Decoder::operands(const Row& row) {
    Instruction& code = out.code;
    const bool byte = size == OperandSize::byte;
    switch (row.form) {
        case Form::none:  // string instructions and XLAT address DS, or what a prefix says
            code.how = static_cast<u8>(code.how | (data_segment() << 2));
            break;
        case Form::E:
            single();
            break;
        case Form::E_G:
            reg_and_rm(false, false);
            break;
        case Form::G_E: {
            const Operation op = row.operation;
            reg_and_rm(true, op == Operation::movzx8 || op == Operation::movsx8);
            if (op == Operation::load_far_pointer) code.imm = far_pointer_segment(opcode);
            break;
        }
        case Form::E_I:
            single();
            code.imm = immediate();
            out.shape = out.shape == Shape::m ? Shape::mi : Shape::ri;
            break;
        case Form::E_Ib:
            single();
            code.imm = immediate8();
            out.shape = out.shape == Shape::m ? Shape::mi : Shape::ri;
            break;
        case Form::Z:
            code.reg = register_number(opcode_register(), byte);
            out.shape = Shape::r;
            break;
        case Form::Z_I:
            code.reg = register_number(opcode_register(), byte);
            code.imm = bytes.signed_value(emu::bytes(size));
            ++displacements;
            out.shape = Shape::ri;
            break;
        case Form::A_I:
            code.reg = 0;
            code.imm = immediate();
            out.shape = Shape::ri;
            break;
        case Form::A_Z:
            code.reg = opcode_register();
            code.base = rax;
            out.shape = Shape::rr;
            break;
        case Form::G_E_I:
            reg_and_rm(true, false);
            code.imm = immediate();
            break;
        case Form::G_E_Ib:
            reg_and_rm(true, false);
            code.imm = immediate8();
            break;
        case Form::E_G_Ib:
            reg_and_rm(false, false);
            code.imm = immediate8();
            break;
        case Form::A_O:
        case Form::O_A: {
            code.how |= 0x80;
            code.how = static_cast<u8>(code.how | (data_segment() << 2));
            code.disp = bytes.unsigned_value(emu::bytes(address));
            ++displacements;
            out.shape = row.form == Form::A_O ? Shape::rm : Shape::mr;
            break;
        }
        case Form::J:
            branch_target(size == OperandSize::word ? 2 : 4);
            break;
        case Form::Jb:
            branch_target(1);
            break;
        case Form::P:
            code.disp = bytes.unsigned_value(emu::bytes(size));
            code.imm = bytes.unsigned_value(2);
            displacements += 2;
            break;
        case Form::I:
            code.imm = immediate();
            out.shape = Shape::ri;
            break;
        case Form::Ib:
            code.imm = immediate8();
            out.shape = Shape::ri;
            break;
        case Form::Iw:
            code.imm = bytes.unsigned_value(2);
            ++displacements;
            break;
        case Form::Iw_Ib:
            code.imm = bytes.unsigned_value(2);
            code.disp = bytes.unsigned_value(1);
            displacements += 2;
            break;
        case Form::E_S:
        case Form::S_E:
            segment_operand(row);
            break;
        case Form::E_C:
        case Form::E_D:
            special_register(false);
            break;
        case Form::C_E:
        case Form::D_E:
            special_register(true);
            break;
        case Form::S:
            code.imm = (opcode >> 3) & 7;
            break;
    }
}

}  // namespace emu::decoding
