"""``python -m benchmarks.scaling``: the examples on one process or thread and on two, with the same files.

The numbers are images per second, as printed by each program, excluding the time to start processes (Ray Data
starts counting at the first batch). Each ratio is the median of the rounds' ratios. The ideal ratio
is 2.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from statistics import median

from benchmarks.__main__ import RESULTS
from benchmarks.table import machine

ROOT = Path(__file__).parent.parent
DDP = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node")


def rate(*command: object) -> float:
    """Return the last number of images per second that a program prints."""
    environment = os.environ | {"HF_DATASETS_OFFLINE": "1"}
    line = [sys.executable, *map(str, command)]
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    return float(re.findall(r": (\d+) images/s", done.stdout)[-1])


def measured(photos: Path, work: Path, copies: int) -> dict[str, list[float]]:
    """Return the images per second of each example on one and on two processes."""
    found: dict[str, list[float]] = {}
    for n in (1, 2):
        ray = ("examples/ray_data.py", photos, work / f"ray{n}", "--format", "webdataset", "--copies", copies)
        wds = "examples/webdataset_loader.py", work / "ray1", "--size", 192, "--epochs", 2
        rows = {
            "Ray Data, `map_batches`": (*ray, "--workers", n),
            "Hugging Face datasets, `set_transform`": (
                *("examples/hf_datasets.py", photos, work / f"hf{n}", "--processes", n, "--epochs", 2),
            ),
            "WebDataset, `StatefulDataLoader`": (*wds, "--workers", n, "--threads", 1),
            "WebDataset, threads instead of workers": (*wds, "--workers", 0, "--threads", n),
            "torchrun, `DistributedDataParallel`": (
                *(*DDP, n, "examples/train_ddp.py", photos, "--epochs", 2, "--workers", 0),
                *("--state", work / f"ddp{n}.pt", "--every", 1000),
            ),
        }
        for name, command in rows.items():
            found.setdefault(name, []).append(rate(*command))
    return found


def report(rounds: list[dict[str, list[float]]], cpu: str) -> str:
    of = f"{cpu}, {os.cpu_count()} cores, {len(rounds)} rounds"
    lines = [f"# One process or thread and two, {date.today()}", "", f"{of}.", ""]
    lines += [
        "| engine | one, images/s | two, images/s | ratio |",
        "|---|---|---|---|",
    ]
    for name in rounds[0]:
        one, two = (median(r[name][i] for r in rounds) for i in (0, 1))
        ratio = median(r[name][1] / r[name][0] for r in rounds)
        lines.append(f"| {name} | {one:.0f} | {two:.0f} | {ratio:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photographs", type=int, default=1000)
    parser.add_argument("--copies", type=int, default=4, help="of each photograph, that Ray Data makes")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        photos = Path(folder) / "photos"
        subprocess.run(
            [sys.executable, "examples/photographs.py", str(photos), "--count", str(options.photographs)],
            cwd=ROOT,
            check=True,
        )
        for i in range(options.rounds):
            rounds.append(measured(photos, Path(folder) / f"round{i}", options.copies))
            print(rounds[-1], flush=True)
    known = machine()
    text = report(rounds, known["cpu"])
    print(text)
    (RESULTS / f"scaling-{date.today()}-{known['slug']}.md").write_text(text)


if __name__ == "__main__":
    main()
