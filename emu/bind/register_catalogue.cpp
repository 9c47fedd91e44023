#include "bind/bind.hpp"
#include "checks/catalogue.hpp"

namespace emu::bind {

namespace {
const char* name_of(Names names) {
    switch (names) {
        case Names::no_code:
            return "no_code";
        case Names::nothing:
            return "nothing";
        case Names::selector:
            return "selector";
        case Names::idt_entry:
            return "idt_entry";
        case Names::page:
            return "page";
    }
    return "?";
}

py::list checks() {
    py::list all;
    for (const catalogue::CatalogueEntry& entry : catalogue::entries) {
        py::list operands;
        for (std::size_t i = 0; i < entry.operand_count; ++i) operands.append(entry.operands[i]);
        py::dict check;
        check["name"] = entry.name;
        check["says"] = entry.says;
        check["sdm"] = entry.sdm;
        check["vector"] = static_cast<unsigned>(entry.vector);
        check["names"] = name_of(entry.names);
        check["cost"] = cost_events[index(entry.cost)].name;
        check["operands"] = operands;
        all.append(check);
    }
    return all;
}
}  // namespace

void register_catalogue(py::module_& module) { module.def("checks", &checks); }

}  // namespace emu::bind
