// Loads of DS, ES, FS and GS (Intel SDM vol. 2, MOV, Operation: loading a segment register in protected mode).
#pragma once
#include "arch/descriptor.hpp"
#include "checks/descriptor_table.hpp"

namespace emu::checks::data_load {

inline constexpr Check readable{.name = "data_load.readable",
                                .says = "the segment must be data or readable code",
                                .sdm = "MOV, loading DS, ES, FS, GS",
                                .fault = gp(Names::selector),
                                .holds = [](TypeField type) { return segment_type::is_readable(type); }};

inline constexpr Check rpl_not_above_dpl{.name = "data_load.rpl_not_above_dpl",
                                         .says = "data and non-conforming code need RPL <= DPL",
                                         .sdm = "MOV, loading DS, ES, FS, GS",
                                         .fault = gp(Names::selector),
                                         .holds = [](Rpl rpl, Dpl dpl) { return rpl.value <= dpl.value; }};

inline constexpr Check cpl_not_above_dpl{.name = "data_load.cpl_not_above_dpl",
                                         .says = "data and non-conforming code need CPL <= DPL",
                                         .sdm = "MOV, loading DS, ES, FS, GS",
                                         .fault = gp(Names::selector),
                                         .holds = [](Cpl cpl, Dpl dpl) { return cpl.value <= dpl.value; }};

}  // namespace emu::checks::data_load
