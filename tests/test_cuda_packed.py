"""Packed images on CUDA: as many launches for all images as for one, run by Triton's interpreter."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch

import imgops
from imgops._operator.record import operators
from imgops.batches.operators import FLIP
from imgops.kernels import cuda
from tests.checks import bits_equal
from tests.packed_calls import (
    COUNT,
    DTYPES,
    OF_KERNELS,
    SIZES,
    SMALL,
    one_by_one,
    packed_arguments,
    row_of,
)
from tests.specs import Sample
from tests.tiers import nightly_unless

pytestmark = pytest.mark.skipif(
    not cuda.runs_on(torch.device("cpu")), reason="Triton was imported without its interpreter"
)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that are launched."""
    from triton.runtime.interpreter import GridExecutor

    names: list[str] = []
    run = GridExecutor.__call__
    spy = lambda self, *args, **how: names.append(self.fn.__name__) or run(self, *args, **how)
    monkeypatch.setattr(GridExecutor, "__call__", spy)
    return names


#: What is run before a commit: pixels that move and are warped, tables, and statistics of an image.
QUICK = ("crop_each-shared", "warp_affine-each-fills", "lut-each", "equalize-rgb")


def is_quick(case: tuple[Sample, torch.dtype, bool]) -> bool:
    return str(case[0]) in QUICK and case[1:] == (torch.uint8, True)


#: A third of the dtypes and formats of each sample, beginning with another one for each; a GPU ran all of them.
CASES = [
    case
    for i, sample in enumerate(OF_KERNELS)
    for j, case in enumerate(
        (sample, dtype, interleaved)
        for dtype in DTYPES
        for interleaved in (False, True)
        if dtype in sample.dtypes
    )
    if (i + j) % 3 == 0 or is_quick(case)
]
#: The first of each operator, which has images of several tiles.
LARGE = [*{case[0].op: case for case in reversed(CASES)}.values()]


@pytest.mark.parametrize(
    ("sample", "dtype", "interleaved"),
    nightly_unless(is_quick, CASES),
    ids=["-".join(map(str, case)) for case in CASES],
)
def test_all_images_are_one_launch_and_have_their_own_bits(
    sample: Sample, dtype: torch.dtype, interleaved: bool, launched: list[str], whole: bool
) -> None:
    large = whole and (sample, dtype, interleaved) in LARGE
    packed, given, args = packed_arguments(sample, dtype, interleaved, SIZES if large else SMALL)
    operator, row = operators("imgops_packed")[sample.op], row_of(sample)
    found = torch.full_like(operator.fake(*args), 77)
    # Tables that are kept make no launches.
    import_module(f"{cuda.__name__}._resampling_tables")._kept.clear()
    operator.cuda(found, *args)
    together = len(launched)
    if dtype == torch.uint8 and sample.op in ("resize", "resized_crop") and given[-1]:
        assert bits_equal(found, operator.overload(*args))  # the CPU's levels, which are PIL's
    wanted = []
    for own in one_by_one(sample, packed, given):
        wanted.append(row.overload(*own) if row is FLIP else row.fake(*own))
        if row is not FLIP:
            row.cuda(wanted[-1], *own)
    assert together == ((len(launched) - together) // COUNT if row is not FLIP else 1)
    flat = [(x.permute(1, 2, 0) if interleaved else x).reshape(-1) for x in wanted]
    made = torch.stack(wanted) if found.ndim == 4 else torch.cat(flat)
    if dtype != torch.uint8 and "contrast" in f"{sample.op} {given}":  # a sum of floats depends on its blocks
        torch.testing.assert_close(found, made, rtol=0, atol=1e-6)
    else:
        assert bits_equal(found, made)


def test_every_operator_of_the_list_is_called() -> None:
    takes = {n for n, o in operators().items() if getattr(o.cuda, "takes_packed", False)}
    assert {s.op for s in OF_KERNELS} == {FLIP.name, *takes}


def test_values_are_checked_before_a_launch(launched: list[str]) -> None:
    """Each box must lie inside of its own image."""
    sample = next(s for s in OF_KERNELS if s.op == "resized_crop")
    operator, (*_, args) = operators("imgops_packed")[sample.op], packed_arguments(sample, torch.uint8, False)
    args = *args[:3], torch.tensor([[0, 0, 9, 8]]).expand(COUNT, 4), *args[4:]
    found = torch.zeros_like(operator.fake(*args))
    with pytest.raises(ValueError, match="resized_crop: box must satisfy"):
        operator.cuda(found, *args)
    assert not launched and not found.any()


def test_the_other_functions_loop_over_the_images() -> None:
    images = [torch.rand(3, 20, 30), torch.rand(3, 16, 8)]
    packed = imgops.PackedImages.of(images)
    for name, given in (
        ("median_blur", (3,)),
        ("resize", (None, 4, 4, "area", False, None)),
    ):
        operator = operators("imgops_packed")[name]
        tensors = operator.tensors - 3
        where = packed.data, packed.sizes, packed.offsets
        args = (*where, *given[:tensors], 3, *given[tensors:], False)
        found = torch.empty_like(operator.fake(*args))
        operator.cuda(found, *args)
        assert bits_equal(found, operator.overload(*args))
