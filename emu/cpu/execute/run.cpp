#include "cpu/execute/run.hpp"

#include <algorithm>
#include <limits>

#include "cpu/execute/dispatch.hpp"

namespace emu {

namespace {

/// Writes by rooms, page walks and instructions running alone; values have at most 8 bytes.
void code_written(Core& core, u64 physical) { core.blocks->drop(core, physical, sizeof(u64)); }

/// From the first instruction of a block until a handler leaves.
void run_handlers(Core& core, const Instruction* at) {
    const LazyFlags flags = LazyFlags::of_register(core.cpu.rflags);
#ifdef EMU_LOOP_DISPATCH
    HotRegisters hot{core.running.budget, flags.result, flags.operand, flags.kind};
    while (at != nullptr) at = at->run(&core, at, hot);
#else
    at->run(&core, at, core.running.budget, flags.result, flags.operand, flags.kind);
#endif
}

/// Enters one block, of at most `most` instructions, and what follows it.
void run_block(Core& core, u32 most) {
    Running& running = core.running;
    running.outcome = no_fault;
    Block* block = nullptr;
    if (most == longest_block) {
        block = core.blocks->find(core, running.outcome);
        if (running.outcome.faulted()) return;
        if (block->count > running.budget) block = nullptr;
    }
    if (block == nullptr) {
        const u32 count = static_cast<u32>(std::min<i64>(most, running.budget));
        block = core.blocks->find_short(core, count, running.outcome);
        if (running.outcome.faulted()) return;
    }
    if (running.arriving) {
        running.arriving = false;
        core.ledger.charge(CostEvent::next_component, block->components);
    }
    run_handlers(core, charge_block(core, block, running.budget));
}

bool is_stop(Outcome outcome, StopReason reason) { return outcome.stopped() && outcome.stop_reason() == reason; }

void count_instructions(Core& core) {
    core.instructions = core.running.horizon - static_cast<u64>(core.running.budget);
}

/// A delivery uses up a unit of the budget, but retires nothing.
Outcome deliver(Core& core, Fault fault) {
    --core.running.budget;
    --core.running.horizon;
    core.running.arriving = false;
    return core.doors->deliver_exception(core, fault);
}

Outcome run_to_stop(Core& core) {
    Running& running = core.running;
    for (;;) {
        count_instructions(core);
        if (running.budget <= 0) return Outcome::stop(StopReason::budget);
        if ((core.cpu.rflags & rflags::tf) != 0) return unmodelled(Unmodelled::single_step);
        const bool shadowed = core.cpu.interrupt_shadow;
        core.cpu.interrupt_shadow = false;
        run_block(core, shadowed || core.alone ? 1 : longest_block);
        core.alone = false;
        count_instructions(core);

        Outcome outcome = running.outcome;
        if (is_stop(outcome, StopReason::code_write)) {
            core.alone = true;  // the instruction again, where nothing decoded can be stale
            continue;
        }
        if (!outcome.faulted() || is_stop(outcome, StopReason::budget)) continue;
        if (!outcome.stopped()) outcome = deliver(core, outcome.fault());
        if (outcome.faulted()) return outcome;
    }
}

}  // namespace

Outcome run(Core& core, u64 budget) {
    constexpr u64 most = static_cast<u64>(std::numeric_limits<i64>::max());
    core.code_written = code_written;
    core.running.budget = static_cast<i64>(std::min(budget, most));
    core.running.horizon = core.instructions + static_cast<u64>(core.running.budget);
    const Outcome outcome = run_to_stop(core);
    core.alone = false;
    count_instructions(core);
    harvest(core);
    return outcome;
}

}  // namespace emu
