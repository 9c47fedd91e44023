// ADD, OR, ADC, SBB, AND, SUB, XOR, CMP, TEST, NOT, NEG, INC, DEC in all shapes and widths.
#include "cpu/execute/alu.hpp"

#include "cpu/execute/handlers.hpp"

namespace emu {

namespace {

using namespace alu;

template <class Op>
Handler binary(const Decoded& decoded) {
    return with_size(decoded, [&decoded]<class T>(T) -> Handler {
        switch (decoded.shape) {
            case Shape::rr:
                return straight<RegisterRegister<Op, T, true>>;
            case Shape::ri:
                return straight<RegisterImmediate<Op, T, true>>;
            case Shape::rm:
                return frequent_form<RegisterMemory<Op, T, true>>(decoded.code);
            case Shape::mr:
                return any_form<MemoryModify<Op, T, true>>(decoded.code);
            default:
                return any_form<MemoryModify<Op, T, false>>(decoded.code);
        }
    });
}
template <class Op>
Handler comparison(const Decoded& decoded) {
    return with_size(decoded, [&decoded]<class T>(T) -> Handler {
        switch (decoded.shape) {
            case Shape::rr:
                return straight<RegisterRegister<Op, T, false>>;
            case Shape::ri:
                return straight<RegisterImmediate<Op, T, false>>;
            case Shape::rm:
                return frequent_form<RegisterMemory<Op, T, false>>(decoded.code);
            case Shape::mr:
                return frequent_form<MemoryCompare<Op, T, true>>(decoded.code);
            default:
                return frequent_form<MemoryCompare<Op, T, false>>(decoded.code);
        }
    });
}
template <class Op>
Handler unary(const Decoded& decoded) {
    return with_size(decoded, [&decoded]<class T>(T) -> Handler {
        if (decoded.shape == Shape::r) return straight<UnaryRegister<Op, T>>;
        return any_form<UnaryMemory<Op, T>>(decoded.code);
    });
}

}  // namespace

Handler alu_handler(const Decoded& decoded) {
    switch (decoded.operation) {
        case Operation::add:
            return binary<Add>(decoded);
        case Operation::or_:
            return binary<Or>(decoded);
        case Operation::adc:
            return binary<Adc>(decoded);
        case Operation::sbb:
            return binary<Sbb>(decoded);
        case Operation::and_:
            return binary<And>(decoded);
        case Operation::sub:
            return binary<Sub>(decoded);
        case Operation::xor_:
            return binary<Xor>(decoded);
        case Operation::cmp:
            return comparison<Sub>(decoded);
        case Operation::test:
            return comparison<And>(decoded);
        case Operation::not_:
            return unary<Not>(decoded);
        case Operation::neg:
            return unary<Neg>(decoded);
        case Operation::inc:
            return unary<Inc>(decoded);
        case Operation::dec:
            return unary<Dec>(decoded);
        default:
            return nullptr;
    }
}

}  // namespace emu
