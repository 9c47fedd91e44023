"""The comparison as a stacked bar chart, legible on a lecture slide and to colour-blind readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from emu.compare import Row

# Groups of acts and arms in the order they are stacked; the palette is Okabe and Ito's, made for colour-blind readers.
GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "protection checks": ("#D55E00", ("comparison",)),
    "gates, descriptors, TSS": ("#E69F00", ("gate_fetch", "descriptor_fetch", "tss_read", "accessed_write", "msr_use")),
    "segment registers": ("#F0E442", ("segment_refill", "segment_constant", "swapgs", "load_segment")),
    "stack": ("#009E73", ("stack_switch", "push", "pop", "parameter_copy")),
    "pipeline and privilege": ("#56B4E9", ("privilege_change", "pipeline_refill", "microcode_entry", "flags_write")),
    "serialisation": ("#0072B2", ("serialise",)),
    "exception": ("#CC79A7", ("exception_entry", "walk_step", "walk_write", "tlb_flush")),
    "entry, as documented": (
        "#E69F00",
        ("interrupt_inner", "interrupt_same", "call_gate_inner", "call_gate_inner_parameters", "call_gate_parameter"),
    ),
    "return, as documented": ("#56B4E9", ("iret_outer", "iret_same", "far_return_outer", "far_return_same")),
    "instructions on the way": ("#999999", ("instructions",)),
}


def grouped(parts: dict[str, float]) -> dict[str, float]:
    """Parts by group; what is in no group is "other"."""
    home = {event: group for group, (_, events) in GROUPS.items() for event in events}
    sums: dict[str, float] = {}
    for event, cycles in parts.items():
        group = home.get(event, "other")
        sums[group] = sums.get(group, 0.0) + cycles
    return sums


def stacked_bars(rows: list[Row], title: str, folder: Path) -> list[Path]:
    """Writes `compare.png` and `compare.svg` into the folder and returns their paths."""
    import matplotlib as mpl  # noqa: PLC0415 - half a second that no other command has to wait for

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    rows = [row for row in rows if not row.note][::-1]
    names = [f"{row.mechanism}, {row.bits}-bit\n{row.enter} ... {row.leave}" for row in rows]
    sums = [grouped(row.parts) for row in rows]
    figure, axes = plt.subplots(figsize=(12.8, 1.6 + 0.5 * max(len(rows), 4)), layout="constrained")
    starts = [0.0] * len(rows)
    for group, colour in [(g, c) for g, (c, _) in GROUPS.items()] + [("other", "#000000")]:
        widths = [s.get(group, 0.0) for s in sums]
        if not any(widths):
            continue
        axes.barh(range(len(rows)), widths, left=starts, color=colour, label=group, edgecolor="white", linewidth=0.6)
        starts = [start + width for start, width in zip(starts, widths, strict=True)]
    furthest = max(starts, default=1.0)
    for i, row in enumerate(rows):
        axes.text(starts[i] + furthest * 0.008, i, f"{row.cycles:.0f}", va="center", fontsize=11)
        if row.published:
            axes.plot([row.published.cycles] * 2, [i - 0.46, i + 0.46], color="black", linewidth=2.2)
    axes.plot([], [], color="black", linewidth=2.2, label="published")
    axes.set_yticks(range(len(rows)), names, fontsize=9.5)
    axes.set_xlim(0, furthest * 1.07)
    axes.set_xlabel("cycles for one round trip, ring 3 to ring 0 and back", fontsize=12)
    axes.set_title(title, fontsize=14, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#DDDDDD")
    axes.set_axisbelow(True)
    # Below the axes, where no bar can be: which corner is empty depends on the profile.
    figure.legend(loc="outside lower center", ncols=4, fontsize=10.5, frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "compare.png", folder / "compare.svg"]
    for path in paths:
        figure.savefig(path, dpi=120)
    plt.close(figure)
    return paths
