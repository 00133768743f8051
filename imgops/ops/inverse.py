"""The transpose of a linear operator (``adjoint``) and the inverse of a geometric call (``inverse``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import torch
from torch import Tensor

from imgops._common import check
from imgops._common.config import Crop, Pad, Resize
from imgops._operator import record
from imgops.ops import movement
from imgops.ops.resize import resize, splat

P = ParamSpec("P")


def adjoint(op: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return the transpose of a linear operator as a function.

    Parameters
    ----------
    op : callable
        :func:`crop`, :func:`paste`, :func:`pad`, :func:`resize`, an adjoint operator in ``torch.ops.imgops``,
        or a function that :func:`operator` made with ``adjoint=``.

    Returns
    -------
    callable
        ``transpose(cotangent, image, *args, **kwargs)`` with the arguments of ``op`` after ``cotangent``,
        which has the shape of ``op``'s result. Only the shape of ``image`` matters. The function returns a
        tensor of this shape in the memory format of ``cotangent``. It calls the registered adjoint operator,
        so it is itself differentiable and compiles.

    Raises
    ------
    TypeError
        If ``op`` is not an operator.
    NotImplementedError
        If the operator has no adjoint.

    Notes
    -----
    ``<op(x), y> = <x, adjoint(op)(y, x)>`` for all x and y, exact to the accuracy of the dtype, where ``op``
    is taken as a function of its first argument; the part of the result that comes from a fill or a pasted
    source is left out.

    Examples
    --------
    >>> import torch, imgops
    >>> y = torch.tensor([[[3.0, 5.0]]])
    >>> imgops.adjoint(imgops.resize)(y, torch.empty(1, 1, 4), (1, 2), "box")
    tensor([[[1.5000, 1.5000, 2.5000, 2.5000]]])
    """
    operator = record.operator_of(op)
    if operator is None:
        raise TypeError(f"adjoint: op must be an operator of imgops.extend.operator, got {op!r}")
    if operator.adjoint is None:
        record.raise_missing(operator, "adjoint")

    def transpose(cotangent: Tensor, image: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        point = torch.zeros_like(image, dtype=cotangent.dtype, device=cotangent.device)
        pull = torch.func.vjp(lambda x: op(x, *args, **kwargs), point)[1]
        return pull(cotangent)[0]

    return transpose


def inverse(op: Callable[P, Tensor], *args: P.args, **kwargs: P.kwargs) -> Callable[..., Tensor]:
    """Return the inverse of a geometric call, for test-time augmentation or for masks predicted on a crop.

    Parameters
    ----------
    op : callable
        :func:`crop`, :func:`paste`, :func:`pad` or :func:`resize`.
    *args, **kwargs
        The arguments of the call.

    Returns
    -------
    callable
        ``undo(result, onto=None, *, interpolation=None)``. ``result`` has the height and width of the call's
        output, with any channels and dtype; it can be a mask predicted on that output. A crop is pasted where
        it was cut out, onto ``onto`` or onto zeros of the size of the image. The pasted part is cut out of a
        paste, and the image is cut out of a padded image. A resized image is resized back, with
        ``interpolation`` ("nearest" for labels) or that of the call. All of them are differentiable and
        compile.

    Raises
    ------
    NotImplementedError
        If ``op`` is another function, or a resize has a box or a scale.
    ValueError
        From ``undo``, if ``result`` has another height or width.

    Examples
    --------
    >>> import torch, imgops
    >>> image, box = torch.rand(3, 4, 5), (2, 1, 5, 3)
    >>> undo = imgops.inverse(imgops.crop, image, box)
    >>> mask = imgops.crop(image, box).mean(-3, keepdim=True) > 0  # predicted on the crop
    >>> undo(mask).long()
    tensor([[[0, 0, 0, 0, 0],
             [0, 0, 1, 1, 1],
             [0, 0, 1, 1, 1],
             [0, 0, 0, 0, 0]]])
    """
    undo = _UNDO.get(getattr(op, "__name__", "")) if record.operator_of(op) else None
    if undo is None:
        got = getattr(op, "__name__", repr(op))
        raise NotImplementedError(f"inverse: op must be one of {', '.join(_UNDO)}, got {got}")
    return undo(*args, **kwargs)


Undo = Callable[..., Tensor]


def _expect(result: Tensor, height: int, width: int) -> None:
    check.image("inverse", "result", result)
    if result.shape[-2] != height or result.shape[-1] != width:
        must = f"result must be (..., {check.number(height)}, {check.number(width)}) as the call's is"
        check.fail_shape("inverse", must, result)


def _undo_crop(image: Tensor, box: Any, *, size: Any = None) -> Undo:
    found, cut = movement.box_arguments(box.box if isinstance(box, Crop) else box, size)
    position = found[..., :2] if isinstance(found, Tensor) else found[:2]
    height, width = image.shape[-2:]

    def undo(result: Tensor, onto: Tensor | None = None, *, interpolation: str | None = None) -> Tensor:
        _expect(result, *cut)
        if onto is None:
            onto = result.new_zeros((*result.shape[:-2], height, width))
        return movement.paste(onto, result, position)

    return undo


def _undo_paste(image: Tensor, source: Tensor, position: Any, mask: Tensor | None = None) -> Undo:
    if not isinstance(position, Tensor):
        position = movement.paste_arguments("paste", image, source, position, mask)
    return _cut(image.shape[-2:], position, source.shape[-2:])


def _undo_pad(
    image: Tensor, padding: Any, padding_mode: str = "constant", fill: Any = 0, *, size: Any = None
) -> Undo:
    padding = padding.padding if isinstance(padding, Pad) else padding
    found, padded = movement.padding_arguments(image, padding, size)
    return _cut(padded, found[..., :2] if isinstance(found, Tensor) else found[:2], image.shape[-2:])


def _cut(whole: Sequence[int], position: Sequence[int] | Tensor, size: Sequence[int]) -> Undo:
    """Return a function that cuts the part of a size at a position out of a result of the size ``whole``."""
    height, width = size
    left, top = position.unbind(-1) if isinstance(position, Tensor) else position
    box: Any = (left, top, left + width, top + height)
    if isinstance(position, Tensor):
        box = torch.stack(box, -1)

    def undo(result: Tensor, onto: Tensor | None = None, *, interpolation: str | None = None) -> Tensor:
        _expect(result, *whole)
        part = movement.crop(result, box, size=size)
        return part if onto is None else movement.paste(onto, part, (0, 0))

    return undo


def _undo_resize(
    image: Tensor,
    size: Any = None,
    interpolation: str = "bilinear",
    *,
    antialias: bool = True,
    box: Any = None,
    scale: Any = None,
) -> Undo:
    if isinstance(size, Resize):
        size, interpolation, antialias, box, scale = splat(size)
    for name, value in (("box", box), ("scale", scale)):
        if value is not None:
            raise NotImplementedError(f"inverse: {name} of resize must be None, got a {name}")
    height, width = check.integers("resize", "size", size, ("height", "width"))
    back = tuple(image.shape[-2:])
    given = interpolation

    def undo(result: Tensor, onto: Tensor | None = None, *, interpolation: str | None = None) -> Tensor:
        _expect(result, height, width)
        whole = resize(result, back, interpolation or given, antialias=antialias)
        return whole if onto is None else movement.paste(onto, whole, (0, 0))

    return undo


_UNDO: dict[str, Callable[..., Undo]] = {
    "crop": _undo_crop,
    "paste": _undo_paste,
    "pad": _undo_pad,
    "resize": _undo_resize,
}
