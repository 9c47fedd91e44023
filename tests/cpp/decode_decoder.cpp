// Any bytes decode to something, in every mode, without reading beyond what was given.
#include <memory>

#include "cpu/decode/decoder.hpp"
#include "cpu/execute/handlers.hpp"
#include "doors.hpp"
#include "expect.hpp"

namespace {

using namespace emu;

u64 next_random(u64& state) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

TEST(all_bytes_decode) {
    const CpuModel model;
    u64 state = 88172645463325252ull;
    for (unsigned trial = 0; trial < 200'000; ++trial) {
        u8 bytes[longest_instruction];
        for (u8& byte : bytes) byte = static_cast<u8>(next_random(state) >> 32);
        if (trial % 3 == 0) bytes[0] = 0x0F;
        for (const Mode mode : {Mode::real, Mode::protected_mode, Mode::long64}) {
            const Width width = mode == Mode::real     ? Width::bits16
                                : mode == Mode::long64 ? Width::bits64
                                                       : Width::bits32;
            const DecodeContext context{0x1000, width, width, mode, &model};
            Decoded whole;
            EXPECT_EQUAL(decode(bytes, longest_instruction, context, whole), true);
            EXPECT_EQUAL(handler_of(whole) != nullptr, true);
            if (whole.operation == Operation::invalid) continue;
            // With exactly its bytes it decodes the same; with one less it does not.
            const u8 length = whole.code.length;
            const std::unique_ptr<u8[]> exact{new u8[length]};
            for (u8 i = 0; i < length; ++i) exact[i] = bytes[i];
            Decoded again;
            EXPECT_EQUAL(decode(exact.get(), length, context, again), true);
            EXPECT_EQUAL(again.code.length, length);
            EXPECT_EQUAL(decode(exact.get(), static_cast<u8>(length - 1), context, again), false);
        }
    }
}

Decoded decode64(std::initializer_list<int> code) {
    static const CpuModel model;
    u8 bytes[longest_instruction] = {};
    u8 count = 0;
    for (const int byte : code) bytes[count++] = static_cast<u8>(byte);
    Decoded decoded;
    decode(bytes, longest_instruction, {0x1000, Width::bits64, Width::bits64, Mode::long64, &model}, decoded);
    return decoded;
}

TEST(components) {
    EXPECT_EQUAL(decode64({0x90}).components, 1u);
    EXPECT_EQUAL(decode64({0x66, 0x90}).components, 2u);
    EXPECT_EQUAL(decode64({0x8B, 0x44, 0x8B, 0x10}).components, 4u);  // opcode, ModR/M, SIB, displacement
    EXPECT_EQUAL(decode64({0xC7, 0x05, 0, 0, 0, 0, 1, 0, 0, 0}).components,
                 4u);  // opcode, ModR/M, displacement, immediate
    EXPECT_EQUAL(decode64({0x0F, 0xAF, 0xC1}).components, 3u);
}

TEST(trouble) {
    const auto trouble_of = [](std::initializer_list<int> code) {
        const Decoded decoded = decode64(code);
        return decoded.operation == Operation::invalid ? static_cast<int>(decoded.code.imm) : -1;
    };
    EXPECT_EQUAL(trouble_of({0x06}), static_cast<int>(Trouble::invalid_opcode));  // PUSH ES
    EXPECT_EQUAL(trouble_of({0x9A, 0, 0, 0, 0, 0, 0}), static_cast<int>(Trouble::invalid_opcode));
    EXPECT_EQUAL(trouble_of({0xF0, 0x01, 0xC0}), static_cast<int>(Trouble::lock_not_allowed));  // register destination
    EXPECT_EQUAL(trouble_of({0xF0, 0x03, 0x00}), static_cast<int>(Trouble::lock_not_allowed));  // memory is the source
    EXPECT_EQUAL(trouble_of({0xF0, 0x01, 0x00}), -1);
    EXPECT_EQUAL(trouble_of({0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66}),
                 static_cast<int>(Trouble::too_long));
}

}  // namespace
