// The list of all checks: what Python shows, what tests cover. A check that is not here cannot be required.
#pragma once
#include <array>

#include "checks/access.hpp"
#include "checks/call_gate.hpp"
#include "checks/code_segment.hpp"
#include "checks/control_register.hpp"
#include "checks/data_segment.hpp"
#include "checks/fast_call.hpp"
#include "checks/idt.hpp"
#include "checks/instruction.hpp"
#include "checks/iret.hpp"
#include "checks/paging.hpp"
#include "checks/privilege.hpp"
#include "checks/stack_segment.hpp"
#include "checks/system_segment.hpp"
#include "outcome.hpp"

namespace emu::catalogue {

struct CatalogueEntry {
    std::string_view name, says, sdm;
    Vector vector;
    Names names;
    CostEvent cost;
    std::array<std::string_view, 3> operands;
    std::size_t operand_count;
};

template <class Test, class... Operands>
constexpr void label(CatalogueEntry& entry, bool (Test::*)(Operands...) const) {
    static_assert(sizeof...(Operands) <= 3, "a record holds three operands");
    ((entry.operands[entry.operand_count++] = Operands::label), ...);
}
template <class Test>
constexpr CatalogueEntry entry_of(const Check<Test>& check) {
    CatalogueEntry entry{check.name, check.says, check.sdm, check.fault.vector, check.fault.names, check.cost, {}, 0};
    label(entry, &Test::operator());
    return entry;
}

template <const auto& check>
struct Tag {};

template <const auto&... checks>
struct List {
    static constexpr std::size_t size = sizeof...(checks);
    static constexpr std::array<CatalogueEntry, size> entries{entry_of(checks)...};
    /// The place of a check in the list, or its size. (Types are compared: addresses of objects of different types are
    /// no constant expression under every sanitizer.)
    template <const auto& check>
    static consteval std::size_t position() {
        std::size_t i = 0;
        static_cast<void>(((__is_same(Tag<checks>, Tag<check>) || (++i, false)) || ...));
        return i;
    }
};

using namespace checks;

using All = List<
    // interrupts and exceptions
    idt::vector_within_ivt, idt::entry_within_limit, idt::gate_type_allowed, idt::gate_dpl_permits, idt::gate_present,
    table::selector_not_null<"handler">, table::ldt_loaded<"handler">, table::selector_in_table<"handler">,
    code::is_code<"handler">, code::dpl_not_above_cpl<"handler">, code::is_64_bit<"handler">, table::present<"handler">,
    code::pointer_within_limit<"handler">, code::pointer_canonical<"handler">,
    // far CALL and JMP
    table::selector_not_null<"far_target">, table::ldt_loaded<"far_target">, table::selector_in_table<"far_target">,
    far_target::type_allowed, code::long_and_default_exclusive<"far_target">, far_target::conforming_dpl_not_above_cpl,
    far_target::rpl_not_above_cpl, far_target::dpl_equals_cpl, table::present<"far_target">,
    code::pointer_within_limit<"far_target">, code::pointer_canonical<"far_target">,
    // call gates
    call_gate::dpl_not_below_cpl, call_gate::rpl_not_above_dpl, call_gate::present, table::upper_type_zero<"call_gate">,
    table::selector_not_null<"gate_target">, table::ldt_loaded<"gate_target">, table::selector_in_table<"gate_target">,
    code::is_code<"gate_target">, code::dpl_not_above_cpl<"gate_target">, code::is_64_bit<"gate_target">,
    gate_target::jump_keeps_privilege, table::present<"gate_target">, code::pointer_within_limit<"gate_target">,
    code::pointer_canonical<"gate_target">,
    // far RET and IRET
    iret::no_nested_task, table::selector_not_null<"return_target">, table::ldt_loaded<"return_target">,
    table::selector_in_table<"return_target">, code::is_code<"return_target">,
    code::long_and_default_exclusive<"return_target">, return_target::rpl_not_below_cpl,
    return_target::conforming_dpl_not_above_rpl, return_target::dpl_equals_rpl, table::present<"return_target">,
    code::pointer_within_limit<"return_target">, code::pointer_canonical<"return_target">,
    stack::null_only_in_64_bit<"stack_return">, stack::null_rpl_equals_cpl<"stack_return">,
    table::ldt_loaded<"stack_return">, table::selector_in_table<"stack_return">,
    stack::rpl_equals_cpl<"stack_return", Vector::GP>, stack::writable_data<"stack_return", Vector::GP>,
    stack::dpl_equals_cpl<"stack_return", Vector::GP>, table::present<"stack_return", Vector::SS>,
    // stacks on the way in
    stack::tss_field_within_limit, table::selector_not_null<"stack_switch", Vector::TS>,
    table::ldt_loaded<"stack_switch", Vector::TS>, table::selector_in_table<"stack_switch", Vector::TS>,
    stack::rpl_equals_cpl<"stack_switch", Vector::TS>, stack::writable_data<"stack_switch", Vector::TS>,
    stack::dpl_equals_cpl<"stack_switch", Vector::TS>, table::present<"stack_switch", Vector::SS>, stack::new_room,
    stack::new_canonical, stack::room, stack::canonical,
    // fast calls
    sysenter::mode_allows, sysenter::protected_mode, sysenter::target_not_null, sysexit::protected_mode,
    sysexit::target_not_null, sysexit::from_ring_0, sysexit::pointer_canonical, sysexit::stack_canonical,
    syscall::enabled, syscall::mode_allows, sysret::enabled, sysret::mode_allows, sysret::protected_mode,
    sysret::from_ring_0, sysret::pointer_canonical, swapgs::mode_allows, swapgs::from_ring_0,
    // loads of segment and system registers
    stack::null_only_in_64_bit<"stack_load">, stack::null_rpl_equals_cpl<"stack_load">, table::ldt_loaded<"stack_load">,
    table::selector_in_table<"stack_load">, stack::rpl_equals_cpl<"stack_load", Vector::GP>,
    stack::writable_data<"stack_load", Vector::GP>, stack::dpl_equals_cpl<"stack_load", Vector::GP>,
    table::present<"stack_load", Vector::SS>, table::ldt_loaded<"data_load">, table::selector_in_table<"data_load">,
    data_load::readable, data_load::rpl_not_above_dpl, data_load::cpl_not_above_dpl, table::present<"data_load">,
    protected_mode_only<"lldt">, ring_0_only<"lldt">, table::selector_in_gdt<"ldt_load">,
    table::selector_in_table<"ldt_load">, ldt_load::is_ldt, table::present<"ldt_load">, protected_mode_only<"ltr">,
    ring_0_only<"ltr">, table::selector_not_null<"task_load">, table::selector_in_gdt<"task_load">,
    table::selector_in_table<"task_load">, task_load::is_available_tss, table::upper_type_zero<"task_load">,
    table::present<"task_load">, ring_0_only<"lgdt">, table_register::base_canonical, umip::permitted,
    protected_mode_only<"inspect">,
    // control, debug and model-specific registers
    control::register_exists, ring_0_only<"mov_cr">, control::cr0_upper_clear, control::paging_needs_protection,
    control::write_through_needs_cache_disable, control::long_paging_needs_pae, control::long_paging_from_legacy_code,
    control::long_paging_needs_32_bit_tss, control::paging_stays_in_64_bit, control::cr3_reserved_clear,
    control::pdpte_reserved_clear, control::cr4_reserved_clear, control::pae_stays_in_long_mode,
    control::cr8_reserved_clear, ring_0_only<"lmsw">, ring_0_only<"clts">, debug::register_exists,
    ring_0_only<"mov_dr">, debug::upper_clear, ring_0_only<"rdmsr">, ring_0_only<"wrmsr">, model_specific::exists,
    model_specific::reserved_clear, model_specific::canonical, model_specific::long_mode_stays_while_paging,
    model_specific::memory_types_valid, time_stamp::permitted, fsgsbase::enabled, fsgsbase::canonical,
    // other privileged instructions, flags and ports
    ring_0_only<"hlt">, ring_0_only<"invlpg">, ring_0_only<"invd">, interrupt_flag::iopl_permits,
    alignment_flag::ring_0_only, port::map_in_tss, port::map_permits,
    // memory
    access::segment_not_null, access::readable, access::writable, access::within_limit<"data_access">,
    access::within_limit<"stack_access">, access::canonical<"data_access">, access::canonical<"stack_access">,
    access::aligned, access::fetch_within_limit, access::fetch_canonical, paging::present, paging::reserved_clear,
    paging::user_allowed, paging::writable, paging::executable, paging::smep, paging::smap,
    // ordinary instructions
    instruction::opcode_defined, instruction::lock_allowed, instruction::length_at_most_15, instruction::quotient_fits,
    instruction::index_within_bounds, instruction::branch_within_limit, instruction::branch_canonical>;

inline constexpr auto& entries = All::entries;

CheckId this_check_is_not_in_the_catalogue();

template <const auto& check>
consteval CheckId id_of() {
    constexpr std::size_t i = All::position<check>();
    if (i < All::size) return static_cast<CheckId>(i);
    return this_check_is_not_in_the_catalogue();  // not constexpr: the compiler stops here and shows the name
}

}  // namespace emu::catalogue
