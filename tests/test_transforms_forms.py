"""Every transform with other forms of an image: memory layouts, batches without images, gradients in a graph."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from added_cases import ROWS, Row
from checks import bits_equal
from test_channels import words_of
from transform_cases import CASES, Case, picture, seeded

from imgops import transforms as ours
from imgops.transforms.imagenet_c.formulas import FORMULAS
from tests.specs._maker import formatted
from tests.tiers import nightly_unless

EVERY: list[Case | Row] = [
    *(case for case in (*CASES, *ROWS) if not getattr(case, "boxes", False)),
    *(Row("Corruption", {"name": name, "severity": 3}, id=f"{name}-3") for name in FORMULAS),
]


def made(case: Case | Row, **more: Any) -> Any:
    if isinstance(case, Case):
        return case.make(ours, **more)
    return case.make(p=1.0, **more) if case.per_sample else case.make(**more)


def size_of(case: Case | Row) -> dict[str, int]:
    height, width = case.size if isinstance(case, Row) else (40, 52)
    return {"height": height, "width": width}


def dtypes_of(case: Case | Row) -> tuple[torch.dtype, ...]:
    return (torch.uint8,) if getattr(case, "levels", 0) is True else (torch.uint8, torch.float32)


@pytest.mark.parametrize("case", [c for c in EVERY if c.name != "GaussianNoise"], ids=str)
def test_memory_layouts(case: Case | Row) -> None:
    """Planar and interleaved images and slices get the same levels; floats differ by OpenCV's order of sums at most.

    GaussianNoise draws in the order of the memory, as torchvision's does.
    """
    transform = made(case)
    for dtype in dtypes_of(case):
        image = picture(dtype, **size_of(case))
        for seed, format in enumerate(("interleaved", "interleaved", "interleaved-window")):
            planar = image[:2] if seed == 1 and not words_of(case, 2) else image
            found, wanted = (seeded(seed, transform, x) for x in (formatted(planar, format), planar))
            if dtype == torch.uint8:
                assert bits_equal(found, wanted)
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("case", EVERY, ids=str)
def test_batches_without_images(case: Case | Row) -> None:
    """A batch without images comes out as one, and draws do not depend on whether samples share them."""
    sized = getattr(case, "sized", False)
    per_sample = (False,) if sized or not hasattr(getattr(ours, case.name), "per_sample") else (False, True)
    if isinstance(case, Row) and not case.per_sample:
        per_sample = (False,)
    for each in per_sample:
        transform = made(case, **({"per_sample": True} if each else {}))
        for dtype in dtypes_of(case):
            image = picture(dtype, **size_of(case))
            out = seeded(0, transform, image[None][:0])
            assert out.dtype == dtype
            assert out.shape[1:] == seeded(0, transform, image[None]).shape[1:] and out.shape[0] == 0


DIFFERENTIABLE = [c for c in EVERY if torch.float32 in dtypes_of(c) and c.id in ("", "expand")]


def _is_noise(case: Case | Row) -> bool:
    return getattr(ours, case.name).__module__.endswith(".noise")


@pytest.mark.parametrize("case", nightly_unless(_is_noise, DIFFERENTIABLE), ids=str)
def test_gradients_in_a_graph(case: Case | Row) -> None:
    """A compiled transform has the gradient of eager mode, for each of its classes."""
    shared = made(case)
    noise = [made(case, per_sample=True)] if _is_noise(case) else []
    for transform in (shared, *noise):
        torch.compiler.reset()
        graph = torch.compile(transform, fullgraph=True, backend="aot_eager")
        found = []
        for run in (transform, graph):
            image = picture(torch.float32, **size_of(case))
            batch = (image if transform is shared else image.expand(2, -1, -1, -1)).clone().requires_grad_()
            seeded(1, run, batch).square().sum().backward()
            found.append(batch.grad)
        torch.testing.assert_close(found[1], found[0], equal_nan=True)
