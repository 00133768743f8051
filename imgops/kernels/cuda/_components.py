"""Connected components of masks: each pixel points to another pixel of its component, the last one to itself.

Two components are joined when the last pixel of one points to the last pixel of the other, by an atomic operation
that fails if another thread was faster. The last pixel of a component is always its first pixel in memory, whichever
threads are faster.
"""

from __future__ import annotations

import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda._launch import inline, kernel, launch

#: The number of pixels of a program.
_BLOCK = 256


def join_components(parents: Tensor, height: int, width: int, connectivity: int) -> None:
    """Join the neighbors of masks ``(P, H * W)``, whose pixels point to themselves; -1 are other pixels."""
    planes, pixels = parents.shape
    programs = -(-pixels // _BLOCK)
    numbers = height, width, programs
    launch(_join_kernel, planes * programs, parents, *numbers, DIAGONAL=connectivity == 8, BLOCK=_BLOCK)


@kernel(tensors=1)
def _join_kernel(parents, height, width, programs, DIAGONAL: tl.constexpr, BLOCK: tl.constexpr):
    pixels = height * width
    own = parents + (tl.program_id(0) // programs).to(tl.int64) * pixels
    p = tl.program_id(0) % programs * BLOCK + tl.arange(0, BLOCK)
    x, y = p % width, p // width
    inside = p < pixels
    inside &= tl.load(own + p, mask=inside, other=-1) >= 0
    _join(own, p, p - 1, inside & (x > 0))
    _join(own, p, p - width, inside & (y > 0))
    if DIAGONAL:
        _join(own, p, p - width - 1, inside & (y > 0) & (x > 0))
        _join(own, p, p - width + 1, inside & (y > 0) & (x < width - 1))


@inline
def _join(parents, one, other, active):
    """Join two components if both pixels belong to the mask."""
    active &= tl.load(parents + other, mask=active, other=-1) >= 0
    while tl.max(active.to(tl.int32), 0) > 0:
        one_next = tl.load(parents + one, mask=active, other=0, volatile=True)
        other_next = tl.load(parents + other, mask=active, other=0, volatile=True)
        are_last = active & (one_next == one) & (other_next == other)
        first, last = tl.minimum(one, other), tl.maximum(one, other)
        joins = are_last & (first != last)
        before = tl.atomic_min(parents + last, first, mask=joins)
        # If the last pixel already pointed to another one, join that pixel with the first one.
        active &= (are_last == 0) | (joins & (before != last))
        one = tl.where(joins, before, one_next)
        other = tl.where(joins, first, other_next)


@inline
def component_of(parents, pixel, active):
    """Return the last pixel of components, where pixels are ``active``."""
    while tl.max(active.to(tl.int32), 0) > 0:
        following = tl.load(parents + pixel, mask=active, other=0)
        active &= following != pixel
        pixel = tl.where(active, following, pixel)
    return pixel
