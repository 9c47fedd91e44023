#include "cpu/decode/decoder.hpp"

#include "cpu/decode/decoding.hpp"

namespace emu {

namespace decoding {

bool Decoder::read_prefixes() {
    for (;; ++prefix.count) {
        if (prefix.count > longest_instruction) return false;
        const u8 byte = bytes.next();
        if (bytes.short_of_bytes) return true;
        switch (byte) {
            case 0x26:
                override_segment(SegmentName::es);
                break;
            case 0x2E:
                override_segment(SegmentName::cs);
                break;
            case 0x36:
                override_segment(SegmentName::ss);
                break;
            case 0x3E:
                override_segment(SegmentName::ds);
                break;
            case 0x64:
                override_segment(SegmentName::fs);
                break;
            case 0x65:
                override_segment(SegmentName::gs);
                break;
            case 0x66:
                prefix.operand = true;
                break;
            case 0x67:
                prefix.address = true;
                break;
            case 0xF0:
                prefix.lock = true;
                break;
            case 0xF2:
                prefix.repeat = Repeat::repne;
                break;
            case 0xF3:
                prefix.repeat = Repeat::rep;
                break;
            default:
                if (long64() && (byte & 0xF0) == 0x40) {
                    prefix.rex = byte;  // counts only directly before the opcode
                    prefix.has_rex = true;
                    continue;
                }
                opcode = byte;
                return true;
        }
        prefix.has_rex = false;
        prefix.rex = 0;
    }
}

bool Decoder::matches(const Row& row) const {
    if ((row.attributes & opcode::not64) != 0 && long64()) return false;
    if ((row.attributes & opcode::only64) != 0 && !long64()) return false;
    if ((row.attributes & opcode::memory) != 0 && !modrm.is_memory()) return false;
    if ((row.attributes & opcode::registers) != 0 && modrm.is_memory()) return false;
    if ((row.attributes & opcode::protected_only) != 0 && !protected_mode()) return false;
    if ((row.attributes & opcode::needs_fsgsbase) != 0 && !context.model->fsgsbase) return false;
    if ((row.attributes & opcode::needs_rdtscp) != 0 && !context.model->rdtscp) return false;
    if ((row.attributes & opcode::needs_syscall) != 0 && !context.model->syscall) return false;
    if ((row.attributes & opcode::needs_sysenter) != 0 && !context.model->sysenter) return false;
    if ((row.attributes & opcode::needs_smap) != 0 && !context.model->smap) return false;
    if (row.prefix == opcode::Prefix::f3 && prefix.repeat != Repeat::rep) return false;
    if (row.prefix == opcode::Prefix::p66 && !prefix.operand) return false;
    if (row.digit >= 0 && row.digit != modrm.reg) return false;
    return row.rm < 0 || row.rm == modrm.rm;
}

static constexpr bool has_modrm(Form form) {
    switch (form) {
        case Form::E:
        case Form::E_G:
        case Form::G_E:
        case Form::E_I:
        case Form::E_Ib:
        case Form::G_E_I:
        case Form::G_E_Ib:
        case Form::E_G_Ib:
        case Form::E_S:
        case Form::S_E:
        case Form::E_C:
        case Form::C_E:
        case Form::E_D:
        case Form::D_E:
            return true;
        default:
            return false;
    }
}

const Row* Decoder::find_in(const Row* rows, std::size_t row_count, const opcode::Index& index) {
    const u16 first = index[opcode];
    if (first == opcode::none) return nullptr;
    bool read = false;
    for (std::size_t i = first; i < row_count; ++i) {
        const Row& row = rows[i];
        if (opcode < row.opcode || opcode >= row.opcode + row.span) break;
        if (has_modrm(row.form) && !read) {
            const u8 byte = bytes.next();
            modrm = {static_cast<u8>(byte >> 6), static_cast<u8>((byte >> 3) & 7), static_cast<u8>(byte & 7)};
            read = true;
        }
        if (matches(row)) return &row;
    }
    return nullptr;
}

const Row* Decoder::find_row() {
    if (opcode != 0x0F) return find_in(opcode::one_byte.data(), opcode::one_byte.size(), opcode::one_byte_index);
    opcode = bytes.next();
    static constexpr Row simd{
        0x38, 1, -1, -1, opcode::Prefix::any, Operation::no_fpu, Form::E, Size::d, CostEvent::other, 0};
    static constexpr Row simd_immediate{
        0x3A, 1, -1, -1, opcode::Prefix::any, Operation::no_fpu, Form::E_Ib, Size::d, CostEvent::other, 0};
    if (opcode == 0x38 || opcode == 0x3A) {
        const Row* row = opcode == 0x38 ? &simd : &simd_immediate;
        opcode = bytes.next();
        const u8 byte = bytes.next();
        modrm = {static_cast<u8>(byte >> 6), static_cast<u8>((byte >> 3) & 7), static_cast<u8>(byte & 7)};
        return row;
    }
    return find_in(opcode::two_byte.data(), opcode::two_byte.size(), opcode::two_byte_index);
}

OperandSize Decoder::size_of(Size wanted) const {
    const bool wide_code = context.code != Width::bits16;
    const OperandSize plain = prefix.operand == wide_code ? OperandSize::word : OperandSize::dword;
    switch (wanted) {
        case Size::b:
            return OperandSize::byte;
        case Size::w:
            return OperandSize::word;
        case Size::d:
            return OperandSize::dword;
        case Size::q:
            return long64() ? OperandSize::qword : OperandSize::dword;
        case Size::y:
            return prefix.w() ? OperandSize::qword : OperandSize::dword;
        case Size::s:
            if (!long64()) return plain;
            return prefix.operand && !prefix.w() ? OperandSize::word : OperandSize::qword;
        case Size::n:
            if (!long64()) return plain;
            // AMD64 vol. 3: with prefix 66 the target is truncated to 16 bits; Intel ignores the prefix.
            return prefix.operand && context.model->vendor == Vendor::amd ? OperandSize::word : OperandSize::qword;
        default:
            return prefix.w() ? OperandSize::qword : plain;
    }
}

void Decoder::trouble(Trouble what) {
    out.operation = Operation::invalid;
    out.shape = Shape::none;
    out.code.imm = static_cast<u64>(what);
    out.ends_block = true;
}

/// The cost class for memory operands follows from that for registers.
void Decoder::classify(const Row& row) {
    out.cost = row.cost;
    const bool stores = out.shape == Shape::m || out.shape == Shape::mr || out.shape == Shape::mi;
    const bool only_reads = row.operation == Operation::cmp || row.operation == Operation::test;
    if (!out.code.in_memory()) return;
    switch (row.cost) {
        case CostEvent::move:
            out.cost = stores ? CostEvent::store : CostEvent::load;
            break;
        case CostEvent::extend:
            out.cost = CostEvent::load;
            break;
        case CostEvent::alu:
            out.cost = stores && !only_reads ? CostEvent::alu_modify : CostEvent::alu_load;
            break;
        case CostEvent::shift:
            out.cost = CostEvent::shift_modify;
            break;
        case CostEvent::push_register:
            out.cost = CostEvent::push_memory;
            break;
        default:
            break;
    }
}

void Decoder::finish(const Row& row) {
    Instruction& code = out.code;
    if (relative) code.disp += context.rip + bytes.used;
    if (relative && address == Width::bits32) code.disp &= 0xFFFFFFFF;
    code.how = static_cast<u8>(code.how | (static_cast<u8>(address) << 5));
    code.kind = static_cast<u8>(static_cast<u8>(size) | (static_cast<u8>(prefix.repeat) << 2) |
                                (static_cast<u8>(context.stack) << 4));
    code.length = static_cast<u8>(bytes.used);
    out.components = static_cast<u8>(out.components + displacements);
    const bool stores = out.shape == Shape::m || out.shape == Shape::mr || out.shape == Shape::mi;
    const bool xchg_rm = out.shape == Shape::rm && row.operation == Operation::xchg;
    const bool lockable = (row.attributes & opcode::lock) != 0 && (stores || xchg_rm);
    if (prefix.lock && !lockable && out.operation != Operation::invalid) trouble(Trouble::lock_not_allowed);
}

bool Decoder::run() {
    const bool in_time = read_prefixes();
    out.components = prefix.count;
    const bool wide_code = context.code != Width::bits16;
    address = prefix.address == wide_code ? Width::bits16 : Width::bits32;
    if (long64()) address = prefix.address ? Width::bits32 : Width::bits64;
    const bool two = opcode == 0x0F;
    const Row* row = in_time && !bytes.short_of_bytes ? find_row() : nullptr;
    if (row == nullptr) {
        if (in_time && bytes.short_of_bytes) return false;
        out.code.length = static_cast<u8>(bytes.used);
        trouble(in_time ? Trouble::invalid_opcode : Trouble::too_long);
        return true;
    }
    out.operation = row->operation;
    out.condition = opcode & 15;
    out.ends_block = (row->attributes & opcode::ends) != 0;
    out.components = static_cast<u8>(out.components + 1 + (two ? 1 : 0) + (has_modrm(row->form) ? 1 : 0));
    size = size_of(row->size);
    if (row->operation == Operation::cmpxchg8b && size == OperandSize::qword) out.operation = Operation::cmpxchg16b;
    operands(*row);
    classify(*row);
    // XCHG with R8 is not a NOP, and F3 90 is PAUSE.
    if (row->operation == Operation::nop && opcode == 0x90 && !two && (prefix.rex & 1) != 0) {
        out.operation = Operation::xchg;
        out.shape = Shape::rr;
        out.code.reg = r8;
        out.code.base = rax;
        out.cost = CostEvent::exchange;
    }
    finish(*row);
    return !bytes.short_of_bytes;
}

}  // namespace decoding

bool decode(const u8* bytes, u8 count, const DecodeContext& context, Decoded& out) {
    out = Decoded{};
    decoding::Decoder decoder{.bytes = {bytes, count}, .context = context, .out = out};
    if (decoder.run()) return true;
    if (count < longest_instruction) return false;
    out = Decoded{};
    out.code.length = longest_instruction;
    decoder.trouble(Trouble::too_long);
    return true;
}

}  // namespace emu
