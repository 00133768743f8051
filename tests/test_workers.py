"""Transforms in a DataLoader: forked and spawned workers, seeds, threads."""

from __future__ import annotations

from itertools import product
from typing import Any

import cv2
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import imgops
from imgops import transforms as ours
from tests.tiers import nightly, nightly_unless
from tests.transform_cases import JITTER, picture


def pipeline(**more: Any) -> Any:
    steps = [ours.RandomResizedCrop(64, **more), ours.RandomHorizontalFlip(), ours.ColorJitter(**JITTER)]
    blur = ours.RandomApply([ours.GaussianBlur(9), ours.RandomRotation(20)], p=0.5)
    return ours.Compose([*steps, blur, ours.RandAugment(), ours.ToDtype(torch.float32, scale=True)])


class Photos(Dataset[Any]):
    """A data set of images whose draws depend on the photograph alone, and on the worker, and of numbers of threads."""

    def __init__(self) -> None:
        self.transform = pipeline()

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> Any:
        photo = picture(height=60, width=80, seed=index)
        keyed, drawn = ours.seeded(self.transform, index)(photo), self.transform(photo)
        imgops.median_blur(photo, 3)  # by OpenCV, whatever kernel the transforms have chosen
        return keyed, drawn, torch.tensor([torch.get_num_threads(), cv2.getNumThreads()])


def epochs(dataset: Dataset[Any], method: str, persistent: bool, seed: int, **how: Any) -> list[list[Any]]:
    """Return what a loader with two workers gives in two epochs."""
    loader = DataLoader(
        dataset,
        num_workers=2,
        multiprocessing_context=method,
        persistent_workers=persistent,
        generator=torch.Generator().manual_seed(seed),
        timeout=300,  # a busy machine starts workers slowly
        **how,
    )
    return [list(loader) for _ in range(2)]


def batches(method: str, seed: int, persistent: bool, pin: bool) -> list[list[torch.Tensor]]:
    """Return the images of both kinds, and the numbers of threads, of two epochs."""
    found = epochs(Photos(), method, persistent, seed, batch_size=6, pin_memory=pin)
    return [list(map(torch.cat, zip(*epoch, strict=True))) for epoch in found]


@nightly
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize(("persistent", "pin"), [(False, True), (True, False)])
@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set")
def test_every_kind_of_loader(method: str, persistent: bool, pin: bool) -> None:
    """Workers do not hang although OpenCV's pool ran in the parent, use one thread each, and draw by the loader's seed."""
    pipeline()(picture(height=1500, width=1500))
    wanted = torch.stack([Photos()[i][0] for i in range(24)])
    found = batches(method, 3, persistent, pin)
    for keyed, _, threads in found:
        torch.testing.assert_close(keyed, wanted, rtol=0, atol=2e-6)
        assert (threads <= 1).all(), "workers oversubscribe the machine"
    first, second = (images for _, images, _ in found)
    assert not torch.equal(first, second)
    if not persistent:
        assert torch.equal(first, batches(method, 3, persistent, pin)[0][1])
        assert not torch.equal(first, batches(method, 4, persistent, pin)[0][1])


class Drawn(Dataset[Any]):
    """A data set of the draws of two transforms that share a generator, and of the worker that draws them."""

    def __init__(self, compiled: bool = False) -> None:
        generator = torch.Generator().manual_seed(5)
        crop = ours.RandomCrop(1, generator=generator)
        both = ours.Compose([ours.RandomCrop(500, generator=generator), crop])
        self.transform = torch.compile(both, fullgraph=True, backend="aot_eager") if compiled else both

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[int, int]:
        worker = torch.utils.data.get_worker_info()
        return -1 if worker is None else worker.id, int(
            self.transform(torch.arange(2**20).reshape(1, 2**10, 2**10))
        )


def drawn(method: str, persistent: bool, seed: int, dataset: Dataset[Any]) -> list[list[tuple[int, ...]]]:
    """Return the workers and the draws of two epochs."""
    found = epochs(dataset, method, persistent, seed, batch_size=None)
    return [[(int(worker), int(number)) for worker, number in epoch] for epoch in found]


@pytest.mark.parametrize(
    ("method", "persistent"),
    nightly_unless(lambda kind: kind == ("fork", True), list(product(("fork", "spawn"), (False, True)))),
)
def test_a_generator_draws_other_numbers_in_every_worker_and_epoch(method: str, persistent: bool) -> None:
    dataset = Drawn()
    state = dataset.transform.transforms[0].generator.get_state()
    found = drawn(method, persistent, 3, dataset)
    numbers = [number for epoch in found for _, number in epoch]
    assert {worker for epoch in found for worker, _ in epoch} == {0, 1}
    assert len(set(numbers)) == len(numbers) == 16
    assert drawn(method, persistent, 3, Drawn()) == found
    assert torch.equal(dataset.transform.transforms[0].generator.get_state(), state)


@nightly
def test_a_generator_draws_by_its_seed_and_the_loaders() -> None:
    other = Drawn()
    other.transform.transforms[0].generator.manual_seed(6)
    each = drawn("fork", False, 3, Drawn()), drawn("fork", False, 4, Drawn()), drawn("fork", False, 3, other)
    assert len({number for found in each for epoch in found for _, number in epoch}) == 48


@nightly
def test_a_generator_of_a_graph_draws_other_numbers_in_every_worker() -> None:
    found = drawn("fork", False, 3, Drawn(compiled=True))
    assert len({number for epoch in found for _, number in epoch}) == 16
    assert found == drawn("fork", False, 3, Drawn())


class Made(Drawn):
    """A data set whose worker makes its own generator, which is not reseeded."""

    def __getitem__(self, index: int) -> tuple[int, int]:
        self.transform = ours.RandomCrop(1, generator=torch.Generator().manual_seed(index))
        return super().__getitem__(index)


@nightly
def test_a_generator_made_in_a_worker_keeps_its_seed() -> None:
    wanted = [Made()[i][1] for i in range(8)]
    for epoch in drawn("fork", False, 3, Made()):
        assert [number for _, number in epoch] == wanted
