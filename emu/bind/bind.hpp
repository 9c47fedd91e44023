// What the register_*.cpp files share. They translate between Python's types and the core's, and check arguments, so
// that no caller can bring the host down; they decide nothing.
#pragma once
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>

#include "machine.hpp"

namespace emu::bind {

namespace py = pybind11;

/// A whole number that must fit into so many bits: ValueError with `what` in its sentence otherwise.
u64 number(const py::object& value, const std::string& what, unsigned bits);
std::string hexadecimal(u64 value);

/// A machine as Python holds it. While one thread runs it without the GIL, all others are refused.
class HeldMachine {
 public:
    explicit HeldMachine(std::unique_ptr<Machine> machine) : machine_{std::move(machine)} {}
    /// RuntimeError while another thread runs it.
    Machine& idle();

    class Running {
     public:
        explicit Running(HeldMachine& held) : held_{held} { held_.running_ = true; }
        ~Running() { held_.running_ = false; }
        Running(const Running&) = delete;
        Running& operator=(const Running&) = delete;

     private:
        HeldMachine& held_;
    };

 private:
    std::unique_ptr<Machine> machine_;
    bool running_ = false;
};

using MachineClass = py::class_<HeldMachine>;

void register_catalogue(py::module_& module);
void register_cost(py::module_& module);
void register_trace(py::module_& module);
void register_run(py::module_& module, MachineClass& machine);
void register_memory(MachineClass& machine);
void register_processor(MachineClass& machine);
void register_model(MachineClass& machine);

}  // namespace emu::bind
