// RAM, ROM and nothing: what answers at a physical address.
//   0 ... low RAM, at most 3 GiB ... | nothing | ROM, ending at 4 GiB | the rest of RAM from 4 GiB
// The last 128 KiB at most of the ROM also answer below 1 MiB. Nothing reads as ones and ignores writes.
#pragma once
#include "arch/integers.hpp"

namespace emu {

inline constexpr u64 page_size = 4096, page_mask = page_size - 1;

/// Host address of a guest page, and whether stores through it are allowed (ROM and nothing: no).
struct HostPage {
    u8* host = nullptr;
    bool writable = false;
    bool ram = false;
};

class PhysicalMemory {
    u8* ram_ = nullptr;
    u64 ram_size_ = 0;
    u64 low_ram_ = 0;
    u8* rom_ = nullptr;
    u64 rom_size_ = 0;
    u64 rom_window_ = 0;        // how much of the ROM's end answers below 1 MiB
    u8* code_pages_ = nullptr;  // one byte a RAM page: 1 if decoded code came from it
    u8* ones_ = nullptr;

 public:
    PhysicalMemory() = default;
    PhysicalMemory(const PhysicalMemory&) = delete;
    PhysicalMemory& operator=(const PhysicalMemory&) = delete;
    ~PhysicalMemory();

    /// Reserves `ram_size` bytes (a multiple of 4096), touched only when the guest does. False if the host refuses.
    bool allocate(u64 ram_size);
    /// Copies a ROM image; it ends at 4 GiB. Its size must be a multiple of 4096, at most 16 MiB.
    bool load_rom(const u8* image, u64 size);

    u64 ram_size() const { return ram_size_; }
    u64 low_ram() const { return low_ram_; }
    u64 rom_size() const { return rom_size_; }

    /// Total: every physical address has a page. Never null.
    HostPage page(u64 physical) const {
        const u64 at = physical & ~page_mask;
        if (at < low_ram_ && (at < 0x100000 - rom_window_ || at >= 0x100000)) return {ram_ + at, true, true};
        return other_page(at);
    }
    bool has_code(u64 physical) const;
    void mark_code(u64 physical, bool has);

    /// For the host: copies across pages; writes to ROM and nothing are dropped. Ranges wrap at 2^52.
    void read(u64 physical, u8* to, u64 size) const;
    void write(u64 physical, const u8* from, u64 size);

 private:
    HostPage other_page(u64 at) const;
    u64 ram_page(u64 physical) const;  // index of the RAM page, or ~0
};

}  // namespace emu
