// Faults become exceptions, a fault while delivering one becomes another, #DF or shutdown
// (Intel SDM vol. 3, Interrupt 8 - Double Fault Exception). A loop, not recursion.
#include "cpu/transition/interrupt_event.hpp"
#include "cpu/transition/transition.hpp"

namespace emu {

inline constexpr u64 becomes_shutdown = 255;

/// What a second fault, met while delivering the first, is turned into: a vector, or becomes_shutdown.
constexpr u64 escalate(Vector first, Vector second) {
    const ExceptionClass before = exception_class(first), now = exception_class(second);
    const bool serious = now == ExceptionClass::contributory || now == ExceptionClass::page_fault;
    switch (before) {
        case ExceptionClass::double_fault:
            return serious ? becomes_shutdown : static_cast<u64>(second);
        case ExceptionClass::page_fault:
            return serious ? static_cast<u64>(Vector::DF) : static_cast<u64>(second);
        case ExceptionClass::contributory:
            return now == ExceptionClass::contributory ? static_cast<u64>(Vector::DF) : static_cast<u64>(second);
        default:
            return static_cast<u64>(second);
    }
}
static_assert(escalate(Vector::GP, Vector::NP) == static_cast<u64>(Vector::DF));
static_assert(escalate(Vector::GP, Vector::PF) == static_cast<u64>(Vector::PF));
static_assert(escalate(Vector::PF, Vector::GP) == static_cast<u64>(Vector::DF));
static_assert(escalate(Vector::DF, Vector::GP) == becomes_shutdown);
static_assert(escalate(Vector::UD, Vector::GP) == static_cast<u64>(Vector::GP));

/// CR2 follows every page fault that is detected, also one that becomes #DF or shutdown (Interrupt 14, footnote).
inline void note_page(Core& core, const Fault& fault) {
    if (fault.vector == Vector::PF) core.cpu.cr2 = core.fault_linear;
}

inline void note_fault(Core& core, const Fault& fault) {
    core.ring.append({core.ledger.cycles, core.instructions, fault.check, RecordKind::fault, 0, core.span,
                      static_cast<u64>(fault.vector), fault.error_code, core.fault_linear, core.cpu.rip});
}

template <Observer Obs>
Outcome deliver_exception(Core& core, Fault fault) {
    core.cpu.interrupt_shadow = false;
    note_page(core, fault);
    for (;;) {
        note_fault(core, fault);
        InterruptEvent event{.vector = static_cast<u8>(fault.vector), .return_rip = core.cpu.rip};
        event.external = true;  // EXT: what goes wrong from here on is not the program's own doing
        event.has_error_code = core.cpu.mode != Mode::real && pushes_error_code(fault.vector);
        event.error_code = fault.error_code;
        const Outcome outcome = deliver_event<Obs>(core, event);
        if (!outcome.faulted() || outcome.stopped()) return outcome;

        const Fault second = outcome.fault();
        note_page(core, second);
        const u64 becomes = escalate(fault.vector, second.vector);
        core.ring.append({core.ledger.cycles, core.instructions, second.check, RecordKind::escalate, 0, core.span,
                          static_cast<u64>(fault.vector), static_cast<u64>(second.vector), becomes, second.error_code});
        if (becomes == becomes_shutdown) return Outcome::stop(StopReason::shutdown);
        fault = becomes == static_cast<u64>(second.vector) ? second : Fault{Vector::DF, 0, no_check};
    }
}

template <Observer Obs>
Outcome software_interrupt(Core& core, SoftwareInterrupt kind, u8 vector) {
    return deliver_event<Obs>(core, {.vector = vector,
                                     .kind = static_cast<EventSource>(kind),
                                     .external = kind == SoftwareInterrupt::int1,
                                     .return_rip = core.next_rip});
}

}  // namespace emu
