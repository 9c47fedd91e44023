// What the error code of a fault can name.
#pragma once
#include "arch/integers.hpp"

namespace emu {

enum class Names : u8 {
    no_code,    // the vector pushes no error code (#UD, #DE, ...)
    nothing,    // error code 0 (+ EXT)
    selector,   // index and TI of a selector (+ EXT)
    idt_entry,  // vector * 8 + IDT (+ EXT)
    page,       // page-fault error code: P, W/R, U/S, RSVD, I/D
};

}  // namespace emu
