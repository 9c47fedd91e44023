#include "mmu/physical_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace emu {

namespace {
constexpr u64 four_gib = u64{1} << 32, three_gib = u64{3} << 30, one_mib = 0x100000;

u8* reserve(u64 size) {
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? nullptr : static_cast<u8*>(at);
}
void release(u8* at, u64 size) {
    if (at != nullptr) munmap(at, size);
}
}  // namespace

PhysicalMemory::~PhysicalMemory() {
    release(ram_, ram_size_);
    release(code_pages_, ram_size_ / page_size);
    release(rom_, rom_size_);
    release(ones_, page_size);
}

bool PhysicalMemory::allocate(u64 ram_size) {
    ram_ = reserve(ram_size);
    ram_size_ = ram_size;
    code_pages_ = reserve(ram_size / page_size);
    ones_ = reserve(page_size);
    if (ram_ == nullptr || code_pages_ == nullptr || ones_ == nullptr) return false;
    std::memset(ones_, 0xFF, page_size);
    low_ram_ = std::min(ram_size, three_gib);
    return true;
}

bool PhysicalMemory::load_rom(const u8* image, u64 size) {
    if (size == 0 || size % page_size != 0 || size > (u64{16} << 20)) return false;
    release(rom_, rom_size_);
    rom_size_ = rom_window_ = 0;
    rom_ = reserve(size);
    if (rom_ == nullptr) return false;
    std::memcpy(rom_, image, size);
    rom_size_ = size;
    rom_window_ = std::min<u64>(size, 0x20000);
    return true;
}

HostPage PhysicalMemory::other_page(u64 at) const {
    if (at < one_mib && at >= one_mib - rom_window_) return {rom_ + rom_size_ - (one_mib - at), false, false};
    if (at < four_gib && at >= four_gib - rom_size_) return {rom_ + rom_size_ - (four_gib - at), false, false};
    if (const u64 index = ram_page(at); index != ~u64{0}) return {ram_ + index * page_size, true, true};
    return {ones_, false, false};
}

u64 PhysicalMemory::ram_page(u64 physical) const {
    if (physical < low_ram_) return physical / page_size;
    if (physical >= four_gib && physical - four_gib < ram_size_ - low_ram_)
        return (low_ram_ + (physical - four_gib)) / page_size;
    return ~u64{0};
}

bool PhysicalMemory::has_code(u64 physical) const {
    const u64 index = ram_page(physical);
    return index != ~u64{0} && code_pages_[index] != 0;
}

void PhysicalMemory::mark_code(u64 physical, bool has) {
    if (const u64 index = ram_page(physical); index != ~u64{0}) code_pages_[index] = has;
}

void PhysicalMemory::read(u64 physical, u8* to, u64 size) const {
    while (size > 0) {
        const u64 part = std::min(size, page_size - (physical & page_mask));
        std::memcpy(to, page(physical).host + (physical & page_mask), part);
        physical += part, to += part, size -= part;
    }
}

void PhysicalMemory::write(u64 physical, const u8* from, u64 size) {
    while (size > 0) {
        const u64 part = std::min(size, page_size - (physical & page_mask));
        if (const HostPage target = page(physical); target.writable)
            std::memcpy(target.host + (physical & page_mask), from, part);
        physical += part, from += part, size -= part;
    }
}

}  // namespace emu
