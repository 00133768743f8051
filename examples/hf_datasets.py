"""Use imgops with Hugging Face datasets: map() prepares files once, set_transform() augments them when read.

    pip install ".[examples]"
    python examples/photographs.py photos --count 200 --corrupt 1
    python examples/hf_datasets.py photos prepared --processes 2 --epochs 2

A photograph's draws depend only on its path and the epoch, so they are the same with any number of processes.
The program leaves out files that cannot be decoded, and prints their names. If a process is killed, another
process repeats its work.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import datasets
import torch
from torch.utils.data import DataLoader
from tqdm import tqdm

from imgops import decode_image, encode_image
from imgops import transforms as v2

FIT = v2.Compose([v2.Resize(256), v2.CenterCrop(256)])
ATTEMPTS = 5


def prepare(batch: dict[str, list[Any]], root: str) -> dict[str, list[Any]]:
    """Turn files of any size into JPEGs of 256 × 256 pixels; "error" describes the problem of a file."""
    torch.set_num_threads(1)  # because there may be as many processes as cores
    out: dict[str, list[Any]] = {"jpg": [], "path": [], "error": []}
    for file in batch["image"]:
        data, problem = file["bytes"] or Path(file["path"]).read_bytes(), ""
        try:
            image = FIT(decode_image(torch.frombuffer(bytearray(data), dtype=torch.uint8)))
            data = encode_image(image, "jpeg", 95).numpy().tobytes()
        except ValueError as error:
            data, problem = b"", str(error)
        out["jpg"].append(data)
        out["path"].append(os.path.relpath(file["path"], root))
        out["error"].append(problem)
    return out


def prepared(source: Path, target: Path, processes: int) -> datasets.Dataset:
    """Prepare all files with map(). Finished parts stay on the disk; a killed process's part is repeated."""
    cache = str(target / "cache")
    files = datasets.load_dataset("imagefolder", data_dir=str(source), split="train", cache_dir=cache)
    files = files.cast_column("image", datasets.Image(decode=False))
    options = {
        "num_proc": processes if processes > 1 else None,
        "remove_columns": ["image"],
        "desc": "prepare",
    }
    for attempt in range(ATTEMPTS):
        start = time.perf_counter()
        try:
            done = files.map(
                prepare, batched=True, batch_size=32, fn_kwargs={"root": str(source.resolve())}, **options
            )
            break
        except RuntimeError as error:
            if "abruptly died" not in str(error) or attempt == ATTEMPTS - 1:
                raise
            print("a process was killed: its part is done again")
    rate = len(done) / (time.perf_counter() - start)
    for row in done.filter(lambda error: error != "", input_columns="error"):
        print(f"left out {row['path']}: {row['error']}")
    good = done.filter(lambda error: error == "", input_columns="error").remove_columns("error")
    print(f"{len(good)} photographs prepared by {processes} processes: {rate:.0f} photographs/s")
    good.save_to_disk(str(target / "photographs"))
    return good


class Augment:
    """Turn rows into tensors for set_transform(), a batch at a time; each image has its own draws."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.pipeline = v2.Compose(
            [
                v2.RandomResizedCrop(224),
                v2.RandomHorizontalFlip(),
                v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
                v2.ToDtype(torch.float32, scale=True),
            ],
            per_sample=True,
        )

    def __call__(self, rows: dict[str, list[Any]]) -> dict[str, Any]:
        files = [torch.frombuffer(bytearray(data), dtype=torch.uint8) for data in rows["jpg"]]
        images = torch.stack([decode_image(file) for file in files])
        keys = [(self.epoch, path) for path in rows["path"]]
        return {"image": v2.seeded(self.pipeline, keys)(images), "label": rows["label"], "path": rows["path"]}


def epoch(photographs: datasets.Dataset, size: int, workers: int, title: str) -> tuple[int, float]:
    """Return the number of images in an epoch and the sum of their pixels, in place of training.

    A DataLoader ends when one of its workers is killed, and PyTorch may raise that error anywhere in the
    program. So both numbers are updated in one assignment after each batch, and the next loader continues
    from there.
    """
    done, total = 0, 0.0
    while done < len(photographs):
        try:
            loader = DataLoader(photographs.select(range(done, len(photographs))), size, num_workers=workers)
            for batch in tqdm(loader, desc=title, unit="batch"):
                done, total = done + len(batch["path"]), total + float(batch["image"].double().sum())
        except (RuntimeError, ConnectionError, EOFError) as error:  # depends on what the worker was doing
            if isinstance(error, RuntimeError) and "DataLoader worker" not in str(error):
                raise
            print(f"a worker was killed: going on at photograph {done}")
    return done, total


def main(source: Path, target: Path, processes: int, epochs: int, size: int) -> None:
    photographs = prepared(source, target, processes)
    for number in range(epochs):
        photographs.set_transform(Augment(number))
        start = time.perf_counter()
        seen, total = epoch(photographs, size, processes, f"epoch {number}")
        rate = seen / (time.perf_counter() - start)
        print(f"epoch {number}: {seen} images, sum {total:.3f}, {processes} workers: {rate:.0f} images/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", type=Path, help="a folder of folders of JPEG files, one for each class")
    parser.add_argument("target", type=Path, help="the folder to write")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=16)
    o = parser.parse_args()
    main(o.source, o.target, o.processes, o.epochs, o.batch)
