// The books of a run: what was done, how often, and what that costs under the profile in force.
#pragma once
#include <array>

#include "cost/events.hpp"

namespace emu {

/// Cycles are kept in thousandths, so that a profile may price an instruction below one cycle and stay exact.
using Millicycles = u64;
inline constexpr Millicycles millicycles_per_cycle = 1000;

struct Ledger {
    std::array<u64, cost_event_count> counts{};         // independent of any profile
    std::array<Millicycles, cost_event_count> price{};  // the profile in force
    Millicycles cycles = 0;                             // drives RDTSC

    void charge(CostEvent event, u64 n = 1) {
        counts[index(event)] += n;
        cycles += n * price[index(event)];
    }
};

}  // namespace emu
