// A machine: the core with its memory, its translations, its decoded blocks, its trace and the devices. The host's side
// of everything: what Python calls ends here.
#pragma once
#include <memory>

#include "core.hpp"
#include "cpu/execute/block_cache.hpp"
#include "devices/devices.hpp"

namespace emu {

/// How a run ended, and what it did: differences between its end and its beginning.
struct RunEnd {
    StopReason reason = StopReason::none;
    u32 detail = 0;  // exit: the status; unmodelled: which
    u64 instructions = 0;
    Millicycles cycles = 0;
    std::array<u64, cost_event_count> counts{};
};

class Machine {
 public:
    /// Null if the host refuses the memory. `ram_size`: a multiple of 4096.
    static std::unique_ptr<Machine> make(u64 ram_size);
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    Core core;
    Devices devices;

    /// The state after RESET (Intel SDM vol. 3, Processor State After Reset). Memory stays, prices and counts stay.
    void reset();
    /// Call after registers were poked: everything that follows from them is computed anew.
    void poked();
    /// The same for CR0, CR3, CR4 and EFER: with PAE paging the PDPTE registers are loaded as well.
    void poked_paging();

    /// False if the image has no size that a ROM can have; see PhysicalMemory::load_rom.
    bool load_rom(const u8* image, u64 size);
    /// True if every byte of the range is RAM.
    bool is_ram(u64 physical, u64 size) const;
    void read_physical(u64 physical, u8* to, u64 size) const { memory_.read(physical, to, size); }
    void write_physical(u64 physical, const u8* from, u64 size);
    /// By the page tables in force, without rights, checks or side effects. False if not mapped.
    bool translate(u64 linear, u64& physical) const;
    /// False if a byte of the range is not mapped.
    bool read_linear(u64 linear, u8* to, u64 size) const;

    void set_prices(const std::array<Millicycles, cost_event_count>& prices);
    void set_model(const CpuModel& model);

    // A run: start once, advance until it says that the run is over, finish once. A unit of the budget is an
    // instruction retired or an exception delivered, so that a guest that does nothing but fault ends too.
    /// `capacity`: records kept, a power of two. False if the host refuses the memory.
    bool start(u64 budget, TraceLevel level, u64 capacity);
    /// Runs on for at most so many units of the budget. True when the run is over.
    bool advance(u64 units);
    RunEnd finish();

 private:
    Machine() = default;
    void load_pdptes();
    void forget_code();

    PhysicalMemory memory_;
    Tlb translations_;
    BlockCache blocks_;
    std::unique_ptr<Record[]> records_;
    u64 capacity_ = 0;
    RunEnd before_;  // what the books said at the start
    u64 budget_left_ = 0;
    Outcome outcome_;
};

}  // namespace emu
