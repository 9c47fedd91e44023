#include <limits>

#include "bind/bind.hpp"

namespace emu::bind {

std::string hexadecimal(u64 value) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    do text.insert(text.begin(), digits[value & 15]);
    while ((value >>= 4) != 0);
    return "0x" + text;
}

u64 number(const py::object& value, const std::string& what, unsigned bits) {
    const auto whole = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!whole) {
        PyErr_Clear();
        throw py::value_error(what + " must be a whole number, not " + py::cast<std::string>(py::repr(value)));
    }
    const u64 last = low_bits(~u64{0}, bits);
    const unsigned long long word = PyLong_AsUnsignedLongLong(whole.ptr());
    const bool outside = PyErr_Occurred() != nullptr;  // negative, or more than 64 bits
    PyErr_Clear();
    if (outside || word > last)
        throw py::value_error(what + " must be from 0 to " + hexadecimal(last) + ", not " +
                              py::cast<std::string>(py::repr(value)));
    return word;
}

Machine& HeldMachine::idle() {
    if (running_) throw std::runtime_error("this machine is running in another thread; wait until that run has ended");
    return *machine_;
}

namespace {
constexpr u64 default_memory = u64{64} << 20, largest_memory = u64{64} << 30;

std::unique_ptr<HeldMachine> make(const py::object& memory) {
    const u64 size = number(memory, "memory", 64);
    if (size == 0 || size % page_size != 0 || size > largest_memory)
        throw py::value_error("memory must be a multiple of 4096 bytes, from 4096 to 64 GiB, not " +
                              std::to_string(size));
    std::unique_ptr<Machine> machine = Machine::make(size);
    if (!machine) {
        PyErr_Format(PyExc_MemoryError, "the host refuses %llu bytes of memory for the machine",
                     static_cast<unsigned long long>(size));
        throw py::error_already_set();
    }
    return std::make_unique<HeldMachine>(std::move(machine));
}

py::dict build_info() {
    py::dict info;
#if defined(__clang__)
    info["compiler"] = "clang " __clang_version__;
#elif defined(__GNUC__)
    info["compiler"] = "gcc " __VERSION__;
#else
    info["compiler"] = "unknown";
#endif
#if defined(NDEBUG)
    info["assertions"] = "off";
#else
    info["assertions"] = "on";
#endif
#if defined(EMU_LOOP_DISPATCH)
    info["dispatch"] = "loop";
#else
    info["dispatch"] = "tail calls";
#endif
    info["standard"] = std::to_string(__cplusplus);
    info["pybind11"] = std::to_string(PYBIND11_VERSION_MAJOR) + "." + std::to_string(PYBIND11_VERSION_MINOR);
    return info;
}
}  // namespace

}  // namespace emu::bind

PYBIND11_MODULE(_core, module) {
    using namespace emu::bind;
    module.doc() = "The C++ core of emu: numbers only; words are made in Python.";
    module.def("build_info", &build_info);
    register_catalogue(module);
    register_cost(module);
    register_trace(module);
    MachineClass machine{module, "Machine"};
    machine.def(py::init(&make), py::arg("memory") = default_memory);
    register_run(module, machine);
    register_memory(machine);
    register_processor(machine);
    register_model(machine);
}
