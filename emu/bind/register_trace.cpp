#include "bind/bind.hpp"
#include "bind/names.hpp"

namespace emu::bind {

namespace {
template <const auto& names>
py::list list_of() {
    py::list all;
    for (const std::string_view name : names) all.append(name);
    return all;
}
}  // namespace

void register_trace(py::module_& module) {
    PYBIND11_NUMPY_DTYPE(Record, cycles, instructions, id, kind, held, span, a, b, c, d);
    module.attr("RECORD_DTYPE") = py::dtype::of<Record>();
    module.def("mechanisms", &list_of<mechanism_names>);
    module.def("record_kinds", &list_of<record_kind_names>);
    module.def("structures", &list_of<structure_names>);
    module.def("pushed", &list_of<pushed_names>);
    module.def("stop_reasons", &list_of<stop_reason_names>);
    module.def("unmodelled", &list_of<unmodelled_sentences>);
}

}  // namespace emu::bind
