"""Functions made of several operators: gradients, vmap, one graph, fakes, formats, half precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from checks import bits_equal, check_format, check_raises
from groups import apart, compile_together
from torch import Tensor

import imgops
from tests.specs import SPECS, Sample
from tests.specs._maker import FORMATS, Maker
from tests.specs.histograms import clahe_of_color
from tests.tiers import every_night, nightly

SAMPLES = [
    sample for spec in SPECS.values() if not spec.is_operator for sample in spec.samples if not sample.edge
]
FLOATS = [s for s in SAMPLES if torch.float64 in s.dtypes]


def call_of(sample: Sample, maker: Maker) -> tuple[Callable[..., Tensor], list[Tensor]]:
    """Return the call as a function of its tensors, and the tensors."""
    function, args, keywords = sample.call(maker)
    at = [i for i, a in enumerate(args) if isinstance(a, Tensor)]

    def of_tensors(*tensors: Tensor) -> Tensor:
        values: list[Any] = list(args)
        for i, tensor in zip(at, tensors, strict=True):
            values[i] = tensor
        return function(*values, **keywords)

    return of_tensors, [args[i] for i in at]


@pytest.mark.parametrize("sample", FLOATS, ids=str)
def test_gradients_of_first_and_second_order(sample: Sample) -> None:
    function, tensors = call_of(sample, Maker(torch.float64, grad=True))
    leaves = [t.detach().requires_grad_(t.requires_grad) for t in tensors]
    assert torch.autograd.gradcheck(function, leaves, check_forward_ad=True, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, leaves, fast_mode=True)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_formats_batches_and_fakes(sample: Sample) -> None:
    for format in FORMATS:
        for batch in ((), (2,), (2, 3)):
            function, tensors = call_of(sample, Maker(sample.dtypes[0], format, batch))
            out = function(*tensors)
            if sample.op != "invert":  # it keeps any strides
                check_format(out, tensors[0])
            meta = function(*(t.to("meta") if i == 0 or t.ndim > 2 else t for i, t in enumerate(tensors)))
            assert (meta.shape, meta.dtype, meta.device.type) == (out.shape, out.dtype, "meta")


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_vmap_is_a_loop(sample: Sample) -> None:
    function, tensors = call_of(sample, Maker(sample.dtypes[-1]))
    both = [torch.stack([t, t.flip(-1)]) if t.ndim >= 3 else t for t in tensors]
    dims = tuple(0 if t.ndim >= 3 else None for t in tensors)
    wanted = [function(*(b[i] if d == 0 else b for b, d in zip(both, dims, strict=True))) for i in range(2)]
    found = torch.vmap(function, dims)(*both)
    tolerance = 1e-12 if found.dtype.is_floating_point else 0
    torch.testing.assert_close(found, torch.stack(wanted), rtol=0, atol=tolerance)


@pytest.mark.parametrize("dynamic", [pytest.param(False, marks=nightly), True])
@pytest.mark.parametrize("dtype", [*every_night(torch.uint8), torch.float32])
def test_one_graph(dtype: torch.dtype, dynamic: bool) -> None:
    known = {f"{s.op}-{s}": call_of(s, Maker(dtype, "interleaved", (2,))) for s in SAMPLES}
    calls, inputs = ({name: pair[i] for name, pair in known.items()} for i in (0, 1))
    graph, _ = compile_together(calls, inputs="own", dynamic=dynamic)
    found = graph(inputs)
    for name, value in apart(calls)(inputs).items():
        assert bits_equal(found[name], value) and found[name].stride() == value.stride(), name


COLOR = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, 20, 24), dtype=np.uint8))


@pytest.mark.parametrize("format", ["planar", "interleaved"])
def test_clahe_of_color(format: str) -> None:
    image = COLOR if format == "planar" else COLOR.movedim(0, -1).contiguous().movedim(-1, 0)
    frame = np.ascontiguousarray(COLOR.permute(1, 2, 0).numpy())
    found = imgops.clahe(image, 2.5, (3, 2))
    assert np.array_equal(found.permute(1, 2, 0).numpy(), clahe_of_color(frame, 2.5, (3, 2)))
    check_format(found, image)
    real = imgops.clahe(image / 255, 2.5, (3, 2))
    # The colors of levels are rounded to 8 bits on their way, those of floats are not.
    assert real.dtype == torch.float32 and (real * 255 - found).abs().mean() < 2.5
    assert torch.allclose(imgops.clahe(image.double() / 255, 2.5, (3, 2)).float(), real, atol=1e-5)
    each = imgops.clahe(torch.stack([image, image]), torch.tensor([2.5, 9.0]), (3, 2))
    assert bits_equal(each[0], found) and not bits_equal(each[1], found)


def test_clahe_of_color_is_differentiable_and_one_graph() -> None:
    x = (COLOR[:, :6, :7].double() / 255 * 0.8 + 0.1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: imgops.clahe(x, 3.0, 2), x, fast_mode=True, atol=1e-4)
    graph = torch.compile(lambda x: imgops.clahe(x, 3.0, 2), fullgraph=True, backend="aot_eager")
    assert bits_equal(graph(COLOR), imgops.clahe(COLOR, 3.0, 2))


def test_hit_or_miss_through_morphology() -> None:
    pattern = torch.tensor([[0, 1, 0], [-1, 1, 1], [-1, -1, 0]])
    black_and_white = (COLOR > 90).to(torch.uint8) * 255
    found = imgops.morphology(black_and_white, "hitmiss", pattern)
    for plane, got in zip(black_and_white.numpy(), found.numpy(), strict=True):
        wanted = cv2.morphologyEx(plane, cv2.MORPH_HITMISS, pattern.numpy().astype(np.int32))
        assert np.array_equal(got, wanted)


def test_parameters_that_do_not_fit() -> None:
    x = torch.ones(2, 3, 5, 6)
    message = "motion_blur: angle must have one value, or 2 values, one for each image, got shape (3,)"
    check_raises(lambda: imgops.motion_blur(x, 5, torch.ones(3)), ValueError, message)
    message = "alpha_composite: other must be on the device of image (cpu), got meta"
    check_raises(
        lambda: imgops.alpha_composite(torch.ones(4, 2, 2), torch.ones(4, 2, 2, device="meta")),
        ValueError,
        message,
    )
