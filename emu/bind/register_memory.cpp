#include <bit>

#include "bind/bind.hpp"

namespace emu::bind {

namespace {
constexpr unsigned physical_bits = 52;
constexpr u64 largest_read = u64{1} << 30;

u64 size_of(const py::object& size) {
    const u64 bytes = number(size, "size", 64);
    if (bytes > largest_read) throw py::value_error("at most 1 GiB can be read at once, not " + std::to_string(bytes));
    return bytes;
}

u8* storage(const py::bytes& bytes) { return std::bit_cast<u8*>(PyBytes_AS_STRING(bytes.ptr())); }

py::bytes uninitialised(u64 size) {
    PyObject* bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
    if (bytes == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::bytes>(bytes);
}

py::bytes read_physical(HeldMachine& held, const py::object& address, const py::object& size) {
    const u64 at = number(address, "a physical address", physical_bits), count = size_of(size);
    const py::bytes bytes = uninitialised(count);
    held.idle().read_physical(at, storage(bytes), count);
    return bytes;
}

void write_physical(HeldMachine& held, const py::object& address, const py::bytes& data) {
    Machine& machine = held.idle();
    const u64 at = number(address, "a physical address", physical_bits), count = PyBytes_GET_SIZE(data.ptr());
    if (!machine.is_ram(at, count))
        throw py::value_error("not all of the " + std::to_string(count) + " bytes from physical address " +
                              hexadecimal(at) + " are RAM");
    machine.write_physical(at, storage(data), count);
}

py::object read_linear(HeldMachine& held, const py::object& linear, const py::object& size) {
    const u64 at = number(linear, "a linear address", 64), count = size_of(size);
    const py::bytes bytes = uninitialised(count);
    if (!held.idle().read_linear(at, storage(bytes), count)) return py::none();
    return bytes;
}

py::object translate(HeldMachine& held, const py::object& linear) {
    u64 physical = 0;
    if (!held.idle().translate(number(linear, "a linear address", 64), physical)) return py::none();
    return py::int_(physical);
}

void load_rom(HeldMachine& held, const py::bytes& image) {
    const u64 size = PyBytes_GET_SIZE(image.ptr());
    if (!held.idle().load_rom(storage(image), size))
        throw py::value_error("a ROM image must have a multiple of 4096 bytes, at most 16 MiB, not " +
                              std::to_string(size) + " bytes");
}
}  // namespace

void register_memory(MachineClass& machine) {
    machine.def("load_rom", &load_rom, py::arg("image"))
        .def("read_physical", &read_physical, py::arg("address"), py::arg("size"))
        .def("write_physical", &write_physical, py::arg("address"), py::arg("data"))
        .def("read_linear", &read_linear, py::arg("linear"), py::arg("size"))
        .def("translate", &translate, py::arg("linear"));
}

}  // namespace emu::bind
