// What does one round trip from ring 3 to ring 0 cost? Four mechanisms, empty handlers, timed from ring 3.
//
// Prints CSV on port 0xE9 and leaves by a reset of the processor. An exception prints an error line and stops with HLT.
// SYSENTER exists in long mode on Intel processors only; on AMD processors its row is such an error: vector 6, #UD.

#include "console.hpp"
#include "descriptors.hpp"
#include "mechanisms.hpp"
#include "processor.hpp"

namespace {

using console::print;
using processor::Msr;

constexpr u64 warm_up_rounds = 32 * 1024;
constexpr u64 timed_rounds = 128 * 1024;

struct Stack {
    alignas(16) u8 bytes[16 * 1024];
    u8* top() { return bytes + sizeof bytes; }
};

// constinit: there is nobody to run constructors.
constinit GlobalDescriptorTable gdt{};
constinit TaskStateSegment tss{};
constinit SystemDescriptor idt[256]{};
constinit Stack kernel_stack{}, user_stack{};

struct Mechanism {
    const char* name;
    void (*rounds)(u64);
};

constexpr Mechanism mechanisms[] = {
    {"int_gate", int_gate_rounds},
    {"call_gate", call_gate_rounds},
    {"syscall", syscall_rounds},
    {"sysenter", sysenter_rounds},
};

void measure(const Mechanism& mechanism) {
    mechanism.rounds(warm_up_rounds);
    const u64 start = processor::time_stamp();
    mechanism.rounds(timed_rounds);
    const u64 cycles = processor::time_stamp() - start;

    print(mechanism.name), print(','), print(timed_rounds), print(','), print(cycles), print(',');
    console::print_hundredths((cycles * 100 + timed_rounds / 2) / timed_rounds);
    print('\n');
}

[[noreturn]] void reset() {
    constexpr u16 keyboard_controller = 0x64;
    constexpr u8 pulse_reset_line = 0xFE;
    processor::out(keyboard_controller, pulse_reset_line);
    for (;;) {  // the reset may take a while, and HLT is not for ring 3
    }
}

[[noreturn]] void user_main() {
    print("mechanism,rounds,cycles,cycles_per_round\n");
    for (const Mechanism& mechanism : mechanisms) measure(mechanism);
    reset();
}

void load_descriptor_tables() {
    tss.rsp[0] = reinterpret_cast<u64>(kernel_stack.top());
    gdt.task_state = available_tss(tss);
    gdt.call_gate = gate(GateType::call, Dpl::user, call_gate_handler);

    const u8* entry = reinterpret_cast<const u8*>(unexpected_entries);
    for (SystemDescriptor& descriptor : idt) {
        descriptor = gate(GateType::interrupt, Dpl::kernel, reinterpret_cast<void (*)()>(entry));
        entry += unexpected_entry_size;
    }
    idt[system_call_vector] = gate(GateType::interrupt, Dpl::user, int_gate_handler);

    processor::load_gdt({sizeof gdt - 1, &gdt});
    processor::load_idt({sizeof idt - 1, idt});
    processor::load_ss(u16(Selector::kernel_data));  // CS has the right hidden part since boot.S
    processor::load_task_register(u16(Selector::task_state));
}

void enable_fast_system_calls() {
    constexpr u64 all_flags_but_iopl = 0x3F7FD5 & ~(3ul << 12);
    processor::write(Msr::star, u64(Selector::user_code_32) << 48 | u64(Selector::kernel_code) << 32);
    processor::write(Msr::lstar, reinterpret_cast<u64>(syscall_handler));
    processor::write(Msr::fmask, all_flags_but_iopl);

    processor::write(Msr::sysenter_cs, u64(Selector::kernel_code));
    processor::write(Msr::sysenter_esp, reinterpret_cast<u64>(kernel_stack.top()));
    processor::write(Msr::sysenter_eip, reinterpret_cast<u64>(sysenter_handler));
}

// A far return to a caller that never was. RFLAGS are no part of that frame, so IOPL 3 is set before.
[[noreturn]] void enter_ring3(void (*program)(), u8* stack_top) {
    constexpr u64 iopl_3 = 3 << 12;
    asm volatile(
        "push %[flags]; popfq;"
        "push %[ss]; push %[rsp]; push %[cs]; push %[rip]; retfq" ::[flags] "r"(iopl_3),
        [ss] "r"(u64(Selector::user_data)), [rsp] "r"(stack_top), [cs] "r"(u64(Selector::user_code)), [rip] "r"(program)
        : "memory");
    __builtin_unreachable();
}

}  // namespace

constexpr FarPointer call_gate_pointer{.offset = 0, .selector = u16(Selector::call_gate)};

extern "C" void unexpected(u64 vector) {
    print("error: unexpected exception or interrupt, vector "), print(vector), print('\n');
    processor::stop();
}

extern "C" [[noreturn]] void kernel_main() {
    load_descriptor_tables();
    enable_fast_system_calls();
    enter_ring3(user_main, user_stack.top() - 8);  // - 8: as if a CALL had pushed a return address
}
