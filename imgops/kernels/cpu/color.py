"""CPU kernels of the color operators.

uint8 and float32 go through a native pass. ATen runs the decomposition for float64 and half precision, and
for all dtypes if the native module was not built; then PIL computes large images of uint8.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image, ImageEnhance
from torch import Tensor

from imgops._common import compare, layout
from imgops.decomposition import color as formula
from imgops.kernels.cpu import _pil, _threads, filter, histograms, levels, native
from imgops.kernels.cpu._arguments import HALF, array_per_image, in_format_of, in_single, number_per_image
from imgops.kernels.cpu.program import ImageProgram
from imgops.kernels.decompositions import run_decomposition

_RGB = 3


def _has_rgb_passes(image: Tensor, *_: object) -> bool:
    return native.has_passes(image) and image.shape[-3] == _RGB and image.numel() > 0


@native.divides(native.has_passes)
@_pil.compared(lambda image, factor: ImageEnhance.Brightness(image).enhance(factor))
def adjust_brightness(out: Tensor, image: Tensor, factor: Tensor) -> None:
    if image.dtype == torch.uint8 and _has_rgb_passes(image) and not layout.writes_interleaved(out):
        _one_step("brightness", formula.adjust_brightness, out, image, factor)
    elif native.has_passes(image) and image.numel():
        native.point("constant", out, in_format_of(image, out), number_per_image(factor, image))
    else:
        run_decomposition(out, formula.adjust_brightness, image, factor)


@native.divides(native.has_passes)
@_pil.compared(lambda image, factor: ImageEnhance.Contrast(image).enhance(factor), joins_channels=True)
def adjust_contrast(out: Tensor, image: Tensor, factor: Tensor) -> None:
    colors = image.shape[-3] == _RGB
    if not native.has_passes(image) or image.numel() == 0 or (colors and image.dtype == torch.uint8):
        _one_step("contrast", formula.adjust_contrast, out, image, factor)
        return
    image, factors = in_format_of(image, out), number_per_image(factor, image)
    if colors:
        native.point("constant", out, image, factors, native.luma_means(image))
        return
    total = image.reshape(len(factors), -1).sum(1, dtype=torch.float64)
    means = [value / (image.numel() // len(factors)) for value in total.tolist()]
    if image.dtype == torch.uint8:  # PIL rounds the mean
        means = [float(int(mean + 0.5)) for mean in means]
    native.point("constant", out, image, factors, means)


@native.divides(_has_rgb_passes)
@_pil.compared(lambda image, factor: ImageEnhance.Color(image).enhance(factor))
def adjust_saturation(out: Tensor, image: Tensor, factor: Tensor) -> None:
    _one_step("saturation", formula.adjust_saturation, out, image, factor)


def _turned_by_pil(image: Image.Image, factor: float) -> Image.Image:
    """Add to PIL's 256 hues, as torchvision does with PIL images."""
    if image.mode != "RGB":
        return image
    hue, *others = image.convert("HSV").split()
    shift = int(formula.hue_shift(torch.tensor(factor, dtype=torch.float64, device="cpu")).item())
    hue = hue.point([(level + shift) % 256 for level in range(256)])
    return Image.merge("HSV", (hue, *others)).convert("RGB")


@native.divides(_has_rgb_passes)
@_pil.compared(_turned_by_pil)
def adjust_hue(out: Tensor, image: Tensor, factor: Tensor) -> None:
    _one_step("hue", formula.adjust_hue, out, image, factor)


def _one_step(name: str, function: Callable[..., Tensor], out: Tensor, image: Tensor, factor: Tensor) -> None:
    """Run a step that needs all channels of a pixel, by the native pass where this is possible."""
    if not _has_rgb_passes(image):
        run_decomposition(out, function, image, factor)
        return
    image = in_format_of(image, out)
    factors = factor.detach().expand(image.shape[:-3]) if factor.numel() > 1 else factor.detach()
    amounts = factors.reshape(-1, 1).double().numpy()
    _run_native(out, image, np.full(amounts.shape, native.STEPS.index(name), np.int32), amounts)


def _run_native(out: Tensor, image: Tensor, kinds: np.ndarray, amounts: np.ndarray) -> None:
    """Run steps that one native pass computes together."""
    native.sequence(out, image, kinds, _in_levels(kinds, amounts) if image.dtype == torch.uint8 else amounts)


def _in_levels(kinds: np.ndarray, amounts: np.ndarray) -> np.ndarray:
    """Return the amounts of steps for uint8, where a shift of the hue is a whole number."""
    is_hue = kinds == native.STEPS.index("hue")
    if not is_hue.any():
        return amounts
    turns = np.where(is_hue, np.trunc(amounts * 255), 0.0)
    return np.where(is_hue, np.where(np.isfinite(turns), turns, 0.0) % 256, amounts)


def _by_pil(image: Image.Image, channels: int) -> Image.Image:
    gray = image.convert("L")
    return gray if channels == 1 or image.mode == "L" else gray.convert("RGB")


@native.divides(_has_rgb_passes)
@_pil.compared(_by_pil, (1,), (3,))
def grayscale(out: Tensor, image: Tensor, num_output_channels: int) -> None:
    is_small = image.dtype == torch.uint8 and _threads.is_small(image)
    if num_output_channels == _RGB and is_small and native.gray_rgb(out, image):
        return
    if not _has_rgb_passes(image):
        run_decomposition(out, formula.grayscale, image, num_output_channels)
        return
    image = in_format_of(image)
    gray = out
    if num_output_channels != 1:
        gray = torch.empty_like(image[..., :1, :, :], memory_format=torch.contiguous_format)
    native.gray(gray, image)
    if num_output_channels == 1:
        return
    if layout.writes_interleaved(out):
        for plane, frame in zip(layout.planes(gray), layout.frames(out), strict=True):
            cv2.merge([plane] * num_output_channels, dst=frame)
    else:
        out.copy_(gray.expand_as(out))


def _is_for_opencv(image: Tensor, matrix: Tensor) -> bool:
    has_dtype = image.dtype in (torch.uint8, torch.uint16, torch.float32)
    return has_dtype and max(image.shape[-3], matrix.shape[-2]) <= 4


@_threads.divides(_is_for_opencv)
def color_matrix(out: Tensor, image: Tensor, matrix: Tensor) -> None:
    if out.numel() == 0 or not _is_for_opencv(image, matrix):
        run_decomposition(out, formula.color_matrix, image, matrix)
        return
    planar = image.dtype == torch.float32 and not layout.writes_interleaved(out)
    if planar and _has_rgb_passes(image) and out.shape[-3] == _RGB:  # OpenCV takes only frames
        native.matrix(out, in_format_of(image, out), array_per_image(matrix, image, 2))
        return
    matrix = matrix.detach().expand(*image.shape[:-3], *matrix.shape[-2:])
    each = matrix.reshape(-1, *matrix.shape[-2:]).double().numpy()
    image = in_format_of(image)
    is_interleaved, writes_interleaved = layout.is_interleaved(image), layout.writes_interleaved(out)
    sources = layout.frames(image) if is_interleaved else _group(image)
    targets = layout.frames(out) if writes_interleaved else _group(out)

    def some(start: int, stop: int) -> None:
        with _threads.opencv:
            for source, m, target in zip(
                sources[start:stop], each[start:stop], targets[start:stop], strict=True
            ):
                frame = source if is_interleaved else cv2.merge(list(source))
                if writes_interleaved:
                    cv2.transform(frame, m, dst=target)
                else:
                    cv2.split(cv2.transform(frame, m), list(target))

    _threads.split(len(each), image.numel(), some)


def _group(image: Tensor) -> Any:
    """Return a planar batch as (images, C, H, W)."""
    return layout.planes(image).reshape(-1, *image.shape[-3:])


def _step(name: str) -> tuple[Callable[..., None], bool]:
    """Return the kernel of a sequence's step, and whether it takes an amount."""
    for family in (levels, histograms, filter, sys.modules[__name__]):
        kernel = getattr(family, name, None) or getattr(family, f"adjust_{name}", None)
        if kernel is not None:
            return kernel, len(inspect.signature(kernel).parameters) > 2
    raise NotImplementedError(name)


_STEPS = {name: _step(name) for name in formula.STEPS}


def _fuses(image: Tensor) -> bool:
    """Return whether one native pass computes several steps with the right bits."""
    return _has_rgb_passes(image) and (
        image.dtype != torch.uint8 or all(map(compare.agrees, _FUSED_LIKE_PIL))
    )


def _is_one_pass(image: Tensor, order: Tensor, parameters: Tensor, names: str) -> bool:
    fuses = _fuses(image) or (image.dtype in HALF and image.shape[-3] == _RGB)
    return fuses and {*names.split(",")} <= {*native.STEPS}


@native.divides(_is_one_pass)
def color_sequence(out: Tensor, image: Tensor, order: Tensor, parameters: Tensor, names: str) -> None:
    """Run the chosen steps: the first step reads ``image``, the others read the result so far in ``out``."""
    if image.dtype in HALF:  # the result is rounded once, at the end
        in_single(color_sequence, out, image, order, parameters, names)
        return
    image, each, batch = in_format_of(image, out), names.split(","), image.shape[:-3]
    is_one = order.numel() == order.shape[-1] and parameters.numel() == len(each)
    if is_one or order.shape[-1] == 0:  # one sequence for all
        _sequence(out, image, order.flatten().tolist(), parameters.detach().flatten().tolist(), each)
        return
    orders = order.expand(*batch, order.shape[-1])
    numbers = parameters.detach().expand(*batch, len(each))
    rows = orders.reshape(-1, order.shape[-1]), numbers.reshape(-1, len(each)), each
    if _in_one_call(out, image, *rows):
        return
    rules = zip(np.ndindex(*batch), rows[0].tolist(), rows[1].tolist(), strict=True)
    changed = [rule for rule in rules if any(0 <= which < len(each) for which in rule[1])]
    if len(changed) < len(rows[0]):
        out.copy_(image)

    def some(start: int, stop: int) -> None:
        for i, steps, amounts in changed[start:stop]:
            _sequence(out[i], image[i], steps, amounts, each)

    _threads.split(len(changed), image.numel(), some)


def _in_one_call(out: Tensor, image: Tensor, orders: Tensor, numbers: Tensor, names: list[str]) -> bool:
    """Run the sequence ``(images, steps)`` of each image in one native call.

    Return False if nothing was done.
    """
    if image.dtype == torch.uint8:
        program = ImageProgram(image)
        rows = torch.cat([orders.double(), numbers.double()], 1)
        return program.colors(rows, orders.shape[1], names) and program.write(out)
    if not set(names) <= set(native.STEPS) or not _fuses(image):
        return False
    chosen, is_step = chosen_first(orders.numpy(), len(names))
    kinds = np.array([native.STEPS.index(name) for name in names], np.int32)[chosen]
    kinds[~is_step] = -1
    _run_native(out, image, kinds, np.take_along_axis(numbers.double().numpy(), chosen, 1))
    return True


def chosen_first(orders: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps of each order with the chosen ones first, and which are chosen; the others are 0."""
    is_step = (orders >= 0) & (orders < count)
    places = np.argsort(~is_step, axis=1, kind="stable")
    chosen, is_step = np.take_along_axis(orders, places, 1), np.take_along_axis(is_step, places, 1)
    return np.where(is_step, chosen, 0), is_step


def _sequence(out: Tensor, image: Tensor, order: list[int], amounts: list[float], names: list[str]) -> None:
    fuses = _fuses(image)
    source, pending = image, []
    for which in order:
        if not 0 <= which < len(names):
            continue
        if fuses and names[which] in native.STEPS:
            pending.append((native.STEPS.index(names[which]), amounts[which]))
            continue
        if pending:
            _run_pending(out, source, pending)
            source, pending = out, []
        if source is out and names[which] == "sharpness":  # it reads neighbors of the pixel it writes
            source = out.clone()
        kernel, takes_amount = _STEPS[names[which]]
        amount = (torch.tensor(amounts[which], dtype=torch.float64, device="cpu"),) if takes_amount else ()
        kernel(out, source, *amount)
        source = out
    if pending:
        _run_pending(out, source, pending)
    elif source is image:
        out.copy_(image)


def _run_pending(out: Tensor, source: Tensor, steps: list[tuple[int, float]]) -> None:
    kinds, amounts = zip(*steps, strict=True)
    _run_native(out, source, np.array([kinds], np.int32), np.array([amounts]))


#: The operators that one native pass computes together.
_FUSED_LIKE_PIL = tuple(f"adjust_{name}" for name in native.STEPS)
