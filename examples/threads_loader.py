"""Train from a folder of JPEG files without worker processes: threads decode and augment each batch.

    pip install ".[examples]"
    python examples/photographs.py photos --count 400 --corrupt 1
    python examples/threads_loader.py photos --threads 2 --epochs 2 --state state.pt
    python examples/threads_loader.py photos --threads 1 --workers 2    # the same by processes

One call makes a batch: it reads the files, decodes only the parts that the crops keep, on as many threads as
PyTorch uses, and runs the other transforms on the whole batch. The draws of an image depend only on its name
and the epoch, so threads and processes give the same images. The state is saved after each batch, and the
same command continues from there. The program leaves out files that cannot be decoded, and prints their
names.
"""

import argparse
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

import imgops
from imgops import transforms as v2


def pipeline(size: int, per_sample: bool) -> v2.Compose:
    steps = [
        v2.RandomResizedCrop(size, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ]
    return v2.Compose(steps, per_sample=per_sample)


class Batches:
    """The batches of all epochs: an iterable with the state protocol of torchdata's StatefulDataLoader.

    ``ahead`` batches are prepared while the caller works with the last one. Another thread makes their draws,
    so set ``ahead`` to 0 if the caller draws from PyTorch's CPU generator at the same time.
    """

    def __init__(self, folder: Path, batch: int, size: int, ahead: int) -> None:
        self.folder, self.batch, self.ahead = folder, batch, ahead
        self.names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.jpg"))
        self.augment = pipeline(size, per_sample=True)
        self.epoch, self.done = 0, 0
        self.bad: dict[str, str] = {}

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "done": self.done, "bad": dict(self.bad)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epoch, self.done, self.bad = state["epoch"], state["done"], dict(state["bad"])

    def order(self) -> list[str]:
        order = torch.randperm(len(self.names), generator=torch.Generator().manual_seed(self.epoch))
        return [self.names[i] for i in order.tolist()]

    def make(self, names: list[str]) -> tuple[Tensor, list[str], dict[str, str]]:
        """Return the images of some files, their names, and the errors of the files that were left out."""
        skipped: list[tuple[int, Exception]] = []
        files = imgops.EncodedImages([self.folder / name for name in names], skipped=skipped)
        images = v2.seeded(self.augment, [(self.epoch, name) for name in names])(files)
        bad = {names[i]: str(error) for i, error in skipped}
        if bad:
            images = images[[i for i, name in enumerate(names) if name not in bad]]
        return images, [name for name in names if name not in bad], bad

    def __iter__(self) -> Iterator[tuple[Tensor, list[str]]]:
        """Yield the remaining batches of the epoch; the next epoch begins after them."""
        order = self.order()
        starts = range(self.done, len(order), self.batch)
        with ThreadPoolExecutor(1) as pool:
            waiting: list[Future[Any]] = []
            for i, start in enumerate(starts):
                for coming in starts[i + len(waiting) : i + 1 + self.ahead]:
                    waiting.append(pool.submit(self.make, order[coming : coming + self.batch]))
                images, names, bad = waiting.pop(0).result()
                self.bad |= bad
                self.done = min(start + self.batch, len(order))
                yield images, names
        self.epoch, self.done = self.epoch + 1, 0


class Files(Dataset[tuple[Tensor, str] | None]):
    """The same images one by one, for a DataLoader."""

    def __init__(self, folder: Path, names: list[str], epoch: int, size: int) -> None:
        self.folder, self.names, self.epoch = folder, names, epoch
        self.augment = pipeline(size, per_sample=False)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int) -> tuple[Tensor, str] | None:
        name = self.names[i]
        try:
            file = imgops.EncodedImage(self.folder / name)
            return v2.seeded(self.augment, (self.epoch, name))(file), name
        except ValueError:
            return None


def by_workers(batches: Batches, workers: int, size: int) -> Iterator[tuple[Tensor, list[str]]]:
    def collated(samples: list[tuple[Tensor, str] | None]) -> tuple[Tensor, list[str]]:
        good = [s for s in samples if s is not None]
        return torch.stack([image for image, _ in good]), [name for _, name in good]

    files = Files(batches.folder, batches.order(), batches.epoch, size)
    yield from DataLoader(files, batches.batch, num_workers=workers, collate_fn=collated)
    batches.epoch += 1


def main(
    folder: Path,
    threads: int,
    workers: int,
    epochs: int,
    batch: int,
    size: int,
    ahead: int,
    save: Path | None,
    stop: int,
) -> None:
    torch.set_num_threads(threads)
    batches = Batches(folder, batch, size, ahead)
    if not batches.names:
        raise SystemExit(f"there are no files in {folder}")
    sums: dict[int, tuple[int, float]] = {}  # of each epoch, in place of a model
    if save is not None and save.exists():
        state = torch.load(save)
        batches.load_state_dict(state["loader"])
        sums = state["sums"]
        print(f"going on in epoch {batches.epoch} after {batches.done} files")
    start, seen, count = time.perf_counter(), 0, 0
    while batches.epoch < epochs:
        epoch = batches.epoch
        for images, _ in by_workers(batches, workers, size) if workers else batches:
            before, total = sums.get(epoch, (0, 0.0))
            sums[epoch] = before + len(images), total + float(images.double().sum())
            seen, count = seen + len(images), count + 1
            if save is not None:
                torch.save({"loader": batches.state_dict(), "sums": sums}, save.with_suffix(".new"))
                save.with_suffix(".new").replace(save)  # so that the file is always complete
            if count == stop:
                print(f"stopped in epoch {epoch}")
                return
    for name, error in sorted(batches.bad.items()):
        print(f"left out {name}: {error}")
    for epoch, (images_seen, total) in sums.items():
        print(f"epoch {epoch}: {images_seen} images, sum {total:.3f}")
    seconds = time.perf_counter() - start
    print(f"{threads} threads, {workers} workers: {seen / seconds:.0f} images/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--workers", type=int, default=0, help="processes of a DataLoader instead of threads")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--ahead", type=int, default=1, help="batches to prepare while the last one is used")
    parser.add_argument("--state", dest="save", type=Path, help="where the state is kept")
    parser.add_argument("--stop-after", dest="stop", type=int, default=-1, help="stop after so many batches")
    main(**vars(parser.parse_args()))
