// The only run loop.
#pragma once
#include "core.hpp"

namespace emu {

/// Runs until something stops the run, or `budget` instructions are used up (StopReason::budget). Faults are delivered
/// on the way. When it returns, core.cpu and core.ledger are whole.
///
/// Each iteration of a repeated string instruction, and each delivery of a fault, uses up a unit of the budget as well,
/// so that every run ends: core.instructions may have grown by less than the budget. What is left is in
/// core.running.budget.
Outcome run(Core& core, u64 budget);

/// Brings core.ledger.counts up to date; run() does it at its end.
void harvest(Core& core);

}  // namespace emu
