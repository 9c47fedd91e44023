// How one instruction follows another. A body knows nothing of it; these wrappers turn bodies into handlers:
//
//   Straight<Op>     Op::run(core, at, flags, memory) on inline memory; if that misses, again through the doors
//   Aside<body>      body(core, at) -> Outcome: always with RFLAGS, RIP and the books whole; goes on with the next
//   Ending<body>     the same, and then the block ends: mode, translations or RIP may have changed
//   Branch<Rule>     near branches (near_branch.hpp)
//
// A wrapper has two parts. `step` is the hot one: it says where to go on, or false having done nothing. Then `aside`
// does the work with everything whole in Core. In the tail-calling build nothing in `step` may let the address of a
// local escape, or the tail call becomes a call and the host stack grows with every guest instruction.
#pragma once
#include "cpu/execute/block_cache.hpp"
#include "cpu/execute/operands.hpp"

namespace emu {

// --- the shared parts of all asides ----------------------------------------------------------------------------------

/// Makes Core whole for a door: RIP, next_rip, and the books as they were before this instruction.
void suspend(Core& core, const Instruction* at);
/// The instruction is done: its block's charges are in force again. Returns the next instruction.
const Instruction* resume(Core& core, const Instruction* at);
/// The instruction did not complete, or the run ends with it: takes back what was charged and not done.
const Instruction* give_up(Core& core, const Instruction* at, Outcome outcome);
/// Goes on at cpu.rip, after resume().
const Instruction* enter_block(Core& core);
/// Enters what was found; the caller has seen that the budget allows it.
EMU_ALWAYS_INLINE const Instruction* charge_block(Core& core, Block* block, i64& budget, Millicycles more = 0) {
    budget -= block->count;
    ++block->executions;
    core.ledger.cycles += block->cost + more;
    return block->code();
}

// --- handlers --------------------------------------------------------------------------------------------------------

EMU_ALWAYS_INLINE void save(Core& core, i64 budget, const LazyFlags& flags) {
    core.running.budget = budget;
    core.cpu.rflags = flags.merged_into(core.cpu.rflags);
}

#ifdef EMU_LOOP_DISPATCH

template <class Wrapper>
const Instruction* cold(Core* core, const Instruction* at, HotRegisters& hot) {
    save(*core, hot.budget, {hot.result, hot.operand, hot.kind});
    const Instruction* next = Wrapper::aside(*core, at);
    const LazyFlags flags = LazyFlags::of_register(core->cpu.rflags);
    hot = {core->running.budget, flags.result, flags.operand, flags.kind};
    return next;
}
template <class Wrapper>
const Instruction* handler(Core* core, const Instruction* at, HotRegisters& hot) {
    LazyFlags flags{hot.result, hot.operand, hot.kind};
    i64 budget = hot.budget;
    const Instruction* next;
    if (!Wrapper::step(*core, at, budget, flags, next)) return cold<typename Wrapper::Cold>(core, at, hot);
    hot = {budget, flags.result, flags.operand, flags.kind};
    return next;
}
const Instruction* leave(Core* core, const Instruction* at, HotRegisters& hot);

#else

template <class Wrapper>
[[gnu::noinline, gnu::cold]] void cold(Core* core, const Instruction* at, i64 budget, u64 result, u64 operand,
                                       u64 kind) {
    save(*core, budget, {result, operand, kind});
    const Instruction* next = Wrapper::aside(*core, at);
    const LazyFlags flags = LazyFlags::of_register(core->cpu.rflags);
    return next->run(core, next, core->running.budget, flags.result, flags.operand, flags.kind);
}
template <class Wrapper>
void handler(Core* core, const Instruction* at, i64 budget, u64 result, u64 operand, u64 kind) {
    LazyFlags flags{result, operand, kind};
    i64 left = budget;
    const Instruction* next;
    if (!Wrapper::step(*core, at, left, flags, next)) [[unlikely]]
        return cold<typename Wrapper::Cold>(core, at, budget, result, operand, kind);
    return next->run(core, next, left, flags.result, flags.operand, flags.kind);
}
void leave(Core* core, const Instruction* at, i64 budget, u64 result, u64 operand, u64 kind);

#endif

/// Where handlers go when the run loop must decide.
extern const Instruction leave_handlers;

// --- wrappers --------------------------------------------------------------------------------------------------------

/// `General` does the same as Op for all addresses: one cold part serves several hot ones.
template <class Op, class General = Op>
struct Straight {
    using Cold = Straight<General>;
    EMU_ALWAYS_INLINE static bool step(Core& core, const Instruction* at, i64&, LazyFlags& flags,
                                       const Instruction*& next) {
        Fast memory;
        if (!Op::run(core, *at, flags, memory)) [[unlikely]]
            return false;
        next = at + 1;
        return true;
    }
    [[gnu::noinline]] static const Instruction* aside(Core& core, const Instruction* at) {
        suspend(core, at);
        LazyFlags flags = LazyFlags::of_register(core.cpu.rflags);
        Slow memory;
        if (!Op::run(core, *at, flags, memory)) return give_up(core, at, memory.outcome);
        core.cpu.rflags = flags.merged_into(core.cpu.rflags);
        return resume(core, at);
    }
};
template <class Op, class General = Op>
inline constexpr Handler straight = handler<Straight<Op, General>>;

using Body = Outcome (*)(Core&, const Instruction&);

template <Body body>
struct Aside {
    [[gnu::noinline]] static const Instruction* aside(Core& core, const Instruction* at) {
        suspend(core, at);
        if (const Outcome outcome = body(core, *at); outcome.faulted()) [[unlikely]]
            return give_up(core, at, outcome);
        return resume(core, at);
    }
};
template <Body body>
inline constexpr Handler aside = cold<Aside<body>>;

/// Whether the body leaves RIP to be set here, to the next instruction.
enum class Goes : u8 { on, where_rip_says };

template <Body body, Goes goes>
struct Ending {
    [[gnu::noinline]] static const Instruction* aside(Core& core, const Instruction* at) {
        suspend(core, at);
        if (const Outcome outcome = body(core, *at); outcome.faulted()) [[unlikely]]
            return give_up(core, at, outcome);
        resume(core, at);
        if constexpr (goes == Goes::on) core.cpu.rip = core.next_rip;
        return enter_block(core);
    }
};
template <Body body>
inline constexpr Handler ending = cold<Ending<body, Goes::on>>;
template <Body body>
inline constexpr Handler transferring = cold<Ending<body, Goes::where_rip_says>>;

}  // namespace emu
