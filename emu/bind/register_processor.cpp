#include "bind/bind.hpp"

namespace emu::bind {

namespace {
constexpr u64 all64 = ~u64{0}, all32 = 0xFFFFFFFF, all16 = 0xFFFF;
constexpr u64 modelled_cr4 = cr4::vme | cr4::pvi | cr4::tsd | cr4::de | cr4::pse | cr4::pae | cr4::mce | cr4::pge |
                             cr4::pce | cr4::osfxsr | cr4::osxmmexcpt | cr4::umip | cr4::fsgsbase | cr4::smep |
                             cr4::smap;

/// A register by name: which bits exist, and how to reach it.
struct Register {
    const char* name;
    u64 bits;
    u64 (*read)(const Processor&);
    void (*write)(Processor&, u64);
    bool paging = false;  // translations depend on it
};

template <auto member>
constexpr Register plain(const char* name, u64 bits = all64) {
    return {name, bits, [](const Processor& cpu) { return u64{cpu.*member}; },
            [](Processor& cpu, u64 value) { cpu.*member = value; }};
}
constexpr Register paging(Register entry) {
    entry.paging = true;
    return entry;
}
template <Gpr number>
constexpr Register general(const char* name) {
    return {name, all64, [](const Processor& cpu) { return cpu.gpr[number]; },
            [](Processor& cpu, u64 value) { cpu.gpr[number] = value; }};
}
template <std::size_t number>
constexpr Register debug(const char* name) {
    return {name, all64, [](const Processor& cpu) { return cpu.dr[number]; },
            [](Processor& cpu, u64 value) { cpu.dr[number] = value; }};
}
template <SegmentName segment>
constexpr Register segment_base(const char* name) {
    return {name, all64, [](const Processor& cpu) { return cpu.seg(segment).base; },
            [](Processor& cpu, u64 value) { cpu.seg(segment).base = value; }};
}
template <auto table>
constexpr Register table_base(const char* name) {
    return {name, all64, [](const Processor& cpu) { return (cpu.*table).base; },
            [](Processor& cpu, u64 value) { (cpu.*table).base = value; }};
}
template <auto table>
constexpr Register table_limit(const char* name) {
    return {name, all16, [](const Processor& cpu) { return u64{(cpu.*table).limit}; },
            [](Processor& cpu, u64 value) { (cpu.*table).limit = static_cast<u32>(value); }};
}

constexpr Register registers[] = {
    general<rax>("rax"),
    general<rcx>("rcx"),
    general<rdx>("rdx"),
    general<rbx>("rbx"),
    general<rsp>("rsp"),
    general<rbp>("rbp"),
    general<rsi>("rsi"),
    general<rdi>("rdi"),
    general<r8>("r8"),
    general<r9>("r9"),
    general<r10>("r10"),
    general<r11>("r11"),
    general<r12>("r12"),
    general<r13>("r13"),
    general<r14>("r14"),
    general<r15>("r15"),
    plain<&Processor::rip>("rip"),
    {"rflags", rflags::defined | rflags::reserved_one, [](const Processor& cpu) { return cpu.rflags; },
     [](Processor& cpu, u64 value) { cpu.rflags = value | rflags::reserved_one; }},
    paging(plain<&Processor::cr0>("cr0", cr0::defined)),
    plain<&Processor::cr2>("cr2"),
    paging(plain<&Processor::cr3>("cr3")),
    paging(plain<&Processor::cr4>("cr4", modelled_cr4)),
    plain<&Processor::cr8>("cr8", 0xF),
    paging(plain<&Processor::efer>("efer", efer::sce | efer::lme | efer::lma | efer::nxe)),
    debug<0>("dr0"),
    debug<1>("dr1"),
    debug<2>("dr2"),
    debug<3>("dr3"),
    debug<4>("dr4"),
    debug<5>("dr5"),
    debug<6>("dr6"),
    debug<7>("dr7"),
    plain<&Processor::star>("star"),
    plain<&Processor::lstar>("lstar"),
    plain<&Processor::cstar>("cstar"),
    plain<&Processor::fmask>("fmask"),
    plain<&Processor::kernel_gs_base>("kernel_gs_base"),
    segment_base<SegmentName::fs>("fs_base"),
    segment_base<SegmentName::gs>("gs_base"),
    plain<&Processor::sysenter_cs>("sysenter_cs"),
    plain<&Processor::sysenter_esp>("sysenter_esp"),
    plain<&Processor::sysenter_eip>("sysenter_eip"),
    plain<&Processor::tsc_aux>("tsc_aux", all32),
    {"cpl", 3, [](const Processor& cpu) { return u64{cpu.cpl.value}; },
     [](Processor& cpu, u64 value) { cpu.cpl.value = static_cast<u8>(value); }},
    table_base<&Processor::gdtr>("gdtr_base"),
    table_limit<&Processor::gdtr>("gdtr_limit"),
    table_base<&Processor::idtr>("idtr_base"),
    table_limit<&Processor::idtr>("idtr_limit"),
};

const Register& find(const std::string& name) {
    for (const Register& entry : registers)
        if (name == entry.name) return entry;
    throw py::key_error("there is no register \"" + name + "\"; register_names() lists them");
}

u64 get(HeldMachine& held, const std::string& name) {
    const Register& entry = find(name);
    return entry.read(held.idle().core.cpu);
}

void set(HeldMachine& held, const std::string& name, const py::object& value) {
    const Register& entry = find(name);
    const u64 word = number(value, name, 64);
    if ((word & ~entry.bits) != 0)
        throw py::value_error(name + " cannot hold " + hexadecimal(word) + ": only the bits " +
                              hexadecimal(entry.bits) + " exist");
    Machine& machine = held.idle();
    entry.write(machine.core.cpu, word);
    if (entry.paging)
        machine.poked_paging();
    else
        machine.poked();
}

constexpr const char* segment_names[] = {"es", "cs", "ss", "ds", "fs", "gs"};

/// The segment register of this name as `code` or `system`, whichever it is.
template <class Visit>
void visit_segment(Processor& cpu, const std::string& name, Visit visit) {
    for (std::size_t i = 0; i < segment_count; ++i)
        if (name == segment_names[i]) return visit(cpu.segment[i]);
    if (name == "ldtr") return visit(cpu.ldtr);
    if (name == "tr") return visit(cpu.tr);
    throw py::key_error("there is no segment register \"" + name + "\"; there are es, cs, ss, ds, fs, gs, ldtr and tr");
}

py::dict segment(HeldMachine& held, const std::string& name) {
    py::dict parts;
    visit_segment(held.idle().core.cpu, name, [&](const auto& segment) {
        parts["selector"] = segment.selector.value;
        parts["base"] = segment.base;
        parts["limit"] = segment.limit;
        parts["attributes"] = segment.attributes.value;
    });
    return parts;
}

void set_segment(HeldMachine& held, const std::string& name, const py::object& selector, const py::object& base,
                 const py::object& limit, const py::object& attributes) {
    constexpr u64 attribute_bits = 0xF0FF;
    const u64 words[] = {number(selector, "a selector", 16), number(base, "a base", 64), number(limit, "a limit", 32),
                         number(attributes, "attributes", 16)};
    if ((words[3] & ~attribute_bits) != 0)
        throw py::value_error(
            "attributes are bits 40-47 and 52-55 of a descriptor as bits 0-7 and 12-15; bits 8-11 of " +
            hexadecimal(words[3]) + " must be 0");
    Machine& machine = held.idle();
    visit_segment(machine.core.cpu, name, [&](auto& segment) {
        segment.selector.value = static_cast<u16>(words[0]);
        segment.base = words[1];
        segment.limit = static_cast<u32>(words[2]);
        segment.attributes.value = static_cast<u16>(words[3]);
    });
    machine.poked();
}

const char* mode(HeldMachine& held) {
    switch (held.idle().core.cpu.mode) {
        case Mode::real:
            return "real";
        case Mode::protected_mode:
            return "protected";
        case Mode::compatibility:
            return "compatibility";
        case Mode::long64:
            return "64-bit";
        case Mode::virtual8086:
            return "virtual-8086";
    }
    return "?";
}

py::list register_names(HeldMachine&) {
    py::list names;
    for (const Register& entry : registers) names.append(entry.name);
    return names;
}
}  // namespace

void register_processor(MachineClass& machine) {
    machine.def("reset", [](HeldMachine& held) { held.idle().reset(); })
        .def("register_names", &register_names)
        .def("get", &get, py::arg("name"))
        .def("set", &set, py::arg("name"), py::arg("value"))
        .def("segment", &segment, py::arg("name"))
        .def("set_segment", &set_segment, py::arg("name"), py::arg("selector"), py::arg("base"), py::arg("limit"),
             py::arg("attributes"))
        .def_property_readonly("mode", &mode);
}

}  // namespace emu::bind
