"""Augment on the device in Lightning: ``on_after_batch_transfer``, with a key for each image.

    pip install ".[examples]"
    python examples/lightning_module.py --steps 6 --workers 2

An image's draws depend only on its index and the epoch. So the model sees the same images with any number of
workers and devices, and gets the same weights with any number of workers: compare the checksums.
"""

import argparse
import zlib
from typing import Any

import lightning
import torch
import torch.nn.functional as F
from photographs import CLASSES
from torch import Tensor, nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from imgops import transforms as v2

COUNT, BATCH = 24, 8
FLOATS = [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)]
PREPARE = v2.Compose([v2.CenterCrop(40), *FLOATS])
AUGMENT = v2.Compose(
    [v2.RandomResizedCrop(40), v2.RandomHorizontalFlip(), v2.ColorJitter(0.4, 0.4, 0.4), *FLOATS],
    per_sample=True,
)


def photographs() -> TensorDataset:
    """Return parts of photographs, their classes and their indices."""
    whole = [torch.from_numpy(photo()).permute(2, 0, 1) for photo in CLASSES.values()]
    images = [v2.seeded(v2.RandomCrop(48), n)(whole[n % len(whole)]) for n in range(COUNT)]
    return TensorDataset(torch.stack(images), torch.arange(COUNT) % len(whole), torch.arange(COUNT))


def checksum(images: Any) -> int:
    """Return the sum of the images' checksums, which does not depend on their order."""
    return sum(zlib.crc32(image.detach().cpu().numpy().tobytes()) for image in images)


class Classifier(lightning.LightningModule):
    def __init__(self, workers: int) -> None:
        super().__init__()
        layers = nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
        self.model = nn.Sequential(*layers, nn.Linear(8 * 16, len(CLASSES)))
        self.data, self.workers, self.sums = photographs(), workers, {"training": 0, "validation": 0}

    def train_dataloader(self) -> DataLoader:
        """Return this device's part of an order that depends on the epoch, which Lightning sets."""
        sampler = DistributedSampler(self.data, self.trainer.world_size, self.trainer.global_rank)
        options = {"num_workers": self.workers, "persistent_workers": self.workers > 0}
        return DataLoader(self.data, BATCH // self.trainer.world_size, sampler=sampler, **options)

    def val_dataloader(self) -> DataLoader:
        return DataLoader(self.data, BATCH // self.trainer.world_size)

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """Make the keys on the host, because reading the indices from a GPU would wait for it."""
        images, labels, indices = batch
        return images, labels, [(self.current_epoch, n) for n in indices.tolist()]

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        images, labels, keys = batch
        transform = v2.seeded(AUGMENT, keys) if self.trainer.training else PREPARE
        return transform(images), labels

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        self.sums["training"] += checksum(batch[0])
        return F.cross_entropy(self.model(batch[0]), batch[1])

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.sums["validation"] += checksum(batch[0])

    def on_train_epoch_end(self) -> None:
        """Print the checksums of all devices; Lightning validates before an epoch ends."""
        sums = [f"{name} {int(self.all_gather(torch.tensor(n)).sum())}" for name, n in self.sums.items()]
        found = ", ".join([*sums, f"weights {checksum(self.parameters())}"])
        self.print(f"epoch {self.current_epoch}: {found}", flush=True)
        self.sums = dict.fromkeys(self.sums, 0)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=6, help=f"an epoch has {COUNT // BATCH}")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--devices", type=int, default=1)
    o = parser.parse_args()
    lightning.seed_everything(0)
    strategy = "ddp" if o.devices > 1 else "auto"
    trainer = lightning.Trainer(devices=o.devices, strategy=strategy, max_steps=o.steps, barebones=True)
    trainer.fit(Classifier(o.workers))
