"""What the real libraries give: every reference is a call of PIL, OpenCV or NumPy slicing, image by image."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image
from torch import Tensor

_FILTERS = {
    name: getattr(Image.Resampling, name.upper())
    for name in ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
}
_PLAIN = {
    "nearest": cv2.INTER_NEAREST,
    "bilinear": cv2.INTER_LINEAR,
    "bicubic": cv2.INTER_CUBIC,
    "area": cv2.INTER_AREA,
    "lanczos": cv2.INTER_LANCZOS4,
}
_BORDERS = {
    "constant": cv2.BORDER_CONSTANT,
    "edge": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT_101,
    "symmetric": cv2.BORDER_REFLECT,
    "wrap": cv2.BORDER_WRAP,
}


def is_interleaved(image: Tensor) -> bool:
    return not image.is_contiguous() and image.movedim(-3, -1).is_contiguous()


def batched(reference: Any, first: Tensor, *others: Tensor) -> Tensor:
    """Apply a reference of (C, H, W) arrays to each image of a batch."""
    lead = first.shape[:-3]
    flat = [t.detach().cpu().reshape(lead.numel(), *t.shape[-3:]) for t in (first, *others)]
    results = [torch.as_tensor(reference(*(t[i] for t in flat))) for i in range(flat[0].shape[0])]
    if not results:
        raise ValueError("an empty batch has no reference")
    return torch.stack(results).reshape(*lead, *results[0].shape)


def pil_planes(image: Tensor) -> list[Image.Image]:
    return [Image.fromarray(plane.numpy()) for plane in image.contiguous()]


def stack(planes: list[Any], like: Tensor) -> Tensor:
    arrays = [torch.from_numpy(np.array(p)) for p in planes]
    return torch.stack(arrays) if arrays else like


# -- crop and paste ------------------------------------------------------------------------------


def crop(image: Tensor, box: tuple[int, ...]) -> Tensor:
    """PIL for what PIL has, else the pixels one by one."""
    left, top, right, bottom = box
    if (
        image.dtype in (torch.uint8, torch.float32, torch.int32)
        and image.numel()
        and right > left
        and bottom > top
    ):
        return stack([p.crop(box) for p in pil_planes(image)], image)
    out = torch.zeros((image.shape[0], bottom - top, right - left), dtype=image.dtype)
    for y in range(top, bottom):
        for x in range(left, right):
            if 0 <= y < image.shape[1] and 0 <= x < image.shape[2]:
                out[:, y - top, x - left] = image[:, y, x]
    return out


def paste(image: Tensor, source: Tensor, position: tuple[int, int], mask: Tensor | None = None) -> Tensor:
    if image.dtype == torch.uint8 and image.numel() and source.numel():
        planes = pil_planes(image)
        hard = None if mask is None else Image.fromarray(_levels(mask).numpy()[0])
        for plane, patch in zip(planes, pil_planes(source), strict=True):
            plane.paste(patch, position, hard)
        return stack(planes, image)
    out = image.clone()
    left, top = position
    for y in range(source.shape[1]):
        for x in range(source.shape[2]):
            if 0 <= y + top < image.shape[1] and 0 <= x + left < image.shape[2]:
                below = out[:, y + top, x + left]
                out[:, y + top, x + left] = _mix(
                    below, source[:, y, x], None if mask is None else mask[0, y, x]
                )
    return out


def _mix(below: Tensor, above: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None or (weight.dtype == torch.bool and weight):
        return above
    if weight.dtype == torch.bool:
        return below
    working = torch.float64 if below.dtype == torch.float64 else torch.float32
    w = weight.to(working) / 255 if weight.dtype == torch.uint8 else weight.to(working)
    return (below.to(working) * (1 - w) + above.to(working) * w).to(below.dtype)


def _levels(mask: Tensor) -> Tensor:
    if mask.dtype == torch.bool:
        return mask.to(torch.uint8) * 255
    if mask.dtype == torch.uint8:
        return mask
    return torch.from_numpy(np.rint(mask.double().numpy().clip(0, 1) * 255).astype(np.uint8))


# -- pad -----------------------------------------------------------------------------------------


def sides(padding: Any) -> tuple[int, int, int, int]:
    if isinstance(padding, int):
        return (padding,) * 4
    return tuple(padding) * 2 if len(padding) == 2 else tuple(padding)  # type: ignore[return-value]


def pad(image: Tensor, padding: Any, mode: str = "constant", fill: Any = 0) -> Tensor:
    """OpenCV plane by plane; types unknown to OpenCV by the table of the pixels' numbers, padded by OpenCV."""
    left, top, right, bottom = sides(padding)
    channels, height, width = image.shape
    values = [fill] * channels if isinstance(fill, (int, float)) else list(fill)
    native = image.dtype in (torch.uint8, torch.int16, torch.int32, torch.float32, torch.float64)
    if native and image.numel():
        planes = [
            cv2.copyMakeBorder(p.numpy(), top, bottom, left, right, _BORDERS[mode], value=[float(v)] * 4)
            for p, v in zip(image.contiguous(), values, strict=True)
        ]
        return stack(planes, image)
    out = torch.zeros((channels, height + top + bottom, width + left + right), dtype=torch.float64).to(
        image.dtype
    )
    numbers = np.full(out.shape[1:], -1, np.int32)
    if height * width:
        ramp = np.arange(height * width, dtype=np.int32).reshape(height, width)
        numbers = cv2.copyMakeBorder(ramp, top, bottom, left, right, _BORDERS[mode], value=[-1] * 4)
    for c in range(channels):
        filled = torch.tensor(_cast(values[c], image.dtype), dtype=image.dtype)
        flat = torch.cat([image[c].reshape(-1), filled.reshape(1)])
        index = torch.from_numpy(numbers).long()
        index[index < 0] = height * width
        out[c] = flat[index.reshape(-1)].reshape(index.shape)
    return out


def _cast(value: float, dtype: torch.dtype) -> Any:
    if dtype.is_floating_point or dtype == torch.bool:
        return value
    return int(np.rint(value))


# -- resize --------------------------------------------------------------------------------------


def resize(
    image: Tensor,
    size: tuple[int, int],
    interpolation: str = "bilinear",
    *,
    antialias: bool = True,
    box: Any = None,
    interleaved: bool = False,
) -> Tensor:
    height, width = size
    if interpolation == "nearest":
        return _nearest(image, size, antialias, box)
    if image.dtype in (torch.float16, torch.bfloat16):
        single = resize(
            image.float(), size, interpolation, antialias=antialias, box=box, interleaved=interleaved
        )
        return single.to(image.dtype)
    if antialias:
        planes = pil_planes(image.float() if image.dtype == torch.float64 else image)
        return stack(
            [p.resize((width, height), _FILTERS[interpolation], box=box) for p in planes],
            image.new_zeros((0, height, width)),
        ).to(image.dtype)
    flag = _PLAIN[interpolation]
    channels = image.shape[0]
    if interleaved and channels <= 4:
        frame = cv2.resize(image.permute(1, 2, 0).contiguous().numpy(), (width, height), interpolation=flag)
        return torch.from_numpy(frame.reshape(height, width, channels)).permute(2, 0, 1)
    planes = [cv2.resize(p.numpy(), (width, height), interpolation=flag) for p in image.contiguous()]
    return stack(planes, image.new_zeros((0, height, width)))


def _nearest(image: Tensor, size: tuple[int, int], antialias: bool, box: Any) -> Tensor:
    """Which pixel is taken does not depend on its value: resize the pixels' numbers, then look them up."""
    rows, columns = image.shape[-2:]
    ramp = np.arange(1, rows * columns + 1, dtype=np.float32).reshape(rows, columns)
    if antialias:
        taken = np.array(Image.fromarray(ramp).resize(size[::-1], Image.Resampling.NEAREST, box=box))
    else:
        taken = cv2.resize(ramp, size[::-1], interpolation=cv2.INTER_NEAREST)
    index = torch.from_numpy(taken).long().reshape(-1)
    black = torch.zeros((image.shape[0], 1), dtype=image.dtype)  # a position outside: PIL writes 0
    values = torch.cat([black, image.reshape(image.shape[0], rows * columns)], dim=1)
    return values[:, index].reshape(image.shape[0], *size)


# -- float64, where neither library is exact: the textbook definition, sum by sum -----------------


def weights_pil(name: str, size: int, low: float, high: float, out: int) -> np.ndarray:
    """The matrix of a PIL filter by its definition, in double precision."""
    from math import cos, pi, sin

    def sinc(x: float) -> float:
        return 1.0 if x == 0 else sin(pi * x) / (pi * x)

    def cubic(x: float, a: float = -0.5) -> float:
        x = abs(x)
        if x < 1:
            return (a + 2) * x**3 - (a + 3) * x**2 + 1
        return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0

    kernel, support = {
        "box": (lambda x: 1.0 if -0.5 < x <= 0.5 else 0.0, 0.5),
        "bilinear": (lambda x: max(1 - abs(x), 0.0), 1.0),
        "hamming": (lambda x: sinc(x) * (float(np.float32(0.54)) + float(np.float32(0.46)) * cos(pi * x)) if abs(x) < 1 else 0.0, 1.0),
        "bicubic": (cubic, 2.0),
        "lanczos": (lambda x: sinc(x) * sinc(x / 3) if -3 <= x < 3 else 0.0, 3.0),
    }[name]
    scale = (high - low) / out
    stretch = max(scale, 1.0)
    matrix = np.zeros((out, size))
    for o in range(out):
        center = low + (o + 0.5) * scale
        first = max(int(center - support * stretch + 0.5), 0)
        last = min(int(center + support * stretch + 0.5), size)
        row = [kernel((i - center + 0.5) / stretch) for i in range(first, last)]
        matrix[o, first:last] = np.array(row) / sum(row)
    return matrix
