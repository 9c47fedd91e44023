#include "bind/bind.hpp"

namespace emu::bind {

namespace {
const char* name_of(EventKind kind) {
    switch (kind) {
        case EventKind::act:
            return "act";
        case EventKind::arm:
            return "arm";
        case EventKind::instruction:
            return "instruction";
    }
    return "?";
}

py::list events() {
    py::list all;
    for (const EventInfo& info : cost_events) {
        py::dict event;
        event["name"] = info.name;
        event["kind"] = name_of(info.kind);
        event["says"] = info.says;
        all.append(event);
    }
    return all;
}
}  // namespace

void register_cost(py::module_& module) {
    module.attr("MILLICYCLES_PER_CYCLE") = millicycles_per_cycle;
    module.def("cost_events", &events);
}

}  // namespace emu::bind
