// Bytes and context -> Instruction. No state, no memory: the caller brings the bytes.
#pragma once
#include "cpu/decode/instruction.hpp"

namespace emu {

inline constexpr u8 longest_instruction = 15;

/// False if `count` bytes are not enough to know the whole instruction. What cannot be executed is decoded to
/// Operation::invalid with its Trouble in `imm`.
bool decode(const u8* bytes, u8 count, const DecodeContext& context, Decoded& out);

}  // namespace emu
