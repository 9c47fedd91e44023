// Data accesses and instruction fetches through a segment (Intel SDM vol. 3, Limit Checking; Type Checking).
// Through SS the same rules raise #SS(0) instead of #GP(0).
#pragma once
#include "arch/descriptor.hpp"
#include "checks/check.hpp"
#include "checks/subjects.hpp"

namespace emu::checks::access {

template <Text use>
inline constexpr Vector vector_of = Vector::GP;
template <>
inline constexpr Vector vector_of<"stack_access"> = Vector::SS;

inline constexpr Check segment_not_null{
    .name = "access.segment_not_null",
    .says = "a segment register that holds a null selector cannot be used for access",
    .sdm = "Vol. 3, Checking of Null Selectors",
    .fault = gp(Names::nothing),
    .holds = [](Selector selector, Flag<"usable"> usable) { return static_cast<void>(selector), usable.value; }};

inline constexpr Check readable{.name = "access.readable",
                                .says = "reads need a data segment or readable code",
                                .sdm = "Vol. 3, Type Checking",
                                .fault = gp(Names::nothing),
                                .holds = [](TypeField type) { return segment_type::is_readable(type); }};

inline constexpr Check writable{.name = "access.writable",
                                .says = "writes need a writable data segment",
                                .sdm = "Vol. 3, Type Checking",
                                .fault = gp(Names::nothing),
                                .holds = [](TypeField type) { return segment_type::is_writable(type); }};

template <Text use>
inline constexpr Check within_limit{.name = joined<use, "within_limit">,
                                    .says = "every byte of the access must lie within the limit of the segment",
                                    .sdm = "Vol. 3, Limit Checking",
                                    .fault = {vector_of<use>, Names::nothing},
                                    .holds = [](Effective first, LastByte last, Flag<"inside"> inside) {
                                        return first.value <= last.value && inside.value;
                                    }};

template <Text use>
inline constexpr Check canonical{
    .name = joined<use, "canonical">,
    .says = "in 64-bit mode every byte of the access must lie at a canonical address",
    .sdm = "Vol. 1, Canonical Addressing",
    .fault = {vector_of<use>, Names::nothing},
    .holds = [](Linear first, Flag<"last byte canonical"> last) { return canonical48(first.value) && last.value; }};

inline constexpr Check aligned{.name = "access.aligned",
                               .says = "with CR0.AM and RFLAGS.AC set, accesses at CPL 3 must be aligned to their size",
                               .sdm = "Vol. 3, Interrupt 17 - Alignment Check Exception",
                               .fault = {Vector::AC, Names::nothing},
                               .holds = [](Linear at, Size size) { return (at.value & (size.value - 1u)) == 0; }};

inline constexpr Check fetch_within_limit{
    .name = "fetch.within_limit",
    .says = "every byte of an instruction must lie within the limit of the code segment",
    .sdm = "Vol. 3, Limit Checking",
    .fault = gp(Names::nothing),
    .holds = [](Offset offset, Limit limit) { return offset.value <= limit.value; }};

inline constexpr Check fetch_canonical{
    .name = "fetch.canonical",
    .says = "in 64-bit mode every byte of an instruction must lie at a canonical address",
    .sdm = "Vol. 1, Canonical Addressing",
    .fault = gp(Names::nothing),
    .holds = [](Linear at) { return canonical48(at.value); }};

}  // namespace emu::checks::access
