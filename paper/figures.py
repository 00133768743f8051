"""Draw the figures of paper.md from ``benchmarks/results``: ``python paper/figures.py``."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

from benchmark_plots import newest, number, rows, plt  # noqa: E402, I001

RESULTS = ROOT / "benchmarks" / "results"
COLORS = {
    "torchvision": "#e08a2e",
    "kornia": "#c9503c",
    "albumentations": "#7a9a3a",
    "raw library": "#8b949e",
}


def pipelines() -> None:
    """Draw the time of the other libraries over that of imgops, for four pipelines on one thread."""
    table = [cells for _, cells in rows(newest(RESULTS, "pipelines-*.md"))]
    head = table[0]
    lines = [cells for cells in table[1:] if len(cells) == len(head)]
    columns = {
        "torchvision": ["torchvision, planar"],
        "kornia": ["kornia"],
        "albumentations": ["albumentations", "albumentations, no antialiasing"],
    }
    figure, axes = plt.subplots(figsize=(6.4, 3), layout="constrained")
    for i, (peer, names) in enumerate(columns.items()):
        for j, cells in enumerate(lines):
            ratio = next(filter(None, (number(cells[head.index(name)]) for name in names)), None)
            if ratio is not None:
                at = j + (i - 1) * 0.26
                label = peer if j == 0 else None
                axes.barh(at, ratio, 0.24, color=COLORS[peer], label=label)
                axes.annotate(f"{ratio:.2f}", (ratio, at), (3, 0), textcoords="offset points", va="center")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(0.8, 30)
    axes.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    axes.set_yticks(range(len(lines)), [cells[0] for cells in lines])
    axes.invert_yaxis()
    axes.set_xlabel("time of the other library / time of imgops")
    axes.legend(frameon=False, loc="center right")
    figure.savefig(Path(__file__).parent / "pipelines.png", dpi=200)


def operators() -> None:
    """Draw the same ratio for every operator on planar uint8 images of 512 x 512."""
    table = rows(newest(RESULTS, "operators-512-*.md"))
    head = next(cells for _, cells in table if cells[0] == "dtype")
    found: dict[str, list[float]] = {"raw library": [], "torchvision": [], "kornia": []}
    for _, cells in table:
        if len(cells) == len(head) and cells[:4] == ["uint8", "planar", "512²", "1"]:
            for peer, ratios in found.items():
                ratio = number(cells[head.index("raw" if peer == "raw library" else peer)])
                if ratio is not None:
                    ratios.append(ratio)
    figure, axes = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
    for peer, ratios in found.items():
        ratios.sort()
        places = [(i + 0.5) / len(ratios) for i in range(len(ratios))]
        axes.plot(ratios, places, ".-", color=COLORS[peer], label=f"{peer}, {len(ratios)} operators")
        lost = sum(ratio < 0.95 for ratio in ratios)
        print(f"{peer}: {len(ratios)}, median {statistics.median(ratios):.2f}, below 0.95: {lost}")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("time of the other library / time of imgops")
    axes.set_ylabel("share of the operators")
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(Path(__file__).parent / "operators.png", dpi=200)


if __name__ == "__main__":
    pipelines()
    operators()
