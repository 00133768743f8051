"""resize, resized_crop and resize_out: PIL's antialiased resampling and OpenCV's plain one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from imgops._common import check, torch_private, values
from imgops._common.config import Resize
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.autograd import resize as autograd
from imgops.decomposition import resize as decomposition
from imgops.fake import resize as fake
from imgops.kernels import cuda
from imgops.kernels.cpu import resize as cpu
from imgops.ops.packed import resize_each
from imgops.rules import autocast, packed, sharding, vmap

__all__ = ["resize", "resize_out", "resized_crop"]


@operator(
    "imgops::resize",
    kernel=cpu.resize,
    cuda=cuda.Kernel("resize.resize", takes_packed=True),
    fake=fake.resize,
    autograd=Gradient(autograd.resize_setup_context, autograd.resize_backward, autograd.resize_jvp),
    vmap=vmap.leading(3, 1),
    sharding=sharding.leading(3, 1),
    decomposition=decomposition.resize,
    values=values.regions("resize", values.region),
    autocast=autocast.float32,
    adjoint="resize_adjoint",
    packed=packed.Packed(keeps_size=False, has_box=True),
)
def _resize(
    image: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None = None,
) -> Tensor: ...


@operator(
    "imgops::resize_adjoint",
    kernel=cpu.resize_adjoint,
    cuda=cuda.Kernel("resize.resize_adjoint"),
    fake=fake.resize_adjoint,
    autograd=Gradient(
        autograd.resize_adjoint_setup_context, autograd.resize_adjoint_backward, autograd.resize_adjoint_jvp
    ),
    vmap=vmap.leading(3, 1),
    sharding=sharding.leading(3, 1),
    decomposition=decomposition.resize_adjoint,
    values=values.regions("resize_adjoint", values.region),
    autocast=autocast.float32,
    adjoint="resize",
)
def _resize_adjoint(
    grad: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None = None,
) -> Tensor: ...


@operator(
    "imgops::resized_crop",
    kernel=cpu.resized_crop,
    cuda=cuda.Kernel("resize.resized_crop", takes_packed=True),
    fake=fake.resized_crop,
    autograd=Gradient(
        autograd.resized_crop_setup_context, autograd.resized_crop_backward, autograd.resized_crop_jvp
    ),
    vmap=vmap.leading(3, 1),
    sharding=sharding.leading(3, 1),
    decomposition=decomposition.resized_crop,
    values=values.regions("resized_crop", values.pixel_box),
    autocast=autocast.float32,
    adjoint="resized_crop_adjoint",
    packed=packed.Packed(keeps_size=False, has_box=True),
)
def _resized_crop(
    image: Tensor, box: Tensor, height: int, width: int, interpolation: str, antialias: bool
) -> Tensor: ...


@operator(
    "imgops::resized_crop_adjoint",
    kernel=cpu.resized_crop_adjoint,
    cuda=cuda.Kernel("resize.resized_crop_adjoint"),
    fake=fake.resized_crop_adjoint,
    autograd=Gradient(
        autograd.resized_crop_adjoint_setup_context,
        autograd.resized_crop_adjoint_backward,
        autograd.resized_crop_adjoint_jvp,
    ),
    vmap=vmap.leading(3, 1),
    sharding=sharding.leading(3, 1),
    decomposition=decomposition.resized_crop_adjoint,
    values=values.regions("resized_crop_adjoint", values.pixel_box),
    autocast=autocast.float32,
    adjoint="resized_crop",
)
def _resized_crop_adjoint(
    grad: Tensor, box: Tensor, height: int, width: int, interpolation: str, antialias: bool
) -> Tensor: ...


@operator(
    "imgops::resize_out",
    kernel=cpu.resize_out,
    cuda=cuda.Kernel("resize.resize_out"),
    fake=fake.resize_out,
    autograd=autograd.resize_out,
    values=values.regions("resize_out", values.region),
    mutates=["out"],
)
def _resize_out(
    image: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    *,
    out: Tensor,
) -> Tensor: ...


def resize(
    image: Tensor,
    size: Sequence[int] | Tensor | Resize | None = None,
    interpolation: str = "bilinear",
    *,
    antialias: bool = True,
    box: Sequence[float] | Tensor | None = None,
    scale: Sequence[float] | None = None,
) -> Tensor:
    """Resize an image, with PIL's pixels or with OpenCV's.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16 or floating point; any dtype of at most 8 bytes for the nearest
        pixel, which for uint16 is that of Pillow's mode I;16. Any device.
    size : sequence of 2 int, or imgops.extend.config.Resize
        ``(height, width)`` in pixels, at least 1. For :class:`PackedImages` it may be an int64 tensor
        ``(N, 2)`` with a size for each image; the result is packed images, too. None if there is a ``scale``.
    interpolation : str, or torchvision's InterpolationMode
        With ``antialias=True`` PIL's filters: "nearest", "box", "bilinear", "hamming", "bicubic",
        "lanczos". With ``antialias=False`` OpenCV's: "nearest", "bilinear", "bicubic", "area", "lanczos";
        and "torch_nearest", the pixel that :func:`torch.nn.functional.interpolate` takes with "nearest".
    antialias : bool
        True for PIL's resampling, which widens the filter when the image shrinks; False for OpenCV's, which
        does not.
    box : sequence of 4 float, or Tensor, optional
        ``(left, top, right, bottom)``: the region of ``image`` to resize, in pixels, within the image.
        Only with ``antialias=True``. A float64 tensor of shape ``(4,)`` or ``(..., 4)`` (one per
        sample) can change between calls without a recompile.
    scale : sequence of 2 float, optional
        The factors ``(x, y)`` by which the sides grow, instead of ``size``: ``fx`` and ``fy`` of
        ``cv2.resize``, which rounds the sides half to even, and whose positions are ``1 / fx`` and ``1 / fy``
        apart. Only with ``antialias=False``, and not for "torch_nearest". In a graph they are constants.

    Returns
    -------
    Tensor
        ``(..., C, height, width)`` in the memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype cannot be interpolated, or ``size``, ``box`` or ``scale`` is not made of numbers.
    ValueError
        If ``size`` is below 1 or has 2**31 pixels or more, ``image`` has no pixels, the filter is
        unknown, ``box`` leaves the image, ``scale`` is not positive, or there are both or neither of ``size``
        and ``scale``.
    NotImplementedError
        If ``box`` requires a gradient.

    Notes
    -----
    References: :meth:`PIL.Image.Image.resize` of each channel (mode L for uint8 and I;16 for uint16:
    bit-exact; mode F for float32: within 1e-5), and ``cv2.resize`` with INTER_NEAREST, LINEAR, CUBIC, AREA or
    LANCZOS4, bit-exact on uint8, uint16 and float32. (The reference is OpenCV's result for each plane of a
    planar image or a slice of it, and for the HWC array of an interleaved one or a slice of it; the two
    differ in the last bits of a float, and in some pixels by a level.) float64 is computed in double
    precision throughout; float16 and bfloat16 are the float32 result, rounded once. The operator is linear;
    its gradient is the registered adjoint, exact for any value. Under autocast half precision is resized in
    float32 and stays float32.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.resize(torch.tensor([[[0.0, 4.0, 8.0, 12.0]]]), (1, 2), "box")
    tensor([[[ 2., 10.]]])
    """
    check.tensor_or_batch("resize", image)
    if isinstance(size, Resize):
        size, interpolation, antialias, box, scale = splat(size)
    if scale is not None:
        scale = _factors(scale, size, antialias)
        size = _scaled(image, scale)
    if isinstance(size, Tensor) and size.ndim == 2 and check.is_batch(image):
        if box is not None:
            must = "box must be None if each image has its own size"
            check.fail(ValueError, "resize", must, type(box).__name__)
        smooth = check.switch("resize", "antialias", antialias)
        return resize_each(image, size, check.interpolation(interpolation), smooth, scale)  # type: ignore[no-any-return]
    return _resize(image, *_arguments("resize", image, size, interpolation, antialias, box), scale)


def resized_crop(
    image: Tensor,
    box: Sequence[float] | Tensor,
    size: Sequence[int] | Tensor,
    interpolation: str = "bilinear",
    *,
    antialias: bool = True,
) -> Tensor:
    """Crop a box out of an image and resize it: one box for a batch, or one per sample.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16 or floating point; any dtype of at most 8 bytes for the nearest
        pixel, which for uint16 is that of Pillow's mode I;16. Any device.
    box : sequence of 4 numbers, or Tensor
        ``(left, top, right, bottom)`` in pixels, inside the image. A tensor of shape ``(4,)`` or ``(..., 4)``
        (one per sample) can change between calls without a recompile. An integer box (int64) is cut out
        first, so that the filter sees no pixel around it. A real box (float64) is a region of the image, and
        the filter reads the pixels around it; only with ``antialias=True``.
    size : sequence of 2 int
        ``(height, width)`` in pixels, at least 1.
    interpolation : str, or torchvision's InterpolationMode
        As for :func:`resize`, but not "area".
    antialias : bool
        True for PIL's resampling, False for OpenCV's.

    Returns
    -------
    Tensor
        ``(..., C, height, width)`` in the memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype cannot be interpolated, or ``size`` or ``box`` is not made of numbers.
    ValueError
        If a box has no pixel or leaves the image, and as for :func:`resize`.

    Notes
    -----
    References: for integers PIL's ``image.crop(box).resize(size)``, or ``cv2.resize`` of the slice; for real
    numbers PIL's ``image.resize(size, box=box)``; with the tolerances of :func:`resize`. A box of the
    output's size is copied. The operator is linear in ``image``; its gradient is the registered adjoint,
    exact for any value. Under autocast half precision is resized in float32 and stays float32.

    Examples
    --------
    >>> import torch, imgops
    >>> images = torch.arange(8.0).reshape(2, 1, 1, 4)
    >>> box = torch.tensor([[0, 0, 2, 1], [1, 0, 3, 1]])
    >>> imgops.resized_crop(images, box, (1, 1), "box").flatten()
    tensor([0.5000, 5.5000])
    """
    check.tensor_or_batch("resized_crop", image)
    height, width = check.integers("resized_crop", "size", size, ("height", "width"))
    antialias = check.switch("resized_crop", "antialias", antialias)
    interpolation = check.interpolation(interpolation)
    if not isinstance(box, Tensor):
        region = _box_tensor("resized_crop", image, box)
        whole = all(isinstance(check.plain(v), (int, torch.SymInt)) for v in box)
        if whole and isinstance(image, Tensor):
            values.pixel_box("resized_crop", box, *image.shape[-2:])  # type: ignore[arg-type]
        box = region.long() if whole else region
    if box.dtype == torch.float64:
        return _resize(image, box, height, width, interpolation, antialias, None)
    return _resized_crop(image, box, height, width, interpolation, antialias)


def resize_out(
    image: Tensor,
    size: Sequence[int] | Tensor | Resize,
    interpolation: str = "bilinear",
    *,
    antialias: bool = True,
    box: Sequence[float] | Tensor | None = None,
    out: Tensor,
) -> Tensor:
    """Resize an image into existing memory: a sample of a batch, or a reused buffer.

    Parameters
    ----------
    image, size, interpolation, antialias, box
        As for :func:`resize`.
    out : Tensor
        ``(..., C, height, width)`` with the dtype and device of ``image``, sharing no memory with it. If
        ``out`` has the memory format of ``image``, the pixels are written straight into it; with
        ``antialias=False`` also if ``out`` is a window of a larger image ``(C, H, W)`` of that format. Any
        other strides cost a copy.

    Returns
    -------
    Tensor
        ``out`` itself.

    Raises
    ------
    TypeError, ValueError
        As :func:`resize`, and if ``out`` has another shape, dtype or device, overlaps an argument, or has
        elements that share memory. Nothing has been written then.
    RuntimeError
        If an argument requires a gradient: out= functions are not differentiable in PyTorch.

    Notes
    -----
    Reference: the result of :func:`resize`, bit-exact. Autocast does not change the dtype. In a compiled
    graph ``out`` must be contiguous, as for every out= function.

    Examples
    --------
    >>> import torch, imgops
    >>> batch = torch.zeros(2, 1, 1, 2)
    >>> out = imgops.resize_out(torch.tensor([[[0.0, 4.0, 8.0, 12.0]]]), (1, 2), "box", out=batch[1])
    >>> batch
    tensor([[[[ 0.,  0.]]],
    <BLANKLINE>
    <BLANKLINE>
            [[[ 2., 10.]]]])
    """
    check.tensors("resize_out", image=image, out=out)
    if isinstance(size, Resize):
        size, interpolation, antialias, box, scale = splat(size)
        if scale is not None:
            check.fail(ValueError, "resize_out", "scale must be None, because out has a size", scale)
    return _resize_out(image, *_arguments("resize_out", image, size, interpolation, antialias, box), out)


def _arguments(
    op: str, image: Tensor, size: Any, interpolation: str, antialias: bool, box: Any
) -> tuple[Tensor | None, int, int, str, bool]:
    """Return the arguments of the operators after the image: box, height, width, interpolation, antialias."""
    height, width = check.integers(op, "size", size, ("height", "width"))
    region = None if box is None else _box_tensor(op, image, box)
    switch = check.switch(op, "antialias", antialias)
    return region, height, width, check.interpolation(interpolation), switch


def _factors(scale: Sequence[float], size: Any, antialias: Any) -> tuple[float, float]:
    """Return the factors of a resize to no given size."""
    if size is not None:
        check.fail(ValueError, "resize", "size must be None with scale", type(size).__name__)
    if antialias is not False:
        must = "antialias must be False with scale, because PIL resizes to a size"
        check.fail(ValueError, "resize", must, antialias)
    must = "scale must be 2 positive numbers (x, y)"
    if not check.is_sequence(scale):
        check.fail(TypeError, "resize", must, type(scale).__name__)
    if len(scale) != 2:
        check.fail(ValueError, "resize", must, len(scale))
    x, y = [check.plain(v) for v in scale]
    for value in (x, y):
        if not isinstance(value, (int, float, torch.SymInt, torch.SymFloat)):
            check.fail(TypeError, "resize", must, type(value).__name__)
    if not (0 < x < math.inf and 0 < y < math.inf):
        check.fail(ValueError, "resize", must, (x, y))
    return x, y


def _scaled(image: Any, scale: Sequence[float]) -> tuple[int, int] | Tensor:
    """Return the sides after a resize by factors, as OpenCV rounds them; of packed images, those of each."""
    x, y = scale
    if isinstance(image, Tensor):
        check.image("resize", "image", image)
        height, width = image.shape[-2:]
        return check.round_half_even(height * y), check.round_half_even(width * x)
    return (image.sizes * torch.tensor((y, x), dtype=torch.float64, device="cpu")).round().long()


def splat(config: Resize) -> tuple[Any, str, bool, Any, Any]:
    """Return the fields of a config in the order of the arguments."""
    return config.size, config.interpolation, config.antialias, config.box, config.scale


def _box_tensor(op: str, image: Tensor, box: Sequence[float] | Tensor) -> Tensor:
    if isinstance(box, Tensor):
        return box
    must = "box must have 4 numbers (left, top, right, bottom)"
    if not check.is_sequence(box):
        check.fail(TypeError, op, must, type(box).__name__)
    if len(box) != 4:
        check.fail(ValueError, op, must, len(box))
    box = [check.plain(value) for value in box]
    for value in box:
        if not isinstance(value, (int, float, torch.SymInt, torch.SymFloat)):
            check.fail(TypeError, op, must, type(value).__name__)
    # In a graph, under torch.func, and for packed images, the kernel checks that the box lies in its image.
    if isinstance(image, Tensor) and torch_private.is_eager():
        check.image(op, "image", image)
        values.region(op, box, *image.shape[-2:])
    return check.numbers_tensor(box)
