"""Each operator in the contexts of a user's program: other defaults, checkpoints and exported programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import imgops
from imgops import transforms
from imgops.extend.testing import Call
from tests.specs import SPECS, Sample
from tests.specs._maker import Maker
from tests.tiers import every_night, nightly, nightly_unless
from tests.transform_cases import same

#: Each sample is made in the first of these dtypes that it has.
DTYPES = (torch.float32, torch.uint8, torch.uint16)
EVERY = [s for spec in SPECS.values() for s in spec.samples if set(DTYPES) & set(s.dtypes)]
FIRST = [s for s in EVERY if s is SPECS[s.op].samples[0]]
FUNCTIONAL = [s for s in FIRST if not (SPECS[s.op].is_operator and SPECS[s.op].operator.mutates)]
DIFFERENTIABLE = [s for s in FUNCTIONAL if s.differentiable and torch.float32 in s.dtypes]


def tensors(value: Any) -> list[Tensor]:
    return [x for x in (value if isinstance(value, (tuple, list)) else [value]) if isinstance(x, Tensor)]


def call_of(sample: Sample, grad: bool = False) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    dtype = next(d for d in DTYPES if d in sample.dtypes)
    return sample.call(Maker(dtype, "planar", (2,), grad=grad))


# -- other defaults ----------------------------------------------------------------------------------


@contextmanager
def defaults(name: str) -> Iterator[None]:
    """Make another dtype or device PyTorch's default."""
    try:
        if name == "meta":
            torch.set_default_device("meta")
        else:
            torch.set_default_dtype(getattr(torch, name))
        yield
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)


def results(sample: Sample, grad: bool, made: Any) -> list[Tensor]:
    """Return what a call gives, its gradients, and the result of its decomposition."""
    function, args, keywords = made
    args = tuple(x.clone() if isinstance(x, Tensor) and not x.is_leaf else x for x in args)
    found = tensors(function(*args, **keywords))
    if grad and any(x.requires_grad for x in found):
        leaves = [x for x in args if isinstance(x, Tensor) and x.requires_grad]
        heads = [x for x in found if x.requires_grad]
        ones = [torch.ones_like(x) for x in heads]
        found += [g for g in torch.autograd.grad(heads, leaves, ones, allow_unused=True) if g is not None]
    spec = SPECS[sample.op]
    if spec.is_operator and spec.operator.decomposition and sample in FUNCTIONAL:
        with torch.no_grad():
            found += tensors(spec.operator.decomposition(*Call(function, args, keywords).op_args))
    return [x.detach().clone() for x in found]


@pytest.mark.parametrize("name", [*every_night("float64", "bfloat16"), "meta"])
def test_other_defaults_change_no_result(name: str, whole: bool) -> None:
    """The arguments are made with the usual defaults, as data may be."""
    for sample in EVERY if whole else FUNCTIONAL:
        if SPECS[sample.op].is_operator and SPECS[sample.op].operator.mutates:
            continue
        grad = sample in DIFFERENTIABLE
        made = call_of(sample, grad)
        wanted = results(sample, grad, made)
        with defaults(name):
            found = results(sample, grad, made)
        same(found, wanted, sample)


# -- checkpoints -------------------------------------------------------------------------------------


@pytest.mark.parametrize("reentrant", [*every_night(True), False])
def test_gradients_under_a_checkpoint(reentrant: bool) -> None:
    """A checkpoint that is not reentrant lets a backward read each saved tensor once."""
    for sample in DIFFERENTIABLE:
        function, given = sample.of_tensors(Maker(torch.float32, "planar", (2,), grad=True))

        def run(*leaves: Tensor) -> Any:
            return tensors(function(*(x * 1 if x.requires_grad else x for x in leaves)))[0]

        grads = []
        for checkpointed in (False, True):
            leaves = [x.detach().clone().requires_grad_(x.requires_grad) for x in given]
            out = checkpoint(run, *leaves, use_reentrant=reentrant) if checkpointed else run(*leaves)
            if out.requires_grad:
                out.backward(torch.ones_like(out))
            grads.append([leaf.grad for leaf in leaves if leaf.grad is not None])
        same(*grads, sample)


# -- exported programs -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Larger(Maker):
    """A maker whose images are larger than those that a sample names."""

    factor: int = 1
    more: int = 0

    def image(
        self, channels: int, height: int, width: int, low: float = -2, high: float = 2, snap: bool = False
    ) -> Tensor:
        height, width = (self.factor * n + self.more for n in (height, width))
        return super().image(channels, height, width, low, high, snap)


def exported(function: Callable[..., Any], *inputs: Tensor) -> torch.export.ExportedProgram:
    """Return a program of any height and width of its inputs."""

    class Program(torch.nn.Module):
        def forward(self, *given: Tensor) -> Any:
            return function(*given)

    auto = torch.export.Dim.AUTO
    sizes = tuple({x.ndim - 2: auto, x.ndim - 1: auto} for x in inputs)
    return torch.export.export(Program(), inputs, dynamic_shapes=(sizes,), strict=False)


#: Programs of these are decomposed, too; of others, sizes are numbers in the decomposition.
DECOMPOSED = ("crop", "pad", "resize", "paste")


@nightly
def test_programs_with_dynamic_sizes() -> None:
    """A program serves the sizes that it was not exported for."""
    count = 0
    for sample in FUNCTIONAL:
        dtype = next(d for d in DTYPES if d in sample.dtypes)
        maker = partial(Larger, dtype, "planar", (2,))
        (function, args, keywords), *others = (
            sample.call(maker(factor=factor, more=more)) for factor, more in ((2, 8), (2, 9), (3, 6), (3, 7))
        )
        at = [i for i, x in enumerate(args) if isinstance(x, Tensor) and x.shape != others[0][1][i].shape]

        def call(*inputs: Tensor) -> Any:
            given = dict(zip(at, inputs, strict=True))
            return function(*(given.get(i, x) for i, x in enumerate(args)), **keywords)

        each = [tuple(made[i] for i in at) for _, made, _ in others]
        try:
            wanted = [call(*inputs) for inputs in each]
        except ValueError:  # the sizes of the sample are numbers among its arguments
            continue
        if (
            not at or sample.op == "fit"
        ):  # a file has one size; which sides are cropped is a branch, which a program keeps
            continue
        program = exported(call, *(args[i] for i in at))
        for inputs, result in zip(each, wanted, strict=True):
            same(program.module()(*inputs), result, sample)
        if sample.op in DECOMPOSED:
            decomposed = program.run_decompositions(
                torch.export.default_decompositions() | imgops.decompositions()
            )
            assert "imgops" not in str(decomposed.graph)
            for inputs, result in zip(each, wanted, strict=True):
                same(decomposed.module()(*inputs), result, sample, 1e-5)
        count += 1
    assert count > 60


#: Functions of an image whose output size is computed from that of the image.
OF_SIZES: dict[str, Callable[[Tensor], Any]] = {
    "contain": lambda x: imgops.contain(x, (6, 7)),
    "cover": lambda x: imgops.cover(x, (8, 13)),
    "downscale": lambda x: imgops.downscale(x, 0.5),
    "Resize": transforms.Resize(5),
    "Resize of a most": transforms.Resize(5, max_size=9),
    "LetterBox": transforms.LetterBox((7, 9)),
    "LongestMaxSize": transforms.LongestMaxSize(7),
    "SmallestMaxSize": transforms.SmallestMaxSize(7),
    "CenterCrop": transforms.CenterCrop((7, 8)),
    "center_crop": lambda x: transforms.functional.center_crop(x, (7, 8)),
}


@nightly
@pytest.mark.parametrize("name", nightly_unless(lambda n: n in ("cover", "Resize of a most"), OF_SIZES))
def test_sizes_in_a_program_are_rounded_as_in_eager_mode(name: str, whole: bool) -> None:
    """Among the sizes are many whose result lies half between two whole numbers."""

    program, count = exported(OF_SIZES[name], torch.zeros(1, 1, 20, 30)).module(), 0
    for height in range(8, 28, 1 if whole else 3):
        for width in range(9, 40, 5 if whole else 7):
            x = torch.rand(1, 1, height, width, generator=torch.Generator().manual_seed(0))
            wanted = OF_SIZES[name](x)
            try:
                found = program(x)
            except AssertionError as error:
                if "Guard failed" not in str(error):  # a side of 1 pixel needs a program of its own
                    raise
                continue
            same(found, wanted, (name, height, width))
            count += 1
    assert count > (100 if whole else 20)
