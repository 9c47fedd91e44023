#include <bit>

#include "bind/bind.hpp"
#include "bind/names.hpp"

namespace emu::bind {

namespace {
constexpr u64 slice = u64{1} << 26;  // instructions between two looks for Ctrl-C: a fraction of a second
constexpr u64 default_capacity = u64{1} << 16, largest_capacity = u64{1} << 24;

struct FinishedRun {
    RunEnd end;
    py::array_t<u64> counts;
    py::array_t<Record> records;
    u64 dropped = 0;
    py::bytes output, serial;
    u64 output_dropped = 0;
};

TraceLevel level_of(const std::string& name) {
    if (name == "off") return TraceLevel::off;
    if (name == "transitions") return TraceLevel::transitions;
    if (name == "checks") return TraceLevel::checks;
    throw py::value_error("the trace level must be \"off\", \"transitions\" or \"checks\", not \"" + name + "\"");
}

py::bytes bytes_of(const Output& output) {
    return {std::bit_cast<const char*>(output.bytes()), static_cast<std::size_t>(output.size())};
}

FinishedRun collect(Machine& machine) {
    FinishedRun run;
    run.end = machine.finish();
    run.counts = py::array_t<u64>(static_cast<py::ssize_t>(run.end.counts.size()), run.end.counts.data());
    const Ring& ring = machine.core.ring;
    run.records = py::array_t<Record>(static_cast<py::ssize_t>(ring.kept()));
    Record* to = run.records.mutable_data();
    for (u64 i = 0; i < ring.kept(); ++i) to[i] = ring.at(i);
    run.dropped = ring.dropped();
    run.output = bytes_of(machine.devices.text);
    run.serial = bytes_of(machine.devices.serial_text);
    run.output_dropped = machine.devices.text.dropped() + machine.devices.serial_text.dropped();
    return run;
}

FinishedRun run(HeldMachine& held, const py::object& budget, const std::string& level, const py::object& capacity) {
    Machine& machine = held.idle();
    const u64 instructions = number(budget, "budget", 63);
    const u64 records = number(capacity, "capacity", 64);
    if (records == 0 || records > largest_capacity)
        throw py::value_error("capacity must be from 1 to " + std::to_string(largest_capacity) + " records, not " +
                              std::to_string(records));
    if (!machine.start(instructions, level_of(level), std::bit_ceil(records))) {
        PyErr_SetString(PyExc_MemoryError,
                        "the host refuses the memory for so many records; ask for a smaller capacity");
        throw py::error_already_set();
    }
    const HeldMachine::Running running{held};
    for (bool over = false; !over;) {
        {
            const py::gil_scoped_release others_may_run;
            over = machine.advance(slice);
        }
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    }
    return collect(machine);
}
}  // namespace

void register_run(py::module_& module, MachineClass& machine) {
    py::class_<FinishedRun>(module, "RunEnd")
        .def_property_readonly(
            "reason", [](const FinishedRun& r) { return stop_reason_names[static_cast<std::size_t>(r.end.reason)]; })
        .def_property_readonly("detail", [](const FinishedRun& r) { return r.end.detail; })
        .def_property_readonly("instructions", [](const FinishedRun& r) { return r.end.instructions; })
        .def_property_readonly("millicycles", [](const FinishedRun& r) { return r.end.cycles; })
        .def_readonly("counts", &FinishedRun::counts)
        .def_readonly("records", &FinishedRun::records)
        .def_readonly("dropped", &FinishedRun::dropped)
        .def_readonly("output", &FinishedRun::output)
        .def_readonly("serial", &FinishedRun::serial)
        .def_readonly("output_dropped", &FinishedRun::output_dropped);
    machine.def("run", &run, py::arg("budget"), py::arg("level") = "off", py::arg("capacity") = default_capacity);
}

}  // namespace emu::bind
