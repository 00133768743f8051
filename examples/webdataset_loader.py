"""Train from WebDataset shards, with a loader that can be stopped or killed, and resumes with the same draws.

    pip install ".[examples]"
    python examples/photographs.py photos --count 200
    python examples/ray_data.py photos shards --format webdataset
    python examples/webdataset_loader.py shards --workers 2 --epochs 2 --state state.pt
    python examples/webdataset_loader.py shards --workers 0 --threads 2 --epochs 2 --state state.pt

Workers decode the images; without workers, threads decode each batch. The program augments a batch at a time,
on its threads; each image has its own draws, which depend on its key and the epoch. The state of the loader
is saved after each batch, so the same command resumes there if the program was stopped or one of its workers
was killed. The program leaves out files that cannot be decoded, and prints their names.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import webdataset as wds
from torch.utils.data import IterableDataset, get_worker_info
from torchdata.stateful_dataloader import StatefulDataLoader
from tqdm import tqdm

import imgops
from imgops import transforms as v2


class Shards(IterableDataset[dict[str, Any]]):
    """The samples of all shards, in an order that depends on the epoch. Each worker reads its own shards.

    The state is the number of samples that were read. A resumed worker skips this number of samples without
    decoding them. Without workers, a sample contains its file, and the program decodes a batch of files at a
    time.
    """

    def __init__(self, urls: list[str], epoch: int) -> None:
        order = torch.randperm(len(urls), generator=torch.Generator().manual_seed(epoch)).tolist()
        self.urls, self.epoch, self.read = [urls[i] for i in order], epoch, 0

    def state_dict(self) -> dict[str, int]:
        return {"read": self.read}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.read = state["read"]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker, passed = get_worker_info(), self.read
        if worker:
            torch.set_num_threads(1)  # because there are many workers
        urls = self.urls[worker.id :: worker.num_workers] if worker else self.urls
        if not urls:
            return
        files = wds.DataPipeline(
            wds.SimpleShardList(urls),
            wds.tarfile_to_samples(handler=wds.warn_and_continue),
            wds.detshuffle(200, seed=0, epoch=self.epoch - 1),  # it adds 1 to the epoch before it shuffles
        )
        for count, sample in enumerate(files):
            if count < passed:
                continue
            self.read = count + 1
            known = {"key": sample["__key__"], "label": sample["txt"].decode(), "file": sample["jpg"]}
            yield decoded([known])[0] if worker else known


def decoded(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Decode the files of samples, on as many threads as PyTorch uses; a bad file gives an error."""
    skipped: list[tuple[int, Exception]] = []
    images = iter(imgops.decode_images([s.pop("file") for s in samples], skipped=skipped))
    errors = dict(skipped)
    return [
        s | ({"error": str(errors[i])} if i in errors else {"image": next(images)})
        for i, s in enumerate(samples)
    ]


@dataclass(frozen=True)
class Progress:
    """The progress so far. The program replaces the whole object after each batch, because PyTorch may raise
    the error of a killed worker anywhere. A batch that was not counted yet is read again.
    """

    epoch: int = 0
    loader: dict[str, Any] | None = None  # the state of the epoch's loader; None at its start
    bad: dict[str, str] = field(default_factory=dict)
    sums: dict[int, tuple[int, float]] = field(default_factory=dict)  # of each epoch, in place of a model
    batches: int = 0


class Reader:
    """Process the batches, and continue from a saved state."""

    def __init__(self, urls: list[str], workers: int, batch: int, size: int) -> None:
        self.urls, self.workers, self.batch = urls, workers, batch
        self.augment = v2.Compose(
            [
                v2.RandomCrop(size, padding=size // 8),
                v2.RandomHorizontalFlip(),
                v2.RandomErasing(),
                v2.ToDtype(torch.float32, scale=True),
            ],
            per_sample=True,
        )

    def loader(self, progress: Progress) -> StatefulDataLoader:
        shards = Shards(self.urls, progress.epoch)
        loader = StatefulDataLoader(shards, self.batch, num_workers=self.workers, collate_fn=list)
        if progress.loader is not None:
            loader.load_state_dict(progress.loader)
        return loader

    def step(self, progress: Progress, samples: list[dict[str, Any]], state: dict[str, Any]) -> Progress:
        samples = samples if self.workers else decoded(samples)
        epoch, good = progress.epoch, [s for s in samples if "error" not in s]
        bad = progress.bad | {s["key"]: s["error"] for s in samples if "error" in s}
        count, total = progress.sums.get(epoch, (0, 0.0))
        if good:
            keys = [(epoch, s["key"]) for s in good]
            images = v2.seeded(self.augment, keys)(torch.stack([s["image"] for s in good]))
            count, total = count + len(good), total + float(images.double().sum())
        sums = progress.sums | {epoch: (count, total)}
        return Progress(epoch, state, bad, sums, progress.batches + 1)

    def read(self, progress: Progress, epochs: int, save: Path | None, stop: int) -> Progress:
        while progress.epoch < epochs:
            try:
                loader = self.loader(progress)
                for samples in tqdm(loader, desc=f"epoch {progress.epoch}", unit="batch"):
                    progress = self.step(progress, samples, loader.state_dict())
                    keep(progress, save)
                    if progress.batches == stop:
                        return progress
                progress = replace(progress, epoch=progress.epoch + 1, loader=None)
            except (RuntimeError, ConnectionError, EOFError) as error:  # depends on what the worker was doing
                if isinstance(error, RuntimeError) and "DataLoader worker" not in str(error):
                    raise
                print("a worker was killed: going on after the last batch")
        return progress


def keep(progress: Progress, path: Path | None) -> None:
    if path is not None:
        torch.save(vars(progress), path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)  # so that the file is always complete


def main(
    folder: Path,
    workers: int,
    threads: int,
    epochs: int,
    batch: int,
    size: int,
    save: Path | None,
    stop: int,
) -> None:
    torch.set_num_threads(threads)
    reader, progress = Reader(sorted(map(str, folder.glob("*.tar"))), workers, batch, size), Progress()
    if save is not None and save.exists():
        progress = Progress(**torch.load(save))
        print(f"going on in epoch {progress.epoch}")
    start, before = time.perf_counter(), sum(count for count, _ in progress.sums.values())
    progress = reader.read(progress, epochs, save, stop)
    if progress.epoch < epochs:
        print("stopped")
        return
    for key, error in sorted(progress.bad.items()):
        print(f"left out {key}: {error}")
    for epoch, (count, total) in progress.sums.items():
        print(f"epoch {epoch}: {count} images, sum {total:.3f}")
    seen = sum(count for count, _ in progress.sums.values()) - before
    print(f"{workers} workers, {threads} threads: {seen / (time.perf_counter() - start):.0f} images/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "folder", type=Path, help="a folder of .tar files: <key>.jpg, all of one size, and <key>.txt"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--state", type=Path, help="the file to save the state in, and to go on from")
    parser.add_argument(
        "--stop-after", type=int, default=0, help="end after that many batches, to try --state"
    )
    o = parser.parse_args()
    main(o.folder, o.workers, o.threads, o.epochs, o.batch, o.size, o.state, o.stop_after)
