// Wrappers for near branches: direct ones, which are linked to the blocks they lead to, and indirect ones, which look
// in the jump cache.
#pragma once
#include "cpu/execute/dispatch.hpp"

namespace emu {

/// Near branches must stay within CS.limit, or go to a canonical address (JMP, Exceptions).
[[gnu::noinline]] Outcome judge_target(Core& core, u64 target);

/// After the branch has been done: enters the block at cpu.rip and links the branch to it.
const Instruction* enter_linked(Core& core, const Instruction* at, bool taken);
/// The same for an indirect branch: nothing to link, but its target is charged for arriving.
const Instruction* enter_taken(Core& core);

/// Nothing happens beside the branch.
struct NoAct {
    template <class M>
    EMU_ALWAYS_INLINE static bool act(Core&, const Instruction&, M&) {
        return true;
    }
    EMU_ALWAYS_INLINE static void commit(Core&, const Instruction&) {}
};
template <unsigned condition>
struct Jcc : NoAct {
    EMU_ALWAYS_INLINE static bool taken(const Core&, const Instruction&, const LazyFlags& flags) {
        return holds<condition>(flags);
    }
};

/// Rule: taken(core, at, flags); act(core, at, memory) does what happens only if it is taken and may fault (a push);
/// commit(core, at) what always happens and cannot.
template <class Rule>
struct Branch {
    using Cold = Branch;
    EMU_ALWAYS_INLINE static bool step(Core& core, const Instruction* at, i64& budget, LazyFlags& flags,
                                       const Instruction*& next) {
        Link& link = link_of(at);
        if (Rule::taken(core, *at, flags)) {
            asm volatile("");  // keeps this a branch of the host: with a conditional move it could not run ahead
            Block* const block = link.block[1];
            if (link.epoch[1] != core.running.code_epoch || block->count > budget) [[unlikely]]
                return false;
            Fast memory;
            if (!Rule::act(core, *at, memory)) [[unlikely]]
                return false;
            Rule::commit(core, *at);
            ++link.taken;
            next = charge_block(core, block, budget, link.taken_price);
            return true;
        }
        Block* const block = link.block[0];
        if (link.epoch[0] != core.running.code_epoch || block->count > budget) [[unlikely]]
            return false;
        Rule::commit(core, *at);
        next = charge_block(core, block, budget);
        return true;
    }
    [[gnu::noinline]] static const Instruction* aside(Core& core, const Instruction* at) {
        suspend(core, at);
        const LazyFlags flags = LazyFlags::of_register(core.cpu.rflags);
        const bool taken = Rule::taken(core, *at, flags);
        if (taken) {
            if (const Outcome verdict = judge_target(core, at->imm); verdict.faulted())
                return give_up(core, at, verdict);
            Slow memory;
            if (!Rule::act(core, *at, memory)) return give_up(core, at, memory.outcome);
        }
        Rule::commit(core, *at);
        resume(core, at);
        core.cpu.rip = taken ? at->imm : core.next_rip;
        return enter_linked(core, at, taken);
    }
};
/// An instruction without memory operands, or one that reads, and the conditional branch after it in one handler. The
/// branch keeps its own slot and handler, for whenever the two cannot go together.
template <class Op, class General, class Rule>
struct Fused {
    using Cold = Straight<General>;
    EMU_ALWAYS_INLINE static bool step(Core& core, const Instruction* at, i64& budget, LazyFlags& flags,
                                       const Instruction*& next) {
        Fast memory;
        if (!Op::run(core, *at, flags, memory)) [[unlikely]]
            return false;
        if (!Branch<Rule>::step(core, at + 1, budget, flags, next)) [[unlikely]]
            next = at + 1;
        return true;
    }
};
template <class Op, class General, class Rule>
inline constexpr Handler fused = handler<Fused<Op, General, Rule>>;

template <class Rule>
inline constexpr Handler branch = handler<Branch<Rule>>;

/// Rule: run(core, at, memory, target) finds the target and does the rest, but for what commit does.
template <class Rule>
struct IndirectBranch {
    using Cold = IndirectBranch;
    EMU_ALWAYS_INLINE static bool step(Core& core, const Instruction* at, i64& budget, LazyFlags&,
                                       const Instruction*& next) {
        Fast memory;
        u64 target;
        if (!Rule::target(core, *at, memory, target)) [[unlikely]]
            return false;
        Block* const block = core.blocks->find_again(core, target);
        if (block == nullptr || block->count > budget) [[unlikely]]
            return false;
        if (!Rule::act(core, *at, memory)) [[unlikely]]
            return false;
        Rule::commit(core, *at);
        ++block->arrivals;
        next = charge_block(core, block, budget, block->arrival_price);
        return true;
    }
    [[gnu::noinline]] static const Instruction* aside(Core& core, const Instruction* at) {
        suspend(core, at);
        Slow memory;
        u64 target;
        if (!Rule::target(core, *at, memory, target)) return give_up(core, at, memory.outcome);
        if (const Outcome verdict = judge_target(core, target); verdict.faulted()) return give_up(core, at, verdict);
        if (!Rule::act(core, *at, memory)) return give_up(core, at, memory.outcome);
        Rule::commit(core, *at);
        resume(core, at);
        core.cpu.rip = target;
        return enter_taken(core);
    }
};
template <class Rule>
inline constexpr Handler indirect_branch = handler<IndirectBranch<Rule>>;

}  // namespace emu
