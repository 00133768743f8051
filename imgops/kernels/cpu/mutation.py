"""CPU kernels of the operators that write to their arguments."""

from __future__ import annotations

import cv2
from torch import Tensor

from imgops._common import layout
from imgops.kernels.cpu import _threads
from imgops.kernels.cpu.movement import clip, paste, paste_onto, window


def paste_(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> None:
    canvas = layout.writable(image)
    paste_onto(canvas, source, mask, left, top)
    layout.copy_back(image, canvas)


def paste_out(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int, out: Tensor) -> None:
    canvas = layout.writable(out, read=False)
    paste(canvas, image, source, mask, left, top)
    layout.copy_back(out, canvas)


def accumulate(
    total: Tensor, count: Tensor, source: Tensor, weight: Tensor | None, left: int, top: int
) -> None:
    x0, x1 = clip(left, left + source.shape[-1], total.shape[-1])
    y0, y1 = clip(top, top + source.shape[-2], total.shape[-2])
    if x0 == x1 or y0 == y1 or total.numel() == 0:
        return
    target, cut = window(x0, x1, y0, y1), window(x0 - left, x1 - left, y0 - top, y1 - top)
    values = layout.planes(source.detach()[cut].contiguous())
    share = (
        source.detach().new_ones(()).expand(count.shape)[target] if weight is None else weight.detach()[cut]
    )
    shares = layout.planes(share.contiguous())
    totals, counts = layout.writable(total, False), layout.writable(count, False)
    sums = layout.planes(totals)
    with _threads.opencv:
        for i, plane in enumerate(sums):
            if weight is None:
                cv2.accumulate(values[i], plane[target])
            else:
                cv2.accumulateProduct(values[i], shares[i * len(shares) // len(sums)], plane[target])
        for plane, one in zip(layout.planes(counts), shares, strict=True):
            cv2.accumulate(one, plane[target])
    layout.copy_back(total, totals)
    layout.copy_back(count, counts)
