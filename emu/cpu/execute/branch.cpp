// Near branches: Jcc, JMP, CALL, RET, LOOP, JCXZ; and the step from a block to the one that follows it.
#include <utility>

#include "cpu/execute/forms.hpp"
#include "cpu/execute/handlers.hpp"
#include "cpu/execute/near_branch.hpp"

namespace emu {

Outcome judge_target(Core& core, u64 target) {
    if (core.cpu.mode == Mode::long64)
        return core.doors->judge(core, Trouble::branch_not_canonical, canonical48(target));
    return core.doors->judge(core, Trouble::branch_limit, target <= core.cpu.cs().limit);
}

const Instruction* enter_taken(Core& core) {
    core.running.arriving = true;
    return enter_block(core);
}

const Instruction* enter_linked(Core& core, const Instruction* at, bool taken) {
    const Block& from = block_of(at);
    Link& link = link_of(at);
    if (taken) {
        core.running.arriving = true;
        if (link.conditional) core.ledger.charge(CostEvent::jump_taken);
    }
    const u32 epoch = core.running.code_epoch;
    const Instruction* next = enter_block(core);
    if (next == &leave_handlers || core.running.code_epoch != epoch || !from.cached) return next;
    Block& to = block_of(next);
    if (!to.cached) return next;
    link.block[taken] = &to;
    link.epoch[taken] = epoch;
    if (taken) {
        link.taken_components = to.components;
        link.taken_price = to.arrival_price + (link.conditional ? core.ledger.price[index(CostEvent::jump_taken)] : 0);
    }
    return next;
}

namespace {

struct Jump : NoAct {
    EMU_ALWAYS_INLINE static bool taken(const Core&, const Instruction&, const LazyFlags&) { return true; }
};
/// CALL: the return address waits in `disp`.
template <class S, class T>
struct Call {
    EMU_ALWAYS_INLINE static bool taken(const Core&, const Instruction&, const LazyFlags&) { return true; }
    template <class M>
    EMU_ALWAYS_INLINE static bool act(Core& core, const Instruction& at, M& memory) {
        const S top = static_cast<S>(get<S>(core, rsp) - sizeof(T));
        return memory.store(core, SegmentName::ss, u64{top}, static_cast<T>(at.disp));
    }
    EMU_ALWAYS_INLINE static void commit(Core& core, const Instruction&) {
        set<S>(core, rsp, static_cast<S>(get<S>(core, rsp) - sizeof(T)));
    }
};
enum class Until { count, count_or_not_zero, count_or_zero };  // LOOP, LOOPE, LOOPNE
template <class A, Until until>
struct Loop {
    EMU_ALWAYS_INLINE static bool taken(const Core& core, const Instruction&, const LazyFlags& flags) {
        const bool more = static_cast<A>(get<A>(core, rcx) - 1) != 0;
        if constexpr (until == Until::count_or_not_zero) return more && flags.zf();
        if constexpr (until == Until::count_or_zero) return more && !flags.zf();
        return more;
    }
    template <class M>
    EMU_ALWAYS_INLINE static bool act(Core&, const Instruction&, M&) {
        return true;
    }
    EMU_ALWAYS_INLINE static void commit(Core& core, const Instruction&) {
        set<A>(core, rcx, static_cast<A>(get<A>(core, rcx) - 1));
    }
};
template <class A>
struct Jcxz : NoAct {
    EMU_ALWAYS_INLINE static bool taken(const Core& core, const Instruction&, const LazyFlags&) {
        return get<A>(core, rcx) == 0;
    }
};

template <class T>
struct JumpIndirect : NoAct {
    template <class M>
    EMU_ALWAYS_INLINE static bool target(Core& core, const Instruction& at, M& memory, u64& to) {
        T value;
        if (!at.in_memory())
            value = get<T>(core, at.reg);
        else if (!memory.load(core, at.segment(), effective(core, at), value))
            return false;
        to = value;
        return true;
    }
};
template <class S, class T>
struct CallIndirect {
    template <class M>
    EMU_ALWAYS_INLINE static bool target(Core& core, const Instruction& at, M& memory, u64& to) {
        return JumpIndirect<T>::target(core, at, memory, to);
    }
    template <class M>
    EMU_ALWAYS_INLINE static bool act(Core& core, const Instruction& at, M& memory) {
        const u64 next = block_of(&at).rip + at.offset + at.length;
        const S top = static_cast<S>(get<S>(core, rsp) - sizeof(T));
        return memory.store(core, SegmentName::ss, u64{top}, static_cast<T>(next));
    }
    EMU_ALWAYS_INLINE static void commit(Core& core, const Instruction& at) { Call<S, T>::commit(core, at); }
};
template <class S, class T, bool releases>
struct Return : NoAct {
    template <class M>
    EMU_ALWAYS_INLINE static bool target(Core& core, const Instruction&, M& memory, u64& to) {
        T value;
        if (!memory.load(core, SegmentName::ss, u64{get<S>(core, rsp)}, value)) return false;
        to = value;
        return true;
    }
    EMU_ALWAYS_INLINE static void commit(Core& core, const Instruction& at) {
        set<S>(core, rsp, static_cast<S>(get<S>(core, rsp) + sizeof(T) + (releases ? at.imm : 0)));
    }
};

template <unsigned... conditions>
Handler jcc_handler(unsigned condition, std::integer_sequence<unsigned, conditions...>) {
    static constexpr Handler all[] = {branch<Jcc<conditions>>...};
    return all[condition];
}
template <class S, class T>
Handler of_widths(const Decoded& decoded) {
    switch (decoded.operation) {
        case Operation::call:
            return branch<Call<S, T>>;
        case Operation::call_indirect:
            return indirect_branch<CallIndirect<S, T>>;
        case Operation::ret:
            return indirect_branch<Return<S, T, false>>;
        case Operation::ret_release:
            return indirect_branch<Return<S, T, true>>;
        default:
            return indirect_branch<JumpIndirect<T>>;
    }
}
template <class A>
Handler counted(const Decoded& decoded) {
    switch (decoded.operation) {
        case Operation::loop:
            return branch<Loop<A, Until::count>>;
        case Operation::loope:
            return branch<Loop<A, Until::count_or_not_zero>>;
        case Operation::loopne:
            return branch<Loop<A, Until::count_or_zero>>;
        default:
            return branch<Jcxz<A>>;
    }
}

/// The step from a block's last instruction to the next block: nothing is taken.
struct FallThrough : NoAct {
    EMU_ALWAYS_INLINE static bool taken(const Core&, const Instruction&, const LazyFlags&) { return false; }
};

}  // namespace

Handler fall_through_handler() { return branch<FallThrough>; }

Handler branch_handler(const Decoded& decoded) {
    switch (decoded.operation) {
        case Operation::jcc:
            return jcc_handler(decoded.condition, std::make_integer_sequence<unsigned, 16>{});
        case Operation::jmp:
            return branch<Jump>;
        case Operation::loop:
        case Operation::loope:
        case Operation::loopne:
        case Operation::jcxz:
            switch (decoded.code.address_width()) {
                case Width::bits16:
                    return counted<u16>(decoded);
                case Width::bits32:
                    return counted<u32>(decoded);
                default:
                    return counted<u64>(decoded);
            }
        case Operation::call:
        case Operation::call_indirect:
        case Operation::jmp_indirect:
        case Operation::ret:
        case Operation::ret_release:
            return with_wide_size(decoded, [&decoded]<class T>(T) -> Handler {
                switch (decoded.code.stack_width()) {
                    case Width::bits16:
                        return of_widths<u16, T>(decoded);
                    case Width::bits32:
                        return of_widths<u32, T>(decoded);
                    default:
                        return of_widths<u64, T>(decoded);
                }
            });
        default:
            return nullptr;
    }
}

}  // namespace emu
