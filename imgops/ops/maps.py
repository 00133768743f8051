"""Maps for remap: the source coordinates of each pixel, computed by PyTorch's operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from imgops._common import check, torch_private, values
from imgops.decomposition.blur import NO_BLUR
from imgops.kernels.cpu import _splines
from imgops.ops.blur import gaussian_blur

__all__ = [
    "elastic_map",
    "flow_map",
    "grid_distortion_map",
    "optical_distortion_map",
    "polar_map",
    "thin_plate_spline_map",
]


def _map_size(op: str, size: Sequence[int]) -> tuple[int, ...]:
    """Check the size of a map, whose pixels remap counts, and return its height and width."""
    height, width = check.positive_size(op, size)
    check.pixels(op, "size", height, width)
    return height, width


def _check_leading(op: str, name: str, batch: Sequence[Any], other_name: str, other: Sequence[Any]) -> None:
    """Check that the leading dimensions of two parameters broadcast."""
    pairs = zip(reversed(batch), reversed(other), strict=False)
    if not all(one == 1 or two == 1 or one == two for one, two in pairs):
        must = f"{name} must have leading dimensions that fit those of {other_name} {check.written(other)}"
        check.fail(ValueError, op, must, check.numbers(*batch))


def _check_map_dtype(op: str, dtype: object) -> None:
    if not isinstance(dtype, torch.dtype) or dtype not in (torch.float32, torch.float64):
        check.fail(TypeError, op, "dtype must be torch.float32 or torch.float64", dtype)


def flow_map(flow: Tensor) -> Tensor:
    """Build the map that displaces each pixel by a flow.

    Parameters
    ----------
    flow : Tensor
        ``(..., 2, H, W)``, float32 or float64: the offset along x and y, in pixels, from each pixel of the
        result to the position in the source that it shows. Any device.

    Returns
    -------
    Tensor
        ``(..., 2, H, W)`` like ``flow``, for :func:`remap`.

    Raises
    ------
    TypeError
        If ``flow`` is neither float32 nor float64.
    ValueError
        If ``flow`` does not have 2 channels.

    Notes
    -----
    Reference: NumPy's ``mgrid`` plus the flow. The map is differentiable in the flow.

    Examples
    --------
    >>> import torch, imgops
    >>> one_to_the_right = torch.tensor([1.0, 0.0]).reshape(2, 1, 1).expand(2, 1, 3)
    >>> imgops.flow_map(one_to_the_right)[0]
    tensor([[1., 2., 3.]])
    """
    _check_displacement("flow_map", "flow", flow)
    return flow + _pixel_grid(flow.shape[-2], flow.shape[-1], flow)


def elastic_map(
    noise: Tensor, alpha: float | Tensor, sigma: float | Tensor, kernel_size: int | None = None
) -> Tensor:
    """Build the map of an elastic distortion: random displacements, smoothed.

    Parameters
    ----------
    noise : Tensor
        ``(..., 2, H, W)``, float32 or float64: for example ``torch.rand(...) * 2 - 1``. Any device.
    alpha : float or Tensor
        The factor of the smoothed noise, in pixels.
    sigma : float or Tensor
        The standard deviation of the Gaussian in pixels. Tensors of shape ``()`` or ``(...)`` (one per
        sample) can change between calls without a recompile, and can require a gradient.
    kernel_size : int, optional
        The side of the Gaussian's kernel, odd. By default the first odd number from ``8 * sigma + 1`` on, as
        in torchvision; the argument is required if ``sigma`` is a tensor.

    Returns
    -------
    Tensor
        ``(..., 2, H, W)`` like ``noise``, for :func:`remap`.

    Raises
    ------
    TypeError
        If ``noise`` is neither float32 nor float64, or a parameter is not made of numbers.
    ValueError
        If ``noise`` does not have 2 channels, ``kernel_size`` is missing or not odd, ``sigma`` is negative,
        or a parameter is not finite or does not fit.

    Notes
    -----
    Reference: ``cv2.GaussianBlur(noise, ...) * alpha`` plus the position of each pixel, with the border
    reflected without the border pixel, as in torchvision's ElasticTransform. (albumentations'
    ElasticTransform replicates the border, and smooths both displacements as one image.) The map is
    differentiable, through :func:`gaussian_blur`.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.elastic_map(torch.zeros(2, 1, 3), 30.0, 2.0)[0]
    tensor([[0., 1., 2.]])
    """
    _check_displacement("elastic_map", "noise", noise)
    strength = values.per_sample("elastic_map", "alpha", alpha, noise)
    deviation = values.per_sample("elastic_map", "sigma", sigma, noise, values.finite_not_negative)
    if kernel_size is not None:
        kernel_size = check.integer("elastic_map", "kernel_size must be an integer", kernel_size)
        if check.violates(kernel_size >= 1, kernel_size % 2 == 1):
            got = check.number(kernel_size)
            check.fail(ValueError, "elastic_map", "kernel_size must be odd and positive", got)
    else:
        if isinstance(sigma, Tensor) or deviation.ndim:
            check.fail(ValueError, "elastic_map", "kernel_size must be given for a tensor sigma", None)
        kernel_size = int(8 * (sigma[0] if check.is_sequence(sigma) else sigma) + 1) | 1  # type: ignore[index]
    check.side("elastic_map", "kernel_size", kernel_size)
    # A sigma of 0 disables the smoothing here; for gaussian_blur it would follow from the kernel's size.
    both = deviation.clamp(min=NO_BLUR)[..., None].expand(*deviation.shape, 2)
    smooth = gaussian_blur(noise, kernel_size, both)
    return smooth * strength.to(noise.device, noise.dtype)[..., None, None, None] + _pixel_grid(
        noise.shape[-2], noise.shape[-1], noise
    )


def polar_map(
    center: Sequence[float] | Tensor,
    max_radius: float | Tensor,
    size: Sequence[int],
    *,
    log: bool = False,
    inverse: bool = False,
    source_size: Sequence[int] | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """Build the map from an image to polar coordinates, or back.

    Parameters
    ----------
    center : sequence of 2 float, or Tensor
        ``(2,)``, or ``(..., 2)`` for one per sample: (x, y) in pixels. It can require a gradient.
    max_radius : float or Tensor
        The largest radius in pixels, ``()`` or ``(...)``; positive, and with ``log`` more than 1. It can
        require a gradient.
    size : sequence of 2 int
        ``(height, width)`` of the result in pixels. In polar coordinates angles go down from 0 to 2 pi, and
        radii go right from 0 to ``max_radius``.
    log : bool
        Whether radii are spaced by their logarithm.
    inverse : bool
        Whether to map from polar coordinates back to the image; the notes say how to sample with this map.
    source_size : sequence of 2 int, optional
        ``(height, width)`` of the polar image, for ``inverse``; by default ``size``.
    dtype : {torch.float32, torch.float64}
        The dtype of the map.
    device : device, optional
        The device of the map; by default that of ``center``.

    Returns
    -------
    Tensor
        ``(..., 2, height, width)``, for :func:`remap`.

    Raises
    ------
    TypeError
        If a size is not made of integers, a parameter is not made of numbers, or ``dtype`` is not supported.
    ValueError
        If ``center`` does not have 2 values, the leading dimensions do not broadcast, a parameter is not
        finite, or ``max_radius`` is too small.

    Notes
    -----
    Reference: the map that ``cv2.warpPolar`` uses, within 1e-4 pixels. The map is differentiable in
    ``center`` and ``max_radius``.

    A polar image repeats itself downward, because angles wrap around, but not to the right. For ``inverse``,
    pad it by a row above and below, and move the map down by that row; then positions beyond ``max_radius``
    show the border, as with OpenCV's ``WARP_FILL_OUTLIERS``::

        one_row_down = torch.tensor([0.0, 1.0]).reshape(2, 1, 1)
        imgops.remap(imgops.pad(polar, (0, 1), "wrap"), map + one_row_down)

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.polar_map((5.0, 5.0), 4.0, (4, 2))[:, 1]
    tensor([[5., 5.],
            [5., 7.]])
    """
    op = "polar_map"
    height, width = _map_size(op, size)
    log, inverse = check.switch(op, "log", log), check.switch(op, "inverse", inverse)
    _check_map_dtype(op, dtype)
    middle = values.parameter(op, "center", center).to(device).double()
    if middle.ndim < 1 or check.violates(middle.shape[-1] == 2):
        check.fail_shape(op, "center must have 2 values (x, y)", middle)
    radii = values.parameter(op, "max_radius", max_radius, values.above_1 if log else values.finite_positive)
    check.parameter(op, "max_radius", radii, middle)
    _check_leading(op, "max_radius", radii.shape, "center", middle.shape[:-1])
    most = radii.to(middle.device).double()[..., None, None]
    cx, cy = (v[..., None, None] for v in middle.unbind(-1))
    x, y = _pixel_grid(height, width, middle).unbind(-3)
    turn = 2 * math.pi
    if not inverse:
        radius = torch.exp(x * (most.log() / width)) - 1 if log else x * (most / width)
        angle = y * (turn / height)
        return _mesh(radius * angle.cos() + cx, radius * angle.sin() + cy, height, width, dtype)
    rows, columns = (height, width) if source_size is None else check.positive_size(op, source_size)
    x, y = x - cx, y - cy
    square = x * x + y * y
    there = square > 0
    radius = torch.where(there, torch.where(there, square, 1).sqrt(), 0)
    across = (radius + 1).log() * (columns / most.log()) if log else radius * (columns / most)
    angle = torch.atan2(torch.where(there, y, 0), torch.where(there, x, 1))
    angle = torch.where(angle < 0, angle + turn, angle)
    return _mesh(across, angle * (rows / turn), height, width, dtype)


def grid_distortion_map(
    steps_x: Sequence[float] | Tensor,
    steps_y: Sequence[float] | Tensor,
    size: Sequence[int],
    *,
    normalize: bool = True,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """Build the map of a grid whose columns and rows get other widths and heights.

    Parameters
    ----------
    steps_x, steps_y : sequence of float, or Tensor
        ``(..., n + 1)``: for each of n columns (rows), and for the remainder after the last one, the extent
        of the part of the image that it shows, relative to its own extent. A tensor can require a gradient.
    size : sequence of 2 int
        ``(height, width)`` in pixels.
    normalize : bool
        Whether to scale the steps so that the map ends where the image does.
    dtype : {torch.float32, torch.float64}
        The dtype of the map.
    device : device, optional
        The device of the map; by default that of the steps.

    Returns
    -------
    Tensor
        ``(..., 2, height, width)``, for :func:`remap`.

    Raises
    ------
    TypeError
        If ``size`` is not made of integers, the steps are not made of numbers, or ``dtype`` is not supported.
    ValueError
        If there are fewer than 2 steps, or more columns (rows) than pixels; or if steps are not finite, do
        not broadcast, or add up to 0 and are to be normalized.

    Notes
    -----
    Reference: albumentations' GridDistortion (``generate_grid``, and ``normalize_grid_distortion_steps``),
    within 1e-3 pixels: albumentations accumulates in float32, imgops in float64. The positions in a column go
    from one of its edges to the other, both included, so steps of 1 are not the identity. The map is
    differentiable in the steps.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.grid_distortion_map([0.5, 1.5, 1.0], [1.0, 1.0], (1, 6), normalize=False)[0]
    tensor([[0.0000, 0.7500, 1.5000, 1.5000, 3.7500, 6.0000]])
    """
    op = "grid_distortion_map"
    height, width = _map_size(op, size)
    normalize = check.switch(op, "normalize", normalize)
    _check_map_dtype(op, dtype)
    across = values.parameter(op, "steps_x", steps_x)
    down = values.parameter(op, "steps_y", steps_y)
    if device is None:
        check.same_device(op, "steps_y", down, "steps_x", across)
    axes = []
    for name, steps, extent in (("steps_x", across, width), ("steps_y", down, height)):
        count = steps.shape[-1] - 1 if steps.ndim else 0
        if check.violates(count >= 1, count <= extent):
            must = f"{name} must have from 2 to {check.number(extent) + 1} values"
            check.fail(ValueError, op, must, check.number(count + 1))
        axes.append(_stretch_axis(steps.to(device).double(), extent, count, normalize))
        if normalize and torch_private.is_readable(axes[-1]) and not axes[-1].isfinite().all():
            check.fail(ValueError, op, f"{name} must not add up to 0 with normalize=True", steps.tolist())
    _check_leading(op, "steps_y", down.shape[:-1], "steps_x", across.shape[:-1])
    return _mesh(axes[0][..., None, :], axes[1][..., :, None], height, width, dtype)


def _stretch_axis(steps: Tensor, extent: int, count: int, normalize: bool) -> Tensor:
    """Return the source coordinates along an axis, evenly spaced in each cell, including both ends."""
    known = type(extent) is int and type(steps) is Tensor and torch_private.is_eager()
    which, share, weights = (_kept_cells if known else _cells)(extent, count, str(steps.device))
    if normalize:
        steps = steps * weights
        steps = steps * (extent / (extent // count) / steps.sum(-1, keepdim=True))
    moved = steps * (extent // count)
    # Pixels beyond the cell after the last one have no step: albumentations leaves them at 0.
    ends = torch.nn.functional.pad(moved, (0, 1))
    starts = torch.nn.functional.pad(moved.cumsum(-1) - moved, (0, 1))
    return starts.index_select(-1, which) + share * ends.index_select(-1, which)


def _cells(extent: int, count: int, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return the cell of each pixel of an axis, its relative position there, and each cell's actual share."""
    cell = extent // count
    rest = extent - count * cell
    at = torch.arange(extent, device=device, dtype=torch.int64)
    which = torch.div(at, cell, rounding_mode="floor").clamp(max=count + 1)
    pixels = torch.where(which == count, min(rest, cell), cell)
    share = (at - which * cell) / (pixels - 1).clamp(min=1).double()
    last = min(extent, (count + 1) * cell) - count * cell
    weights = torch.ones(count + 1, dtype=torch.float64, device=device)
    weights = torch.cat([weights[:-1], weights[-1:] * (last / cell)])
    return which, share, weights


@lru_cache(maxsize=32)
def _kept_cells(extent: int, count: int, device: str) -> tuple[Tensor, Tensor, Tensor]:
    with torch.inference_mode(False):  # the tensors are cached, and a later call may need gradients
        return _cells(extent, count, device)


def optical_distortion_map(
    coefficients: float | Sequence[float] | Tensor,
    size: Sequence[int],
    method: str = "camera",
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """Build the map of a lens distortion.

    Parameters
    ----------
    coefficients : float, sequence of float, or Tensor
        "camera": ``(..., 5)`` with k1, k2, p1, p2 and k3 of the model of Brown and Conrady; a single number
        is both k1 and k2. "fisheye": one number k, ``()`` or ``(..., 1)``. A tensor can require a gradient.
    size : sequence of 2 int
        ``(height, width)`` in pixels.
    method : {"camera", "fisheye"}
        "camera": the focal lengths are the width and the height. "fisheye": ``r * (1 + k * (r / r_max)**2)``,
        where r_max is half the diagonal. The center of both is the middle of the image.
    dtype : {torch.float32, torch.float64}
        The dtype of the map.
    device : device, optional
        The device of the map; by default that of the coefficients.

    Returns
    -------
    Tensor
        ``(..., 2, height, width)``, for :func:`remap`.

    Raises
    ------
    TypeError
        If ``size`` is not made of integers, the coefficients are not made of numbers, or ``dtype`` is not
        supported.
    ValueError
        If ``method`` is unknown, or ``coefficients`` has the wrong number of values or is not finite.

    Notes
    -----
    Reference: ``cv2.initUndistortRectifyMap`` ("camera"), as in ``cv2.undistort``, with the principal point
    at ``((width - 1) / 2, (height - 1) / 2)``, and the formula of albumentations' OpticalDistortion
    ("fisheye") around the same point, within 1e-4 pixels. Coefficients of 0 give the identity.
    (albumentations' centers are half a pixel off, so its "camera" moves the image even at 0.) The map is
    differentiable in the coefficients.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.optical_distortion_map(0.5, (1, 4), "fisheye")[0]
    tensor([[-0.3971,  0.9853,  2.0147,  3.3971]])
    """
    op = "optical_distortion_map"
    height, width = _map_size(op, size)
    check.choice(op, "method", method, ("camera", "fisheye"))
    _check_map_dtype(op, dtype)
    bends = values.parameter(op, "coefficients", coefficients).to(device).double()
    bends = bends[..., None] if bends.ndim == 0 else bends
    count = bends.shape[-1]
    if method == "fisheye" and check.violates(count == 1):
        check.fail(ValueError, op, "coefficients must have 1 value for 'fisheye'", check.number(count))
    if check.violates(count == 1) and check.violates(count == 5):
        check.fail(ValueError, op, "coefficients must have 1 or 5 values for 'camera'", check.number(count))
    # Keep rows and columns separate for as long as possible, because a map has many pixels.
    middle_x, middle_y = (width - 1) / 2, (height - 1) / 2
    across = torch.arange(width, dtype=torch.float64, device=bends.device) - middle_x
    down = torch.arange(height, dtype=torch.float64, device=bends.device)[:, None] - middle_y
    if method == "fisheye":
        radial = 1 + bends[..., None] * (across**2 + down**2) / ((width * width + height * height) / 4)
        return _mesh(across * radial + middle_x, down * radial + middle_y, height, width, dtype)
    k1, k2, p1, p2, k3 = (v[..., None, None] for v in bends.expand(*bends.shape[:-1], 5).unbind(-1))
    x, y = across / width, down / height
    r = x * x + y * y
    if count == 1:
        radial = (k1 * r + k1) * r + 1
        return _mesh(across * radial + middle_x, down * radial + middle_y, height, width, dtype)
    radial = ((k3 * r + k2) * r + k1) * r + 1
    bent_x = across * radial + (2 * p1 * x * y + p2 * (r + 2 * x * x)) * width
    bent_y = down * radial + (p1 * (r + 2 * y * y) + 2 * p2 * x * y) * height
    return _mesh(bent_x + middle_x, bent_y + middle_y, height, width, dtype)


def thin_plate_spline_map(
    points: Tensor, targets: Tensor, size: Sequence[int], *, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Build the map of a thin plate that moves points to targets and bends as little as possible.

    Parameters
    ----------
    points : Tensor
        ``(..., n, 2)``, float32 or float64: positions (x, y) in the image, in pixels, n of at least 3. Any
        device.
    targets : Tensor
        ``(..., n, 2)``: the positions of these points in the result, different from each other and not in
        one line. The leading dimensions broadcast.
    size : sequence of 2 int
        ``(height, width)`` of the result in pixels.
    dtype : {torch.float32, torch.float64}
        The dtype of the map.

    Returns
    -------
    Tensor
        ``(..., 2, height, width)``, for :func:`remap`.

    Raises
    ------
    TypeError
        If the points are not floating point, ``size`` is not made of integers, or ``dtype`` is not supported.
    ValueError
        If a shape is wrong or does not broadcast, there are fewer than 3 points, a point is not finite, or
        targets coincide or lie in one line.

    Notes
    -----
    Reference: :class:`scipy.interpolate.RBFInterpolator` with ``kernel="thin_plate_spline"``, within 1e-4
    pixels: an affine transformation and a sum of ``r**2 * log(r)``, solved in float64. The map goes through
    every target exactly. (albumentations' ThinPlateSpline solves for one kernel and applies another, so its
    map does not.) The map is differentiable in ``points`` and ``targets``, also to second order.

    Examples
    --------
    >>> import torch, imgops
    >>> corners = torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 1.0]])
    >>> imgops.thin_plate_spline_map(corners, corners + torch.tensor([1.0, 0.0]), (1, 3))[0].round()
    tensor([[-1.,  0.,  1.]])
    """
    op = "thin_plate_spline_map"
    height, width = _map_size(op, size)
    _check_map_dtype(op, dtype)
    for name, value in (("points", points), ("targets", targets)):
        check.tensor(op, name, value)
        check.strided(op, name, value)
        check.floating(op, name, value)
        if value.ndim < 2 or check.violates(value.shape[-1] == 2, value.shape[-2] >= 3):
            check.fail_shape(op, f"{name} must be (..., n, 2) with n of at least 3", value)
        values.parameter(op, name, value)
    check.same_device(op, "targets", targets, "points", points)
    if check.violates(targets.shape[-2] == points.shape[-2]):
        must = f"targets must be as many as points ({check.number(points.shape[-2])})"
        check.fail(ValueError, op, must, check.number(targets.shape[-2]))
    _check_leading(op, "targets", targets.shape[:-2], "points", points.shape[:-2])
    if torch_private.is_readable(targets):
        # The system is singular, or nearly so, unless the targets determine a plate.
        exact = targets.detach().double()
        centered = exact - exact.mean(-2, keepdim=True)
        longest, shortest = torch.linalg.svdvals(centered).unbind(-1)
        # The system has squared distances: half of float64's digits count, or those of the targets' dtype.
        least = longest * max(4 * torch.finfo(targets.dtype).eps, torch.finfo(torch.float64).eps ** 0.5)
        apart = (exact[..., :, None, :] - exact[..., None, :, :]).square().sum(-1)
        apart.diagonal(0, -2, -1).fill_(torch.inf)
        if (apart.amin((-2, -1)) <= least * least).any():
            check.fail(ValueError, op, "targets must be different points", "some that coincide")
        if (shortest <= least).any():
            check.fail(ValueError, op, "targets must not lie in one line", "some that do")
    source, target = torch.broadcast_tensors(points.double(), targets.double())
    count = target.shape[-2]
    # Coordinates in units of the image keep the entries of the system at similar magnitudes.
    scale = float(max(height, width))
    source, target = source / scale, target / scale
    ones = torch.ones_like(target[..., :1])
    affine = torch.cat([ones, target], -1)
    above = torch.cat([_bending(target, target), affine], -1)
    nothing = target.new_zeros(*target.shape[:-2], 3, 3)
    system = torch.cat([above, torch.cat([affine.mT, nothing], -1)], -2)
    wanted = torch.cat([source, source.new_zeros(*source.shape[:-2], 3, 2)], -2)
    solved = torch.linalg.solve(system, wanted)
    if torch_private.can_bypass_dispatcher() and torch_private.is_plain(solved):  # no gradient is needed
        return _splines.row_by_row(solved * scale, target, height, width, scale, dtype)
    pixels = _pixel_grid(height, width, target).flatten(-2).mT / scale
    bent = _bending(pixels.expand(*target.shape[:-2], *pixels.shape), target) @ solved[..., :count, :]
    flat = solved[..., count : count + 1, :] + pixels @ solved[..., count + 1 :, :]
    return ((bent + flat) * scale).mT.unflatten(-1, (height, width)).to(dtype)


def _bending(points: Tensor, centers: Tensor) -> Tensor:
    """Return ``r**2 * log(r)`` for each pair; where the points are the same, it and its derivatives are 0."""
    apart = points[..., :, None, :] - centers[..., None, :, :]
    square = (apart * apart).sum(-1)
    there = square > 0
    return torch.where(there, 0.5 * square * torch.where(there, square, 1).log(), 0)


def _check_displacement(op: str, name: str, value: Tensor) -> None:
    check.tensor(op, name, value)
    check.image(op, name, value)
    check.dtype(op, name, value, torch.float32, torch.float64)
    if check.violates(value.shape[-3] == 2):
        check.fail(ValueError, op, f"{name} must have 2 channels (x, y)", check.number(value.shape[-3]))


def _pixel_grid(height: int, width: int, like: Tensor) -> Tensor:
    """Return the coordinates of each pixel: ``(2, height, width)``."""
    y, x = (torch.arange(n, dtype=like.dtype, device=like.device) for n in (height, width))
    return torch.stack([x.expand(height, width), y[:, None].expand(height, width)])


def _mesh(x: Tensor, y: Tensor, height: int, width: int, dtype: torch.dtype) -> Tensor:
    x, y = torch.broadcast_tensors(x.to(dtype), y.to(dtype))
    return torch.stack([x, y], -3).expand(*x.shape[:-2], 2, height, width)
