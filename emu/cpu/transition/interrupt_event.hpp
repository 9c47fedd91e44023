// What is delivered through the IDT, and from where.
#pragma once
#include "arch/tss.hpp"
#include "doors.hpp"

namespace emu {

enum class EventSource : u8 { int_n, int3, into, int1, exception };

struct InterruptEvent {
    u8 vector = 0;
    EventSource kind = EventSource::exception;
    bool external = false;  // EXT of faults met while delivering it
    bool has_error_code = false;
    u32 error_code = 0;
    u64 return_rip = 0;

    /// INT1 is not subject to the gate's DPL (Intel SDM vol. 2, INT n, "software interrupt").
    constexpr bool from_software() const { return kind != EventSource::exception && kind != EventSource::int1; }

    /// Faults push RF = 1, so that an instruction breakpoint does not fire again when the handler returns; an
    /// instruction that completes clears RF, INT n included (Intel SDM vol. 3, Resume Flag).
    constexpr u64 pushed_flags(u64 flags) const {
        const bool fault = kind == EventSource::exception && vector != static_cast<u8>(Vector::DB) &&
                           vector != static_cast<u8>(Vector::DF) && vector != static_cast<u8>(Vector::MC);
        return fault ? flags | rflags::rf : flags & ~rflags::rf;
    }
};

}  // namespace emu
