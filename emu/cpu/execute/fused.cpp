// CMP, TEST, DEC, INC, SUB or AND and the Jcc that follows: one handler, one dispatch.
#include <utility>

#include "cpu/execute/alu.hpp"
#include "cpu/execute/handlers.hpp"
#include "cpu/execute/near_branch.hpp"

namespace emu {

namespace {

using namespace alu;

template <class Op, class General, unsigned... conditions>
Handler with_condition(unsigned condition, std::integer_sequence<unsigned, conditions...>) {
    static constexpr Handler all[] = {fused<Op, General, Jcc<conditions>>...};
    return all[condition];
}
template <class Op, class General = Op>
Handler followed_by(const Decoded& jcc) {
    return with_condition<Op, General>(jcc.condition, std::make_integer_sequence<unsigned, 16>{});
}
template <class Family>
Handler memory_followed_by(const Decoded& first, const Decoded& jcc) {
    using General = typename Family::template At<AnyAddress>;
    if (is_base(first.code) && first.code.address_width() == Width::bits64)
        return followed_by<typename Family::template At<BaseAddress<u64>>, General>(jcc);
    return followed_by<General>(jcc);
}

template <class Op, class T>
Handler comparison(const Decoded& first, const Decoded& jcc) {
    switch (first.shape) {
        case Shape::rr:
            return followed_by<RegisterRegister<Op, T, false>>(jcc);
        case Shape::ri:
            return followed_by<RegisterImmediate<Op, T, false>>(jcc);
        case Shape::rm:
            return memory_followed_by<RegisterMemory<Op, T, false>>(first, jcc);
        case Shape::mi:
            return memory_followed_by<MemoryCompare<Op, T, false>>(first, jcc);
        default:
            return nullptr;
    }
}

template <class T>
Handler of_size(const Decoded& first, const Decoded& jcc) {
    const bool single = first.shape == Shape::r;
    switch (first.operation) {
        case Operation::cmp:
            return comparison<Sub, T>(first, jcc);
        case Operation::test:
            return comparison<And, T>(first, jcc);
        case Operation::dec:
            return single ? followed_by<UnaryRegister<Dec, T>>(jcc) : nullptr;
        case Operation::inc:
            return single ? followed_by<UnaryRegister<Inc, T>>(jcc) : nullptr;
        case Operation::sub:
            return first.shape == Shape::ri ? followed_by<RegisterImmediate<Sub, T, true>>(jcc) : nullptr;
        case Operation::and_:
            return first.shape == Shape::ri ? followed_by<RegisterImmediate<And, T, true>>(jcc) : nullptr;
        default:
            return nullptr;
    }
}

}  // namespace

Handler fused_handler(const Decoded& first, const Decoded& second) {
    if (second.operation != Operation::jcc) return nullptr;
    switch (first.code.size()) {
        case OperandSize::byte:
            return of_size<u8>(first, second);
        case OperandSize::dword:
            return of_size<u32>(first, second);
        case OperandSize::qword:
            return of_size<u64>(first, second);
        default:
            return nullptr;  // 16-bit code is not where time goes
    }
}

}  // namespace emu
