#include "machine.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "cpu/execute/run.hpp"
#include "doors.hpp"

namespace emu {

std::unique_ptr<Machine> Machine::make(u64 ram_size) {
    std::unique_ptr<Machine> machine{new (std::nothrow) Machine};
    if (!machine || !machine->memory_.allocate(ram_size)) return nullptr;
    Core& core = machine->core;
    core.memory = &machine->memory_;
    core.translations = &machine->translations_;
    core.blocks = &machine->blocks_;
    core.ports = machine->devices.ports();
    core.doors = &silent_doors;
    machine->reset();
    return machine;
}

// --- processor -------------------------------------------------------------------------------------------------------

namespace {
constexpr u32 cpuid_signature_leaf = 1;

/// EDX after RESET: family, model and stepping, the same word as CPUID.1:EAX.
u32 signature(const CpuModel& model) {
    for (std::size_t i = 0; i < model.leaf_count; ++i)
        if (model.leaves[i].leaf == cpuid_signature_leaf) return model.leaves[i].eax;
    return 0;
}
}  // namespace

void Machine::reset() {
    constexpr Attributes data{0x93}, ldt{0x82}, busy_tss{0x8B};  // present, writable, accessed
    Processor& cpu = core.cpu;
    cpu = Processor{};
    for (SegmentRegister& segment : cpu.segment) {
        segment.attributes = data;
        segment.limit = 0xFFFF;
    }
    cpu.cs().selector = {0xF000};
    cpu.cs().base = 0xFFFF0000;
    cpu.rip = 0xFFF0;
    cpu.ldtr = {{0}, ldt, 0xFFFF, 0};
    cpu.tr = {{0}, busy_tss, 0xFFFF, 0};
    cpu.cr0 = cr0::et | cr0::cd | cr0::nw;
    cpu.dr[6] = 0xFFFF0FF0;
    cpu.dr[7] = 0x400;
    cpu.gpr[rdx] = signature(core.model);
    cpu.tsc_offset = u64{0} - core.ledger.cycles / millicycles_per_cycle;  // the time-stamp counter starts at 0
    devices.reset();
    poked();
}

void Machine::poked() {
    translations_.flush(true);
    core.refresh_mode();
}

void Machine::poked_paging() {
    const Processor& cpu = core.cpu;
    if (cpu.paging() && !cpu.ia32e() && (cpu.cr4 & cr4::pae) != 0) load_pdptes();
    poked();
}

void Machine::load_pdptes() {
    u8 raw[sizeof core.cpu.pdpte];
    memory_.read(core.cpu.cr3 & 0xFFFFFFE0, raw, sizeof raw);
    std::memcpy(core.cpu.pdpte.data(), raw, sizeof raw);
}

void Machine::set_prices(const std::array<Millicycles, cost_event_count>& prices) {
    forget_code();
    core.ledger.price = prices;
}

void Machine::set_model(const CpuModel& model) {
    forget_code();
    core.model = model;
    translations_.flush(true);
}

void Machine::forget_code() {
    harvest(core);
    blocks_.clear();
    ++core.running.code_epoch;
}

// --- memory ----------------------------------------------------------------------------------------------------------

bool Machine::load_rom(const u8* image, u64 size) {
    forget_code();
    translations_.flush(true);
    return memory_.load_rom(image, size);
}

bool Machine::is_ram(u64 physical, u64 size) const {
    for (u64 at = physical & ~page_mask; at < physical + size; at += page_size)
        if (!memory_.page(at).ram) return false;
    return true;
}

/// The guest may have decoded what is overwritten, or translated by it: both are forgotten.
void Machine::write_physical(u64 physical, const u8* from, u64 size) {
    memory_.write(physical, from, size);
    bool code = false;
    for (u64 at = physical & ~page_mask; at < physical + size; at += page_size) code |= memory_.has_code(at);
    if (code) forget_code();
    translations_.flush(true);
}

bool Machine::translate(u64 linear, u64& physical) const {
    constexpr u64 present = 1, large = 1u << 7;
    const Processor& cpu = core.cpu;
    if (!cpu.ia32e()) linear &= 0xFFFFFFFF;
    physical = linear;
    if (!cpu.paging()) return true;

    const bool wide = cpu.ia32e() || (cpu.cr4 & cr4::pae) != 0;
    const unsigned index_bits = wide ? 9 : 10, entry_size = wide ? 8 : 4;
    const u64 address = wide ? low_bits(~u64{0}, core.model.physical_address_bits) & ~page_mask : 0xFFFFF000;
    u64 entry = cpu.cr3;
    unsigned level = cpu.ia32e() ? 4 : 2;
    if (wide && !cpu.ia32e()) {
        entry = cpu.pdpte[field(linear, 30, 2)];
        if ((entry & present) == 0) return false;
    }
    for (;; --level) {
        const unsigned shift = 12 + index_bits * (level - 1);
        u8 raw[8] = {};
        memory_.read((entry & address) + field(linear, shift, index_bits) * entry_size, raw, entry_size);
        std::memcpy(&entry, raw, sizeof entry);
        if ((entry & present) == 0) return false;
        const bool may_be_large = wide ? level == 2 || level == 3 : level == 2 && (cpu.cr4 & cr4::pse) != 0;
        if (level == 1 || (may_be_large && (entry & large) != 0)) {
            physical = (entry & address & ~low_bits(~u64{0}, shift)) | low_bits(linear, shift);
            if (!wide && level == 2) physical |= field(entry, 13, 8) << 32;  // PSE-36: address bits 39:32
            return true;
        }
    }
}

bool Machine::read_linear(u64 linear, u8* to, u64 size) const {
    while (size > 0) {
        const u64 part = std::min(size, page_size - (linear & page_mask));
        u64 physical = 0;
        if (!translate(linear, physical)) return false;
        memory_.read(physical, to, part);
        linear += part, to += part, size -= part;
    }
    return true;
}

// --- runs ------------------------------------------------------------------------------------------------------------

bool Machine::start(u64 budget, TraceLevel level, u64 capacity) {
    if (capacity != capacity_) {
        records_.reset(new (std::nothrow) Record[capacity]);
        capacity_ = records_ ? capacity : 0;
        if (!records_) return false;
    }
    core.ring.use(records_.get(), capacity);
    core.level = level;
    core.doors = level == TraceLevel::off ? &silent_doors : &recording_doors;
    core.span = core.spans = 0;
    devices.text.clear();
    devices.serial_text.clear();
    harvest(core);
    before_.instructions = core.instructions;
    before_.cycles = core.ledger.cycles;
    before_.counts = core.ledger.counts;
    budget_left_ = budget;
    outcome_ = {};
    return true;
}

bool Machine::advance(u64 units) {
    const u64 allowed = std::min(budget_left_, units);
    outcome_ = run(core, allowed);
    budget_left_ -= allowed;
    return budget_left_ == 0 || outcome_.stop_reason() != StopReason::budget;
}

RunEnd Machine::finish() {
    harvest(core);
    RunEnd end;
    end.reason = outcome_.stopped() ? outcome_.stop_reason() : StopReason::budget;
    end.detail = outcome_.detail();
    end.instructions = core.instructions - before_.instructions;
    end.cycles = core.ledger.cycles - before_.cycles;
    for (std::size_t i = 0; i < cost_event_count; ++i) end.counts[i] = core.ledger.counts[i] - before_.counts[i];
    return end;
}

}  // namespace emu
