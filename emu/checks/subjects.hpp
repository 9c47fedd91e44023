// What a check examines, as far as the fault's error code can name it.
#pragma once
#include "arch/selector.hpp"

namespace emu {

struct NoCode {  // the vector pushes no error code
    static constexpr Names names = Names::no_code;
    constexpr u32 error_code(bool) const { return 0; }
};

struct Nothing {  // error code 0, or EXT alone
    static constexpr Names names = Names::nothing;
    constexpr u32 error_code(bool ext) const { return ext; }
};
inline constexpr NoCode no_code{};
inline constexpr Nothing nothing{};

struct IdtEntry {
    static constexpr Names names = Names::idt_entry;
    u8 vector = 0;
    constexpr u32 error_code(bool ext) const { return u32{vector} * 8 + 2 + static_cast<u32>(ext); }
};

/// A translation that a page walk refuses. The access supplies W/R, U/S and I/D, the check P and RSVD
/// (Intel SDM vol. 3, Page-Fault Exceptions).
struct PageAccess {
    static constexpr Names names = Names::page;
    u32 code = 0;
    constexpr u32 error_code(bool) const { return code; }
};

constexpr u64 subject_word(NoCode) { return 0; }
constexpr u64 subject_word(Nothing) { return 0; }
constexpr u64 subject_word(Selector s) { return s.value; }
constexpr u64 subject_word(IdtEntry e) { return e.vector; }
constexpr u64 subject_word(PageAccess p) { return p.code; }

}  // namespace emu
