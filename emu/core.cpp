#include "core.hpp"

namespace emu {

u64 Processor::place() const { return Place::pack(cs().selector.value, cpl.value, static_cast<u8>(mode)); }

void Core::refresh() {
    if (!cpu.protected_mode())
        cpu.mode = Mode::real;
    else if ((cpu.rflags & rflags::vm) != 0)
        cpu.mode = Mode::virtual8086;
    else if (!cpu.ia32e())
        cpu.mode = Mode::protected_mode;
    else
        cpu.mode = cpu.cs().attributes.l().value ? Mode::long64 : Mode::compatibility;
    context = (static_cast<u32>(cpu.code_width()) << context::code_width_shift) |
              (static_cast<u32>(cpu.stack_width()) << context::stack_width_shift) |
              (static_cast<u32>(cpu.cpl.value) << context::cpl_shift) |
              (static_cast<u32>(cpu.mode) << context::mode_shift);
    const bool alignment_checked = cpu.cpl.value == 3 && (cpu.cr0 & cr0::am) != 0 && (cpu.rflags & rflags::ac) != 0;
    tlb = translations->array(alignment_checked ? AccessContext::inspected : access_context(cpu.cpl));
}

void Core::refresh_mode() {
    refresh();
    for (std::size_t i = 0; i < segment_count; ++i) cpu.segment[i].judge(static_cast<SegmentName>(i), cpu.mode);
}

}  // namespace emu
