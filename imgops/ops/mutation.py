"""paste_, paste_out and accumulate, which write to memory of the caller."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from imgops._common import check
from imgops._common.config import Paste
from imgops._operator.declare import operator
from imgops.autograd import mutation as autograd
from imgops.fake import mutation as fake
from imgops.kernels import cuda
from imgops.kernels.cpu import mutation as cpu
from imgops.ops.movement import broadcast, paste_arguments
from imgops.rules import sharding, vmap

__all__ = ["accumulate", "paste_", "paste_out"]


@operator(
    "imgops::paste_",
    kernel=cpu.paste_,
    cuda=cuda.Kernel("mutation.paste_"),
    fake=fake.paste_,
    autograd=autograd.paste_,
    vmap=vmap.leading(3, 3, 3, mutates=1),
    sharding=sharding.leading(3, 3, 3),
    mutates=["image"],
)
def _paste_(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> Tensor: ...


@operator(
    "imgops::paste_out",
    kernel=cpu.paste_out,
    cuda=cuda.Kernel("mutation.paste_out"),
    fake=fake.paste_out,
    autograd=autograd.paste_out,
    mutates=["out"],
)
def _paste_out(
    image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int, *, out: Tensor
) -> Tensor: ...


@operator(
    "imgops::accumulate",
    kernel=cpu.accumulate,
    cuda=cuda.Kernel("mutation.accumulate"),
    fake=fake.accumulate,
    autograd=autograd.accumulate,
    vmap=vmap.leading(3, 3, 3, 3, mutates=2),
    sharding=sharding.leading(3, 3, 3, 3, outputs=0),
    mutates=["total", "count"],
)
def _accumulate(
    total: Tensor, count: Tensor, source: Tensor, weight: Tensor | None, left: int, top: int
) -> None: ...


def paste_(
    image: Tensor, source: Tensor, position: Sequence[int] | Tensor | Paste, mask: Tensor | None = None
) -> Tensor:
    """Paste one image onto another, in place.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, written to. The image may be a view, but no two of its elements may share memory.
    source, position, mask
        As for :func:`paste`, with one position; leading dimensions broadcast to those of ``image``. Neither
        ``source`` nor ``mask`` may overlap ``image`` in memory.

    Returns
    -------
    Tensor
        ``image`` itself.

    Raises
    ------
    TypeError, ValueError
        As :func:`paste`, and if ``image`` would have to be broadcast or overlaps another argument. Nothing
        has been written then.
    RuntimeError
        From PyTorch, if ``image`` is a leaf that requires a gradient.

    Notes
    -----
    Reference: :meth:`PIL.Image.Image.paste`, as exact as :func:`paste`. Pixels that were pasted over no
    longer get a gradient; ``source`` and a float ``mask`` do. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> canvas = torch.zeros(1, 2, 3)
    >>> imgops.paste_(canvas, torch.ones(1, 2, 2), (-1, 1)) is canvas
    True
    >>> canvas
    tensor([[[0., 0., 0.],
             [1., 0., 0.]]])
    """
    left, top = paste_arguments("paste_", image, source, position, mask)
    source, mask = _broadcast_to(image, source, mask)
    return _paste_(image, source, mask, left, top)


def _broadcast_to(image: Tensor, source: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Expand ``source`` and ``mask`` to ``image``, if they fit; the operator raises if they do not."""
    wider, expanded, mask_expanded = broadcast(image, source, mask)
    if wider.shape == image.shape:
        return expanded, mask_expanded
    return source, mask


def paste_out(
    image: Tensor,
    source: Tensor,
    position: Sequence[int] | Tensor | Paste,
    mask: Tensor | None = None,
    *,
    out: Tensor,
) -> Tensor:
    """Paste one image onto another, into existing memory: a sample of a batch, or a reused buffer.

    Parameters
    ----------
    image, source, position, mask
        As for :func:`paste`, with one position.
    out : Tensor
        The shape that :func:`paste` would return, with the dtype and device of ``image``, sharing no memory
        with the arguments. A planar or interleaved ``out`` is written to directly; any other strides cost a
        copy.

    Returns
    -------
    Tensor
        ``out`` itself.

    Raises
    ------
    TypeError, ValueError
        As :func:`paste`, and if ``out`` has another shape, dtype or device, overlaps an argument, or has
        elements that share memory. Nothing has been written then.
    RuntimeError
        If an argument requires a gradient: out= functions are not differentiable in PyTorch.

    Notes
    -----
    Reference: the result of :func:`paste`, bit-exact. Autocast does not change the dtype. In a compiled graph
    ``out`` must be contiguous, as for every out= function.

    Examples
    --------
    >>> import torch, imgops
    >>> batch = torch.zeros(2, 1, 1, 2)
    >>> out = imgops.paste_out(torch.zeros(1, 1, 2), torch.ones(1, 1, 1), (1, 0), out=batch[1])
    >>> batch.flatten()
    tensor([0., 0., 0., 1.])
    """
    left, top = paste_arguments("paste_out", image, source, position, mask)
    check.tensor("paste_out", "out", out)
    image, source, mask = broadcast(image, source, mask)
    return _paste_out(image, source, mask, left, top, out)


def accumulate(
    total: Tensor,
    count: Tensor,
    source: Tensor,
    position: Sequence[int] | Tensor | Paste,
    weight: Tensor | None = None,
) -> None:
    """Add an image to a window of a sum, and its weight to the same window of a count.

    This serves overlapping tiles, sliding windows and averages over augmentations: at the end
    ``total / count`` is the weighted mean.

    Parameters
    ----------
    total : Tensor
        ``(..., C, H, W)``, float32 or float64, written to.
    count : Tensor
        ``(..., 1, H, W)`` with the leading dimensions, dtype and device of ``total``, written to.
    source : Tensor
        ``(..., C, h, w)`` with the dtype and device of ``total``; leading dimensions broadcast to those of
        ``total``.
    position : sequence of 2 int, Tensor, or imgops.extend.config.Paste
        ``(left, top)`` of ``source`` in ``total``, in pixels; may be negative. Pixels that fall outside are
        clipped.
    weight : Tensor, optional
        ``(..., 1, h, w)`` with the dtype of ``total``; 1 everywhere by default.

    Raises
    ------
    TypeError, ValueError
        If dtypes, devices or shapes do not fit, or ``total`` or ``count`` shares memory with another
        argument. Nothing has been written then.

    Notes
    -----
    Reference: ``cv2.accumulate`` (or ``cv2.accumulateProduct`` with a weight) of each plane. Gradients go to
    ``source`` and ``weight``, and through ``total`` and ``count``. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> total, count = torch.zeros(1, 1, 4), torch.zeros(1, 1, 4)
    >>> for left in (0, 1):
    ...     imgops.accumulate(total, count, torch.full((1, 1, 3), left + 1.0), (left, 0))
    >>> total / count
    tensor([[[1.0000, 1.5000, 1.5000, 2.0000]]])
    """
    check.tensors("accumulate", total=total, count=count, source=source)
    if weight is not None:
        check.tensor("accumulate", "weight", weight)
    left, top = paste_arguments("accumulate", total, source, position, weight)
    source, weight = _broadcast_to(total, source, weight)
    _accumulate(total, count, source, weight, left, top)
