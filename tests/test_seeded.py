"""``transforms.seeded``: the draws of a sample depend on its key alone."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2 as reference

from imgops import transforms as v2
from imgops.transforms._core.seeding import seed_of
from tests.checks import bits_equal
from tests.tiers import every_night, nightly
from tests.transform_cases import picture

GOLDEN = [
    *(6450899586159507901, 3095411427825261844, 6030964643878359419, 705271316562965202, 4410727507812524023),
    *(7740062064851171813, 6153111192380514777, 8462873199783631838, 8259554678501061813),
]
KEYS = [(0, "a.jpg"), (0, "b.jpg"), (1, "a.jpg")]


def pipeline(**options: Any) -> v2.Compose:
    """Return a pipeline with steps that are sampled together, noise of the image's size, and a step after it."""
    return v2.Compose(
        [
            v2.RandomResizedCrop(24),
            v2.RandomHorizontalFlip(),
            v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.7),
            v2.GaussianNoise(sigma=0.1),
            v2.RandomErasing(p=0.8),
            v2.RandomChoice([v2.RandomRotation(20), v2.RandomSolarize(0.5)]),
        ],
        **options,
    )


def images(count: int = 3) -> Tensor:
    return torch.stack([picture(torch.float32, seed=s) for s in range(count)])


# -- keys ------------------------------------------------------------------------------------------


def test_seeds_are_the_same_everywhere() -> None:
    """The seeds are written down, because a different hash would change everybody's draws."""
    assert [seed_of(k) for k in (0, 7, -1, "a", b"a", (), ("a", 1), (("a",), 1), 2**80)] == GOLDEN


def test_other_keys_have_other_seeds() -> None:
    keys = [
        0,
        1,
        "0",
        b"0",
        "",
        b"",
        (),
        (0,),
        ((0,),),
        ("ab", "c"),
        ("a", "bc"),
        ("a", "b", "c"),
        (("a", 1),),
    ]
    assert len({seed_of(k) for k in keys}) == len(keys)
    assert seed_of(np.int64(5)) == seed_of(torch.tensor(5)) == seed_of(5)
    assert len({seed_of((e, i)) for e in range(100) for i in range(1000)}) == 100_000


@pytest.mark.parametrize("key", [1.5, None, {"a"}, (1, 2.0), [None], [1, [2]]])
def test_other_objects_are_refused(key: Any) -> None:
    with pytest.raises(TypeError, match=r"^seeded: key must be an int, a str, bytes or a tuple of these"):
        v2.seeded(v2.RandomCrop(3), key)


def test_wrong_transforms_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^seeded: transform must be callable, got int"):
        v2.seeded(3, 0)
    inside = v2.Compose([v2.RandomCrop(3, generator=torch.Generator())])
    with pytest.raises(
        ValueError, match=r"^seeded: transform must draw from PyTorch's generator, got RandomCrop"
    ):
        v2.seeded(inside, 0)


# -- draws -----------------------------------------------------------------------------------------


@nightly
def test_in_a_graph() -> None:
    batch, made = images(), pipeline(per_sample=True)
    wanted = v2.seeded(made, KEYS)(batch)
    graph = torch.compile(made, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(v2.seeded(graph, KEYS)(batch), wanted, rtol=0, atol=2e-6)
    single = torch.compile(pipeline(), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(v2.seeded(single, KEYS[1])(batch[1]), wanted[1], rtol=0, atol=2e-6)


def test_the_generator_stays_where_it_was() -> None:
    state = torch.get_rng_state()
    v2.seeded(pipeline(), 1)(images()[0])
    v2.seeded(pipeline(per_sample=True), KEYS)(images())
    with pytest.raises(ValueError):
        v2.seeded(pipeline(), KEYS)(images())
    assert bits_equal(torch.get_rng_state(), state)


def test_a_list_needs_draws_for_each_image() -> None:
    for made in (v2.RandomRotation(20), torch.compile(v2.RandomRotation(20), backend="aot_eager")):
        with pytest.raises(ValueError, match=r"per_sample=True"):
            v2.seeded(made, KEYS)(images())
    with pytest.raises(ValueError, match=r"^seeded: key must be a list of 3, .* got 2"):
        v2.seeded(pipeline(per_sample=True), KEYS[:2])(images())


def test_torchvisions_own_transforms_and_functions() -> None:
    image = picture(torch.float32)
    for made in (reference.RandomRotation(30), lambda x: x + torch.rand(x.shape)):
        assert bits_equal(v2.seeded(made, "k")(image), v2.seeded(made, "k")(image))
    ours, theirs = v2.RandomHorizontalFlip(), reference.RandomHorizontalFlip()
    for key in range(8):
        assert bits_equal(v2.seeded(ours, key)(image), v2.seeded(theirs, key)(image))


def test_one_inside_of_another() -> None:
    inner: Callable[[Tensor], Tensor] = v2.seeded(v2.RandomCrop(5), "inner")
    image = picture(torch.float32)
    assert bits_equal(v2.seeded(inner, "outer")(image), inner(image))


# -- processes and threads -------------------------------------------------------------------------


class Photographs(Dataset[Tensor]):
    def __len__(self) -> int:
        return 12

    def __getitem__(self, i: int) -> Tensor:
        return v2.seeded(pipeline(), ("epoch 0", i))(picture(torch.float32, seed=i))


@pytest.mark.parametrize("workers", [0, *every_night(1, 3)])
def test_any_number_of_workers(workers: int) -> None:
    torch.manual_seed(workers)  # a different seed each time
    loader = DataLoader(Photographs(), batch_size=2 + workers, num_workers=workers)
    found = torch.cat(list(loader))
    wanted = torch.stack([Photographs()[i] for i in range(12)])
    assert bits_equal(found, wanted)


def test_pickled() -> None:
    made = v2.seeded(pipeline(per_sample=True), KEYS)
    assert bits_equal(pickle.loads(pickle.dumps(made))(images()), made(images()))


def test_threads() -> None:
    batch = images(8)
    wanted = [v2.seeded(pipeline(), k)(image) for k, image in enumerate(batch)]
    found: dict[int, list[Tensor]] = {}

    def work(thread: int) -> None:
        found[thread] = [v2.seeded(pipeline(), k)(image) for k, image in enumerate(batch)]

    threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert all(bits_equal(a, b) for t in range(4) for a, b in zip(found[t], wanted, strict=True))
