// What every room works with: the core, the books, the trace, and reads and writes of system structures.
#pragma once
#include "arch/gate.hpp"
#include "checks/require.hpp"
#include "mmu/access.hpp"

namespace emu {

template <class Obs>
concept Observer = requires {
    { Obs::listens } -> std::convertible_to<bool>;
};

struct Access {
    bool write = false;
    bool fetch = false;
    bool user = false;
    bool implicit = false;  // to a system structure: supervisor, whatever CPL and AC are
};

template <Observer Obs>
struct Transition;

/// One access of 1 to 8 bytes to linear memory that the inline path could not do: walks, fills the TLB, crosses pages.
/// Defined in memory_access.cpp.
template <Observer Obs>
Outcome load_linear(Transition<Obs>& t, u64 linear, unsigned size, Access access, u64& value);
template <Observer Obs>
Outcome store_linear(Transition<Obs>& t, u64 linear, unsigned size, Access access, u64 value);
/// Host address of a linear byte for the access, walking if needed.
template <Observer Obs>
Outcome translate(Transition<Obs>& t, u64 linear, Access access, u64& host, u64& physical);

template <Observer Obs>
struct Transition {
    static constexpr bool listens = Obs::listens;

    Core& core;
    Processor& cpu;
    bool ext = false;        // EXT of error codes: the event does not come from the program
    Millicycles cycles = 0;  // of this passage, added to the ledger when it ends
    const u32 outer_span;
    const Mechanism mechanism;

    Transition(Core& c, Mechanism m, u64 argument) : core{c}, cpu{c.cpu}, outer_span{c.span}, mechanism{m} {
        if constexpr (listens) begin(argument);
    }
    ~Transition() {
        core.ledger.cycles += cycles;
        cycles = 0;
        if constexpr (listens) end();
    }
    Transition(const Transition&) = delete;
    Transition& operator=(const Transition&) = delete;

    EMU_ALWAYS_INLINE void charge(CostEvent event, u64 n = 1) {
        core.ledger.counts[index(event)] += n;
        cycles += n * core.ledger.price[index(event)];
        if constexpr (listens)
            if (event != CostEvent::comparison && n != 0 && mechanism != Mechanism::fetch)
                record(TraceLevel::checks, RecordKind::cost, static_cast<u16>(event), 1, n);
    }

    template <class... Words>
    void checked(CheckId id, bool held, u64 examined, Words... words) {
        note_check(held ? TraceLevel::checks : TraceLevel::off, id, held, examined, words...);
    }
    template <class... Words>
    [[gnu::cold, gnu::noinline]] void failed(CheckId id, u64 examined, Words... words) {
        note_check(TraceLevel::off, id, false, examined, words...);
    }

    [[gnu::noinline]] void record(TraceLevel from, RecordKind kind, u16 id, u8 held, u64 a = 0, u64 b = 0, u64 c = 0,
                                  u64 d = 0) {
        if (core.level < from) return;
        const Millicycles now = core.ledger.cycles + (mechanism == Mechanism::fetch ? 0 : cycles);
        core.ring.append({now, core.instructions, id, kind, held, core.span, a, b, c, d});
    }
    void pushed(Pushed what, u64 linear, u64 value, unsigned size) {
        if constexpr (listens)
            record(TraceLevel::checks, RecordKind::push, static_cast<u16>(what), 1, linear, value, size);
    }
    void popped(Pushed what, u64 linear, u64 value, unsigned size) {
        if constexpr (listens)
            record(TraceLevel::checks, RecordKind::pop, static_cast<u16>(what), 1, linear, value, size);
    }
    /// The new state is in force.
    void committed() {
        if constexpr (listens)
            record(TraceLevel::transitions, RecordKind::commit, static_cast<u16>(mechanism), 1, cpu.rip, cpu.place(),
                   cpu.gpr[rsp], cpu.rflags);
    }

    /// Linear addresses have 32 bits outside IA-32e mode.
    u64 wrap(u64 linear) const { return cpu.ia32e() ? linear : linear & 0xFFFFFFFF; }

    /// Reads a system structure with supervisor rights.
    template <class T>
    EMU_ALWAYS_INLINE Outcome read(Structure what, u64 at, T& value) {
        const u64 linear = wrap(at);
        u64 host;
        if (read_hit(core.translations->array(AccessContext::supervisor), linear, sizeof(T), host)) [[likely]] {
            value = unaligned<T>(host);
        } else {
            u64 loaded = 0;
            TRY(load_linear(*this, linear, sizeof(T), {.implicit = true}, loaded));
            value = static_cast<T>(loaded);
        }
        if constexpr (listens)
            record(TraceLevel::checks, RecordKind::read, static_cast<u16>(what), 1, linear, value, sizeof(T));
        return no_fault;
    }
    template <class T>
    Outcome write(Structure what, u64 at, T value) {
        const u64 linear = wrap(at);
        u64 host;
        if (write_hit(core.translations->array(AccessContext::supervisor), linear, sizeof(T), host)) [[likely]]
            put_unaligned<T>(host, value);
        else
            TRY(store_linear(*this, linear, sizeof(T), {.write = true, .implicit = true}, value));
        if constexpr (listens)
            record(TraceLevel::checks, RecordKind::write, static_cast<u16>(what), 1, linear, value, sizeof(T));
        return no_fault;
    }

 private:
    template <class... Words>
    void note_check(TraceLevel from, CheckId id, bool held, u64 examined, Words... words) {
        const u64 all[3 + 1] = {static_cast<u64>(words)...};
        record(from, RecordKind::check, id, held, all[0], all[1], all[2], examined);
    }
    [[gnu::noinline]] void begin(u64 argument) {
        core.span = ++core.spans;
        const bool quiet = mechanism >= Mechanism::memory;
        record(quiet ? TraceLevel::checks : TraceLevel::transitions, RecordKind::begin, static_cast<u16>(mechanism), 1,
               cpu.rip, cpu.place(), argument, core.next_rip);
    }
    [[gnu::noinline]] void end() {
        const bool quiet = mechanism >= Mechanism::memory;
        record(quiet ? TraceLevel::checks : TraceLevel::transitions, RecordKind::end, static_cast<u16>(mechanism), 1);
        core.span = outer_span;
    }
};

}  // namespace emu
