// The run loop and its books: runs cut into pieces end as whole runs do, and nothing stale is executed.
#include "execute_machine.hpp"

namespace {

using namespace emu;
using emu::test::Guest;
using emu::test::program_at;

constexpr int hlt = 0xF4;

/// Sums and calls: mov ecx,50 / L: add eax,ecx / call F / dec ecx / jnz L / hlt / F: push eax / pop edx / ret.
Guest loop_guest() {
    return Guest{0xB9, 50, 0, 0, 0, 0x01, 0xC8, 0xE8, 4, 0, 0, 0, 0x49, 0x75, 0xF6, hlt, 0x50, 0x5A, 0xC3};
}

void expect_same(const Guest& cut, const Guest& whole) {
    EXPECT_EQUAL(cut.core.instructions, whole.core.instructions);
    EXPECT_EQUAL(cut.core.ledger.cycles, whole.core.ledger.cycles);
    for (std::size_t i = 0; i < cost_event_count; ++i)
        EXPECT_EQUAL(cut.core.ledger.counts[i], whole.core.ledger.counts[i]);
    for (unsigned i = 0; i < 16; ++i) EXPECT_EQUAL(cut.core.cpu.gpr[i], whole.core.cpu.gpr[i]);
    EXPECT_EQUAL(cut.core.cpu.rip, whole.core.cpu.rip);
    EXPECT_EQUAL(cut.core.cpu.rflags, whole.core.cpu.rflags);
}

TEST(whole_run) {
    Guest guest = loop_guest();
    EXPECT_EQUAL(static_cast<int>(guest.go()), static_cast<int>(StopReason::halted));
    EXPECT_EQUAL(guest.core.cpu.gpr[rax], 50u * 51 / 2);
    EXPECT_EQUAL(guest.core.cpu.gpr[rdx], 50u * 51 / 2);
    EXPECT_EQUAL(guest.core.instructions, 2 + 50u * 7);
    EXPECT_EQUAL(guest.count(CostEvent::jump_conditional), 50u);
    EXPECT_EQUAL(guest.count(CostEvent::jump_taken), 49u);
    EXPECT_EQUAL(guest.count(CostEvent::call_near), 50u);
    EXPECT_EQUAL(guest.count(CostEvent::return_near), 50u);
    // to F: push eax (1); back from it: dec ecx (1); to L: add eax, ecx (2)
    EXPECT_EQUAL(guest.count(CostEvent::next_component), 50u + 50 + 49 * 2);
    EXPECT_EQUAL(guest.core.cpu.rip, program_at + 16);
}

TEST(stepping_is_exact) {
    for (const u64 stride : {1, 2, 3, 5, 7, 11}) {
        Guest whole = loop_guest(), cut = loop_guest();
        whole.machine->core.ledger.price = cut.machine->core.ledger.price;
        whole.go();
        u64 expected = 0;
        while (cut.go(stride) == StopReason::budget) {
            expected += stride;
            EXPECT_EQUAL(cut.core.instructions, expected);
        }
        // Each piece begins with a fetch of its own, whose check is an act of the rooms, not of the program.
        cut.core.ledger.cycles -=
            cut.count(CostEvent::comparison) * cut.core.ledger.price[index(CostEvent::comparison)];
        whole.core.ledger.cycles -=
            whole.count(CostEvent::comparison) * whole.core.ledger.price[index(CostEvent::comparison)];
        cut.core.ledger.counts[index(CostEvent::comparison)] = whole.core.ledger.counts[index(CostEvent::comparison)] =
            0;
        expect_same(cut, whole);
    }
}

TEST(repeat_is_restartable) {
    // mov ecx,100 / mov edi,8000 / mov al,AA / rep stosb / hlt
    const std::initializer_list<int> code{0xB9, 100, 0, 0, 0, 0xBF, 0, 0x80, 0, 0, 0xB0, 0xAA, 0xF3, 0xAA, hlt};
    Guest whole{code}, cut{code};
    whole.go();
    u64 pieces = 0;
    while (cut.go(1) == StopReason::budget) ++pieces;
    EXPECT_EQUAL(pieces, 3u + 100);
    EXPECT_EQUAL(cut.core.instructions, 5u);
    EXPECT_EQUAL(whole.core.instructions, 5u);
    EXPECT_EQUAL(cut.core.cpu.gpr[rdi], 0x8064u);
    EXPECT_EQUAL(cut.core.cpu.gpr[rcx], 0u);
    EXPECT_EQUAL(whole.count(CostEvent::string_step), 100u);
    EXPECT_EQUAL(cut.count(CostEvent::string_step), 100u);
    EXPECT_EQUAL(cut.count(CostEvent::string_start), 1u);
    EXPECT_EQUAL(whole.count(CostEvent::string_start), 1u);
    u8 last = 0;
    cut.machine->read_physical(0x8063, &last, 1);
    EXPECT_EQUAL(last, 0xAAu);
}

TEST(code_that_rewrites_itself) {
    // inc eax / cmp eax,1 / jne D / mov byte [program_at],48 (dec eax) / jmp program / D: hlt
    Guest guest{0x40, 0x83, 0xF8, 1, 0x75, 9, 0xC6, 0x05, 0, 0, 1, 0, 0x48, 0xEB, 0xF1, hlt};
    guest.go();
    EXPECT_EQUAL(guest.core.cpu.gpr[rax], 0u);
    EXPECT_EQUAL(guest.core.instructions, 9u);
}

TEST(next_instruction_is_rewritten) {
    // mov byte [next+1],5 / next: mov al,1 / hlt
    Guest guest{0xC6, 0x05, 8, 0, 1, 0, 5, 0xB0, 1, hlt};
    guest.go();
    EXPECT_EQUAL(guest.core.cpu.gpr[rax] & 0xFF, 5u);
    EXPECT_EQUAL(guest.core.instructions, 3u);
}

TEST(data_in_a_code_page) {
    // mov ecx,1000 / L: inc dword [program_at+0x100] / dec ecx / jnz L / hlt
    Guest guest{0xB9, 0xE8, 3, 0, 0, 0xFF, 0x05, 0, 1, 1, 0, 0x49, 0x75, 0xF7, hlt};
    guest.go();
    u8 value[2];
    guest.machine->read_physical(program_at + 0x100, value, 2);
    EXPECT_EQUAL(value[0] | value[1] << 8, 1000);
    EXPECT_EQUAL(guest.core.instructions, 2u + 3000);
    EXPECT_EQUAL(guest.count(CostEvent::alu_modify), 1000u);
}

TEST(instruction_across_pages) {
    Guest guest{hlt};
    const u8 code[] = {0xB8, 1, 2, 3, 4, hlt};
    const u64 at = program_at + page_size - 2;
    guest.machine->write_physical(at, code, sizeof code);
    guest.core.cpu.rip = at;
    guest.go();
    EXPECT_EQUAL(guest.core.cpu.gpr[rax], 0x04030201u);
    EXPECT_EQUAL(guest.core.instructions, 2u);
}

TEST(faults_forever_end) {
    Guest guest{0x0F, 0x0B};
    guest.core.cpu.idtr.limit = 0;
    EXPECT_EQUAL(static_cast<int>(guest.go()), static_cast<int>(StopReason::shutdown));
    EXPECT_EQUAL(guest.core.instructions, 0u);
}

/// A tail call that became a call would use up the host's stack.
TEST(long_loops_need_no_stack) {
    // L: add eax,1 / adc [9100],eax / push eax / pop edx / rol edx,3 / call F / dec ecx / jnz L / hlt / F: ret
    Guest guest{0x83, 0xC0, 1,    0x11, 0x05, 0, 0x91, 0,    0,    0x50, 0x5A, 0xC1,
                0xC2, 3,    0xE8, 4,    0,    0, 0,    0x49, 0x75, 0xEA, hlt,  0xC3};
    guest.core.cpu.gpr[rcx] = 1'000'000;
    guest.go(20'000'000);
    EXPECT_EQUAL(guest.core.cpu.gpr[rax], 1'000'000u);
    EXPECT_EQUAL(guest.core.instructions, 9'000'001u);
}

}  // namespace
