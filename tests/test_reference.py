"""Every sample against the real library, in every dtype, memory format and batch shape."""

from __future__ import annotations

import pytest
import references
import torch
from checks import bits_equal, check_format, check_untouched, through_dispatcher, tree_tensors
from samples import BATCHES, DEVICES, FORMATS, SAMPLES, Maker, Sample, dtypes_of

import imgops


def compare(sample: Sample, maker: Maker) -> None:
    function, args, keywords = sample.call(maker)
    out = function(*args, **keywords)
    assert out.device.type == maker.device
    if sample.op != "paste":
        check_format(out, args[0])
    images = [a for a in args if isinstance(a, torch.Tensor)]
    rest = tuple(a for a in args if not isinstance(a, torch.Tensor))
    reference = getattr(references, sample.op)
    extra = {"interleaved": references.is_interleaved(args[0])} if sample.op == "resize" else {}
    if sample.op == "paste":
        call = lambda image, source, mask=None: reference(image, source, *rest, mask)  # noqa: E731
    else:
        call = lambda image: reference(image, *rest, **keywords, **extra)  # noqa: E731
    if 0 in maker.batch:
        assert out.shape[: len(maker.batch)] == maker.batch
        return
    expected = references.batched(call, *images)
    assert out.dtype == expected.dtype and out.shape == expected.shape
    close(sample, out.cpu(), expected)


def close(sample: Sample, out: torch.Tensor, expected: torch.Tensor) -> None:
    resampled = sample.op == "resize" and "nearest" not in sample.id
    antialiased = resampled and "plain" not in sample.id
    if resampled and out.dtype == torch.float64:
        # PIL has no float64 at all and OpenCV's weights are float32: test_resize.py has the exact test.
        torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    elif antialiased and out.dtype == torch.float32:
        torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    elif antialiased and out.dtype in (torch.float16, torch.bfloat16):
        # The float32 result rounded once; PIL's and ours differ by 1e-7, so a tie may fall either way.
        step = torch.finfo(out.dtype).eps
        torch.testing.assert_close(out, expected, rtol=step, atol=1e-5)
    else:
        assert bits_equal(out, expected), f"{int((out != expected).sum())} of {out.numel()} values differ"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_reference(sample: Sample, device: str) -> None:
    for dtype in dtypes_of(sample):
        for format in FORMATS:
            for batch in BATCHES if format in ("planar", "interleaved") else ((), (2,)):
                compare(sample, Maker(dtype, format, batch, device))


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_input_untouched_and_dispatcher_agrees(sample: Sample) -> None:
    for dtype in dtypes_of(sample)[::3]:
        for format in ("planar", "interleaved"):
            function, args, keywords = sample.call(Maker(dtype, format, (2,)))
            check_untouched(function, *args, **keywords)
            direct = function(*args, **keywords)
            assert bits_equal(direct, through_dispatcher(function, *args, **keywords))
            assert direct.stride() == through_dispatcher(function, *args, **keywords).stride()


@pytest.mark.parametrize("sample", [s for s in SAMPLES if not s.edge], ids=str)
def test_half_precision_is_float32_rounded_once(sample: Sample) -> None:
    for dtype in (torch.float16, torch.bfloat16):
        function, args, keywords = sample.call(Maker(dtype, "interleaved", (2,)))
        wide = tuple(a.float() if isinstance(a, torch.Tensor) and a.dtype == dtype else a for a in args)
        assert bits_equal(function(*args, **keywords), function(*wide, **keywords).to(dtype))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_special_values_pass(value: float) -> None:
    for sample in SAMPLES:
        if sample.edge or "hamming" in sample.id:
            continue
        function, args, keywords = sample.call(Maker())
        args[0][1, 2, 3] = value
        images = tree_tensors(args)
        rest = tuple(a for a in args if not isinstance(a, torch.Tensor))
        out = function(*args, **keywords)
        if sample.op == "paste":
            expected = references.paste(*images[:2], *rest, *images[2:])
        else:
            expected = getattr(references, sample.op)(*images, *rest, **keywords)
        torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5, equal_nan=True)


def test_empty_batches_keep_every_other_size() -> None:
    image = torch.zeros(0, 3, 4, 5)
    assert imgops.crop(image, (-1, -1, 2, 3)).shape == (0, 3, 4, 3)
    assert imgops.resize(image, (2, 3)).shape == (0, 3, 2, 3)
    assert imgops.resize(image, (2, 3), "area", antialias=False).shape == (0, 3, 2, 3)
    assert imgops.pad(image, 1, "wrap").shape == (0, 3, 6, 7)
    assert imgops.paste(image, image[..., :2, :2], (0, 0)).shape == image.shape


def test_batched_patch_broadcasts() -> None:
    images, patch = torch.rand(2, 4, 3, 8, 8), torch.rand(3, 2, 2)
    out = imgops.paste(images, patch, (3, 4))
    expected = images.clone()
    expected[..., 4:6, 3:5] = patch
    assert bits_equal(out, expected)
    onto_one = imgops.paste(images[0, 0], patch.expand(5, 3, 2, 2), (3, 4), torch.ones(1, 2, 2))
    assert bits_equal(onto_one, expected[0, 0].expand(5, 3, 8, 8))
