"""Dense images as values in memory order, for kernels that process each value, or pixel, independently.

If each image begins at a multiple of 16 bytes, kernels read and write 16 bytes at once.
"""

from __future__ import annotations

import triton.language as tl
from torch import Tensor

from imgops._common import layout
from imgops.kernels.cuda._launch import inline
from imgops.kernels.cuda._tiles import batch, output_batch
from imgops.kernels.cuda._words import is_interleaved


def values_of(out: Tensor, *images: Tensor) -> tuple[Tensor, list[Tensor], int]:
    """Return an output and images as batches in its memory format, and the number of values to read at once."""
    target, interleaved = output_batch(out), is_interleaved(out)
    sources = [batch(layout.in_format(x.detach(), interleaved)) for x in images]
    vector = 16 // target.element_size()
    whole = target.shape[1:].numel() % vector == 0
    whole = whole and all(x.data_ptr() % 16 == 0 for x in (target, *sources))
    return target, sources, vector if whole else 1


@inline
def values_in(program, size, blocks, VECTOR: tl.constexpr, BLOCK: tl.constexpr):
    """Return the image of a program, the offset of its first value, and a mask of the values that exist.

    An image has ``size`` values, for which there are ``blocks`` programs.
    """
    n, first = (program // blocks).to(tl.int64), (program % blocks).to(size.dtype) * BLOCK
    start = n * size + first
    if VECTOR > 1:
        start = tl.multiple_of(start, VECTOR)
    return n, start, tl.arange(0, BLOCK) // VECTOR * VECTOR < size - first
