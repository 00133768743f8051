"""Calls of PIL: planes as PIL images, and PIL's operations if imgops' kernels would have other pixels.

Kernels repeat PIL's integer arithmetic, which Pillow changes occasionally. Before its first use on uint8,
each kernel is compared with the installed PIL; if they differ, PIL does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image
from torch import Tensor

from imgops._common import compare, layout
from imgops.kernels.cpu import native
from imgops.kernels.cpu._arguments import number_per_image

Kernel = Callable[..., None]

#: Placeholder of a second image among the parameters that a comparison tries.
OTHER = object()


def view(plane: np.ndarray) -> Image.Image:
    """Return a contiguous plane as a PIL image, which shares the memory of uint8 and copies float32."""
    if plane.dtype != np.uint8:
        return Image.fromarray(plane)
    height, width = plane.shape
    return Image.frombuffer("L", (width, height), plane, "raw", "L", 0, 1)


#: From so many pixels on, PIL is faster than ATen, which takes less time for each image of a batch.
_MANY_PIXELS = 1 << 13
#: PIL's function of an image and an operator's parameters, for each kernel that is compared with PIL.
by_pil: dict[str, Callable[..., Image.Image]] = {}


def agrees(step: str) -> bool:
    """Return whether the native step has the bits of the installed PIL, if PIL has the step."""
    return step == "invert" or compare.agrees(step if step in by_pil else f"adjust_{step}")


def compared(
    function: Callable[..., Image.Image],
    *probes: tuple[Any, ...],
    is_native: bool = True,
    joins_channels: bool = False,
) -> Callable[[Kernel], Kernel]:
    """Decorate a kernel ``(out, image, *parameters)``: if it differs from PIL on uint8, PIL does the work.

    PIL also does the work on images of many pixels if the kernel is native code that was not built.
    ``probes`` are the parameters that the comparison tries. With ``joins_channels`` PIL gets the channels of
    an image that is neither gray nor RGB as one gray image.
    """

    def decorate(kernel: Kernel) -> Kernel:
        name = kernel.__name__
        by_pil[name] = function
        equal = partial(_are_equal, kernel, name, probes or ((0.37,), (1.6,)))
        has_pils_pixels = compare.comparison(name, "Pillow")(equal)

        def prefers_pil(image: Tensor) -> bool:
            if is_native and not native.is_built() and image.shape[-2:].numel() >= _MANY_PIXELS:
                return True
            return not has_pils_pixels()

        @wraps(kernel)
        def with_pils_pixels(out: Tensor, image: Tensor, *parameters: Any) -> None:
            if image.dtype == torch.uint8 and image.numel() and prefers_pil(image):
                if joins_channels and image.shape[-3] != 3:
                    joined = image.flatten(-3, -2).unsqueeze(-3)
                    made = torch.empty_like(joined)
                    run(by_pil[name], made, joined, *parameters)
                    out.copy_(made.reshape(image.shape))
                else:
                    run(by_pil[name], out, image, *parameters)
            else:
                kernel(out, image, *parameters)

        return with_pils_pixels

    return decorate


def _are_equal(kernel: Kernel, name: str, probes: tuple[tuple[Any, ...], ...]) -> bool:
    """Compare a kernel with the installed PIL on noise."""
    noise = np.random.default_rng(0).integers(0, 256, (2, 3, 19, 41), dtype=np.uint8)
    image, other = torch.from_numpy(noise)
    for probe in probes:
        parameters = [
            other
            if p is OTHER
            else torch.tensor(p, dtype=torch.float32, device="cpu")
            if type(p) is float
            else p
            for p in probe
        ]
        channels = 1 if probe == (1,) else 3
        ours, theirs = torch.empty((2, channels, *image.shape[1:]), dtype=torch.uint8, device="cpu")
        kernel(ours, image, *parameters)
        run(by_pil[name], theirs, image, *parameters)
        if not torch.equal(ours, theirs):
            return False
    return True


def run(call: Callable[..., Image.Image], out: Tensor, image: Tensor, *parameters: Any) -> None:
    """Call PIL on each image: on a whole RGB image, or on each channel of other images."""
    batch = image.shape[:-3]
    each: list[list[Any]] = []
    for value in parameters:
        if not isinstance(value, Tensor):
            each.append([value] * batch.numel())
        elif value.shape == image.shape:
            each.append([value[i] for i in np.ndindex(*batch)])
        else:
            each.append(number_per_image(value, image))
    for k, i in enumerate(np.ndindex(*batch)):
        own = [parameter[k] for parameter in each]
        if image.shape[-3] == 3:
            made = call(_rgb(image[i]), *(_rgb(v) if isinstance(v, Tensor) else v for v in own))
            _write(out[i], np.asarray(made))
            continue
        for c, plane in enumerate(image[i]):
            inputs = [_gray(v[c]) if isinstance(v, Tensor) else v for v in own]
            _write(out[i] if len(image[i]) == 1 else out[i][c, None], np.asarray(call(_gray(plane), *inputs)))


def _write(out: Tensor, pixels: np.ndarray) -> None:
    """Copy ``(H, W)`` or ``(H, W, C)`` to an image of any memory format."""
    if pixels.ndim == 3 and out.is_contiguous():  # much faster than PyTorch's copy
        cv2.split(pixels, list(out.numpy()))
    else:
        np.copyto(out.movedim(0, -1).numpy(), pixels.reshape(*pixels.shape[:2], -1))


def _rgb(image: Tensor) -> Image.Image:
    if layout.is_interleaved(image):
        return Image.fromarray(image.detach().movedim(0, -1).numpy())
    return Image.merge("RGB", [_gray(plane) for plane in image])


def _gray(plane: Tensor) -> Image.Image:
    return view(plane.detach().contiguous().numpy())
