"""Plot ``benchmarks/results``, once for light pages and once for dark ones."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

OURS, PEERS = "#2a7fd4", ("#e08a2e", "#c9503c", "#7a9a3a", "#8a6cc0")
THEMES = {"light": ("#1f2328", "#d0d7de"), "dark": ("#e6edf3", "#3d444d")}


def newest(results: Path, pattern: str) -> Path:
    return sorted(results.glob(pattern))[-1]


def rows(path: Path) -> list[tuple[str, list[str]]]:
    """Return the rows of all tables in a file, each with the heading above its table."""
    found, heading = [], ""
    for line in path.read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("| ") and not line.startswith("|--"):
            found.append((heading, [cell.strip(" *") for cell in line.strip("|").split("|")]))
    return found


def number(cell: str) -> float | None:
    try:
        return float(cell.split(" ")[0])
    except ValueError:
        return None


def _pipelines(axes: Axes, results: Path) -> None:
    table = [cells for _, cells in rows(newest(results, "pipelines-*.md"))]
    head = table[0]
    lines = [r for r in table[1:] if len(r) == len(head)]
    peers = {
        "torchvision": ["torchvision, planar"],
        "torchvision, PIL": ["torchvision, PIL"],
        "kornia": ["kornia"],
        "albumentations": ["albumentations", "albumentations, no antialiasing"],
    }
    for i, row in enumerate(lines):
        speed = float(row[head.index("images/s")])
        bars = [("imgops", speed, OURS)]
        for (peer, columns), color in zip(peers.items(), PEERS, strict=True):
            ratio = next(filter(None, (number(row[head.index(c)]) for c in columns)), None)
            if ratio:
                bars.append((peer, speed / ratio, color))
        for j, (name, value, color) in enumerate(bars):
            at = i + (j - 2) * 0.16
            axes.barh(at, value, 0.15, color=color, label=name if i == 0 else None)
            axes.annotate(
                f"{value:.0f}", (value, at), (3, 0), textcoords="offset points", va="center", fontsize=8
            )
    axes.set_yticks(range(len(lines)), [r[0] for r in lines])
    axes.invert_yaxis()
    axes.set_xlabel("images per second, one thread, one photograph of 375 × 500 at a time")
    axes.legend(frameon=False, loc="upper right", labelcolor="linecolor")
    axes.margins(x=0.08)


def _loading(axes: Axes, results: Path) -> None:
    """Plot the pipelines from files on one thread: the speed of each library."""
    table = [cells for _, cells in rows(newest(results, "loading-*.md"))]
    head = table[0]
    lines = [r for r in table[1:] if len(r) == len(head) and r[1] == "1"]
    names = {"one by one": "imgops, one by one", "whole": "imgops, one by one, all decoded"}
    for i, row in enumerate(lines):
        speed = float(row[head.index("images/s")])
        bars = [("imgops, a batch", speed, OURS)]
        for peer, cell, color in zip(
            head[3:], row[3:], ("#7fb4e8", "#8fa5b8", *PEERS, "#555d66"), strict=False
        ):
            if ratio := number(cell):
                bars.append((names.get(peer, peer), speed / ratio, color))
        for j, (name, value, color) in enumerate(bars):
            at = i + (j - 3.5) * 0.11
            axes.barh(at, value, 0.1, color=color, label=name if i == 0 else None)
            axes.annotate(
                f"{value:.0f}", (value, at), (3, 0), textcoords="offset points", va="center", fontsize=8
            )
    axes.set_yticks(range(len(lines)), [r[0] for r in lines])
    axes.invert_yaxis()
    axes.set_xlabel("images per second from JPEG files, one thread")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), labelcolor="linecolor")
    axes.margins(x=0.08)


def _processors(axes: Axes, results: Path) -> None:
    """Plot how long the other backends of each image processor take."""
    table = [cells for _, cells in rows(newest(results, "processors-*.md"))]
    head, lines = table[0], [r for r in table[1:] if number(r[1]) is not None]
    for i, row in enumerate(lines):
        for j, (column, color) in enumerate(zip(("PIL", "torchvision"), PEERS, strict=False)):
            ratio = number(row[head.index(column)]) or 0.0
            at = i + (j - 0.5) * 0.36
            axes.barh(at, ratio, 0.34, color=color, label=f"{column}'s backend" if i == 0 else None)
            axes.annotate(
                f"{ratio:.1f}", (ratio, at), (3, 0), textcoords="offset points", va="center", fontsize=8
            )
    axes.axvline(1, color=OURS, linewidth=1.5)
    axes.set_yticks(range(len(lines)), [r[0] for r in lines])
    axes.invert_yaxis()
    axes.set_xlabel(
        "time of the backend over that of the exact one (the line), 8 photographs of 1024 × 802, one thread"
    )
    axes.legend(
        frameon=False,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=2,
        labelcolor="linecolor",
        borderaxespad=0,
    )
    axes.margins(x=0.08)


def _operators(axes: Axes, results: Path) -> None:
    table = rows(newest(results, "operators-512-*.md"))
    head = next(cells for _, cells in table if cells[0] == "dtype")
    names = list(
        dict.fromkeys(
            h for h, cells in table if h and cells[0] in ("uint8", "float32") and len(cells) == len(head)
        )
    )
    markers = {"uint8": "o", "float32": "D"}
    shown = set()
    for heading, cells in table:
        if heading not in names or cells[0] not in markers or len(cells) != len(head):
            continue
        peers = (
            ("raw", "#8b949e"),
            ("torchvision", PEERS[0]),
            ("kornia", PEERS[1]),
            ("scikit-image", PEERS[2]),
        )
        for peer, color in peers:
            if peer not in head:
                continue
            ratio = number(cells[head.index(peer)])
            if ratio is None:
                continue
            label = f"{'the raw library' if peer == 'raw' else peer}, {cells[0]}"
            axes.plot(
                ratio,
                names.index(heading) + (0.18 if cells[0] == "float32" else -0.18),
                markers[cells[0]],
                color=color,
                markersize=5,
                alpha=0.85,
                label=None if label in shown else label,
            )
            shown.add(label)
    axes.axvline(1, color=OURS, linewidth=1.5)
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.set_xlabel("the other's time divided by imgops' time: imgops is faster to the right of the line")
    axes.grid(axis="x", linewidth=0.4)
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: labels[i], reverse=True)
    axes.xaxis.set_major_formatter("{x:g}")
    chosen = [handles[i] for i in order], [labels[i] for i in order]
    axes.legend(*chosen, frameon=False, loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=4)


def draw(results: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for theme, (ink, line) in THEMES.items():
        style = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), ink)
        style |= {"axes.edgecolor": line, "grid.color": line, "font.size": 10, "svg.hashsalt": "imgops"}
        with plt.rc_context(style):
            for name, plot, size in (
                ("loading", _loading, (9, 4)),
                ("pipelines", _pipelines, (9, 5.4)),
                ("processors", _processors, (9, 5.4)),
                ("operators", _operators, (9, 15)),
            ):
                figure, axes = plt.subplots(figsize=size)
                axes.set_facecolor("none")
                plot(axes, results)
                axes.spines[["top", "right"]].set_visible(False)
                figure.savefig(folder / f"{name}-{theme}.svg", transparent=True, bbox_inches="tight")
                plt.close(figure)
