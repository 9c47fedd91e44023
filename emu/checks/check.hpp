// A protection check is one object: what must hold, how the manual says it, where, and which fault follows if not.
#pragma once
#include <array>
#include <string_view>

#include "arch/quantities.hpp"
#include "arch/vectors.hpp"
#include "checks/names.hpp"
#include "cost/events.hpp"

namespace emu {

struct FaultForm {
    Vector vector;
    Names names;
};

constexpr FaultForm gp(Names names) { return {Vector::GP, names}; }
constexpr FaultForm np(Names names) { return {Vector::NP, names}; }
constexpr FaultForm ss(Names names) { return {Vector::SS, names}; }
constexpr FaultForm ts(Names names) { return {Vector::TS, names}; }
inline constexpr FaultForm ud{Vector::UD, Names::no_code};
inline constexpr FaultForm nm{Vector::NM, Names::no_code};
inline constexpr FaultForm de{Vector::DE, Names::no_code};

template <class Test>
struct Check {
    std::string_view name;  // stable: used in Python, in tests and in documentation
    std::string_view says;  // for the learner: what must hold
    std::string_view sdm;   // instruction or chapter, and the label in its pseudo-code
    FaultForm fault;
    Test holds;  // the whole condition and only the condition
    CostEvent cost = CostEvent::comparison;
};

/// A family states a rule once for several uses; its members differ in the first part of the name and in the vector.
template <Text use, Text rule>
struct Joined {
    static constexpr std::size_t length = use.view().size() + 1 + rule.view().size();
    static constexpr auto characters = [] {
        std::array<char, length> all{};
        std::size_t at = 0;
        for (const char c : use.view()) all[at++] = c;
        all[at++] = '.';
        for (const char c : rule.view()) all[at++] = c;
        return all;
    }();
};
template <Text use, Text rule>
inline constexpr std::string_view joined{Joined<use, rule>::characters.data(), Joined<use, rule>::length};

}  // namespace emu
