// A machine in flat 32-bit protected mode without paging, with a program at `program_at`.
#pragma once
#include <initializer_list>
#include <vector>

#include "cpu/execute/run.hpp"
#include "expect.hpp"
#include "machine.hpp"

namespace emu::test {

inline constexpr u64 program_at = 0x10000, stack_at = 0x9000;

struct Guest {
    std::unique_ptr<Machine> machine = Machine::make(4 << 20);
    Core& core = machine->core;

    explicit Guest(std::initializer_list<int> code) {
        std::vector<u8> bytes;
        for (const int byte : code) bytes.push_back(static_cast<u8>(byte));
        machine->write_physical(program_at, bytes.data(), bytes.size());
        for (std::size_t i = 0; i < cost_event_count; ++i) core.ledger.price[i] = 1000 + 10 * i;
        core.cpu.cr0 |= cr0::pe;
        for (SegmentRegister& segment : core.cpu.segment) {
            segment.selector = {16};
            segment.base = 0;
            segment.limit = 0xFFFFFFFF;
            segment.attributes = Attributes{0xC093};
        }
        core.cpu.cs().attributes = Attributes{0xC09B};
        core.cpu.gpr[rsp] = stack_at;
        core.cpu.rip = program_at;
        core.cpu.rflags = rflags::reserved_one;
        machine->poked();
        machine->start(~u64{0}, TraceLevel::off, 16);
    }
    StopReason go(u64 budget = 1'000'000) { return run(core, budget).stop_reason(); }
    u64 count(CostEvent event) const { return core.ledger.counts[index(event)]; }
};

}  // namespace emu::test
