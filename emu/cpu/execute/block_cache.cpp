#include "cpu/execute/block_cache.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "cpu/decode/decoder.hpp"
#include "cpu/execute/handlers.hpp"
#include "doors.hpp"

namespace emu {

namespace {

/// The bytes from which one block is decoded: what the fetch door gave for the first instruction, then the same page.
struct Source {
    u64 rip = 0, linear = 0, physical = 0;
    u8 bytes[longest_instruction + 1] = {};
    u8 count = 0;
};

Outcome fetch(Core& core, Source& source) {
    source.rip = core.cpu.rip;
    source.linear = core.cpu.cs().linear_base + source.rip;
    core.next_rip = source.rip;
    return core.doors->fetch(core, source.rip, 1, source.bytes, source.count, source.physical);
}

/// The first instruction may go on in the next page.
Outcome decode_first(Core& core, Source& source, Decoded& decoded) {
    while (!decode(source.bytes, source.count, decode_context(core, source.rip), decoded)) {
        u64 physical;
        const u8 needed = static_cast<u8>(source.count + 1);
        TRY(core.doors->fetch(core, source.rip, needed, source.bytes, source.count, physical));
    }
    return no_fault;
}

void append(Block& block, const Decoded& decoded, const Ledger& ledger) {
    Instruction& at = block.code()[block.count];
    at = decoded.code;
    at.run = handler_of(decoded);
    at.place = static_cast<u8>(block.count);
    at.offset = static_cast<u8>(block.bytes);
    block.costs[block.count] = decoded.cost;
    if (decoded.cost != CostEvent::count) block.cost += ledger.price[index(decoded.cost)];
    if (block.count == 0) block.components = decoded.components;
    ++block.count;
    block.bytes = static_cast<u16>(block.bytes + decoded.code.length);
}

/// The rest of the block, as far as the page, the limit and `most` go. Nothing here faults: what cannot be fetched or
/// decoded begins the next block, if execution gets there. `last` becomes the last instruction.
void append_more(Core& core, Block& block, u32 most, Decoded& last) {
    constexpr u32 most_bytes = 255 - longest_instruction;  // offsets are bytes
    const u8* page = core.memory->page(block.physical).host;
    while (!last.ends_block && block.count < most && block.bytes < most_bytes) {
        const u64 rip = block.rip + block.bytes, in_page = (block.physical & page_mask) + block.bytes;
        if (in_page >= page_size) return;
        u64 room = page_size - in_page;
        if (core.cpu.mode != Mode::long64) {
            if (rip > block.limit) return;
            room = std::min(room, u64{block.limit} - rip + 1);
        }
        Decoded decoded;
        const u8 count = static_cast<u8>(std::min<u64>(room, longest_instruction));
        if (!decode(page + in_page, count, decode_context(core, rip), decoded)) return;
        if (decoded.operation == Operation::invalid) return;
        append(block, decoded, core.ledger);
        if (const Handler both = fused_handler(last, decoded); both != nullptr)
            block.code()[block.count - 2].run = both;
        last = decoded;
    }
}

/// After the last instruction: the slots for its links, or a branch to where the next block begins.
void finish(Block& block, const Decoded& last) {
    Instruction* at = block.code() + block.count;
    block.falls_through = !last.ends_block;
    if (block.falls_through) {
        *at = Instruction{.run = fall_through_handler()};
        at->place = static_cast<u8>(block.count);
        at->offset = static_cast<u8>(block.bytes);
        ++at;
    }
    new (at) Link{.conditional = last.operation == Operation::jcc};
}

void build(Core& core, Block* block, const Source& source, const Decoded& first, u32 most) {
    new (block) Block{};
    block->limit = core.cpu.cs().limit;
    block->rip = source.rip;
    block->linear = source.linear;
    block->physical = source.physical;
    block->context = core.context;
    append(*block, first, core.ledger);
    Decoded last = first;
    append_more(core, *block, most, last);
    block->arrival_price = block->components * core.ledger.price[index(CostEvent::next_component)];
    finish(*block, last);
}

bool crosses_page(const Source& source, const Decoded& first) {
    return (source.physical & page_mask) + first.code.length > page_size;
}

constexpr u64 aligned(u64 size) { return (size + 31) & ~u64{31}; }
u64 size_of(const Block& block) {
    return aligned(sizeof(Block) + (block.count + 1 + link_slots) * sizeof(Instruction));
}

}  // namespace

BlockCache::BlockCache() {
    void* at = mmap(nullptr, arena_size + largest_block, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return;
    memory_ = static_cast<u8*>(at);
    new (scratch()) Block{};
}

BlockCache::~BlockCache() {
    if (memory_ != nullptr) munmap(memory_, arena_size + largest_block);
}

Block* BlockCache::scratch() { return std::bit_cast<Block*>(memory_ + arena_size); }

void BlockCache::clear() {
    used_ = 0;
    entered_ = false;
    jumps_.fill({});
    hashes_.fill(nullptr);
    pages_.fill(nullptr);
    new (scratch()) Block{};
}

Block* BlockCache::known(const Core& core, const u64 physical) const {
    const Processor& cpu = core.cpu;
    for (Block* block = hashes_[hash_index(physical, cpu.rip)]; block != nullptr; block = block->same_hash)
        if (block->physical == physical && block->rip == cpu.rip && block->context == core.context &&
            block->limit == cpu.cs().limit && block->linear == cpu.cs().linear_base + cpu.rip)
            return block;
    return nullptr;
}

void BlockCache::keep(Core& core, Block* block) {
    block->cached = true;
    Block*& by_hash = hashes_[hash_index(block->physical, block->rip)];
    block->same_hash = by_hash;
    by_hash = block;
    Block*& by_page = pages_[page_index(block->physical)];
    block->same_page = by_page;
    by_page = block;
    used_ += size_of(*block);
    if (!core.memory->has_code(block->physical)) {
        core.memory->mark_code(block->physical, true);
        core.translations->forbid_writes(block->physical);
    }
}

Block* BlockCache::find(Core& core, Outcome& outcome) {
    Running& running = core.running;
    if (const u32 now = core.translations->generation(); now != translations_seen_) {
        translations_seen_ = now;
        ++running.code_epoch;
    }
    entered_ = true;
    if (Block* block = find_again(core, core.cpu.rip); block != nullptr) return block;

    Source source;
    outcome = fetch(core, source);
    if (outcome.faulted()) return nullptr;
    Block* block = known(core, source.physical);
    if (block == nullptr) {
        Decoded first;
        outcome = decode_first(core, source, first);
        if (outcome.faulted()) return nullptr;
        if (crosses_page(source, first)) {
            fold_scratch(core.ledger);
            build(core, scratch(), source, first, 1);
            return scratch();
        }
        if (used_ + largest_block > arena_size) {
            harvest(core.ledger);
            clear();
            ++running.code_epoch;
            entered_ = true;
        }
        block = std::bit_cast<Block*>(memory_ + used_);
        build(core, block, source, first, longest_block);
        keep(core, block);
    }
    jumps_[jump_index(block->rip)] = {block->rip, block->linear, block, running.code_epoch, core.context};
    return block;
}

Block* BlockCache::find_short(Core& core, u32 count, Outcome& outcome) {
    fold_scratch(core.ledger);
    Source source;
    Decoded first;
    outcome = fetch(core, source);
    if (!outcome.faulted()) outcome = decode_first(core, source, first);
    if (outcome.faulted()) return nullptr;
    build(core, scratch(), source, first, crosses_page(source, first) ? 1 : std::min(count, longest_block));
    return scratch();
}

void BlockCache::unlink(Block* block) {
    for (Block** at = &hashes_[hash_index(block->physical, block->rip)]; *at != nullptr; at = &(*at)->same_hash)
        if (*at == block) {
            *at = block->same_hash;
            break;
        }
    block->cached = false;
}

void BlockCache::drop(Core& core, u64 physical, u64 size) {
    const u64 page = physical & ~page_mask;
    bool dropped = false, others = false;
    for (Block** at = &pages_[page_index(page)]; *at != nullptr;) {
        Block* block = *at;
        if (block->covers(physical, size)) {
            unlink(block);
            *at = block->same_page;
            dropped = true;
            continue;
        }
        others |= (block->physical & ~page_mask) == page;
        at = &block->same_page;
    }
    if (dropped) ++core.running.code_epoch;
    if (!others) core.memory->mark_code(page, false);
}

void BlockCache::fold(Ledger& ledger, Block& block) {
    if (block.executions == 0 && block.arrivals == 0) return;
    u64 arrivals = block.arrivals * block.components;
    for (u32 i = 0; i < block.count; ++i)
        if (block.costs[i] != CostEvent::count) ledger.counts[index(block.costs[i])] += block.executions;
    Link& link = link_of(block.code() + block.count - (block.falls_through ? 0 : 1));
    arrivals += link.taken * link.taken_components;
    if (link.conditional) ledger.counts[index(CostEvent::jump_taken)] += link.taken;
    ledger.counts[index(CostEvent::next_component)] += arrivals;
    block.executions = block.arrivals = 0;
    link.taken = 0;
}

void BlockCache::harvest(Ledger& ledger) {
    fold_scratch(ledger);
    if (!entered_) return;
    entered_ = false;
    for (u64 at = 0; at < used_;) {
        Block& block = *std::bit_cast<Block*>(memory_ + at);
        fold(ledger, block);
        at += size_of(block);
    }
}

void harvest(Core& core) { core.blocks->harvest(core.ledger); }

}  // namespace emu
