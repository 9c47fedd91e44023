// emu_check: the C++ core without Python, built with sanitizers and the loop dispatcher.
#include "expect.hpp"

int main() {
    for (const emu::test::Test& test : emu::test::all_tests()) {
        const int before = emu::test::failures;
        test.run();
        std::printf("%s %s\n", emu::test::failures == before ? "ok    " : "FAILED", test.name);
    }
    return emu::test::failures == 0 ? 0 : 1;
}
