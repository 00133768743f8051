"""crop, pad, paste and erase, which move pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeGuard

import torch
from torch import Tensor
from torch.compiler import is_compiling

from imgops._common import check, values
from imgops._common.config import Crop, Pad, Paste
from imgops._common.torch_private import is_vmapped
from imgops._operator import subclass
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.autograd import movement as autograd
from imgops.decomposition import movement as decomposition
from imgops.decomposition._saturate import saturate
from imgops.fake import movement as fake
from imgops.kernels import cuda, transfer
from imgops.kernels.cpu import movement as cpu
from imgops.rules import autocast, packed, sharding, vmap

__all__ = ["crop", "erase", "pad", "paste"]


@operator(
    "imgops::crop",
    kernel=cpu.crop,
    cuda=cuda.Kernel("movement.crop", takes_packed=True),
    fake=fake.crop,
    autograd=Gradient(autograd.crop_setup_context, autograd.crop_backward, autograd.crop_jvp),
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.crop,
    adjoint="paste",
    cache_key=fake.size_of_crop,
    packed=packed.one_size,
)
def _crop(image: Tensor, left: int, top: int, right: int, bottom: int) -> Tensor: ...


@operator(
    "imgops::crop_each",
    kernel=cpu.crop_each,
    cuda=cuda.Kernel("movement.crop_each", takes_packed=True),
    fake=fake.crop_each,
    autograd=Gradient(autograd.crop_each_setup_context, autograd.crop_each_backward, autograd.crop_each_jvp),
    vmap=vmap.leading(3, 1),
    sharding=sharding.leading(3, 1),
    decomposition=decomposition.crop_each,
    values=values.crop_boxes,
    adjoint="paste_each",
    packed=packed.one_size,
)
def _crop_each(image: Tensor, box: Tensor, height: int, width: int) -> Tensor: ...


@operator(
    "imgops::paste",
    kernel=cpu.paste,
    cuda=cuda.Kernel("movement.paste"),
    fake=fake.paste,
    autograd=Gradient(autograd.paste_setup_context, autograd.paste_backward, autograd.paste_jvp),
    vmap=vmap.leading(3, 3, 3),
    sharding=sharding.leading(3, 3, 3),
    decomposition=decomposition.paste,
    autocast=autocast.promote,
    adjoint="crop",
)
def _paste(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> Tensor: ...


@operator(
    "imgops::paste_each",
    kernel=cpu.paste_each,
    cuda=cuda.Kernel("movement.paste_each"),
    fake=fake.paste_each,
    autograd=Gradient(
        autograd.paste_each_setup_context, autograd.paste_each_backward, autograd.paste_each_jvp
    ),
    vmap=vmap.leading(3, 3, 3, 1),
    sharding=sharding.leading(3, 3, 3, 1),
    decomposition=decomposition.paste_each,
    values=values.paste_positions,
    autocast=autocast.promote,
    adjoint="crop_each",
)
def _paste_each(image: Tensor, source: Tensor, mask: Tensor | None, position: Tensor) -> Tensor: ...


@operator(
    "imgops::pad",
    kernel=cpu.pad,
    cuda=cuda.Kernel("movement.pad"),
    fake=fake.pad,
    autograd=Gradient(autograd.pad_setup_context, autograd.pad_backward, autograd.pad_jvp),
    vmap=vmap.leading(3, 1),
    sharding=sharding.leading(3, 1),
    decomposition=decomposition.pad,
    values=values.fill("pad", 0),
    adjoint="pad_adjoint",
)
def _pad(
    image: Tensor, fill: Tensor | None, left: int, top: int, right: int, bottom: int, padding_mode: str
) -> Tensor: ...


@operator(
    "imgops::pad_each",
    kernel=cpu.pad_each,
    cuda=cuda.Kernel("movement.pad_each"),
    fake=fake.pad_each,
    vmap=vmap.leading(3, 1, 1),
    sharding=sharding.leading(3, 1, 1),
    decomposition=decomposition.pad_each,
    values=values.paddings,
)
def _pad_each(
    image: Tensor, fill: Tensor | None, padding: Tensor, height: int, width: int, padding_mode: str
) -> Tensor: ...


@operator(
    "imgops::pad_adjoint",
    kernel=cpu.pad_adjoint,
    cuda=cuda.Kernel("movement.pad_adjoint"),
    fake=fake.pad_adjoint,
    autograd=Gradient(
        autograd.pad_adjoint_setup_context, autograd.pad_adjoint_backward, autograd.pad_adjoint_jvp
    ),
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.pad_adjoint,
    autocast=autocast.float32,
    adjoint="pad",
)
def _pad_adjoint(grad: Tensor, left: int, top: int, right: int, bottom: int, padding_mode: str) -> Tensor: ...


_SIDES = ("left", "top", "right", "bottom")


def crop(image: Tensor, box: Sequence[int] | Tensor | Crop, *, size: Sequence[int] | None = None) -> Tensor:
    """Cut a box out of an image: one box for a batch, or one per sample; pixels outside the image are 0.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, any dtype, any device.
    box : sequence of 4 int, Tensor, or imgops.extend.config.Crop
        ``(left, top, right, bottom)`` in pixels; ``right`` and ``bottom`` are exclusive. The box may
        reach or lie outside the image, and may be empty. An integer tensor has the shape ``(4,)`` or
        ``(..., 4)`` (one per sample); all boxes of a call have one size.
    size : sequence of 2 int, optional
        ``(height, width)`` of the box or boxes. With ``size`` the values of a tensor ``box`` are not read to
        find out the shape of the result, so that it can change between calls without a recompile, and can be
        a batch of :func:`torch.vmap`. Without, the size is that of the first box, which is read on the host,
        and has a new dynamic size in a compiled graph.

    Returns
    -------
    Tensor
        ``(..., C, bottom - top, right - left)``, a copy in the memory format of ``image``.

    Raises
    ------
    TypeError
        If ``image`` is not a tensor or ``box`` is not made of integers.
    ValueError
        If ``box`` does not have 4 values, has ``right < left`` or ``bottom < top``, has another size than
        ``size`` or than the other boxes, or has 2**31 pixels or more. The values of boxes on an accelerator
        are not checked: there ``right`` and ``bottom`` follow from ``size``.

    Notes
    -----
    Reference: :meth:`PIL.Image.Image.crop`; bit-exact, for every dtype. The gradient is exact
    for any value: :func:`paste` of the incoming gradient into zeros. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.crop(torch.arange(9).reshape(1, 3, 3), (1, 1, 4, 3))
    tensor([[[4, 5, 0],
             [7, 8, 0]]])

    A box for each image:

    >>> images = torch.arange(8).reshape(2, 1, 1, 4)
    >>> imgops.crop(images, torch.tensor([[0, 0, 2, 1], [3, 0, 5, 1]]), size=(1, 2)).flatten()
    tensor([0, 1, 7, 0])
    """
    check.tensor_or_batch("crop", image)
    if isinstance(box, Crop):
        box = box.box
    if size is not None or isinstance(box, Tensor):
        box, (height, width) = box_arguments(box, size)
        if isinstance(box, Tensor):
            return _crop_each(image, box, height, width)
    left, top, right, bottom = check.integers("crop", "box", box, _SIDES)
    return _crop(image, left, top, right, bottom)


def box_arguments(
    box: Sequence[int] | Tensor, size: Sequence[int] | None
) -> tuple[tuple[int, ...] | Tensor, tuple[int, ...]]:
    """Return the box of a crop, or the tensor of boxes, and the height and width of the result."""
    given = None if size is None else check.integers("crop", "size", size, ("height", "width"))
    if _has_rows(box, given):
        box = _rows("crop", "box", box, _SIDES)
        if given is None:
            left, top, right, bottom = _first_row("crop", "box", box)
            given = bottom - top, right - left
        return box, given
    left, top, right, bottom = check.integers("crop", "box", box, _SIDES)
    wanted = bottom - top, right - left
    if given is not None:
        _require_size("crop", "box", given, wanted)
    return (left, top, right, bottom), wanted


def _has_rows(value: Any, size: tuple[int, ...] | None) -> TypeGuard[Tensor]:
    """Return whether an operator takes the values of a parameter in a tensor; otherwise they are read."""
    if not isinstance(value, Tensor):
        return False
    return size is not None or value.ndim > 1 or (not is_compiling() and is_vmapped(value))


def _rows(op: str, name: str, value: Tensor, names: Sequence[str]) -> Tensor:
    """Check that a tensor has rows of integers, and return it as int64."""
    must = f"{name} must have {len(names)} integers ({', '.join(names)})"
    if value.dtype.is_floating_point or value.dtype.is_complex or value.dtype == torch.bool:
        check.fail(TypeError, op, must, value.dtype)
    if value.ndim == 0 or check.violates(value.shape[-1] == len(names)):
        check.fail_shape(op, must, value)
    return value if value.dtype == torch.uint64 else value.long()


def _first_row(op: str, name: str, rows: Tensor) -> tuple[int, ...]:
    """Read the first row, in a graph too; the operator checks that the others give the same size."""
    must = f"size must be given for a {name}"
    if not is_compiling() and is_vmapped(rows):
        check.fail(ValueError, op, f"{must} under vmap", None)
    if rows.is_meta:
        check.fail(ValueError, op, f"{must} on meta, which has no values", None)
    if check.violates(rows.numel() > 0):
        check.fail(ValueError, op, f"{must} of no rows", None)
    return check.integers(op, name, rows.reshape(-1, 4)[0], _SIDES)


def _require_size(op: str, name: str, size: Sequence[int], wanted: Sequence[int]) -> None:
    if check.violates(size[0] == wanted[0], size[1] == wanted[1]):
        must = f"size must be that of {name} {check.written(wanted)}"
        check.fail(ValueError, op, must, check.numbers(*size))


def paste(
    image: Tensor, source: Tensor, position: Sequence[int] | Tensor | Paste, mask: Tensor | None = None
) -> Tensor:
    """Paste one image onto another.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, any dtype, any device. The operator does not write to this image.
    source : Tensor
        ``(..., C, h, w)`` with the dtype, device and channels of ``image``. Leading dimensions of the
        three tensors broadcast: one patch can go onto a batch, or a batch onto one background.
    position : sequence of 2 int, Tensor, or imgops.extend.config.Paste
        ``(left, top)`` of ``source`` in ``image``, in pixels; may be negative. Pixels that fall outside are
        clipped. An integer tensor of shape ``(2,)`` or ``(..., 2)`` (one per sample) can change between calls
        without a recompile; its leading dimensions broadcast with those of the images.
    mask : Tensor, optional
        ``(..., 1, h, w)``: the weight of ``source``. Floating point in [0, 1], uint8 in [0, 255], or bool.
        Images that are neither uint8 nor floating point take a bool mask only.

    Returns
    -------
    Tensor
        The shape of ``image``, broadcast, in its memory format.

    Raises
    ------
    TypeError
        If dtypes differ or ``mask`` has a dtype that ``image`` cannot be blended with.
    ValueError
        If channels, devices, sizes or leading dimensions do not fit.

    Notes
    -----
    Reference: :meth:`PIL.Image.Image.paste`. Without a mask, and with a bool mask, bit-exact for every dtype.
    With another mask, uint8 is PIL's blend, bit-exact (a float mask is first rounded to the nearest of 256
    levels and clipped), and a floating point image is ``image * (1 - mask) + source * mask``, computed in
    float32 at least. Gradients go to ``image``, ``source`` and a float ``mask``; they are made of
    :func:`paste` and :func:`crop`. Under autocast all floating point arguments take the widest dtype among
    them.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.paste(torch.zeros(1, 2, 3), torch.ones(1, 2, 2), (-1, 1))
    tensor([[[0., 0., 0.],
             [1., 0., 0.]]])

    A position for each image:

    >>> positions = torch.tensor([[0, 0], [2, 0]])
    >>> imgops.paste(torch.zeros(2, 1, 1, 3), torch.ones(1, 1, 1), positions).flatten()
    tensor([1., 0., 0., 0., 0., 1.])
    """
    if isinstance(position, Tensor):
        check.tensors("paste", image=image, source=source)
        if mask is not None:
            check.tensor("paste", "mask", mask)
        position = _rows("paste", "position", position, ("left", "top"))
        image, source, mask = broadcast(image, source, mask, position.shape[:-1])
        return _paste_each(image, source, mask, position)
    left, top = paste_arguments("paste", image, source, position, mask)
    image, source, mask = broadcast(image, source, mask)
    return _paste(image, source, mask, left, top)


def paste_arguments(
    op: str, image: Tensor, source: Tensor, position: Sequence[int] | Tensor | Paste, mask: Tensor | None
) -> tuple[int, ...]:
    """Check the types of the arguments of ``paste``; return the left and top of the position."""
    check.tensors(op, image=image, source=source)
    if isinstance(position, Paste):
        position = position.position
    left, top = check.integers(op, "position", position, ("left", "top"))
    if mask is not None:
        check.tensor(op, "mask", mask)
    return left, top


def broadcast(
    image: Tensor, source: Tensor, mask: Tensor | None, others: Sequence[int] = ()
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Expand the leading dimensions to common ones; if they do not fit, leave them, and the operator raises.

    ``others`` are the leading dimensions of a parameter, which broadcasts itself. Sizes are read by methods,
    because dynamo cannot read the properties of a tv_tensor.
    """
    if not others and image.dim() == source.dim() == 3 and (mask is None or mask.dim() == 3):
        return image, source, mask
    batch: tuple[int, ...] = image.size()[:-3]
    given = (image, source) if mask is None else (image, source, mask)
    if not others and all(t.size()[:-3] == batch for t in given):
        return image, source, mask
    for t in given[1:]:
        batch = _wider(batch, t.size()[:-3])
    batch = _wider(batch, others)

    def expand(t: Tensor) -> Tensor:
        fits = t.dim() >= 3 and check.broadcasts(t.size()[:-3], batch)
        return subclass.rewrap(t.expand(*batch, *t.size()[-3:]), t) if fits else t

    return expand(image), expand(source), None if mask is None else expand(mask)


def _wider(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that two shapes broadcast to, if they do; the caller checks that."""
    if len(a) < len(b):
        a, b = b, a
    kept = len(a) - len(b)
    pairs = zip(a[kept:], b, strict=True)
    return (*a[:kept], *(y if x == 1 else x for x, y in pairs))


def pad(
    image: Tensor,
    padding: int | Sequence[int] | Tensor | Pad,
    padding_mode: str = "constant",
    fill: float | Sequence[float] | Tensor = 0,
    *,
    size: Sequence[int] | None = None,
) -> Tensor:
    """Add a border to an image: one border for a batch, or one per sample, which all become of one size.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, any dtype, any device.
    padding : int, sequence of 2 or 4 int, Tensor, or imgops.extend.config.Pad
        The width of the border in pixels: one number for all sides, ``(x, y)`` for left and right, and for
        top and bottom, or ``(left, top, right, bottom)``. Not negative. An integer tensor has the shape
        ``(4,)`` or ``(..., 4)`` (one per sample); all borders of a call give one size.
    padding_mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        "reflect" leaves out the border pixel (``dcb|abcd|cba``), "symmetric" repeats it
        (``cba|abcd|dcb``). "edge" is also called "replicate", "wrap" also "circular". A border may be wider
        than the image.
    fill : number, sequence of numbers or Tensor
        The value of a constant border: one number, or one per channel. A tensor of shape ``()``, ``(C,)`` or
        ``(..., C)`` (per sample) can change between calls without a recompile.
    size : sequence of 2 int, optional
        ``(height, width)`` of the result. With ``size`` a tensor ``padding`` can change between calls without
        a recompile, and can be a batch of :func:`torch.vmap`. Without, the first border of the tensor is read
        on the host, and the result has a new dynamic size in a compiled graph.

    Returns
    -------
    Tensor
        ``(..., C, H + top + bottom, W + left + right)`` in the memory format of ``image``.

    Raises
    ------
    TypeError
        If ``padding`` is not made of integers.
    ValueError
        If ``padding`` is negative, has 3 values, or gives another size than ``size`` or than for the other
        samples, ``padding_mode`` is unknown, ``fill`` does not fit the channels, or a mode that repeats
        pixels gets an image without any. The values of a ``padding`` on an accelerator are not checked: there
        right and bottom follow from ``size``.

    Notes
    -----
    Reference: ``cv2.copyMakeBorder`` (BORDER_CONSTANT, REPLICATE, REFLECT_101, REFLECT, WRAP), bit-exact
    for every dtype. For integer images ``fill`` is rounded half to even and clamped to the range,
    as OpenCV's ``saturate_cast`` does. The gradient for ``image`` is :func:`crop` for a constant border, and
    for the others the sum over all copies of a pixel; a ``fill`` tensor gets the sum over the border.
    Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.pad(torch.tensor([[[1, 2, 3]]]), (2, 0), padding_mode="reflect")
    tensor([[[3, 2, 1, 2, 3, 2, 1]]])
    """
    check.tensor("pad", "image", image)
    if isinstance(padding, Pad):
        config = padding
        padding, padding_mode, fill = config.padding, config.padding_mode, config.fill
    value, padding_mode = fill_tensor("pad", fill, image.dtype), check.padding_mode(padding_mode)
    if size is not None or isinstance(padding, Tensor):
        padding, (height, width) = padding_arguments(image, padding, size)
        if isinstance(padding, Tensor):
            return _pad_each(image, value, padding, height, width, padding_mode)
    left, top, right, bottom = _sides(padding)
    return _pad(image, value, left, top, right, bottom, padding_mode)


def padding_arguments(
    image: Tensor, padding: int | Sequence[int] | Tensor, size: Sequence[int] | None
) -> tuple[tuple[int, ...] | Tensor, tuple[int, ...]]:
    """Return the sides of a padding, or the tensor of those of each sample, and the size of the result."""
    check.image("pad", "image", image)
    given = None if size is None else check.integers("pad", "size", size, ("height", "width"))
    has_rows = _has_rows(padding, given)
    if has_rows:
        padding = _rows("pad", "padding", padding, _SIDES)  # type: ignore[arg-type]
        if given is not None:
            return padding, given
    around = _first_row("pad", "padding", padding) if has_rows else _sides(padding)  # type: ignore[arg-type]
    left, top, right, bottom = around
    wanted = image.shape[-2] + top + bottom, image.shape[-1] + left + right
    if given is not None:
        _require_size("pad", "padding", given, wanted)
    return (padding if has_rows else around), wanted  # type: ignore[return-value]


def _sides(padding: int | Sequence[int] | Tensor) -> tuple[int, ...]:
    padding = check.plain(padding)
    if isinstance(padding, int):
        padding = check.integer("pad", "padding must be an integer", padding)
        return padding, padding, padding, padding
    if check.is_sequence(padding) and not isinstance(padding, Tensor) and len(padding) == 2:
        x, y = check.integers("pad", "padding", padding, ("x", "y"))
        return x, y, x, y
    return check.integers("pad", "padding", padding, _SIDES)


def fill_tensor(op: str, fill: float | Sequence[float] | Tensor, dtype: torch.dtype) -> Tensor | None:
    """Return a fill as a tensor, or None for 0, which needs no tensor."""
    if isinstance(fill, int) and fill == 0:
        return None
    return values_tensor(op, "fill", fill, dtype)


def values_tensor(op: str, name: str, values: float | Sequence[float] | Tensor, dtype: torch.dtype) -> Tensor:
    """Return pixel values for an image of a dtype as a tensor; integers keep all of their bits."""
    if isinstance(values, Tensor):
        return values
    must = f"{name} must be a number or one per channel"
    values = check.plain(values)
    single = isinstance(values, _NUMBERS)
    if not (single or check.is_sequence(values)):
        check.fail(TypeError, op, must, type(values).__name__)
    each: Any = [values] if single else [check.plain(value) for value in values]  # type: ignore[union-attr]
    for value in each:
        if not isinstance(value, _NUMBERS):
            check.fail(TypeError, op, must, type(value).__name__)
    if all(isinstance(value, (int, torch.SymInt)) for value in each):
        found = check.integers_tensor(op, name, each)
    else:
        if not (dtype.is_floating_point or dtype.is_complex):
            for value in each:
                if not -math.inf < value < math.inf:  # math.isfinite does not take a graph's symbolic numbers
                    check.fail(ValueError, op, f"{name} must be finite for {dtype}", float(value))
        found = check.numbers_tensor(each)
    return check.constant(found.reshape(())) if single else found


_NUMBERS = (int, float, torch.SymInt, torch.SymFloat)


@operator(
    "imgops::erase",
    kernel=cpu.erase,
    cuda=cuda.Kernel("movement.erase"),
    fake=fake.erase,
    autograd=Gradient(autograd.erase_setup_context, autograd.erase_backward),
    vmap=vmap.leading(3, 3, 1),
    sharding=sharding.leading(3, 3, 1),
    decomposition=decomposition.erase,
)
def _erase(image: Tensor, fill: Tensor, box: Tensor) -> Tensor: ...


def erase(image: Tensor, box: Sequence[int] | Tensor, fill: float | Sequence[float] | Tensor = 0) -> Tensor:
    """Overwrite a box with a color or with other pixels: one box for a batch, or one per sample.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, any dtype, any device.
    box : sequence of 4 int, or Tensor
        ``(left, top, right, bottom)`` in pixels, ``right`` and ``bottom`` exclusive; a box is clipped to the
        image, and an empty box changes nothing. An int64 tensor of shape ``(4,)`` or
        ``(..., 4)`` (one per sample) can change between calls without a recompile.
    fill : number, sequence of numbers or Tensor
        One number, one per channel, or a whole image ``(..., C, H, W)``, from which the pixels in the box are
        taken. A tensor has the dtype and device of ``image``, and can require a gradient; numbers are rounded
        and clamped to the range of an integer image, as in :func:`pad`.

    Returns
    -------
    Tensor
        The shape and memory format of ``image``, a copy.

    Raises
    ------
    TypeError
        If ``box`` is not made of integers, or ``fill`` has a different dtype.
    ValueError
        If a shape does not fit.

    Notes
    -----
    Reference: ``Image.paste`` of a color or of the other image's box; bit-exact for every dtype. The gradient
    is exact: it goes to ``image`` outside of the box, and to ``fill`` inside. Autocast does not change the
    dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.erase(torch.ones(1, 2, 3), (1, 0, 3, 1), 5)
    tensor([[[1., 5., 5.],
             [1., 1., 1.]]])
    """
    check.tensor("erase", "image", image)
    check.image("erase", "image", image)
    if not isinstance(box, Tensor):
        box = check.integers("erase", "box", box, _SIDES)
        box = check.integers_tensor("erase", "box", box)
    if not isinstance(fill, Tensor):
        values = values_tensor("erase", "fill", fill, image.dtype)
        (fill,) = transfer.copy_to(image.device, [check.constant(saturate(values, image.dtype))])
    if fill.ndim <= 1:
        channels = image.shape[-3]
        if fill.ndim == 1 and fill.shape[0] != channels:
            must = f"fill must have one number, or one for each of {check.number(channels)} channels"
            check.fail(ValueError, "erase", must, check.number(fill.shape[0]))
        fill = fill.reshape(-1, 1, 1).expand(*image.shape[:-2], 1, 1)
    elif fill.ndim >= 3 and fill.shape[:-3] != image.shape[:-3]:
        if not check.broadcasts(fill.shape[:-3], image.shape[:-3]):
            batches = check.written(check.shape(image)[:-3])
            must = f"fill must have leading dimensions that broadcast to {batches}"
            check.fail(ValueError, "erase", must, check.shape(fill)[:-3])
        fill = fill.expand(*image.shape[:-3], *fill.shape[-3:])
    return _erase(image, fill, box)
