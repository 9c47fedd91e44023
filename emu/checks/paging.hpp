// What a page walk refuses (Intel SDM vol. 3, Paging: Access Rights; Page-Fault Exceptions).
// The subject is the access: it supplies W/R, U/S and I/D of the error code, the walk supplies P and RSVD.
#pragma once
#include "checks/check.hpp"
#include "checks/subjects.hpp"

namespace emu::checks::paging {

using Entry = Quantity<"entry">;
using Level = Quantity<"level", u8>;
inline constexpr FaultForm pf{Vector::PF, Names::page};

inline constexpr Check present{.name = "paging.present",
                               .says = "every paging-structure entry on the way must be present (P = 1)",
                               .sdm = "Vol. 3, Page-Fault Exceptions, P flag",
                               .fault = pf,
                               .holds = [](Entry entry, Level) { return (entry.value & 1) != 0; }};

inline constexpr Check reserved_clear{.name = "paging.reserved_clear",
                                      .says = "the reserved bits of every paging-structure entry must be 0",
                                      .sdm = "Vol. 3, Page-Fault Exceptions, RSVD flag",
                                      .fault = pf,
                                      .holds = [](Entry entry, Quantity<"reserved bits"> reserved, Level) {
                                          return (entry.value & reserved.value) == 0;
                                      }};

inline constexpr Check user_allowed{
    .name = "paging.user_allowed",
    .says = "an access at CPL 3 needs U/S = 1 in every entry on the way",
    .sdm = "Vol. 3, Determination of Access Rights, user-mode accesses",
    .fault = pf,
    .holds = [](Flag<"user access"> user, Flag<"U/S"> us) { return !user.value || us.value; }};

inline constexpr Check writable{
    .name = "paging.writable",
    .says = "a write needs R/W = 1 in every entry on the way (a supervisor's only if CR0.WP = 1)",
    .sdm = "Vol. 3, Determination of Access Rights",
    .fault = pf,
    .holds = [](Flag<"R/W"> rw, Flag<"user access"> user, Flag<"CR0.WP"> wp) {
        return rw.value || (!user.value && !wp.value);
    }};

inline constexpr Check executable{.name = "paging.executable",
                                  .says = "a fetch needs XD = 0 in every entry on the way (when EFER.NXE = 1)",
                                  .sdm = "Vol. 3, Determination of Access Rights, instruction fetches",
                                  .fault = pf,
                                  .holds = [](Flag<"XD"> xd) { return !xd.value; }};

inline constexpr Check smep{
    .name = "paging.smep",
    .says = "with CR4.SMEP a supervisor cannot fetch from a user page",
    .sdm = "Vol. 3, Determination of Access Rights, instruction fetches",
    .fault = pf,
    .holds = [](Flag<"CR4.SMEP"> enabled, Flag<"U/S"> us) { return !(enabled.value && us.value); }};

inline constexpr Check smap{
    .name = "paging.smap",
    .says = "with CR4.SMAP a supervisor cannot access a user page, unless RFLAGS.AC = 1 and the access is explicit",
    .sdm = "Vol. 3, Determination of Access Rights, supervisor-mode accesses",
    .fault = pf,
    .holds = [](Flag<"CR4.SMAP"> enabled, Flag<"U/S"> us, Flag<"AC and explicit"> excused) {
        return !enabled.value || !us.value || excused.value;
    }};

}  // namespace emu::checks::paging
