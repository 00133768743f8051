"""Geometry: affine and perspective warps, remap, flips and right-angle rotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from imgops._common import check, values
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.autograd import geometry as autograd
from imgops.decomposition import geometry as decomposition
from imgops.fake import geometry as fake
from imgops.kernels import cuda
from imgops.kernels.cpu import _threads
from imgops.kernels.cpu import geometry as cpu
from imgops.ops import _matrices
from imgops.ops.movement import fill_tensor
from imgops.rules import autocast, packed, sharding, vmap

__all__ = ["affine", "flip", "remap", "rotate", "rotate90", "warp_affine", "warp_perspective"]


@operator(
    "imgops::warp_affine",
    kernel=cpu.warp_affine,
    cuda=cuda.Kernel("geometry.warp_affine", takes_packed=True),
    fake=fake.warp_affine,
    autograd=Gradient(autograd.warp_affine_setup_context, autograd.warp_affine_backward),
    vmap=vmap.leading(3, 2, 1),
    sharding=sharding.leading(3, 2, 1),
    decomposition=decomposition.warp_affine,
    values=values.fill("warp_affine", 1),
    autocast=autocast.float32,
    adjoint="remap_adjoint",
    packed=packed.one_size,
)
def _warp_affine(
    image: Tensor,
    matrix: Tensor,
    fill: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    padding_mode: str,
) -> Tensor: ...


@operator(
    "imgops::warp_perspective",
    kernel=cpu.warp_perspective,
    cuda=cuda.Kernel("geometry.warp_perspective", takes_packed=True),
    fake=fake.warp_perspective,
    autograd=Gradient(autograd.warp_perspective_setup_context, autograd.warp_perspective_backward),
    vmap=vmap.leading(3, 2, 1),
    sharding=sharding.leading(3, 2, 1),
    decomposition=decomposition.warp_perspective,
    values=values.fill("warp_perspective", 1),
    autocast=autocast.float32,
    adjoint="remap_adjoint",
    packed=packed.one_size,
)
def _warp_perspective(
    image: Tensor,
    matrix: Tensor,
    fill: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    padding_mode: str,
) -> Tensor: ...


@operator(
    "imgops::remap",
    kernel=cpu.remap,
    cuda=cuda.Kernel("geometry.remap"),
    fake=fake.remap,
    autograd=Gradient(autograd.remap_setup_context, autograd.remap_backward),
    vmap=vmap.leading(3, 3, 1),
    sharding=sharding.leading(3, 3, 1),
    decomposition=decomposition.remap,
    values=values.fill("remap", 1),
    autocast=autocast.float32,
    adjoint="remap_adjoint",
)
def _remap(
    image: Tensor, map: Tensor, fill: Tensor | None, interpolation: str, padding_mode: str
) -> Tensor: ...


@operator(
    "imgops::remap_adjoint",
    kernel=cpu.remap_adjoint,
    cuda=cuda.Kernel("geometry.remap_adjoint"),
    fake=fake.remap_adjoint,
    autograd=Gradient(autograd.remap_adjoint_setup_context, autograd.remap_adjoint_backward),
    vmap=vmap.leading(3, 3),
    sharding=sharding.leading(3, 3),
    decomposition=decomposition.remap_adjoint,
    autocast=autocast.float32,
    adjoint="remap",
)
def _remap_adjoint(
    grad: Tensor, map: Tensor, height: int, width: int, interpolation: str, padding_mode: str
) -> Tensor: ...


@operator(
    "imgops::remap_grad_map",
    kernel=cpu.remap_grad_map,
    cuda=cuda.Kernel("geometry.remap_grad_map"),
    fake=fake.remap_grad_map,
    vmap=vmap.leading(3, 3, 3, 1),
    sharding=sharding.leading(3, 3, 3, 1),
    decomposition=decomposition.remap_grad_map,
    autocast=autocast.float32,
)
def _remap_grad_map(
    grad: Tensor, image: Tensor, map: Tensor, fill: Tensor | None, interpolation: str, padding_mode: str
) -> Tensor: ...


def warp_affine(
    image: Tensor,
    matrix: Sequence[Sequence[float]] | Tensor,
    size: Sequence[int] | None = None,
    interpolation: str = "bilinear",
    padding_mode: str = "constant",
    fill: float | Sequence[float] | Tensor = 0,
) -> Tensor:
    """Apply an affine transformation to an image.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16 or floating point of any range; any dtype for "nearest". Any device.
    matrix : Tensor
        ``(2, 3)``, or ``(..., 2, 3)`` for one per sample, on the CPU: it maps a position ``(x, y, 1)`` in
        ``image`` to a position in the result. Integer coordinates are pixel centers, x points right and y
        down. The matrix can change between calls without a recompile, and can require a gradient.
    size : sequence of 2 int, optional
        ``(height, width)`` of the result in pixels; by default that of ``image``.
    interpolation : {"nearest", "bilinear", "bicubic"}
        The interpolation between pixels.
    padding_mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border rule, as for :func:`pad`.
    fill : number, sequence of numbers or Tensor
        The value of a constant border, as for :func:`pad`. The fill is interpolated with the pixels at the
        edge, so there is no dark fringe.

    Returns
    -------
    Tensor
        ``(..., C, height, width)`` in the dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype cannot be interpolated, or ``matrix`` is not made of numbers.
    ValueError
        If ``matrix`` is not (2, 3) for all or for each sample, or another argument is out of its range.

    Notes
    -----
    Reference: ``cv2.warpAffine``, bit-exact on uint8, uint16 and float32 (OpenCV itself is within half a
    level of the true value from version 5 on). float64 is computed in double precision throughout; half
    precision is computed in float32 and rounded once. Gradients go to ``image`` by the registered adjoint,
    and to ``matrix`` and ``fill``; they are those of the true positions, also to second order. Under autocast
    half precision is warped in float32 and stays float32.

    "nearest" rounds positions as OpenCV does in single precision, ties included, for every dtype. A position
    that is not finite shows the border. With "reflect" and "symmetric", a sample with positions more than 256
    image sizes outside is computed by PyTorch, within the tolerance, because OpenCV's time grows with the
    distance. More than one image outside, OpenCV's "bicubic" does not repeat the image, but one pixel of it;
    accelerators and the decomposition repeat the image there.

    Examples
    --------
    >>> import torch, imgops
    >>> half_a_pixel_right = [[1, 0, 0.5], [0, 1, 0]]
    >>> imgops.warp_affine(torch.tensor([[[0.0, 4.0, 8.0]]]), half_a_pixel_right, fill=-2)
    tensor([[[-1.,  2.,  6.]]])
    """
    check.tensor_or_batch("warp_affine", image)
    matrix = check.real("warp_affine", "matrix", matrix)
    height, width = _size("warp_affine", image, size)
    value = fill_tensor("warp_affine", fill, image.dtype)
    name, padding_mode = check.interpolation(interpolation), check.padding_mode(padding_mode)
    return _warp_affine(image, matrix, value, height, width, name, padding_mode)


def warp_perspective(
    image: Tensor,
    matrix: Sequence[Sequence[float]] | Tensor,
    size: Sequence[int] | None = None,
    interpolation: str = "bilinear",
    padding_mode: str = "constant",
    fill: float | Sequence[float] | Tensor = 0,
) -> Tensor:
    """Apply a perspective transformation (homography) to an image.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16 or floating point of any range; any dtype for "nearest". Any device.
    matrix : Tensor
        ``(3, 3)``, or ``(..., 3, 3)`` for one per sample, on the CPU: it maps a position ``(x, y, 1)`` in
        ``image`` to one in the result. Integer coordinates are pixel centers, x points right and y down. The
        matrix can change between calls without a recompile, and can require a gradient.
    size : sequence of 2 int, optional
        ``(height, width)`` of the result in pixels; by default that of ``image``.
    interpolation : {"nearest", "bilinear", "bicubic"}
        The interpolation between pixels.
    padding_mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border rule, as for :func:`pad`.
    fill : number, sequence of numbers or Tensor
        The value of a constant border, as for :func:`pad`. The fill is interpolated with the pixels at the
        edge, so there is no dark fringe.

    Returns
    -------
    Tensor
        ``(..., C, height, width)`` in the dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype cannot be interpolated, or ``matrix`` is not made of numbers.
    ValueError
        If ``matrix`` is not (3, 3) for all or for each sample, or another argument is out of its range.

    Notes
    -----
    Reference: ``cv2.warpPerspective``, bit-exact on uint8, uint16 and float32 (OpenCV itself is within half a
    level of the true value from version 5 on). float64 is computed in double precision throughout; half
    precision is computed in float32 and rounded once. Gradients go to ``image`` by the registered adjoint,
    and to ``matrix`` and ``fill``; they are those of the true positions, also to second order. Under autocast
    half precision is warped in float32 and stays float32.

    "nearest" rounds positions as OpenCV does in single precision, ties included, for every dtype. A position
    that is not finite shows the border. With "reflect" and "symmetric", a sample with positions more than 256
    image sizes outside is computed by PyTorch, within the tolerance, because OpenCV's time grows with the
    distance. More than one image outside, OpenCV's "bicubic" does not repeat the image, but one pixel of it;
    accelerators and the decomposition repeat the image there.

    Examples
    --------
    >>> import torch, imgops
    >>> twice_as_large = [[1, 0, 0], [0, 1, 0], [0, 0, 0.5]]
    >>> imgops.warp_perspective(torch.tensor([[[0.0, 4.0, 8.0]]]), twice_as_large)
    tensor([[[0., 2., 4.]]])
    """
    check.tensor_or_batch("warp_perspective", image)
    matrix = check.real("warp_perspective", "matrix", matrix)
    height, width = _size("warp_perspective", image, size)
    value = fill_tensor("warp_perspective", fill, image.dtype)
    name, padding_mode = check.interpolation(interpolation), check.padding_mode(padding_mode)
    return _warp_perspective(image, matrix, value, height, width, name, padding_mode)


def remap(
    image: Tensor,
    map: Tensor,
    interpolation: str = "bilinear",
    padding_mode: str = "constant",
    fill: float | Sequence[float] | Tensor = 0,
) -> Tensor:
    """Sample an image at the positions of a map.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16 or floating point of any range; any dtype for "nearest". Any device.
    map : Tensor
        ``(..., 2, height, width)``, float32 or float64, on the device of ``image``: the position ``(x, y)``
        in ``image`` that each pixel of the result is sampled at. Integer coordinates are pixel centers. Its
        leading dimensions broadcast with those of ``image``. It can require a gradient.
    interpolation, padding_mode, fill
        As for :func:`warp_affine`.

    Returns
    -------
    Tensor
        ``(..., C, height, width)`` in the dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype cannot be interpolated, or ``map`` is neither float32 nor float64.
    ValueError
        If a shape does not fit, or another argument is out of its range.

    Notes
    -----
    Reference: ``cv2.remap`` with a float32 map, bit-exact on uint8, uint16 and float32; a float64 map, and a
    float64 image, are computed in double precision. A position that is not finite shows the border. Gradients
    go to ``image`` by the registered adjoint, to ``map`` and to ``fill``, also to second order; at a pixel
    center the derivative is the one to its right, or below it. Under autocast half precision is sampled in
    float32 and stays float32.

    Examples
    --------
    >>> import torch, imgops
    >>> map = torch.tensor([[[0.5, 2.0]], [[0.0, 0.0]]])
    >>> imgops.remap(torch.tensor([[[0.0, 4.0, 8.0]]]), map)
    tensor([[[2., 8.]]])
    """
    check.tensors("remap", image=image, map=map)
    value = fill_tensor("remap", fill, image.dtype)
    if image.ndim >= 3 and map.ndim >= 3 and image.shape[:-3] != map.shape[:-3]:
        try:
            batch = torch.broadcast_shapes(image.shape[:-3], map.shape[:-3])
        except RuntimeError:
            batches = check.written(check.shape(image)[:-3])
            must = f"map must have leading dimensions that broadcast with {batches}"
            check.fail(ValueError, "remap", must, check.shape(map)[:-3])
        image, map = image.expand(*batch, *image.shape[-3:]), map.expand(*batch, *map.shape[-3:])
    return _remap(image, map, value, check.interpolation(interpolation), check.padding_mode(padding_mode))


def rotate(
    image: Tensor,
    angle: float | Tensor,
    interpolation: str = "bilinear",
    expand: bool = False,
    center: Sequence[float | Tensor] | Tensor | None = None,
    fill: float | Sequence[float] | Tensor = 0,
) -> Tensor:
    """Rotate an image about a point by an angle: one angle for a batch, or one per sample.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16 or floating point of any range; any dtype for "nearest". Any device.
    angle : float or Tensor
        Degrees, counterclockwise. A tensor of shape ``()`` or ``(...)`` (one per sample) can change between
        calls without a recompile, and can require a gradient.
    interpolation : {"nearest", "bilinear", "bicubic"}
        The interpolation between pixels.
    expand : bool
        Whether the result grows to show the whole rotated image; ``angle`` and ``center`` must then be
        numbers.
    center : sequence of 2 numbers, or Tensor, optional
        The point ``(x, y)`` that stays in place, in pixels from the top left corner of the image, as in PIL
        and torchvision (so the center of the first pixel is at 0.5); by default the middle. Tensors as for
        ``angle``; a single one has the shape ``(..., 2)``.
    fill : number, sequence of numbers or Tensor
        The value of pixels outside of the image, as for :func:`pad`.

    Returns
    -------
    Tensor
        ``(..., C, H, W)`` in the dtype and memory format of ``image``; with ``expand`` in the size of PIL's
        result.

    Raises
    ------
    TypeError
        If the dtype cannot be interpolated, a parameter is not made of numbers, or with ``expand`` it is a
        tensor.
    ValueError
        If a parameter is not finite or does not fit, or another argument is out of its range.

    Notes
    -----
    Reference: ``cv2.warpAffine`` by the matrix of :func:`torchvision.transforms.v2.functional.rotate`; the
    pixels, also those at the border, are those of :func:`warp_affine`. Gradients go to ``image``, ``angle``,
    ``center`` and ``fill``, also to second order. :func:`rotate90` moves whole pixels. Under autocast half
    precision is warped in float32 and stays float32.

    Examples
    --------
    >>> import torch, imgops
    >>> image = torch.tensor([[[0.0, 0.0, 0.0], [0.0, 5.0, 7.0], [0.0, 0.0, 0.0]]])
    >>> imgops.rotate(image, 90).round()
    tensor([[[0., 7., 0.],
             [0., 5., 0.],
             [0., 0., 0.]]])
    """
    interpolation = _check_warped("rotate", image, interpolation, fill)
    expand = check.switch("rotate", "expand", expand)
    (angle, *middle), height, width = _numbers("rotate", image, {"angle": angle}, {}, center)
    size = None
    if expand:
        for name, parts in (("angle", [angle]), ("center", middle)):
            if any(isinstance(part, Tensor) for part in parts):
                check.fail(
                    TypeError, "rotate", f"{name} must be made of numbers with expand=True", "a Tensor"
                )
        size = _matrices.expanded_size(angle, middle or None, height, width)
    matrix = _matrices.rotation(angle, middle or None, (height, width), size)
    return warp_affine(image, matrix, size, interpolation, fill=fill)


def affine(
    image: Tensor,
    angle: float | Tensor = 0.0,
    translate: Sequence[float | Tensor] | Tensor = (0.0, 0.0),
    scale: float | Tensor = 1.0,
    shear: float | Sequence[float | Tensor] | Tensor = (0.0, 0.0),
    interpolation: str = "bilinear",
    center: Sequence[float | Tensor] | Tensor | None = None,
    fill: float | Sequence[float] | Tensor = 0,
) -> Tensor:
    """Shear, scale, rotate and shift an image: by numbers for a batch, or by those of each sample.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16 or floating point of any range; any dtype for "nearest". Any device.
    angle : float or Tensor
        Degrees, clockwise, as in torchvision.
    translate : sequence of 2 numbers, or Tensor
        The shift ``(x, y)`` in pixels, to the right and down.
    scale : float or Tensor
        The factor of the size, above 0.
    shear : number, sequence of 2 numbers, or Tensor
        The angles of shearing along ``(x, y)`` in degrees; one number is that along x.
    interpolation : {"nearest", "bilinear", "bicubic"}
        The interpolation between pixels.
    center : sequence of 2 numbers, or Tensor, optional
        The point ``(x, y)`` about which the image is sheared, scaled and rotated, as for :func:`rotate`.
    fill : number, sequence of numbers or Tensor
        The value of pixels outside of the image, as for :func:`pad`.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype cannot be interpolated, or a parameter is not made of numbers.
    ValueError
        If a parameter is not finite or does not fit, ``scale`` is not positive, or another argument is out of
        its range.

    Notes
    -----
    Each number can be a tensor of shape ``()`` or ``(...)`` (one per sample), and each pair a tensor of shape
    ``(..., 2)``; these can change between calls without a recompile, and can require a gradient. Reference:
    ``cv2.warpAffine`` by the matrix of :func:`torchvision.transforms.v2.functional.affine`; the pixels, also
    those at the border, are those of :func:`warp_affine`. Gradients go to ``image``, to each parameter and to
    ``fill``, also to second order. Under autocast half precision is warped in float32 and stays float32.

    Examples
    --------
    >>> import torch, imgops
    >>> images = torch.tensor([0.0, 4.0, 8.0]).expand(2, 1, 1, 3)
    >>> shifts = torch.tensor([[0.5, 0.0], [-1.0, 0.0]])
    >>> imgops.affine(images, translate=shifts).flatten(1)
    tensor([[0., 2., 6.],
            [4., 8., 0.]])
    """
    interpolation = _check_warped("affine", image, interpolation, fill)
    if isinstance(check.plain(shear), _NUMBERS) or (isinstance(shear, Tensor) and shear.ndim == 0):
        shear = (shear, 0.0)  # type: ignore[assignment]
    pairs = {"translate": translate, "shear": shear}
    numbers, height, width = _numbers("affine", image, {"angle": angle, "scale": scale}, pairs, center)
    angle, scale, x, y, shear_x, shear_y, *middle = numbers
    matrix = _matrices.affine(angle, (x, y), scale, (shear_x, shear_y), middle or None, height, width)
    return warp_affine(image, matrix, None, interpolation, fill=fill)


_NUMBERS = (int, float, torch.SymInt, torch.SymFloat)


def _check_warped(op: str, image: Tensor, interpolation: Any, fill: Any) -> str:
    """Check the arguments that ``warp_affine`` would name itself in its errors."""
    check.tensor(op, "image", image)
    name: str = check.interpolation(interpolation)
    fake.check_warped(op, image, fill_tensor(op, fill, image.dtype), name, "constant")
    return name


def _numbers(
    op: str,
    image: Tensor,
    singles: Mapping[str, float | Tensor],
    pairs: Mapping[str, Any],
    center: Any,
) -> tuple[list[Any], int, int]:
    """Return the numbers of a map, each a Python number or a tensor, and the height and width of the image.

    The tensors are on one device.
    """
    named = [(name, check.plain(value)) for name, value in singles.items()]
    for name, pair in (pairs if center is None else {**pairs, "center": center}).items():
        named += [(name, part) for part in _pair(op, name, pair)]
    numbers = []
    for name, value in named:
        rule = values.finite_positive if name == "scale" else values.finite
        parameter = values.per_sample(op, name, value, image, rule)
        numbers.append(value if isinstance(value, _NUMBERS) else parameter)
    devices = [v.device for v in numbers if isinstance(v, Tensor) and not v.is_cpu]
    if devices:
        numbers = [v.to(devices[0]) if isinstance(v, Tensor) else v for v in numbers]
    return numbers, image.shape[-2], image.shape[-1]


def _pair(op: str, name: str, pair: Any) -> Sequence[Any]:
    must = f"{name} must be 2 numbers (x, y)"
    if isinstance(pair, Tensor):
        if pair.ndim == 0 or check.violates(pair.shape[-1] == 2):
            check.fail_shape(op, must, pair)
        return pair.unbind(-1)
    if not check.is_sequence(pair):
        check.fail(TypeError, op, must, type(pair).__name__)
    if len(pair) != 2:
        check.fail(ValueError, op, must, len(pair))
    return [check.plain(part) for part in pair]


def flip(image: Tensor, direction: str = "horizontal") -> Tensor:
    """Flip an image.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, any dtype that ``torch.flip`` takes, any device.
    direction : {"horizontal", "vertical", "both"}
        "horizontal" swaps left and right, "vertical" swaps top and bottom.

    Returns
    -------
    Tensor
        The shape and memory format of ``image``, a copy.

    Raises
    ------
    ValueError
        If ``direction`` is unknown, or ``image`` has fewer than 3 dimensions.

    Notes
    -----
    Reference: ``cv2.flip``, bit-exact for every dtype. The function calls PyTorch's own ``flip``. The
    gradient is exact. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.flip(torch.tensor([[[1, 2, 3]]]))
    tensor([[[3, 2, 1]]])
    """
    check.tensor_or_batch("flip", image)
    if isinstance(image, Tensor):
        check.image("flip", "image", image)
    check.choice("flip", "direction", direction, _DIRECTIONS)
    if isinstance(image, Tensor):
        return _threads.run_without_waiting(torch.flip, image, _DIRECTIONS[direction])  # type: ignore[no-any-return]
    return image.flip(_DIRECTIONS[direction])


_DIRECTIONS = {"horizontal": (-1,), "vertical": (-2,), "both": (-2, -1)}


def rotate90(image: Tensor, turns: int = 1) -> Tensor:
    """Rotate an image by multiples of 90 degrees.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, any dtype that ``torch.flip`` takes, any device.
    turns : int
        The number of quarter turns, counterclockwise; negative values rotate clockwise.

    Returns
    -------
    Tensor
        ``(..., C, W, H)`` for an odd number, else ``(..., C, H, W)``; contiguous, a copy.

    Raises
    ------
    TypeError
        If ``turns`` is not an integer.
    ValueError
        If ``image`` has fewer than 3 dimensions.

    Notes
    -----
    Reference: ``Image.transpose(ROTATE_90)``, bit-exact for every dtype. The function calls PyTorch's own
    ``rot90``. The gradient is exact. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.rotate90(torch.tensor([[[1, 2, 3]]]))
    tensor([[[3],
             [2],
             [1]]])
    """
    check.tensor("rotate90", "image", image)
    check.image("rotate90", "image", image)
    turns = check.integer("rotate90", "turns must be an integer", turns)
    return _threads.run_without_waiting(_rotated, image, turns % 4)  # type: ignore[no-any-return]


def _rotated(image: Tensor, turns: int) -> Tensor:
    return torch.rot90(image, turns, (-2, -1)).clone(memory_format=torch.contiguous_format)


def _size(op: str, image: Tensor, size: Sequence[int] | None) -> tuple[int, ...]:
    if size is None:
        check.image(op, "image", image)
        return tuple(image.shape[-2:])
    return check.integers(op, "size", size, ("height", "width"))
