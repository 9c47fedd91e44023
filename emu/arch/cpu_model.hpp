// What distinguishes one processor from another, as data: vendor rules, widths, features and CPUID leaves.
// Filled from a profile; consulted wherever Intel's and AMD's manuals differ.
#pragma once
#include <array>

#include "arch/integers.hpp"

namespace emu {

enum class Vendor : u8 { intel, amd };

struct CpuidLeaf {
    u32 leaf = 0, subleaf = 0;
    u32 eax = 0, ebx = 0, ecx = 0, edx = 0;
};

struct CpuModel {
    Vendor vendor = Vendor::intel;
    u8 physical_address_bits = 39;
    bool long_mode = true, nx = true, pages_1gib = true, global_pages = true, page_size_extension = true, pae = true;
    bool smep = true, smap = true, syscall = true, sysenter = true, rdtscp = true, fsgsbase = true, umip = true;
    bool pcid = false;
    std::array<CpuidLeaf, 32> leaves{};
    std::size_t leaf_count = 0;
};

}  // namespace emu
