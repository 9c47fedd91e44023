// How a function that may fault says so: one word in a register. No C++ exceptions in the core (a guest fault as an
// exception costs more than a whole page-fault round trip).
#pragma once
#include "arch/vectors.hpp"

namespace emu {

using CheckId = u16;
inline constexpr CheckId no_check = 0xFFF;

struct Fault {
    Vector vector{};
    u32 error_code = 0;
    CheckId check = no_check;
};

/// Why a run ended, other than by using up its budget.
enum class StopReason : u8 {
    none,
    budget,      // the instruction budget is used up
    exit,        // the guest wrote its status to port 0xF4
    reset,       // the guest asked the keyboard controller for a reset (port 0x64, value 0xFE)
    halted,      // HLT with nothing that could wake the processor
    shutdown,    // a fault while delivering #DF
    unmodelled,  // the guest reached something the emulator does not model; Unmodelled says what
    code_write,  // internal: a store hit a page with decoded code; the run loop redoes it alone
};

/// What is not modelled, by name. The run stops there; it never guesses.
enum class Unmodelled : u8 {
    task_switch,
    task_gate,
    virtual_8086_mode,
    single_step,      // RFLAGS.TF
    debug_registers,  // an enabled breakpoint in DR7
    cet,
    five_level_paging,
    pcid,
    protection_keys,
    x87_mmx_sse,
    monitor_mwait,
    count
};

class [[nodiscard]] Outcome {
    // 63: faulted or stopped | 62: stopped | 52-44: unused | 51-40: check | 39-32: vector or reason | 31-0: error code
    u64 bits_ = 0;
    static constexpr u64 marker = u64{1} << 63, stop_marker = u64{1} << 62;

 public:
    constexpr Outcome() = default;
    constexpr Outcome(Fault f)
        : bits_{marker | (u64{f.check} << 40) | (u64{static_cast<u8>(f.vector)} << 32) | f.error_code} {}
    static constexpr Outcome stop(StopReason reason, u32 detail = 0) {
        Outcome outcome;
        outcome.bits_ = marker | stop_marker | (u64{static_cast<u8>(reason)} << 32) | detail;
        return outcome;
    }
    /// True if the caller must hand this up: a fault, or a reason to stop.
    constexpr bool faulted() const { return bits_ != 0; }
    constexpr bool stopped() const { return (bits_ & stop_marker) != 0; }
    constexpr Fault fault() const {
        return {static_cast<Vector>(field(bits_, 32, 8)), static_cast<u32>(bits_),
                static_cast<CheckId>(field(bits_, 40, 12))};
    }
    constexpr StopReason stop_reason() const { return static_cast<StopReason>(field(bits_, 32, 8)); }
    constexpr u32 detail() const { return static_cast<u32>(bits_); }
};

inline constexpr Outcome no_fault{};
constexpr Outcome unmodelled(Unmodelled what) { return Outcome::stop(StopReason::unmodelled, static_cast<u32>(what)); }

/// The one macro with control flow: hands a fault up.
#define TRY(...)                                                                            \
    do {                                                                                    \
        if (const ::emu::Outcome outcome_ = (__VA_ARGS__); outcome_.faulted()) [[unlikely]] \
            return outcome_;                                                                \
    } while (false)

}  // namespace emu
