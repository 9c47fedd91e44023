// The only place that tests a check, charges for it, records it and makes its fault.
#pragma once
#include "checks/catalogue.hpp"

namespace emu {

/// T is an inspector: charge(), checked(), failed(), `ext` and `listens` (see Transition).
template <const auto& check, class T, class Subject, class... Operands>
EMU_ALWAYS_INLINE Outcome require(T& t, Subject examined, Operands... operands) {
    constexpr CheckId id = catalogue::id_of<check>();
    constexpr FaultForm form = check.fault;
    static_assert(form.names == Subject::names, "the error code of this fault cannot name the thing examined");
    t.charge(check.cost);
    const bool held = check.holds(operands...);
    if constexpr (T::listens) t.checked(id, held, subject_word(examined), word(operands)...);
    if (!held) [[unlikely]] {
        if constexpr (!T::listens) t.failed(id, subject_word(examined), word(operands)...);
        return Fault{form.vector, examined.error_code(t.ext), id};
    }
    return no_fault;
}

}  // namespace emu
