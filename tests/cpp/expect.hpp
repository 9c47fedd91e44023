// A test is a function that expects things; main runs them all and counts what did not hold.
#pragma once
#include <cstdio>
#include <vector>

namespace emu::test {

struct Test {
    const char* name;
    void (*run)();
};
inline std::vector<Test>& all_tests() {
    static std::vector<Test> tests;
    return tests;
}
inline int failures = 0;

struct Register {
    Register(const char* name, void (*run)()) { all_tests().push_back({name, run}); }
};

template <class A, class B>
void expect_equal(const A& got, const B& wanted, const char* what, int line) {
    if (got == wanted) return;
    ++failures;
    std::printf("  line %d: %s is %llx, not %llx\n", line, what, static_cast<unsigned long long>(got),
                static_cast<unsigned long long>(wanted));
}

}  // namespace emu::test

#define TEST(name)                                                        \
    static void test_##name();                                            \
    static const emu::test::Register register_##name{#name, test_##name}; \
    static void test_##name()
#define EXPECT_EQUAL(got, wanted) emu::test::expect_equal((got), (wanted), #got, __LINE__)
