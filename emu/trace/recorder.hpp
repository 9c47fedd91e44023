// A bounded ring of records that counts what it had to drop (the oldest), and the two observers a room can have.
#pragma once
#include "trace/records.hpp"

namespace emu {

class Ring {
    Record* records_ = nullptr;
    u64 mask_ = 0;
    u64 written_ = 0;

 public:
    /// `storage` holds `capacity` records, a power of two.
    void use(Record* storage, u64 capacity) {
        records_ = storage;
        mask_ = capacity - 1;
        written_ = 0;
    }
    void append(const Record& record) { records_[written_++ & mask_] = record; }
    void clear() { written_ = 0; }
    u64 capacity() const { return mask_ + 1; }
    u64 written() const { return written_; }
    u64 kept() const { return written_ < capacity() ? written_ : capacity(); }
    u64 dropped() const { return written_ - kept(); }
    /// The i-th oldest record that is kept.
    const Record& at(u64 i) const { return records_[(dropped() + i) & mask_]; }
};

/// Observers are types without state: what a room compiles into. Silent leaves nothing but the checks themselves.
struct Silent {
    static constexpr bool listens = false;
};
struct Recorder {
    static constexpr bool listens = true;
};

}  // namespace emu
