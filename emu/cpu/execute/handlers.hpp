// Which handler runs a decoded instruction: each family answers for its operations, and null for all others.
#pragma once
#include "cpu/decode/instruction.hpp"

namespace emu {

Handler handler_of(const Decoded& decoded);
Handler fall_through_handler();
/// For an instruction and the branch after it, in the slot of the first. Null if each goes alone.
Handler fused_handler(const Decoded& first, const Decoded& second);

Handler alu_handler(const Decoded& decoded);
Handler move_handler(const Decoded& decoded);
Handler stack_handler(const Decoded& decoded);
Handler shift_handler(const Decoded& decoded);
Handler bit_handler(const Decoded& decoded);
Handler multiply_handler(const Decoded& decoded);
Handler exchange_handler(const Decoded& decoded);
Handler branch_handler(const Decoded& decoded);
Handler string_handler(const Decoded& decoded);
Handler flag_handler(const Decoded& decoded);
Handler decimal_handler(const Decoded& decoded);
Handler transfer_handler(const Decoded& decoded);
Handler segment_handler(const Decoded& decoded);
Handler system_handler(const Decoded& decoded);

}  // namespace emu
