"""Every sample against the real library, image by image, in every dtype, memory format and batch shape."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

import imgops
from imgops.extend.testing import Call
from tests.checks import bits_equal, check_format
from tests.specs import OPERATORS, SPECS, OpSpec, Sample
from tests.specs._maker import BATCHES, DEVICES, FORMATS, Maker
from tests.specs._spec import EXACT
from tests.tiers import nightly

HALF = (torch.float16, torch.bfloat16)
COMPARED = [s for spec in SPECS.values() if callable(spec.reference) for s in spec.samples]


def per_image(args: tuple[Any, ...], cores: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Return the arguments for each image of the batch: arrays and numbers."""
    batch = args[0].shape[: args[0].ndim - cores[0]]
    columns = []
    for i, value in enumerate(args):
        if not isinstance(value, Tensor):
            columns.append([value] * batch.numel())
            continue
        value, core = value.detach().cpu(), cores[i]
        value = value.float() if core == 3 and value.dtype in HALF else value
        value = value[None] if value.ndim < core else value
        own = tuple(value.shape[value.ndim - core :])
        each = value.expand((*batch, *own)).reshape((batch.numel(), *own))
        columns.append([v.numpy() if core else v.item() for v in each])
    return list(zip(*columns, strict=True))


def compare(spec: OpSpec, sample: Sample, maker: Maker, kernel: Callable[..., Tensor] | None = None) -> None:
    """Compare the call, or a kernel with the operator's arguments, with the real library image by image."""
    function, args, keywords = sample.call(maker)
    op_args, cores = args, spec.cores
    if spec.is_operator:
        op_args, cores = Call(function, args, keywords).op_args, spec.operator.vmap.core  # type: ignore[union-attr]
    out = function(*args, **keywords) if kernel is None else kernel(*op_args)
    assert out.device.type == maker.device
    # The format of a paste may be its source's, and a map's gradient is planar.
    if spec.is_operator and sample.op not in ("paste", "remap_grad_map"):
        check_format(out, args[0])
    if 0 in maker.batch:
        assert out.shape[: len(maker.batch)] == maker.batch
        return
    tolerance = spec.tolerance.get(out.dtype, EXACT)
    elsewhere = kernel is not None or maker.device != "cpu"
    by_aten = maker.device != "cpu" and spec.is_operator and spec.operator.cuda is None
    if elsewhere and (
        out.dtype.is_floating_point or by_aten
    ):  # only CPU kernels have the bits of OpenCV's float32
        tolerance = (spec.decomposed if sample.decomposed is None else sample.decomposed).get(
            out.dtype, EXACT
        )
    flat = out.detach().cpu().reshape(out.shape[:-3].numel(), *out.shape[-3:])
    for found, one in zip(flat, per_image(op_args, cores), strict=True):
        wanted = torch.from_numpy(np.ascontiguousarray(spec.reference(*one)))  # type: ignore[operator]
        if out.dtype.is_floating_point:
            wanted = wanted.to(out.dtype)
        tolerance.check(found, wanted)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("sample", COMPARED, ids=str)
def test_reference(sample: Sample, device: str, whole: bool) -> None:
    """`make test` takes every dtype of the first sample of each operator; of the others, an image and a batch.

    Slices are those of test_channels.py.
    """
    spec = SPECS[sample.op]
    first = sample is spec.samples[0]
    formats = ("planar", "interleaved", *(("transposed", "rows") if first else ()))
    for i, dtype in enumerate(sample.dtypes if whole or first else sample.dtypes[::3]):
        for j, format in enumerate(FORMATS if whole else formats):
            every = BATCHES if format in ("planar", "interleaved") else BATCHES[:2]
            in_turn = BATCHES[(i + j) % 5], (2,)
            for batch in every if whole else in_turn if first and j < 2 else in_turn[1:]:
                maker = Maker(dtype, format, batch, device)
                try:
                    compare(spec, sample, maker)
                except AssertionError as error:
                    raise AssertionError(f"{sample}, {dtype}, {format}, batch {batch}: {error}") from error


@pytest.mark.parametrize("name", [n for n, s in SPECS.items() if isinstance(s.reference, str)])
def test_what_is_compared_elsewhere_is(name: str, request: pytest.FixtureRequest) -> None:
    path, _, test = SPECS[name].reference.partition("::")  # type: ignore[union-attr]
    assert f"def {test}(" in (request.config.rootpath / path).read_text()


@nightly
@pytest.mark.parametrize("sample", [s for s in COMPARED if not s.edge and SPECS[s.op].is_operator], ids=str)
def test_half_precision_is_float32_rounded_once(sample: Sample) -> None:
    for dtype in HALF:
        if dtype in sample.dtypes and torch.uint8 in sample.dtypes:  # an adjoint adds in a different order
            function, args, keywords = sample.call(Maker(dtype, "interleaved", (2,)))
            wide = tuple(a.float() if isinstance(a, Tensor) and a.dtype == dtype else a for a in args)
            assert bits_equal(function(*args, **keywords), function(*wide, **keywords).to(dtype))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_special_values_pass(value: float) -> None:
    for name in ("crop", "paste", "pad", "resize"):
        spec = OPERATORS[name]
        for sample in spec.samples:
            if sample.edge or "hamming" in sample.id:
                continue
            function, args, keywords = sample.call(Maker())
            args[0][1, 2, 3] = value
            call = Call(function, args, keywords)
            (one,) = per_image(call.op_args, spec.operator.vmap.core)  # type: ignore[union-attr]
            wanted = torch.from_numpy(np.ascontiguousarray(spec.reference(*one)))  # type: ignore[operator]
            torch.testing.assert_close(
                function(*args, **keywords), wanted, rtol=1e-5, atol=1e-5, equal_nan=True
            )


@nightly
def test_filters_with_a_center_on_a_pixel_are_pils(whole: bool) -> None:
    """A ratio of odd numbers puts the centers of outputs on pixels, where a filter has a rule of its own."""
    rows = np.random.default_rng(0).integers(0, 256, (5_000 if whole else 500, 480), np.uint8)
    for size, out in ((480, 224), (15, 7), (9, 5), (45, 77))[: 4 if whole else 2]:
        image = np.ascontiguousarray(rows[:, :size])
        for name in ("box", "bilinear", "hamming", "bicubic", "lanczos"):
            wanted = PIL.Image.fromarray(image).resize((out, len(image)), PIL.Image.Resampling[name.upper()])
            got = imgops.resize(torch.from_numpy(image)[None], (len(image), out), name)
            assert torch.equal(got[0], torch.from_numpy(np.array(wanted))), (name, size, out)
            line = torch.from_numpy(image[:1].astype(np.float32))
            exact = PIL.Image.fromarray(line.numpy()).resize((out, 1), PIL.Image.Resampling[name.upper()])
            graph = make_fx(
                partial(imgops.resize, size=(1, out), interpolation=name),
                decomposition_table=imgops.decompositions(),
            )(line.double()[None])
            assert "imgops" not in graph.code  # the formula, without the kernel
            for found in (imgops.resize(line.double()[None], (1, out), name), graph(line.double()[None])):
                torch.testing.assert_close(
                    found[0], torch.from_numpy(np.array(exact)).double(), rtol=1e-7, atol=0
                )


def test_batched_patch_broadcasts() -> None:
    images, patch = torch.rand(2, 4, 3, 8, 8), torch.rand(3, 2, 2)
    out = imgops.paste(images, patch, (3, 4))
    expected = images.clone()
    expected[..., 4:6, 3:5] = patch
    assert bits_equal(out, expected)
    onto_one = imgops.paste(images[0, 0], patch.expand(5, 3, 2, 2), (3, 4), torch.ones(1, 2, 2))
    assert bits_equal(onto_one, expected[0, 0].expand(5, 3, 8, 8))
