"""Augment a folder of JPEG files with Ray Data, and write Parquet files or WebDataset shards.

    pip install ".[examples]"
    python examples/photographs.py photos --count 200 --corrupt 1
    python examples/ray_data.py photos augmented --workers 2 --copies 2

Each actor has one pipeline and augments a batch at a time, each image with its own draws. The draws depend
only on the file's path and the number of the copy, so the actors, the machines and retries do not change
them. The program leaves out files that cannot be decoded, and prints their names at the end. If an actor is
killed, Ray starts it again and repeats its work.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import ray
import torch

import imgops
from imgops import transforms as v2


@ray.remote(num_cpus=0)
class Report:
    """The results of all files, kept in one actor for all workers. A repeated batch counts once."""

    def __init__(self) -> None:
        self.errors: dict[str, str] = {}
        self.images: dict[str, int] = {}
        self.first: tuple[float, int] | None = None  # when the first batch was done, and how large it was
        self.last = 0.0

    def add(self, images: dict[str, int], errors: dict[str, str]) -> None:
        self.images |= images
        self.errors |= errors
        self.last = time.perf_counter()
        self.first = self.first or (self.last, sum(images.values()))

    def result(self) -> tuple[int, float, dict[str, str]]:
        """Return the number of images, the images per second after the first batch, and each path's error."""
        count, (start, before) = sum(self.images.values()), self.first or (0.0, 0)
        return count, (count - before) / max(self.last - start, 1e-9), self.errors


class Augment:
    """The code of each actor: it turns the bytes of files into the bytes of augmented images."""

    def __init__(self, root: str, size: int, copies: int, report: Any) -> None:
        torch.set_num_threads(1)  # because there are many actors
        self.root, self.copies, self.report = Path(root), copies, report
        self.fit = v2.Compose([v2.Resize(size * 8 // 7), v2.CenterCrop(size * 8 // 7)])
        self.augment = v2.Compose(
            [v2.RandomResizedCrop(size), v2.RandomHorizontalFlip(), v2.ColorJitter(0.4, 0.4, 0.4, 0.1)],
            per_sample=True,
        )

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, list[Any]]:
        images, keys, errors = [], [], {}
        for path, data in zip(batch["path"], batch["bytes"], strict=True):
            name = Path(path).relative_to(self.root).as_posix()
            try:
                image = self.fit(imgops.decode_image(torch.frombuffer(bytearray(data), dtype=torch.uint8)))
            except ValueError as error:
                errors[name] = str(error)
                continue
            images += [image] * self.copies
            keys += [(name, copy) for copy in range(self.copies)]
        out = v2.seeded(self.augment, keys)(torch.stack(images)) if images else []
        ray.get(self.report.add.remote({name: self.copies for name, _ in keys}, errors))
        return {
            "__key__": [f"{name.rpartition('.')[0]}_{copy}" for name, copy in keys],
            "jpg": [imgops.encode_image(image, "jpeg", 95).numpy().tobytes() for image in out],
            "txt": [name.split("/")[0] for name, _ in keys],
        }


def run(source: Path, target: Path, form: str, workers: int, size: int, copies: int, batch: int) -> None:
    ray.init(num_cpus=workers + 1, include_dashboard=False, log_to_driver=False)
    report, root = Report.remote(), str(source.resolve())
    files = ray.data.read_binary_files(
        root, include_paths=True, file_extensions=["jpg", "jpeg"], override_num_blocks=workers * 8
    )
    rows = files.map_batches(
        Augment,
        fn_constructor_args=(root, size, copies, report),
        batch_size=batch,
        concurrency=workers,
        max_restarts=-1,  # Ray starts a killed actor again,
        max_task_retries=-1,  # and repeats the task that it was running
    )
    if form == "parquet":
        rows.write_parquet(str(target))
    else:  # the images are encoded already: Ray should not encode them again
        rows.write_webdataset(str(target), encoder=lambda row: {**row, "txt": row["txt"].encode()})
    count, rate, errors = ray.get(report.result.remote())
    for path, error in sorted(errors.items()):
        print(f"left out {path}: {error}")
    print(f"{count} images, {len(errors)} files left out, {workers} workers: {rate:.0f} images/s")
    ray.shutdown()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", type=Path, help="a folder of folders of JPEG files, one for each class")
    parser.add_argument("target", type=Path, help="the folder to write")
    parser.add_argument("--format", choices=("parquet", "webdataset"), default="parquet")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--copies", type=int, default=1, help="of each photograph")
    parser.add_argument("--batch", type=int, default=16)
    o = parser.parse_args()
    run(o.source, o.target, o.format, o.workers, o.size, o.copies, o.batch)
