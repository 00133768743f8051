"""Transforms in a DataLoader: forked and spawned workers, seeds, threads."""

from __future__ import annotations

from typing import Any

import cv2
import pytest
import torch
from torch.utils.data import DataLoader, Dataset
from transform_cases import JITTER, picture

import imgops
from imgops import transforms as ours


class Photos(Dataset[Any]):
    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> Any:
        image = self.transform(picture(height=300, width=400, seed=index))
        imgops.median_blur(image, 3)  # OpenCV's, whatever the transforms have chosen
        return image, torch.tensor([torch.get_num_threads(), cv2.getNumThreads()])


def pipeline(**more: Any) -> Any:
    steps = [ours.RandomResizedCrop(64, **more), ours.RandomHorizontalFlip(), ours.ColorJitter(**JITTER)]
    blur = ours.RandomApply([ours.GaussianBlur(9), ours.RandomRotation(20)], p=0.5)
    return ours.Compose([*steps, blur, ours.RandAugment(), ours.ToDtype(torch.float32, scale=True)])


def epoch(method: str, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    loader = DataLoader(
        Photos(pipeline()),
        batch_size=6,
        num_workers=2,
        multiprocessing_context=method,
        generator=torch.Generator().manual_seed(seed),
        timeout=120,
    )
    batches = list(loader)
    return torch.cat([b[0] for b in batches]), torch.cat([b[1] for b in batches])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers(method: str) -> None:
    """No hang though OpenCV's pool ran in the parent, one thread each, and a seed repeats an epoch."""
    pipeline()(picture(height=1500, width=1500))
    images, threads = epoch(method, 3)
    assert images.shape == (24, 3, 64, 64) and images.isfinite().all()
    assert (threads <= 1).all(), "workers oversubscribe the machine"
    assert torch.equal(images, epoch(method, 3)[0])
    assert not torch.equal(images, epoch(method, 4)[0])


class Keyed(Photos):
    """Draws that depend on the photograph alone."""

    def __getitem__(self, index: int) -> Any:
        return ours.seeded(self.transform, index)(picture(height=60, width=80, seed=index))


@pytest.mark.parametrize("pin", [False, True], ids=["", "pinned"])
@pytest.mark.parametrize("persistent", [False, True], ids=["", "persistent"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set")
def test_every_kind_of_loader(method: str, persistent: bool, pin: bool) -> None:
    """Three epochs, each with the images of this process."""
    pipeline()(picture(height=500, width=500))
    photographs = Keyed(pipeline())
    wanted = torch.stack([photographs[i] for i in range(24)])
    loader = DataLoader(
        photographs,
        batch_size=6,
        num_workers=2,
        multiprocessing_context=method,
        persistent_workers=persistent,
        pin_memory=pin,
        timeout=120,
    )
    for _ in range(3):
        torch.testing.assert_close(torch.cat(list(loader)), wanted, rtol=0, atol=2e-6)
