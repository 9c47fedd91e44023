#include "cpu/execute/handlers.hpp"

#include "cpu/execute/dispatch.hpp"

namespace emu {

namespace {
Outcome trouble(Core& core, const Instruction& at) { return core.doors->trouble(core, static_cast<Trouble>(at.imm)); }
Outcome no_fpu(Core& core, const Instruction&) { return core.doors->trouble(core, Trouble::no_fpu); }
}  // namespace

Handler handler_of(const Decoded& decoded) {
    if (decoded.operation == Operation::no_fpu) return aside<no_fpu>;
    for (const auto family : {alu_handler, move_handler, stack_handler, shift_handler, bit_handler, multiply_handler,
                              exchange_handler, branch_handler, string_handler, flag_handler, decimal_handler,
                              transfer_handler, segment_handler, system_handler})
        if (const Handler found = family(decoded); found != nullptr) return found;
    return aside<trouble>;  // Operation::invalid
}

}  // namespace emu
