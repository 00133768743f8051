"""Fifty different boxes, positions, sizes or paddings need at most two compilations, and no graph break.

Quarter turns are the exception: a graph for each.
"""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch._dynamo.testing import CompileCounter, CompileCounterWithBackend

import imgops
from imgops import transforms as v2
from tests.checks import bits_equal
from tests.specs import SPECS
from tests.tiers import nightly, nightly_unless


def draws(seed: int, count: int = 50) -> list[tuple[int, ...]]:
    """Draw coordinates as a pipeline does: any position, sizes from 2 on."""
    rng = random.Random(seed)
    return [
        (rng.randrange(-8, 30), rng.randrange(-8, 30), rng.randrange(2, 40), rng.randrange(2, 40))
        for _ in range(count)
    ]


X = torch.rand(2, 3, 32, 36)
PATCH = torch.rand(2, 3, 7, 9)
MASK = torch.rand(2, 1, 7, 9)


def _accumulated(x: torch.Tensor, a: int, b: int) -> torch.Tensor:
    total, count = x * 1, torch.zeros_like(x[:, :1])
    imgops.accumulate(total, count, PATCH, (a, b), MASK)
    return total + count


CALLS: dict[str, Callable[..., Any]] = {
    "paste_": lambda x, a, b, h, w: imgops.paste_(x * 1, PATCH, (a, b), MASK),
    "accumulate": lambda x, a, b, h, w: _accumulated(x, a, b),
    "inverse": lambda x, a, b, h, w: imgops.inverse(imgops.resize, x, (h, w))(imgops.resize(x, (h, w))),
    "crop": lambda x, a, b, h, w: imgops.crop(x, (a, b, a + w, b + h)),
    "paste": lambda x, a, b, h, w: imgops.paste(x, PATCH, (a, b)),
    "paste-mask": lambda x, a, b, h, w: imgops.paste(x, PATCH, (a, b), MASK),
    "pad": lambda x, a, b, h, w: imgops.pad(x, (a + 10, b + 10, h, w)),
    "pad-reflect": lambda x, a, b, h, w: imgops.pad(x, (a + 10, b + 10, h, w), "reflect"),
    "resize": lambda x, a, b, h, w: imgops.resize(x, (h, w)),
    "resize-plain": lambda x, a, b, h, w: imgops.resize(x, (h, w), "area", antialias=False),
    "pipeline": lambda x, a, b, h, w: imgops.pad(
        imgops.resize(imgops.crop(x, (a, b, a + w, b + h)), (h, w)), 2
    ),
}


@nightly
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", list(CALLS))
def test_at_most_two_compilations(name: str, grad: bool) -> None:
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(CALLS[name], fullgraph=True, dynamic=True, backend=counter)
    x = X.clone().requires_grad_(grad)
    for draw in draws(len(name)):
        out = compiled(x, *draw)
        assert bits_equal(out, CALLS[name](x, *draw))
        if grad:
            out.sum().backward()
    assert counter.frame_count <= 2, f"{counter.frame_count} compilations"


OF_NUMBER = [n for n, spec in SPECS.items() if spec.of_number]


@pytest.mark.parametrize("name", nightly_unless(OF_NUMBER[::3].__contains__, OF_NUMBER))
def test_a_new_float_does_not_recompile(name: str) -> None:
    call, counter = SPECS[name].of_number, CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(call, fullgraph=True, backend=counter)
    for value in (*(0.11 + step / 13 for step in range(12)), 0.0, 1.0, 2.0):
        try:
            wanted = call(X, value)
        except ValueError:  # not every parameter may be 0, or above 1
            continue
        assert bits_equal(compiled(X, value), wanted), value
    assert counter.frame_count <= 2, f"{counter.frame_count} compilations"


@pytest.mark.parametrize("name", ["adjust_gamma", "posterize", "solarize"])
def test_zero_and_one_do_not_recompile(name: str) -> None:
    """Dynamo makes a graph of its own for 0 and 1 where they are sizes; as parameters they are like other numbers."""
    call, counter = getattr(imgops, name), CompileCounterWithBackend("aot_eager")
    image = (X * 255).byte()
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend=counter)
    for value in (3, 5, 0, 1, 2):
        assert bits_equal(compiled(image, value), call(image, value)), value
    assert counter.frame_count == 1


_ANGLES = (11, 90, 180, 270, 0, 12, 31)


@nightly
@pytest.mark.parametrize(
    ("call", "values", "graphs"),
    [
        (imgops.rotate90, (1, 2, 3, 0, 5, 7, -1, 4, 9), 4),
        (v2.functional.rotate, _ANGLES, 5),
        (v2.functional.rotate, [torch.tensor(float(a)) for a in _ANGLES], 1),
    ],
    ids=["rotate90", "rotate", "rotate-tensor"],
)
def test_each_quarter_turn_is_a_graph(call: Callable[..., Any], values: Sequence[Any], graphs: int) -> None:
    """A graph of a turn moves pixels, which is cheaper than a graph of all angles; angles in a tensor are one graph."""
    counter, square = CompileCounterWithBackend("aot_eager"), X[..., :32].contiguous()
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend=counter)
    for value in values:
        assert bits_equal(compiled(square, value), call(square, value)), value
    assert counter.frame_count == graphs


def test_tensor_parameters_never_recompile() -> None:
    counter = CompileCounterWithBackend("aot_eager")

    @torch.compile(fullgraph=True, dynamic=True, backend=counter)
    def call(x: torch.Tensor, box: torch.Tensor, fill: torch.Tensor) -> torch.Tensor:
        return imgops.pad(imgops.resize(x, (8, 8), box=box), 2, fill=fill)

    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        low, extent = (torch.rand(2, generator=generator, dtype=torch.float64) * 10 for _ in range(2))
        box, fill = torch.cat([low, low + extent]), torch.rand(3, generator=generator)
        wanted = imgops.pad(imgops.resize(X, (8, 8), box=box), 2, fill=fill)
        assert bits_equal(call(X, box, fill), wanted)
    assert counter.frame_count == 1


def test_integer_tensors_compile_whole() -> None:
    """A position or a box that is drawn as a tensor is read in the graph, without a break."""
    counter = CompileCounterWithBackend("aot_eager")

    @torch.compile(fullgraph=True, dynamic=True, backend=counter)
    def call(x: torch.Tensor, position: torch.Tensor, box: torch.Tensor) -> torch.Tensor:
        return imgops.crop(imgops.paste(x, PATCH, position), box)

    for a, b, h, w in draws(1, 12):
        position, box = torch.tensor([a, b]), torch.tensor([a, b, a + w, b + h])
        assert bits_equal(
            call(X, position, box), imgops.crop(imgops.paste(X, PATCH, (a, b)), (a, b, a + w, b + h))
        )
    assert counter.frame_count == 1


@nightly
@pytest.mark.parametrize(
    "make", [lambda: v2.RandomInvert(), lambda: v2.Compose([v2.RandomInvert(), v2.Resize(4)])]
)
def test_pipelines_do_not_count_against_each_other(make: Callable[[], torch.nn.Module]) -> None:
    """Dynamo stops after 8 graphs of a code object; nine pipelines in a process are usual."""
    image = torch.arange(3 * 8 * 9, dtype=torch.uint8).reshape(3, 8, 9)
    pipelines = [make() for _ in range(10)]
    pipelines += [copy.deepcopy(pipelines[0]), pickle.loads(pickle.dumps(pipelines[0]))]
    for pipeline in pipelines:
        torch.manual_seed(1)
        found = torch.compile(pipeline, fullgraph=True, backend="aot_eager")(image)
        torch.manual_seed(1)
        assert bits_equal(found, pipeline(image))


def test_a_forward_that_is_replaced_is_called() -> None:
    image = torch.ones(3, 4, 5)
    one, other = v2.Resize(4), v2.Resize(4)
    one.forward = lambda image: image + 1
    assert v2.Compose([one, v2.RandomVerticalFlip(0.0)])(image).mean() == 2
    with patch.object(v2.Resize, "forward", lambda self, image: image + 2):
        assert other(image).mean() == 3 and one(image).mean() == 2
    assert other(image).mean() == 1


@nightly
def test_a_crop_after_a_resize_is_one_graph_for_all_sizes() -> None:
    """Also where the crop extends beyond some of the resized images, and beyond others does not."""
    sizes = ((40, 50), (50, 40), (77, 33), (200, 31), (31, 200), (64, 64), (20, 22))
    for resize in (
        v2.Resize(32),
        v2.Resize(16),
        v2.Resize(32, max_size=60),
        v2.Resize(None, max_size=40),
        v2.SmallestMaxSize(32),
        v2.LongestMaxSize(32),
    ):
        pipeline, graphs = v2.Compose([resize, v2.CenterCrop(24)]), CompileCounter()
        compiled = torch.compile(lambda x, t=pipeline: t(x), fullgraph=True, dynamic=True, backend=graphs)
        for size in sizes:
            image = torch.randint(0, 256, (3, *size), dtype=torch.uint8)
            assert torch.equal(compiled(image), pipeline(image))
        assert graphs.frame_count == 1, resize
