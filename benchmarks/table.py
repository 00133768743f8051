"""The table of ratios, with explanations of imgops' losses."""

from __future__ import annotations

import json
import os
import platform
import re
import timeit
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

import cv2
import numpy as np
import torch

from benchmarks.cases import BENCHMARKS, COLUMNS, Case
from benchmarks.contributed import document

#: A ratio below this is a loss; a ratio nearer to 1 may be the noise of a shared machine.
EVEN = 0.95

_PACKAGES = ("imgops", "torch", "torchvision", "pillow", "numpy", "kornia", "scikit-image")


@dataclass(frozen=True)
class Row:
    case: Case
    rounds: list[dict[str, float]]  # microseconds of each column, round by round

    def time(self, column: str) -> float | None:
        """Return the median over the rounds, or None if there is no such column."""
        return median(r[column] for r in self.rounds) if column in self.rounds[0] else None

    def ratio(self, peer: str) -> float | None:
        """Return how many times as long as imgops the peer takes: the median of the rounds' ratios."""
        if peer not in self.rounds[0]:
            return None
        return median(r[peer] / r["imgops"] for r in self.rounds)

    def gap(self, peer: str) -> float:
        """Return how much longer imgops takes, in microseconds: the median of the rounds' differences."""
        return median(r["imgops"] - r[peer] for r in self.rounds)

    def losses(self) -> list[str]:
        return [p for p in COLUMNS[1:] if (r := self.ratio(p)) is not None and r < EVEN]


def overheads(rows: list[Row]) -> dict[tuple[object, ...], float]:
    """Return the cost of a call without its pixels: the difference from the raw call on 32 x 32."""
    return {_kind(r.case): r.gap("raw") for r in rows if r.case.size == 32 and "raw" in r.rounds[0]}


def _kind(case: Case) -> tuple[object, ...]:
    return case.operator, case.dtype, case.layout, case.batch


#: Known reasons for losses, by operator, peer, and whether the image is uint8.
KNOWN = {
    (
        "contrast",
        "kornia",
        False,
    ): "a product with the values; PIL's contrast needs the mean of the image first",
    (
        "gamma",
        "torchvision",
        False,
    ): "leaves values beyond 1 as they are; ours are clamped to [0, 1], one more pass",
    ("matrix", "raw", True): "an HWC frame; planes are merged and split around it",
    ("matrix", "raw", False): "an HWC frame; planes go through another pass",
    **{
        (name, "raw", uint8): "an HWC frame; planes are merged and split around it"
        for name in ("rgb2hsv", "rgb2lab", "hls2rgb", "canny", "bilateral")
        for uint8 in (True, False)
    },
    ("clahe of RGB", "raw", True): "three operators, and L taken out of LAB and put back",
    ("unsharp", "kornia", True): "another Gaussian; PIL's are three passes of whole numbers along each axis",
    ("unsharp", "raw", True): "PIL's image is made of the tensor in the call",
    ("alpha", "raw", True): "PIL's images are made of the tensors in the call",
    ("optical_distortion_map", "raw", True): "PyTorch's own operators, with a gradient; a graph fuses them",
    ("blur", "raw", False): "arrays that are reused; OpenCV works plane by plane either way",
}


def why(row: Row, overhead: dict[tuple[object, ...], float]) -> str:
    """Return the reason of each loss, from the measurements and the known reasons."""
    operator, uint8 = row.case.operator, str(row.case.dtype) == "torch.uint8"
    calls = max(overhead.get(_kind(row.case), 40.0), 10.0)
    reasons = []
    for peer in row.losses():
        gap = row.gap(peer)
        if (operator, peer, uint8) in KNOWN and gap > calls:
            reasons.append(f"{peer}: {KNOWN[operator, peer, uint8]}")
        elif gap <= 1.3 * calls + 5:
            reasons.append(f"{peer}: {gap:.0f} us of checks and Python calls around the kernel")
        elif peer == "torchvision" and operator.startswith("resize b") and uint8:
            reasons.append("torchvision: 16-bit weights, which are not PIL's pixels; ours have PIL's 22 bits")
        elif peer == "torchvision":
            reasons.append(f"torchvision: {calls:.0f} us of calls; the rest is one ATen copy against NumPy's")
        elif operator == "paste mask" and uint8:
            reasons.append("raw: its planes were mapped for PIL beforehand, ours are mapped in the call")
        else:
            reasons.append(
                f"raw: {calls:.0f} us of calls; the rest is one large new tensor, whose pages may be "
                "fresh, against small arrays in reused memory"
            )
    return "; ".join(reasons)


@cache
def machine() -> dict[str, str]:
    """Describe the machine; the cost of calls on it is timed once."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = re.findall(r"model name\s*:\s*(.+)", info.read_text())
        cpu = names[0] if names else cpu
    slug = re.sub(r"[^a-z0-9.]+", "-", re.sub(r"\(.*?\)|@|cpu|processor", " ", cpu.lower())).strip("-")
    small = np.empty(32, np.uint8)
    return {
        "cpu": cpu,
        "system": platform.platform(),
        "python": platform.python_version(),
        "slug": slug,
        "cores": str(os.cpu_count()),
        "torch.empty": _cost(lambda: torch.empty(32, dtype=torch.uint8)),
        "numpy.copyto": _cost(lambda: np.copyto(small, small)),
    }


def _cost(call: Callable[[], object]) -> str:
    return f"{min(timeit.repeat(call, number=2000, repeat=5)) / 2000 * 1e6:.1f} us"


def versions_here() -> dict[str, str]:
    """Return the versions of the compared libraries, including the installed one of OpenCV's four packages."""
    found = {"opencv": cv2.__version__}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def write_json(rows: list[Row], path: Path, contributor: str = "the imgops developers") -> Path:
    """Write ``path``.json, with one line for each row; return its path."""
    overhead = overheads(rows)
    data = [
        {
            **vars(r.case),
            "dtype": str(r.case.dtype).removeprefix("torch."),
            "microseconds": {c: _short(r.time(c)) for c in COLUMNS},
            "ratio": {c: _short(r.ratio(c)) for c in COLUMNS},
            "why": why(r, overhead),
        }
        for r in rows
    ]
    found = document([], machine(), versions_here(), contributor)
    lines = ",\n  ".join(json.dumps(row) for row in data)
    text = json.dumps(found, indent=1).replace('"rows": []', f'"rows": [\n  {lines}\n ]')
    target = path.with_suffix(path.suffix + ".json")
    target.write_text(text + "\n")
    return target


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def write(rows: list[Row], path: Path) -> str:
    """Write ``path``.md and .json; return a summary."""
    facts, versions = machine(), versions_here()
    lines = [
        "# imgops compared with the raw libraries and its peers",
        "",
        f"{facts['cpu']}, one thread; Python {facts['python']}, "
        + ", ".join(f"{n} {v}" for n, v in versions.items())
        + ".",
        "",
        "Each number is the time of the other library divided by that of imgops, for the same work, with the",
        "output in separate memory: above 1, imgops is faster. The columns take turns in the rounds of one",
        "run, and a number is the median of the rounds' ratios; compare rows, not runs. Images have three",
        f"channels. A dash: the peer has no such operator. **Bold**: imgops loses (below {EVEN}), and the",
        "last column says why. For comparison, on this machine torch.empty of 32 bytes takes",
        f"{facts['torch.empty']}, and numpy.copyto of 32 bytes {facts['numpy.copyto']}.",
        "",
        *(f"- {name}: raw is {benchmark.raw}" for name, benchmark in BENCHMARKS.items()),
        "",
        "kornia works on floats: on uint8 its time includes the conversion to floats and back. The",
        "antialiasing of kornia and torchvision gives different pixels than PIL's.",
        "",
    ]
    overhead = overheads(rows)
    for operator in dict.fromkeys(r.case.operator for r in rows):
        lines += [f"## {operator}", "", *_header()]
        lines += [_line(r, why(r, overhead)) for r in rows if r.case.operator == operator]
        lines.append("")
    path.with_suffix(path.suffix + ".md").write_text("\n".join(lines))
    write_json(rows, path)
    lost = [p for r in rows for p in r.losses()]
    return f"{len(rows)} rows in {path}.md; losses: " + (
        ", ".join(f"{p} {lost.count(p)}" for p in sorted(set(lost))) or "none"
    )


def _header() -> list[str]:
    return [
        "| dtype | layout | size | batch | imgops, us | raw | torchvision | kornia | scikit-image | where imgops loses, why |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]


def _line(row: Row, reason: str) -> str:
    case, cells = row.case, []
    for peer in COLUMNS[1:]:
        ratio = row.ratio(peer)
        text = "–" if ratio is None else f"{ratio:.2f}"
        cells.append(f"**{text}**" if ratio is not None and ratio < EVEN else text)
    dtype = str(case.dtype).removeprefix("torch.")
    first = [dtype, case.layout, f"{case.size}²", str(case.batch), f"{row.time('imgops'):.0f}"]
    return "| " + " | ".join([*first, *cells, reason]) + " |"
