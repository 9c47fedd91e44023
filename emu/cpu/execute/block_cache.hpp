// Decoded code. A block is a run of instructions inside one page that is entered at its first and, if nothing faults,
// left at its last. Blocks are known by everything their decoding depended on; what decoding saw is guarded like this:
//   the bytes         pages with blocks are marked: stores to them come to a door, and the blocks they hit are dropped
//   the translation   code_epoch: links between blocks and the jump cache are valid only in the epoch that made them
//   CS limit, widths  part of what a block is known by
#pragma once
#include <bit>

#include "cpu/decode/instruction.hpp"

namespace emu {

inline constexpr u32 longest_block = 32;

struct alignas(32) Block {
    Millicycles cost = 0;           // of all its instructions
    u64 executions = 0;             // not yet harvested
    u32 count = 0;                  // instructions
    u32 limit = 0;                  // CS.limit
    u64 arrivals = 0;               // by taken near branches that are not linked; not yet harvested
    Millicycles arrival_price = 0;  // of next_component, all of them
    u64 rip = 0;
    u64 linear = 0;
    u64 physical = 0;
    u32 context = 0;
    u16 bytes = 0;
    u8 components = 0;           // of its first instruction
    bool cached = false;         // false: built for one use or dropped, not to be linked or found
    bool falls_through = false;  // a branch to the next block follows the last instruction
    Block* same_hash = nullptr;
    Block* same_page = nullptr;
    std::array<CostEvent, longest_block> costs{};  // class of each instruction

    Instruction* code() { return std::bit_cast<Instruction*>(this + 1); }
    const Instruction* code() const { return std::bit_cast<const Instruction*>(this + 1); }
    bool covers(u64 first, u64 size) const { return physical < first + size && first < physical + bytes; }
};

inline Block& block_of(const Instruction* at) { return std::bit_cast<Block*>(at - at->place)[-1]; }

/// The two slots after a near branch: where it went before. Index 1: taken.
struct alignas(32) Link {
    std::array<Block*, 2> block{};
    std::array<u32, 2> epoch{};   // 0 is no epoch
    u64 taken = 0;                // times taken by this link; not yet harvested
    Millicycles taken_price = 0;  // what taking it costs beside the block it goes to
    u8 taken_components = 0;
    bool conditional = false;
};
inline constexpr u32 link_slots = 2;
static_assert(sizeof(Link) == link_slots * sizeof(Instruction));

inline Link& link_of(const Instruction* at) { return *std::bit_cast<Link*>(at + 1); }

struct JumpEntry {
    u64 rip = 0;
    u64 linear = 0;
    Block* block = nullptr;
    u32 epoch = 0;
    u32 context = 0;
};

class BlockCache {
 public:
    static constexpr u64 arena_size = u64{16} << 20;

    BlockCache();
    BlockCache(const BlockCache&) = delete;
    BlockCache& operator=(const BlockCache&) = delete;
    ~BlockCache();

    /// Forgets all blocks. Call harvest() before, or their counts are lost; call it when prices, the processor model or
    /// memory changed behind the processor's back.
    void clear();
    /// The guest wrote `size` bytes: blocks decoded from them are dropped, but not overwritten.
    void drop(Core& core, u64 physical, u64 size);
    /// Adds to the ledger what executed blocks stand for.
    void harvest(Ledger& ledger);

    /// The block at CS:RIP, decoded now if need be. Null if fetching faults; `outcome` says how.
    Block* find(Core& core, Outcome& outcome);
    /// At most `count` instructions from CS:RIP, in a block for one use.
    Block* find_short(Core& core, u32 count, Outcome& outcome);

    /// What find() would give, if that is known without further ado; else null.
    EMU_ALWAYS_INLINE Block* find_again(const Core& core, u64 rip) {
        const SegmentRegister& cs = core.cpu.cs();
        const JumpEntry& entry = jumps_[jump_index(rip)];
        const u64 linear = cs.linear_base + rip;
        const bool hit = (entry.rip == rip) & (entry.linear == linear) & (entry.context == core.context) &
                         (entry.epoch == core.running.code_epoch);
        if (!hit || entry.block->limit != cs.limit) [[unlikely]]
            return nullptr;
        return entry.block;
    }

 private:
    static constexpr std::size_t jump_count = 4096, hash_count = 16384, page_count = 4096;
    static constexpr std::size_t largest_block = sizeof(Block) + (longest_block + 1 + link_slots) * sizeof(Instruction);

    static std::size_t jump_index(u64 rip) { return (rip ^ (rip >> 12)) & (jump_count - 1); }
    static std::size_t hash_index(u64 physical, u64 rip) {
        return (physical ^ (physical >> 14) ^ (rip >> 16)) & (hash_count - 1);
    }
    static std::size_t page_index(u64 physical) { return (physical >> 12) & (page_count - 1); }

    Block* scratch();
    Block* known(const Core& core, u64 physical) const;
    void keep(Core& core, Block* block);
    void unlink(Block* block);
    static void fold(Ledger& ledger, Block& block);
    void fold_scratch(Ledger& ledger) { fold(ledger, *scratch()); }

    u8* memory_ = nullptr;  // the arena, then the scratch block
    u64 used_ = 0;
    u32 translations_seen_ = 0;
    bool entered_ = false;  // since the last harvest
    std::array<JumpEntry, jump_count> jumps_{};
    std::array<Block*, hash_count> hashes_{};
    std::array<Block*, page_count> pages_{};
};

/// Adds to core.ledger.counts what executed blocks stand for; run() does it at its end.
void harvest(Core& core);

}  // namespace emu
