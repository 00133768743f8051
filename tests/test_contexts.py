"""Each operator in the contexts of a user's program: other defaults, checkpoints, shards and exported programs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from checks import bits_equal
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import imgops
from imgops import transforms
from imgops.extend.testing import Call
from tests.specs import SPECS, Sample
from tests.specs._maker import Maker
from tests.tiers import every_night, nightly, nightly_unless

#: Each sample is made in the first of these dtypes that it has.
DTYPES = (torch.float32, torch.uint8, torch.uint16)
EVERY = [s for spec in SPECS.values() for s in spec.samples if set(DTYPES) & set(s.dtypes)]
FIRST = [s for s in EVERY if s is SPECS[s.op].samples[0]]
FUNCTIONAL = [s for s in FIRST if not (SPECS[s.op].is_operator and SPECS[s.op].operator.mutates)]
DIFFERENTIABLE = [s for s in FUNCTIONAL if s.differentiable and torch.float32 in s.dtypes]


def tensors(value: Any) -> list[Tensor]:
    return [x for x in (value if isinstance(value, (tuple, list)) else [value]) if isinstance(x, Tensor)]


def same(found: list[Tensor], wanted: list[Tensor], sample: Any) -> None:
    assert len(found) == len(wanted) > 0, sample
    for a, b in zip(found, wanted, strict=True):
        assert (a.dtype, a.device, a.shape) == (b.dtype, b.device, b.shape), sample
        assert torch.equal(a.nan_to_num(), b.nan_to_num()) if a.is_floating_point() else bits_equal(a, b), (
            sample
        )


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
        function, args, keywords = call_of(sample, grad=True)
        at = [i for i, x in enumerate(args) if isinstance(x, Tensor) and x.requires_grad]

        def run(*leaves: Tensor) -> Any:
            given = list(args)
            for i, leaf in zip(at, leaves, strict=True):
                given[i] = leaf * 1
            return tensors(function(*given, **keywords))[0]

        grads = []
        for checkpointed in (False, True):
            leaves = [args[i].detach().clone().requires_grad_() for i in at]
            out = checkpoint(run, *leaves, use_reentrant=reentrant) if checkpointed else run(*leaves)
            if out.requires_grad:
                out.backward(torch.ones_like(out))
            grads.append([leaf.grad for leaf in leaves if leaf.grad is not None])
        assert len(grads[0]) == len(grads[1]), sample
        for a, b in zip(*grads, strict=True):
            assert bits_equal(a, b) or torch.equal(a.nan_to_num(), b.nan_to_num()), sample


# -- shards ------------------------------------------------------------------------------------------


def in_a_process(part: str, folder: Path) -> int:
    """Run a part of tests/contexts_program.py, and return the number that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.contexts_program", part, str(folder)],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return int(done.stdout.split()[-1])


@nightly
def test_gradients_of_a_sharded_batch(tmp_path: Path) -> None:
    """A backward that creates tensors must create those of all ranks."""
    assert in_a_process("shards", tmp_path) > 30


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


class Program(torch.nn.Module):
    """A call as a module of the tensors ``at`` some places."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], keywords: Any, at: list[int]
    ) -> None:
        super().__init__()
        self.function, self.args, self.keywords, self.at = function, args, keywords, at

    def forward(self, *inputs: Tensor) -> Any:
        given = list(self.args)
        for i, value in zip(self.at, inputs, strict=True):
            given[i] = value
        return self.function(*given, **self.keywords)


AUTO = torch.export.Dim.AUTO


#: Programs of these are decomposed, too; of others, sizes are numbers in the decomposition.
DECOMPOSED = ("crop", "pad", "resize", "paste")


@nightly
def test_programs_with_dynamic_sizes(tmp_path: Path) -> None:
    """A program serves the sizes that it was not exported for, here and in a process that loads it."""
    saved: list[str] = []
    for sample in FUNCTIONAL:
        dtype = next(d for d in DTYPES if d in sample.dtypes)

        def made(factor: int, more: int) -> tuple[Any, tuple[Any, ...], Any]:
            return sample.call(Larger(dtype, "planar", (2,), factor=factor, more=more))

        function, args, keywords = made(2, 8)
        others = [made(*size)[1] for size in ((2, 9), (3, 6), (3, 7))]
        at = [i for i, x in enumerate(args) if isinstance(x, Tensor) and x.shape != others[0][i].shape]
        try:
            function(*args, **keywords)
        except ValueError:  # the sizes of the sample are numbers among its arguments
            continue
        if not at:  # a file has one size
            continue
        inputs = tuple(args[i] for i in at)
        sizes = tuple({x.ndim - 2: AUTO, x.ndim - 1: AUTO} for x in inputs)
        exported = torch.export.export(
            Program(function, args, keywords, at), inputs, dynamic_shapes=(sizes,), strict=False
        )
        module, cases = exported.module(), []
        if sample.op in DECOMPOSED:
            table = torch.export.default_decompositions() | imgops.decompositions()
            decomposed = exported.run_decompositions(table)
            assert "imgops" not in str(decomposed.graph)
        for other in others:
            given = list(args)
            for i in at:
                given[i] = other[i]
            try:
                wanted = tensors(function(*given, **keywords))
            except ValueError:
                continue
            if sample.op == "fit":  # which sides it crops is a branch, which a program keeps
                continue
            same(tensors(module(*(given[i] for i in at))), wanted, sample)
            if sample.op in DECOMPOSED:
                found = tensors(decomposed.module()(*(given[i] for i in at)))
                torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
            cases.append((tuple(given[i] for i in at), wanted))
        name = f"{sample.op}.pt2"
        torch.export.save(exported, tmp_path / name)
        torch.save(cases, tmp_path / f"{sample.op}.pt")
        saved.append(sample.op)
    assert len(saved) > 60
    assert in_a_process("programs", tmp_path) == len(saved)


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

    class Of(torch.nn.Module):
        def forward(self, x: Tensor) -> Any:
            return OF_SIZES[name](x)

    sizes = ({2: AUTO, 3: AUTO},)
    program = torch.export.export(Of(), (torch.zeros(1, 1, 20, 30),), dynamic_shapes=sizes).module()
    count = 0
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
            same(tensors(found), tensors(wanted), (name, height, width))
            count += 1
    assert count > (100 if whole else 20)
