#include "cpu/execute/dispatch.hpp"

namespace emu {

namespace {

Millicycles suffix_cost(const Core& core, const Block& block, u32 from) {
    Millicycles sum = 0;
    for (u32 i = from; i < block.count; ++i)
        if (block.costs[i] != CostEvent::count) sum += core.ledger.price[index(block.costs[i])];
    return sum;
}

/// The instruction did what it was to do, and the run ends.
bool completed(Outcome outcome) {
    if (!outcome.stopped()) return false;
    const StopReason reason = outcome.stop_reason();
    return reason == StopReason::exit || reason == StopReason::reset || reason == StopReason::halted;
}

}  // namespace

void suspend(Core& core, const Instruction* at) {
    const Block& block = block_of(at);
    const u64 next = block.rip + at->offset + at->length;
    core.cpu.rip = block.rip + at->offset;
    core.next_rip = core.cpu.mode == Mode::long64 ? next : next & 0xFFFFFFFF;
    const u64 undone = block.count - at->place;
    core.instructions = core.running.horizon - static_cast<u64>(core.running.budget) - undone;
    core.ledger.cycles -= suffix_cost(core, block, at->place);
}

const Instruction* resume(Core& core, const Instruction* at) {
    core.ledger.cycles += suffix_cost(core, block_of(at), at->place);
    return at + 1;
}

const Instruction* give_up(Core& core, const Instruction* at, Outcome outcome) {
    const Block& block = block_of(at);
    u32 first = at->place;
    if (completed(outcome)) {
        if (block.costs[first] != CostEvent::count) core.ledger.cycles += core.ledger.price[index(block.costs[first])];
        core.cpu.rip = core.next_rip;
        ++first;
    }
    for (u32 i = first; i < block.count; ++i)
        if (block.costs[i] != CostEvent::count) --core.ledger.counts[index(block.costs[i])];
    core.running.budget += block.count - first;
    core.running.outcome = outcome;
    return &leave_handlers;
}

const Instruction* enter_block(Core& core) {
    Running& running = core.running;
    // TF and the interrupt shadow concern the next instruction alone, and so does core.alone: the run loop sees to
    // them.
    if ((core.cpu.rflags & rflags::tf) != 0 || core.cpu.interrupt_shadow || core.alone || running.budget <= 0)
        return &leave_handlers;
    Block* block = core.blocks->find(core, running.outcome);
    if (block == nullptr || block->count > running.budget) return &leave_handlers;
    if (running.arriving) {
        running.arriving = false;
        core.ledger.charge(CostEvent::next_component, block->components);
    }
    return charge_block(core, block, running.budget);
}

#ifdef EMU_LOOP_DISPATCH
const Instruction* leave(Core* core, const Instruction*, HotRegisters& hot) {
    save(*core, hot.budget, {hot.result, hot.operand, hot.kind});
    return nullptr;
}
#else
void leave(Core* core, const Instruction*, i64 budget, u64 result, u64 operand, u64 kind) {
    save(*core, budget, {result, operand, kind});
}
#endif

const Instruction leave_handlers{.run = leave};

}  // namespace emu
