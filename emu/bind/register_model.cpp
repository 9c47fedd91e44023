#include "bind/bind.hpp"

namespace emu::bind {

namespace {
struct Feature {
    const char* name;
    bool CpuModel::* member;
};
constexpr Feature features[] = {
    {"long_mode", &CpuModel::long_mode},
    {"nx", &CpuModel::nx},
    {"pages_1gib", &CpuModel::pages_1gib},
    {"global_pages", &CpuModel::global_pages},
    {"page_size_extension", &CpuModel::page_size_extension},
    {"pae", &CpuModel::pae},
    {"smep", &CpuModel::smep},
    {"smap", &CpuModel::smap},
    {"syscall", &CpuModel::syscall},
    {"sysenter", &CpuModel::sysenter},
    {"rdtscp", &CpuModel::rdtscp},
    {"fsgsbase", &CpuModel::fsgsbase},
    {"umip", &CpuModel::umip},
    {"pcid", &CpuModel::pcid},
};

Vendor vendor_of(const py::handle& value) {
    const std::string name = py::isinstance<py::str>(value) ? py::cast<std::string>(value) : "";
    if (name == "intel") return Vendor::intel;
    if (name == "amd") return Vendor::amd;
    throw py::value_error("vendor must be \"intel\" or \"amd\"");
}

u8 address_bits(const py::handle& value) {
    const u64 bits = number(py::reinterpret_borrow<py::object>(value), "physical_address_bits", 64);
    if (bits < 32 || bits > 52)
        throw py::value_error("physical_address_bits must be from 32 to 52, not " + std::to_string(bits));
    return static_cast<u8>(bits);
}

CpuidLeaf leaf_of(const py::handle& value) {
    if (!py::isinstance<py::dict>(value)) throw py::value_error("each cpuid leaf must be a dict");
    const auto entry = py::reinterpret_borrow<py::dict>(value);
    const auto word = [&entry](const char* key) {
        if (!entry.contains(key)) throw py::value_error("a cpuid leaf lacks \"" + std::string(key) + "\"");
        return static_cast<u32>(number(entry[key], key, 32));
    };
    return {word("leaf"), word("subleaf"), word("eax"), word("ebx"), word("ecx"), word("edx")};
}

void read_leaves(const py::handle& value, CpuModel& model) {
    if (!py::isinstance<py::list>(value)) throw py::value_error("cpuid must be a list of leaves");
    model.leaf_count = 0;
    for (const py::handle leaf : value) {
        if (model.leaf_count == model.leaves.size())
            throw py::value_error("cpuid can have at most " + std::to_string(model.leaves.size()) + " leaves");
        model.leaves[model.leaf_count++] = leaf_of(leaf);
    }
}

bool set_feature(const std::string& name, const py::handle& value, CpuModel& model) {
    for (const Feature& feature : features) {
        if (name != feature.name) continue;
        if (!py::isinstance<py::bool_>(value)) throw py::value_error(name + " must be True or False");
        model.*feature.member = py::cast<bool>(value);
        return true;
    }
    return false;
}

void set_model(HeldMachine& held, const py::dict& entries) {
    Machine& machine = held.idle();
    CpuModel model;
    for (const auto& [key, value] : entries) {
        const std::string name = py::cast<std::string>(py::str(key));
        if (name == "vendor")
            model.vendor = vendor_of(value);
        else if (name == "physical_address_bits")
            model.physical_address_bits = address_bits(value);
        else if (name == "cpuid")
            read_leaves(value, model);
        else if (!set_feature(name, value, model))
            throw py::value_error("a processor model has no \"" + name + "\"");
    }
    machine.set_model(model);
}

void set_prices(HeldMachine& held, const py::array_t<u64, py::array::forcecast>& millicycles) {
    if (millicycles.ndim() != 1 || static_cast<std::size_t>(millicycles.size()) != cost_event_count)
        throw py::value_error("there must be one price for each of the " + std::to_string(cost_event_count) +
                              " cost events");
    std::array<Millicycles, cost_event_count> prices{};
    constexpr u64 largest = 1'000'000'000;  // a million cycles: sums of blocks stay far from wrapping
    for (std::size_t i = 0; i < prices.size(); ++i) {
        prices[i] = millicycles.at(static_cast<py::ssize_t>(i));
        if (prices[i] > largest) throw py::value_error("a price must be from 0 to a million cycles");
    }
    held.idle().set_prices(prices);
}
}  // namespace

void register_model(MachineClass& machine) {
    machine.def("set_prices", &set_prices, py::arg("millicycles")).def("set_model", &set_model, py::arg("model"));
}

}  // namespace emu::bind
