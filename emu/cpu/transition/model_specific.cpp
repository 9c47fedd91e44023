// RDMSR, WRMSR, RDTSC, RDTSCP, CPUID, RDFSBASE...WRGSBASE (Intel SDM vol. 2; vol. 4 for the registers).
#include "cpu/transition/transition.hpp"

namespace emu {

enum class MsrKind : u8 { unknown, plain, address, efer, pat, time_stamp, read_only_zero, segment_base };

struct MsrPlace {
    MsrKind kind = MsrKind::unknown;
    u64* value = nullptr;
    u64 reserved = 0;
};

inline constexpr u64 upper_half = u64{0xFFFFFFFF} << 32;

/// The model-specific registers that are modelled, and what each admits.
inline MsrPlace find_msr(Core& core, u32 number) {
    Processor& cpu = core.cpu;
    const CpuModel& model = core.model;
    const bool amd = model.vendor == Vendor::amd;
    switch (number) {
        case msr::tsc:
            return {MsrKind::time_stamp};
        case msr::apic_base:
            return {MsrKind::plain, &cpu.apic_base, ~low_bits(~u64{0}, model.physical_address_bits) | 0x6FF};
        case msr::misc_enable:
            return amd ? MsrPlace{} : MsrPlace{MsrKind::plain, &cpu.misc_enable};
        case msr::pat:
            return {MsrKind::pat, &cpu.pat};
        case 0x17:
        case 0x8B:
            return {MsrKind::read_only_zero};  // platform id, microcode revision
        case msr::tsc_aux:
            return model.rdtscp ? MsrPlace{MsrKind::plain, &cpu.tsc_aux, upper_half} : MsrPlace{};
        case msr::sysenter_cs:
            return model.sysenter ? MsrPlace{MsrKind::plain, &cpu.sysenter_cs} : MsrPlace{};
        case msr::sysenter_esp:
            return model.sysenter ? MsrPlace{MsrKind::address, &cpu.sysenter_esp} : MsrPlace{};
        case msr::sysenter_eip:
            return model.sysenter ? MsrPlace{MsrKind::address, &cpu.sysenter_eip} : MsrPlace{};
        default:
            break;
    }
    if (number == msr::efer && (model.long_mode || model.nx || model.syscall)) return {MsrKind::efer, &cpu.efer};
    if (model.syscall || model.long_mode) switch (number) {
            case msr::star:
                return {MsrKind::plain, &cpu.star};
            case msr::lstar:
                return {MsrKind::address, &cpu.lstar};
            case msr::cstar:
                return {MsrKind::address, &cpu.cstar};
            case msr::fmask:
                return {MsrKind::plain, &cpu.fmask, upper_half};
            default:
                break;
        }
    if (model.long_mode) switch (number) {
            case msr::fs_base:
                return {MsrKind::segment_base, &cpu.seg(SegmentName::fs).base};
            case msr::gs_base:
                return {MsrKind::segment_base, &cpu.seg(SegmentName::gs).base};
            case msr::kernel_gs_base:
                return {MsrKind::address, &cpu.kernel_gs_base};
            default:
                break;
        }
    return {};
}

inline u64 time_stamp_counter(const Core& core, Millicycles under_way) {
    return (core.ledger.cycles + under_way) / millicycles_per_cycle + core.cpu.tsc_offset;
}

inline void put_edx_eax(Processor& cpu, u64 value) {
    cpu.gpr[rax] = value & 0xFFFFFFFF;
    cpu.gpr[rdx] = value >> 32;
}

template <Observer Obs>
Outcome read_msr(Core& core) {
    using namespace checks;
    Processor& cpu = core.cpu;
    const u32 number = static_cast<u32>(cpu.gpr[rcx]);
    Transition<Obs> t{core, Mechanism::model_specific_register, number};
    TRY(require<ring_0_only<"rdmsr">>(t, nothing, cpu.cpl));
    const MsrPlace place = find_msr(core, number);
    TRY(require<model_specific::exists>(t, nothing, Msr{number}, Flag<"implemented">{place.kind != MsrKind::unknown}));
    t.charge(CostEvent::rdmsr);
    u64 value = place.value != nullptr ? *place.value : 0;
    if (place.kind == MsrKind::time_stamp) value = time_stamp_counter(core, t.cycles);
    put_edx_eax(cpu, value);
    return no_fault;
}

template <Observer Obs>
Outcome write_efer(Transition<Obs>& t, u64 value) {
    using namespace checks;
    Processor& cpu = t.cpu;
    const CpuModel& model = t.core.model;
    const u64 known =
        efer::lma | (model.syscall ? efer::sce : 0) | (model.long_mode ? efer::lme : 0) | (model.nx ? efer::nxe : 0);
    TRY(require<model_specific::reserved_clear>(t, nothing, Msr{msr::efer}, Value{value},
                                                Quantity<"reserved bits">{~known}));
    const bool changes = ((value ^ cpu.efer) & efer::lme) != 0;
    TRY(require<model_specific::long_mode_stays_while_paging>(t, nothing, Flag<"LME changes">{changes},
                                                              Flag<"CR0.PG">{cpu.paging()}));
    const bool nx_changes = ((value ^ cpu.efer) & efer::nxe) != 0;
    cpu.efer = (value & ~efer::lma) | (cpu.efer & efer::lma);
    if (nx_changes) t.core.translations->flush(true);
    return no_fault;
}

template <Observer Obs>
Outcome write_msr(Core& core) {
    using namespace checks;
    Processor& cpu = core.cpu;
    const u32 number = static_cast<u32>(cpu.gpr[rcx]);
    const u64 value = (cpu.gpr[rax] & 0xFFFFFFFF) | (cpu.gpr[rdx] << 32);
    Transition<Obs> t{core, Mechanism::model_specific_register, number};
    TRY(require<ring_0_only<"wrmsr">>(t, nothing, cpu.cpl));
    const MsrPlace place = find_msr(core, number);
    TRY(require<model_specific::exists>(t, nothing, Msr{number}, Flag<"implemented">{place.kind != MsrKind::unknown}));
    t.charge(CostEvent::wrmsr);
    switch (place.kind) {
        case MsrKind::efer:
            return write_efer(t, value);
        case MsrKind::time_stamp:
            cpu.tsc_offset += value - time_stamp_counter(core, t.cycles);
            return no_fault;
        case MsrKind::read_only_zero:
            return no_fault;  // a microcode update trigger: accepted, nothing to update
        case MsrKind::pat:
            TRY(require<model_specific::memory_types_valid>(t, nothing, Value{value}));
            break;
        case MsrKind::address:
        case MsrKind::segment_base:
            TRY(require<model_specific::canonical>(t, nothing, Msr{number}, Value{value}));
            break;
        default:
            TRY(require<model_specific::reserved_clear>(t, nothing, Msr{number}, Value{value},
                                                        Quantity<"reserved bits">{place.reserved}));
    }
    *place.value = value;
    if (place.kind == MsrKind::segment_base) core.refresh_mode();
    return no_fault;
}

template <Observer Obs>
Outcome read_time_stamp(Core& core, bool with_aux) {
    Processor& cpu = core.cpu;
    Transition<Obs> t{core, Mechanism::model_specific_register, msr::tsc};
    TRY(require<checks::time_stamp::permitted>(t, nothing, Flag<"CR4.TSD">{(cpu.cr4 & cr4::tsd) != 0}, cpu.cpl));
    t.charge(CostEvent::rdtsc);
    put_edx_eax(cpu, time_stamp_counter(core, t.cycles));
    if (with_aux) cpu.gpr[rcx] = cpu.tsc_aux & 0xFFFFFFFF;
    return no_fault;
}

/// RDFSBASE and RDGSBASE; decoded in 64-bit mode only.
template <Observer Obs>
Outcome read_base(Core& core, SegmentName name) {
    Transition<Obs> t{core, Mechanism::model_specific_register, 0};
    TRY(require<checks::fsgsbase::enabled>(t, no_code, Flag<"CR4.FSGSBASE">{(core.cpu.cr4 & cr4::fsgsbase) != 0}));
    core.memory_value = core.cpu.seg(name).base;
    return no_fault;
}

template <Observer Obs>
Outcome write_base(Core& core, SegmentName name, u64 value) {
    Transition<Obs> t{core, Mechanism::model_specific_register, 0};
    TRY(require<checks::fsgsbase::enabled>(t, no_code, Flag<"CR4.FSGSBASE">{(core.cpu.cr4 & cr4::fsgsbase) != 0}));
    TRY(require<checks::fsgsbase::canonical>(t, nothing, Value{value}));
    core.cpu.seg(name).base = value;
    core.cpu.seg(name).judge(name, core.cpu.mode);
    return no_fault;
}

/// Leaves of the profile; what the profile does not list answers zeros.
template <Observer Obs>
Outcome cpuid(Core& core) {
    Transition<Obs> t{core, Mechanism::model_specific_register, core.cpu.gpr[rax] & 0xFFFFFFFF};
    t.charge(CostEvent::cpuid);
    const CpuModel& model = core.model;
    const u32 leaf = static_cast<u32>(core.cpu.gpr[rax]), subleaf = static_cast<u32>(core.cpu.gpr[rcx]);
    CpuidLeaf found{};
    for (std::size_t i = 0; i < model.leaf_count; ++i)
        if (model.leaves[i].leaf == leaf && model.leaves[i].subleaf == subleaf) found = model.leaves[i];
    auto& gpr = core.cpu.gpr;
    gpr[rax] = found.eax, gpr[rbx] = found.ebx, gpr[rcx] = found.ecx, gpr[rdx] = found.edx;
    return no_fault;
}

}  // namespace emu
