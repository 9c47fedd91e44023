// Text on the debug port. It works in ring 0, and in ring 3 because of IOPL 3.
#pragma once

#include "processor.hpp"

namespace console {

inline constexpr u16 debug_port = 0xE9;

inline void print(char character) { processor::out(debug_port, u8(character)); }

inline void print(const char* text) {
    for (; *text; ++text) print(*text);
}

inline void print(u64 number) {
    if (number >= 10) print(number / 10);
    print(char('0' + number % 10));
}

// With two decimals.
inline void print_hundredths(u64 hundredths) {
    print(hundredths / 100);
    print('.');
    print(char('0' + hundredths / 10 % 10));
    print(char('0' + hundredths % 10));
}

}  // namespace console
