"""Train with accelerate on any number of processes, and see the same augmented images as with one.

    pip install ".[examples]"
    python examples/accelerate_loop.py --steps 6
    torchrun --standalone --nproc-per-node 2 examples/accelerate_loop.py --steps 6

An image's draws depend only on its name and the epoch, so it does not matter which process augments it. With
``split_batches`` the processes share the batch that a single process would have, and train in the same way.
"""

import argparse
import zlib
from typing import Any

import torch
import torch.nn.functional as F
from accelerate import Accelerator, DataLoaderConfiguration
from accelerate.utils import gather_object, set_seed
from photographs import CLASSES
from torch import nn
from torch.utils.data import DataLoader, Dataset

from imgops import transforms as v2

COUNT, BATCH = 24, 8
AUGMENT = v2.Compose(
    [
        v2.RandomResizedCrop(40),
        v2.RandomHorizontalFlip(),
        v2.ColorJitter(0.4, 0.4, 0.4),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.5] * 3, [0.25] * 3),
    ],
    per_sample=True,
)


class Photographs(Dataset[dict[str, Any]]):
    """Parts of photographs, their classes and their names. Names stay on the host."""

    def __init__(self) -> None:
        self.whole = [torch.from_numpy(photo()).permute(2, 0, 1) for photo in CLASSES.values()]

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> dict[str, Any]:
        label = index % len(CLASSES)
        image = v2.seeded(v2.RandomCrop(48), index)(self.whole[label])
        return {"image": image, "label": label, "name": f"{list(CLASSES)[label]}/{index:05}"}


def main(steps: int, workers: int) -> None:
    set_seed(0)
    loading = DataLoaderConfiguration(split_batches=True, use_seedable_sampler=True)
    # Without cpu=True accelerate does not connect the processes of a machine that has only CPUs.
    accelerator = Accelerator(cpu=not torch.accelerator.is_available(), dataloader_config=loading)
    layers = nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
    model = nn.Sequential(*layers, nn.Linear(8 * 16, len(CLASSES)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Photographs(), BATCH, shuffle=True, num_workers=workers)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(-(-steps // len(loader))):
        seen, total = [], 0.0
        for _, batch in zip(range(steps - epoch * len(loader)), loader, strict=False):
            keys = [(epoch, name) for name in batch["name"]]
            images = v2.seeded(AUGMENT, keys)(batch["image"])  # on the device of the process
            sums = [zlib.crc32(image.tobytes()) for image in images.cpu().numpy()]
            seen += zip(batch["name"], sums, strict=True)
            loss = F.cross_entropy(model(images), batch["label"])
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            total += accelerator.reduce(loss.detach(), "mean").item()
        names = sorted(gather_object(seen))  # of all processes
        found = f"{len(names)} images, checksum {zlib.crc32(repr(names).encode())}, loss {total:.4f}"
        accelerator.print(f"epoch {epoch}: {found}, {accelerator.num_processes} processes", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=6, help=f"an epoch has {COUNT // BATCH}")
    parser.add_argument("--workers", type=int, default=1, help="of each process")
    o = parser.parse_args()
    main(o.steps, o.workers)
