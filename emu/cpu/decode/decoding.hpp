// One decoding under way: what decoder.cpp and operands.cpp share.
#pragma once
#include "cpu/decode/decoder.hpp"
#include "cpu/decode/opcode_table.hpp"
#include "doors.hpp"

namespace emu::decoding {

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
    u8 register_number(u8 number, bool as_byte) const {
        return as_byte ? byte_register(number, prefix.has_rex) : number;
    }
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

}  // namespace emu::decoding
