// The rooms, compiled twice: silent and recording. The two tables of doors are the only way in.
#include "cpu/transition/control_register.cpp"
#include "cpu/transition/exception.cpp"
#include "cpu/transition/far_call.cpp"
#include "cpu/transition/far_jump.cpp"
#include "cpu/transition/far_return.cpp"
#include "cpu/transition/fast_call.cpp"
#include "cpu/transition/interrupt_delivery.cpp"
#include "cpu/transition/interrupt_return.cpp"
#include "cpu/transition/load_segment.cpp"
#include "cpu/transition/load_system_segment.cpp"
#include "cpu/transition/memory_access.cpp"
#include "cpu/transition/model_specific.cpp"
#include "cpu/transition/privileged.cpp"
#include "cpu/transition/stack_switch.cpp"
#include "cpu/transition/walk.cpp"

namespace emu {

template <Observer Obs>
constexpr Doors doors_of() {
    return {
        .load = &load<Obs>,
        .load_to_modify = &load_to_modify<Obs>,
        .store = &store<Obs>,
        .fetch = &fetch<Obs>,
        .deliver_exception = &deliver_exception<Obs>,
        .software_interrupt = &software_interrupt<Obs>,
        .interrupt_return = &interrupt_return<Obs>,
        .far_call = &far_call<Obs>,
        .far_jump = &far_jump<Obs>,
        .far_return = &far_return<Obs>,
        .sysenter = &sysenter<Obs>,
        .sysexit = &sysexit<Obs>,
        .syscall = &syscall<Obs>,
        .sysret = &sysret<Obs>,
        .swapgs = &swapgs<Obs>,
        .load_segment = &load_segment<Obs>,
        .load_ldtr = &load_ldtr<Obs>,
        .load_task_register = &load_task_register<Obs>,
        .load_gdtr = &load_gdtr<Obs>,
        .load_idtr = &load_idtr<Obs>,
        .may_store_system_register = &may_store_system_register<Obs>,
        .read_control = &read_control<Obs>,
        .write_control = &write_control<Obs>,
        .read_debug = &read_debug<Obs>,
        .write_debug = &write_debug<Obs>,
        .load_machine_status = &load_machine_status<Obs>,
        .clear_task_switched = &clear_task_switched<Obs>,
        .read_msr = &read_msr<Obs>,
        .write_msr = &write_msr<Obs>,
        .read_time_stamp = &read_time_stamp<Obs>,
        .read_base = &read_base<Obs>,
        .write_base = &write_base<Obs>,
        .cpuid = &cpuid<Obs>,
        .invalidate_page = &invalidate_page<Obs>,
        .invalidate_caches = &invalidate_caches<Obs>,
        .halt = &halt<Obs>,
        .clear_interrupt_flag = &clear_interrupt_flag<Obs>,
        .set_interrupt_flag = &set_interrupt_flag<Obs>,
        .set_alignment_check = &set_alignment_check<Obs>,
        .pop_flags = &pop_flags<Obs>,
        .push_flags = &push_flags<Obs>,
        .load_access_rights = &load_access_rights<Obs>,
        .load_segment_limit = &load_segment_limit<Obs>,
        .verify_segment = &verify_segment<Obs>,
        .port_in = &port_in<Obs>,
        .port_out = &port_out<Obs>,
        .trouble = &trouble<Obs>,
        .judge = &judge<Obs>,
    };
}

constexpr Doors silent_doors = doors_of<Silent>();
constexpr Doors recording_doors = doors_of<Recorder>();

}  // namespace emu
