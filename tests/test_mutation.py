"""paste_, paste_out, resize_out and accumulate: they write the right values, and an error leaves everything unwritten."""

from __future__ import annotations

import itertools

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

import imgops
from imgops._operator.record import operators
from tests.checks import bits_equal
from tests.specs._maker import ANY_DTYPE, Maker, formatted
from tests.specs.movement import paste_reference
from tests.tiers import every_night, nightly

MUTATING = sorted(name for name, operator in operators().items() if operator.mutates)


def by_pil(image: Tensor, source: Tensor, mask: Tensor | None, position: tuple[int, int]) -> Tensor:
    """Paste image by image with PIL; half precision moves in single precision."""
    half = image.dtype in (torch.float16, torch.bfloat16)
    images, sources = (t.float() if half else t for t in (image, source))
    pasted = [
        paste_reference(a.numpy(), b.numpy(), None if mask is None else mask[i].numpy(), *position)
        for i, (a, b) in enumerate(zip(images, sources))
    ]
    return torch.from_numpy(np.stack(pasted)).to(image.dtype)


@pytest.mark.parametrize("dtype", ANY_DTYPE, ids=str)
@pytest.mark.parametrize("format", ["planar", "interleaved", "sliced", "transposed", "rows"])
def test_paste_in_place_is_pils(dtype: torch.dtype, format: str) -> None:
    maker = Maker(dtype, format, (2,))
    masks = (None, torch.uint8, torch.bool, torch.float32) if dtype == torch.uint8 else (None,)
    for position, kind in itertools.product(((2, 1), (-2, 5), (30, 0)), masks):
        image, source = maker.image(3, 7, 9), maker.image(3, 4, 5)
        mask = None if kind is None else maker.mask(4, 5, kind)
        expected = by_pil(image, source, mask, position)
        assert imgops.paste_(image, source, position, mask) is image
        assert bits_equal(image, expected)


def test_only_the_window_of_a_view_is_written() -> None:
    canvas = torch.zeros(2, 3, 20, 20)
    window = canvas[1, :, 5:12, 6:15]
    imgops.paste_(window, torch.ones(3, 4, 5), (1, 2))
    expected = torch.zeros(2, 3, 20, 20)
    expected[1, :, 7:11, 7:12] = 1
    assert bits_equal(canvas, expected)


def test_out_is_a_sample_of_a_batch_without_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    from imgops._common import layout

    made = []
    monkeypatch.setattr(layout, "copy_back", lambda target, written: made.append(written is target))
    image, source = torch.rand(3, 7, 9), torch.rand(3, 4, 5)
    for format in ("planar", "interleaved"):
        batch = formatted(torch.zeros(4, 3, 7, 9), format)
        out = imgops.paste_out(formatted(image, format), source, (1, 2), out=batch[2])
        assert out.data_ptr() == batch[2].data_ptr()
        assert bits_equal(batch[2], imgops.paste(image, source, (1, 2))) and not batch[[0, 1, 3]].any()
        small = formatted(torch.zeros(4, 3, 5, 6), format)
        imgops.resize_out(formatted(image, format), (5, 6), "bicubic", out=small[3])
        assert bits_equal(small[3], imgops.resize(formatted(image, format), (5, 6), "bicubic"))
    assert made and all(made), "an intermediate copy was made"


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32], ids=str)
@pytest.mark.parametrize("format", ["planar", "interleaved"])
@pytest.mark.parametrize("channels", [1, 3])
def test_opencv_writes_into_a_window_of_a_canvas(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, format: str, channels: int
) -> None:
    from imgops._common import layout

    monkeypatch.setattr(layout, "copy_back", lambda target, written: pytest.fail("a copy was made"))
    maker = Maker(dtype, format)
    image, canvas = maker.image(channels, 9, 8), maker.image(channels, 12, 14)
    for name in ("bilinear", "bicubic", "area"):
        wanted = canvas.clone()
        wanted[:, 3:7, 8:13] = imgops.resize(image, (4, 5), name, antialias=False)
        imgops.resize_out(image, (4, 5), name, antialias=False, out=canvas[:, 3:7, 8:13])
        assert bits_equal(canvas, wanted), name


@pytest.mark.parametrize("out_format", ["planar", "interleaved", "sliced", "transposed"])
@pytest.mark.parametrize("format", ["planar", "interleaved"])
def test_out_of_any_strides_gets_the_same_bits(format: str, out_format: str) -> None:
    for dtype in (torch.uint8, torch.float32, torch.float64):
        maker, other = Maker(dtype, format, (2,)), Maker(dtype, out_format, (2,))
        image, source, mask = maker.image(3, 7, 9), maker.image(3, 4, 5), maker.mask(4, 5)
        out = other.image(3, 7, 9)
        assert imgops.paste_out(image, source, (-2, 3), mask, out=out) is out
        assert bits_equal(out, imgops.paste(image, source, (-2, 3), mask))
        for antialias in (True, False):
            out = other.image(3, 4, 12)
            imgops.resize_out(image, (4, 12), "bicubic", antialias=antialias, out=out)
            assert bits_equal(out, imgops.resize(image, (4, 12), "bicubic", antialias=antialias))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("format", ["planar", "interleaved", "sliced"])
def test_accumulate_is_opencvs(dtype: torch.dtype, format: str) -> None:
    maker = Maker(dtype, format, (2,))
    for position, weighted in (((2, 1), False), ((2, 1), True), ((-3, 5), True), ((40, 0), True)):
        total, count, source = maker.image(3, 7, 9), maker.image(1, 7, 9), maker.image(3, 4, 5)
        weight = maker.mask(4, 5, dtype) if weighted else None
        share = torch.ones_like(source[:, :1]) if weight is None else weight
        sums = added_by_opencv(total, source, share, position)
        counts = added_by_opencv(count, torch.ones_like(share), share, position)
        assert imgops.accumulate(total, count, source, position, weight) is None
        assert bits_equal(total, sums)
        assert bits_equal(count, counts)


def added_by_opencv(total: Tensor, source: Tensor, weight: Tensor, position: tuple[int, int]) -> Tensor:
    """Add plane by plane what lies inside of the total, with OpenCV."""
    left, top = position
    out = total.clone(memory_format=torch.contiguous_format)
    rows, columns = (slice(max(n, 0), max(n + size, 0)) for n, size in ((top, 4), (left, 5)))
    for i, c in np.ndindex(*out.shape[:2]):
        part = np.ascontiguousarray(out[i, c, rows, columns])
        if part.size:
            above, beside = max(-top, 0), max(-left, 0)
            given = (slice(above, above + part.shape[0]), slice(beside, beside + part.shape[1]))
            values, shares = (np.ascontiguousarray(x[i, k][given]) for x, k in ((source, c), (weight, 0)))
            cv2.accumulateProduct(values, shares, part)
            out[i, c, rows, columns] = torch.from_numpy(part)
    return out


# -- gradients -------------------------------------------------------------------------------------


def test_gradient_reaches_the_source_alone() -> None:
    image, source = torch.zeros(3, 4, 4), torch.ones(3, 2, 2, requires_grad=True)
    assert imgops.paste_(image, source, (3, 3)).requires_grad
    image.sum().backward()
    assert source.grad[:, 0, 0].eq(1).all() and source.grad.sum() == 3


def test_views_share_the_gradient() -> None:
    leaf = torch.rand(2, 3, 4, 4, requires_grad=True)
    batch = leaf * 1
    imgops.paste_(batch[1], torch.zeros(3, 2, 2), (0, 0))
    batch.sum().backward()
    assert leaf.grad[1, :, :2, :2].sum() == 0 and leaf.grad.sum() == 96 - 12


def test_saved_tensors_notice_the_change() -> None:
    leaf = torch.rand(1, 3, 3, requires_grad=True)
    image = leaf.exp()  # exp saves its result for the backward
    imgops.paste_(image, torch.zeros(1, 1, 1), (0, 0))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        image.sum().backward()
    image = leaf.exp()
    imgops.paste_(image.detach(), torch.zeros(1, 1, 1), (0, 0))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        image.sum().backward()


# -- overlaps ----------------------------------------------------------------------------------


def test_disjoint_windows_of_one_tensor_do_not_overlap() -> None:
    canvas = torch.rand(3, 4, 8)
    left = canvas[..., :4].clone()
    imgops.paste_out(canvas[..., :4], torch.ones(3, 1, 1), (0, 0), out=canvas[..., 4:])
    left[:, 0, 0] = 1
    assert bits_equal(canvas[..., 4:], left)


def test_arrays_that_share_memory_overlap() -> None:
    array = np.zeros((3, 4, 5), dtype=np.float32)
    with pytest.raises(ValueError, match="must not overlap"):
        imgops.paste_(torch.from_numpy(array), torch.from_numpy(array[:, :2, :2]), (0, 0))


# -- compiled ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["aot_eager", *every_night("inductor")])
def test_compiled_in_place_on_an_input(backend: str) -> None:
    def call(image: Tensor, source: Tensor, out: Tensor) -> Tensor:
        imgops.paste_(image, source, (1, 1))
        imgops.paste_out(image, source, (0, 0), out=out[1])
        total, count = torch.zeros_like(image), torch.zeros_like(image[:1])
        imgops.accumulate(total, count, source, (2, 0))
        return image.sum() + out.sum() + total.sum() + count.sum()

    args = torch.rand(3, 5, 6), torch.rand(3, 2, 2), torch.zeros(2, 3, 5, 6)
    eager = [a.clone() for a in args]
    compiled = [a.clone() for a in args]
    wanted = call(*eager)
    found = torch.compile(call, fullgraph=True, backend=backend)(*compiled)
    torch.testing.assert_close(found, wanted)
    assert all(bits_equal(a, b) for a, b in zip(eager, compiled))


@nightly
def test_inductor_writes_in_place_without_a_clone() -> None:
    from torch._inductor.utils import run_and_get_code

    def call(x: Tensor, source: Tensor) -> Tensor:
        image = x + 1
        imgops.paste_(image, source, (1, 1))
        return image

    x, source = torch.rand(3, 8, 8), torch.rand(3, 2, 2)
    out, code = run_and_get_code(torch.compile(call, fullgraph=True), x, source)
    assert bits_equal(out, call(x, source))
    python = "\n".join(code)
    assert "imgops.paste_.default(buf0" in python and python.count("empty_strided_cpu((3, 8, 8)") == 1


@nightly
def test_inductor_keeps_each_buffer_that_was_written_to() -> None:
    """Inductor may reuse the memory of a clone after its last use; with ``Tag.inplace`` it does so too early."""

    def every(image: Tensor, source: Tensor) -> list[Tensor]:
        a, b, c, d, e, f = (image.clone() for _ in range(6))
        small, count = source.clone(), image[:1].clone()
        imgops.paste_(a, source, (1, 1))
        imgops.paste_(b, a[:, :2, :2], (0, 0))
        imgops.paste_out(a, source, (2, 2), out=c)
        imgops.resize_out(image, (2, 2), out=small)
        imgops.paste_(d, small, (3, 3))
        imgops.accumulate(e, count, source, (2, 0))
        imgops.resize_out(source, (8, 8), out=f)
        return [a, b, c, d, e, f, small, count]

    inputs = torch.rand(3, 8, 8), torch.rand(3, 2, 2)
    found = torch.compile(every, fullgraph=True)(*inputs)
    for name, x, y in zip("abcdef", found, every(*inputs), strict=False):
        assert bits_equal(x, y), name


def test_schemas_return_nothing() -> None:
    """The Python function returns the buffer; an operator that returned it would have wrong values in a graph."""
    for name in MUTATING:
        schema = getattr(torch.ops.imgops, name).default._schema
        assert schema.is_mutable and not schema.returns, name


def test_inference_mode() -> None:
    with torch.inference_mode():
        image = torch.zeros(1, 2, 2)
        assert imgops.paste_(image, torch.ones(1, 1, 1), (0, 0)) is image and image.sum() == 1
    with pytest.raises(RuntimeError, match=r"[Ii]nference"):
        imgops.paste_(image, torch.ones(1, 1, 1, requires_grad=True), (0, 0))


def test_rows_that_overlap_and_strides_of_one_row() -> None:
    """PyTorch calls a tensor contiguous whatever the strides of its dimensions of size 1 are."""
    row = torch.arange(5, dtype=torch.uint8)
    for image in (
        row.expand(3, 4, 5),
        row.expand(3, 4, 5)[..., :2, :1],
        row.expand(2, 3, 1, 5).expand(2, 3, 4, 5),
    ):
        whole = image.clone(memory_format=torch.contiguous_format)
        assert bits_equal(imgops.resize(image, (8, 8)), imgops.resize(whole, (8, 8)))
    for dtype in (torch.uint8, torch.float32, torch.float16):
        for antialias in (True, False):
            out = torch.zeros(2, 1, 28, dtype=dtype).transpose(1, 2)
            assert out.is_contiguous() and out.stride() != (28, 1, 1)
            imgops.resize_out(torch.ones(2, 9, 9, dtype=dtype), (28, 1), antialias=antialias, out=out)
            assert bool((out == 1).all())
    planes = torch.zeros(200).as_strided((3, 4, 4), (1, 4, 1))
    with pytest.raises(ValueError, match=r"resize_out: out must have memory for each element, got strides"):
        imgops.resize_out(torch.ones(3, 9, 9), (4, 4), out=planes)
    apart = torch.zeros(20).as_strided((1, 2, 2), (9, 3, 2))  # 0, 2, 3, 5: no two at one place
    assert bool((imgops.resize_out(torch.ones(1, 9, 9), (2, 2), out=apart) == 1).all())


def test_a_single_pixel_of_an_interleaved_image_is_that_of_the_frame() -> None:
    for seed in range(20):
        frame = np.random.default_rng(seed).random((7, 5, 3), np.float32)
        image = torch.from_numpy(frame).permute(2, 0, 1)
        wanted = cv2.resize(frame, (1, 1)).reshape(3)
        assert np.array_equal(imgops.resize(image, (1, 1), antialias=False).numpy().reshape(3), wanted)
