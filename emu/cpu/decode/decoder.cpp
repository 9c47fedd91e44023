#include "cpu/decode/decoder.hpp"

#include "cpu/decode/opcode_table.hpp"
#include "doors.hpp"

namespace emu {

namespace {

using opcode::Form;
using opcode::Row;
using opcode::Size;

/// Reads the bytes of one instruction. Reading beyond them gives zeros and is remembered.
struct Bytes {
    const u8* at;
    unsigned count;
    unsigned used = 0;
    bool short_of_bytes = false;

    u8 next() {
        if (used >= count) {
            short_of_bytes = true;
            return 0;
        }
        return at[used++];
    }
    u64 unsigned_value(unsigned size) {
        u64 value = 0;
        for (unsigned i = 0; i < size; ++i) value |= u64{next()} << (8 * i);
        return value;
    }
    u64 signed_value(unsigned size) {
        const unsigned unused = 64 - 8 * size;
        return static_cast<u64>(static_cast<i64>(unsigned_value(size) << unused) >> unused);
    }
};

struct Prefixes {
    bool operand = false, address = false, lock = false, has_rex = false;
    u8 rex = 0;
    Repeat repeat = Repeat::none;
    u8 segment = no_register;
    u8 count = 0;

    bool w() const { return (rex & 8) != 0; }
    u8 r() const { return static_cast<u8>((rex & 4) << 1); }
    u8 x() const { return static_cast<u8>((rex & 2) << 2); }
    u8 b() const { return static_cast<u8>((rex & 1) << 3); }
};

struct ModRm {
    u8 mod = 0, reg = 0, rm = 0;
    bool is_memory() const { return mod != 3; }
};

constexpr u8 segment_number(SegmentName name) { return static_cast<u8>(name); }

/// LES, LDS; 0F LSS, LFS, LGS.
constexpr u8 far_pointer_segment(u8 opcode) {
    switch (opcode) {
        case 0xC4: return segment_number(SegmentName::es);
        case 0xC5: return segment_number(SegmentName::ds);
        case 0xB2: return segment_number(SegmentName::ss);
        case 0xB4: return segment_number(SegmentName::fs);
        default: return segment_number(SegmentName::gs);
    }
}

/// One decoding under way.
struct Decoder {
    Bytes bytes;
    const DecodeContext& context;
    Decoded& out;
    Prefixes prefix{};
    ModRm modrm{};
    Width address = Width::bits16;
    OperandSize size = OperandSize::byte;
    u8 opcode = 0;
    bool relative = false;       // the operand is addressed relative to RIP
    unsigned displacements = 0;  // how many displacements and immediates there are, each one component

    bool long64() const { return context.mode == Mode::long64; }
    bool protected_mode() const { return context.mode != Mode::real && context.mode != Mode::virtual8086; }

    bool read_prefixes();
    /// In 64-bit mode only FS and GS have a base, and the other prefixes are ignored.
    void override_segment(SegmentName name) {
        if (!long64() || name >= SegmentName::fs) prefix.segment = segment_number(name);
    }
    const Row* find_row();
    const Row* find_in(const Row* rows, std::size_t row_count, const opcode::Index& index);
    bool matches(const Row& row) const;
    OperandSize size_of(Size wanted) const;
    unsigned data_segment() const {
        return prefix.segment != no_register ? prefix.segment : segment_number(SegmentName::ds);
    }
    void read_memory_operand();
    void read_memory_operand16();
    void read_sib();
    void memory(u8 base, u8 index, unsigned scale, unsigned displacement_size);
    u8 register_number(u8 number, bool as_byte) const { return as_byte ? byte_register(number, prefix.has_rex) : number; }
    u8 modrm_reg() const { return static_cast<u8>(modrm.reg | prefix.r()); }
    u8 modrm_rm() const { return static_cast<u8>(modrm.rm | prefix.b()); }
    u8 opcode_register() const { return static_cast<u8>((opcode & 7) | prefix.b()); }
    u64 immediate() { return ++displacements, bytes.signed_value(size == OperandSize::qword ? 4 : emu::bytes(size)); }
    u64 immediate8() { return ++displacements, bytes.signed_value(1); }
    void operands(const Row& row);
    void single();
    void reg_and_rm(bool register_is_destination, bool rm_is_byte);
    void branch_target(unsigned displacement_size);
    void special_register(bool is_destination);
    void segment_operand(const Row& row);
    void trouble(Trouble what);
    void classify(const Row& row);
    void finish(const Row& row);
    bool run();
};

bool Decoder::read_prefixes() {
    for (;; ++prefix.count) {
        if (prefix.count > longest_instruction) return false;
        const u8 byte = bytes.next();
        if (bytes.short_of_bytes) return true;
        switch (byte) {
            case 0x26: override_segment(SegmentName::es); break;
            case 0x2E: override_segment(SegmentName::cs); break;
            case 0x36: override_segment(SegmentName::ss); break;
            case 0x3E: override_segment(SegmentName::ds); break;
            case 0x64: override_segment(SegmentName::fs); break;
            case 0x65: override_segment(SegmentName::gs); break;
            case 0x66: prefix.operand = true; break;
            case 0x67: prefix.address = true; break;
            case 0xF0: prefix.lock = true; break;
            case 0xF2: prefix.repeat = Repeat::repne; break;
            case 0xF3: prefix.repeat = Repeat::rep; break;
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

constexpr bool has_modrm(Form form) {
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
        case Form::D_E: return true;
        default: return false;
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
    static constexpr Row simd{0x38, 1, -1, -1, opcode::Prefix::any, Operation::no_fpu, Form::E, Size::d, CostEvent::other, 0};
    static constexpr Row simd_immediate{0x3A, 1, -1, -1, opcode::Prefix::any, Operation::no_fpu, Form::E_Ib, Size::d,
                                        CostEvent::other, 0};
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
        case Size::b: return OperandSize::byte;
        case Size::w: return OperandSize::word;
        case Size::d: return OperandSize::dword;
        case Size::q: return long64() ? OperandSize::qword : OperandSize::dword;
        case Size::y: return prefix.w() ? OperandSize::qword : OperandSize::dword;
        case Size::s:
            if (!long64()) return plain;
            return prefix.operand && !prefix.w() ? OperandSize::word : OperandSize::qword;
        case Size::n:
            if (!long64()) return plain;
            // AMD64 vol. 3: with prefix 66 the target is truncated to 16 bits; Intel ignores the prefix.
            return prefix.operand && context.model->vendor == Vendor::amd ? OperandSize::word : OperandSize::qword;
        default: return prefix.w() ? OperandSize::qword : plain;
    }
}

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
    static constexpr Pair16 pairs[8] = {{rbx, rsi}, {rbx, rdi}, {rbp, rsi}, {rbp, rdi},
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

void Decoder::trouble(Trouble what) {
    out.operation = Operation::invalid;
    out.shape = Shape::none;
    out.code.imm = static_cast<u64>(what);
    out.ends_block = true;
}

void Decoder::operands(const Row& row) {
    Instruction& code = out.code;
    const bool byte = size == OperandSize::byte;
    switch (row.form) {
        case Form::none:  // string instructions and XLAT address DS, or what a prefix says
            code.how = static_cast<u8>(code.how | (data_segment() << 2));
            break;
        case Form::E: single(); break;
        case Form::E_G: reg_and_rm(false, false); break;
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
        case Form::J: branch_target(size == OperandSize::word ? 2 : 4); break;
        case Form::Jb: branch_target(1); break;
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
        case Form::S_E: segment_operand(row); break;
        case Form::E_C:
        case Form::E_D: special_register(false); break;
        case Form::C_E:
        case Form::D_E: special_register(true); break;
        case Form::S: code.imm = (opcode >> 3) & 7; break;
    }
}

/// The cost class for memory operands follows from that for registers.
void Decoder::classify(const Row& row) {
    out.cost = row.cost;
    const bool stores = out.shape == Shape::m || out.shape == Shape::mr || out.shape == Shape::mi;
    const bool only_reads = row.operation == Operation::cmp || row.operation == Operation::test;
    if (!out.code.in_memory()) return;
    switch (row.cost) {
        case CostEvent::move: out.cost = stores ? CostEvent::store : CostEvent::load; break;
        case CostEvent::extend: out.cost = CostEvent::load; break;
        case CostEvent::alu: out.cost = stores && !only_reads ? CostEvent::alu_modify : CostEvent::alu_load; break;
        case CostEvent::shift: out.cost = CostEvent::shift_modify; break;
        case CostEvent::push_register: out.cost = CostEvent::push_memory; break;
        default: break;
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

}  // namespace

bool decode(const u8* bytes, u8 count, const DecodeContext& context, Decoded& out) {
    out = Decoded{};
    Decoder decoder{.bytes = {bytes, count}, .context = context, .out = out};
    if (decoder.run()) return true;
    if (count < longest_instruction) return false;
    out = Decoded{};
    out.code.length = longest_instruction;
    decoder.trouble(Trouble::too_long);
    return true;
}

}  // namespace emu
