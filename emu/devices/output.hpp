// What a guest printed in one run: bounded, so that no guest can fill the host's memory.
#pragma once
#include "arch/integers.hpp"

namespace emu {

class Output {
 public:
    static constexpr u64 limit = u64{1} << 20;

    void append(u8 byte) {
        if (size_ < limit)
            bytes_[size_++] = byte;
        else
            ++dropped_;
    }
    void clear() { size_ = dropped_ = 0; }
    const u8* bytes() const { return bytes_; }
    u64 size() const { return size_; }
    /// Bytes beyond the limit.
    u64 dropped() const { return dropped_; }

 private:
    u64 size_ = 0;
    u64 dropped_ = 0;
    u8 bytes_[limit];  // left as it comes: only the first size_ bytes mean anything
};

}  // namespace emu
