// Control registers and model-specific registers by the manual's names (Intel SDM vol. 3, Control Registers; vol. 4).
#pragma once
#include "arch/integers.hpp"

namespace emu {

namespace cr0 {
inline constexpr u64 pe = 1u << 0, mp = 1u << 1, em = 1u << 2, ts = 1u << 3, et = 1u << 4, ne = 1u << 5;
inline constexpr u64 wp = 1u << 16, am = 1u << 18, nw = 1u << 29, cd = 1u << 30, pg = 1u << 31;
inline constexpr u64 defined = pe | mp | em | ts | et | ne | wp | am | nw | cd | pg;
}  // namespace cr0

namespace cr4 {
inline constexpr u64 vme = 1u << 0, pvi = 1u << 1, tsd = 1u << 2, de = 1u << 3, pse = 1u << 4, pae = 1u << 5;
inline constexpr u64 mce = 1u << 6, pge = 1u << 7, pce = 1u << 8, osfxsr = 1u << 9, osxmmexcpt = 1u << 10;
inline constexpr u64 umip = 1u << 11, la57 = 1u << 12, fsgsbase = 1u << 16, pcide = 1u << 17, osxsave = 1u << 18;
inline constexpr u64 smep = 1u << 20, smap = 1u << 21, pke = 1u << 22;
}  // namespace cr4

namespace efer {
inline constexpr u64 sce = 1u << 0, lme = 1u << 8, lma = 1u << 10, nxe = 1u << 11;
}

namespace msr {
inline constexpr u32 tsc = 0x10, apic_base = 0x1B, sysenter_cs = 0x174, sysenter_esp = 0x175, sysenter_eip = 0x176;
inline constexpr u32 misc_enable = 0x1A0, pat = 0x277, efer = 0xC0000080, star = 0xC0000081, lstar = 0xC0000082;
inline constexpr u32 cstar = 0xC0000083, fmask = 0xC0000084, fs_base = 0xC0000100, gs_base = 0xC0000101;
inline constexpr u32 kernel_gs_base = 0xC0000102, tsc_aux = 0xC0000103;
}  // namespace msr

}  // namespace emu
