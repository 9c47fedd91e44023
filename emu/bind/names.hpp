// Names of the core's enumerators, in their order, for Python.
#pragma once
#include <array>
#include <string_view>

#include "outcome.hpp"
#include "trace/records.hpp"

namespace emu::bind {

inline constexpr std::array mechanism_names = std::to_array<std::string_view>({"none",
                                                                               "interrupt_delivery",
                                                                               "exception_delivery",
                                                                               "interrupt_return",
                                                                               "far_call",
                                                                               "far_jump",
                                                                               "far_return",
                                                                               "sysenter",
                                                                               "sysexit",
                                                                               "syscall",
                                                                               "sysret",
                                                                               "swapgs",
                                                                               "load_segment",
                                                                               "load_ldtr",
                                                                               "load_task_register",
                                                                               "load_table_register",
                                                                               "control_register",
                                                                               "debug_register",
                                                                               "model_specific_register",
                                                                               "port",
                                                                               "privileged",
                                                                               "memory",
                                                                               "fetch",
                                                                               "decode"});
static_assert(mechanism_names.size() == static_cast<std::size_t>(Mechanism::count));

inline constexpr std::array record_kind_names = std::to_array<std::string_view>(
    {"begin", "check", "read", "write", "push", "pop", "commit", "fault", "escalate", "cost", "end"});
static_assert(record_kind_names.size() == static_cast<std::size_t>(RecordKind::end) + 1);

inline constexpr std::array structure_names =
    std::to_array<std::string_view>({"gdt", "ldt", "idt", "tss", "page_entry", "ivt", "io_map"});
static_assert(structure_names.size() == static_cast<std::size_t>(Structure::count));

inline constexpr std::array pushed_names = std::to_array<std::string_view>(
    {"ss", "stack_pointer", "flags", "cs", "instruction_pointer", "error_code", "parameter", "es", "ds", "fs", "gs"});
static_assert(pushed_names.size() == static_cast<std::size_t>(Pushed::count));

inline constexpr std::array stop_reason_names = std::to_array<std::string_view>(
    {"none", "budget", "exit", "reset", "halted", "shutdown", "unmodelled", "code_write"});
static_assert(stop_reason_names.size() == static_cast<std::size_t>(StopReason::code_write) + 1);

inline constexpr std::array unmodelled_sentences = std::to_array<std::string_view>({
    "a hardware task switch (CALL or JMP to a TSS)",
    "a task gate",
    "virtual-8086 mode",
    "single-stepping by RFLAGS.TF",
    "an enabled breakpoint in the debug registers",
    "control-flow enforcement (CET)",
    "5-level paging (CR4.LA57)",
    "process-context identifiers (CR4.PCIDE)",
    "protection keys (CR4.PKE)",
    "x87, MMX and SSE instructions",
    "MONITOR and MWAIT",
});
static_assert(unmodelled_sentences.size() == static_cast<std::size_t>(Unmodelled::count));

}  // namespace emu::bind
