"""Cameras, flows, disparities and normals, and the maps of positions by which they follow an image.

Positions are continuous, as those of boxes: the first pixel spans 0 to 1. A map is a float64 matrix on the
CPU, ``(..., 2, 3)`` if it is affine, else ``(..., 3, 3)``; it takes positions (x, y, 1) in the input to those
in the output.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors

from imgops._common import check, layout
from imgops._common.torch_private import raise_error
from imgops._operator import subclass
from imgops.transforms._core import torchvision_private

_PUBLIC = "imgops.transforms.annotations"

#: How a transform maps the positions of an image, from the least general: rows stay horizontal, by an affine
#: map, by a projective map, or by no single map. A class of annotations follows up to one of these.
KEEPS_ROWS, AFFINE, PROJECTIVE, OTHER = range(4)


def _floats(name: str, data: Any, dtype: Any, device: Any, requires_grad: bool | None) -> Tensor:
    tensor = torch.as_tensor(subclass.plain(layout.readable(data)), dtype=dtype, device=device)
    if not tensor.dtype.is_floating_point:
        raise TypeError(f"{name}: data must be floating point, got {tensor.dtype}")
    return tensor if requires_grad is None else tensor.requires_grad_(requires_grad)


def _checked_canvas(name: str, canvas_size: Any) -> tuple[Any, Any]:
    """Check a canvas size, whose numbers are symbols in some graphs, and return it."""
    values = tuple(canvas_size) if isinstance(canvas_size, (list, tuple)) else ()
    if len(values) != 2 or not all(isinstance(n, (int, torch.SymInt)) for n in values):
        must = f"{name}: canvas_size must have 2 integers, the height and width"
        raise_error(ValueError, f"{must}, got {check.shown(canvas_size)}")
    return values


class Camera(torchvision_private.CanvasTensor):
    """The intrinsic matrices of cameras, ``(..., 3, 3)``, which follow their images.

    A camera projects a point ``X`` of the scene, (X, Y, Z), to the position (u / w, v / w) in the image,
    where ``(u, v, w) = K @ X``. A transform that maps positions by a matrix ``A`` replaces ``K`` by
    ``A @ K``: a crop shifts the principal point, a resize also scales the focal lengths, and a rotation and a
    perspective multiply by their matrices. ``A`` is scaled so that its last number is 1.

    Parameters
    ----------
    data : array_like
        The matrices, floating point.
    canvas_size : (int, int)
        The height and width of the image.
    dtype : torch.dtype, optional
        The dtype; by default that of ``data``.
    device : torch.device, optional
        The device; by default that of ``data``.
    requires_grad : bool, optional
        Whether autograd records operations on the tensor; by default as for ``data``.

    Raises
    ------
    TypeError
        If ``data`` is not floating point.
    ValueError
        If the shape of ``data`` does not end in (3, 3), or ``canvas_size`` is not two integers.
    NotImplementedError
        In a transform that is not one projective map of the image, such as a distortion, a policy or a
        mosaic.

    Notes
    -----
    Positions are continuous, as those of boxes and as in COLMAP: the first pixel spans 0 to 1, its center is
    at 0.5, and the center of an image is at half its width and height. OpenCV puts the center of the first
    pixel at 0. Add 0.5 to the principal point of its calibrations, ``K[..., :2, 2] += 0.5``, and subtract it
    where OpenCV takes the result.

    The scene does not change. A mirror image is therefore that of a camera with a negative focal length,
    whose ``K`` has a negative determinant, and a rotation gives ``K`` a number below its diagonal.

    The product is computed in float64 and rounded once. It has gradients with respect to ``K`` and to
    parameters with a gradient. In a batch with ``per_sample=True``, cameras are ``(N, 3, 3)``,
    ``(N, ..., 3, 3)`` or a list of N.

    Examples
    --------
    >>> from imgops import transforms as v2
    >>> from imgops.transforms.annotations import Camera
    >>> camera = Camera([[500.0, 0, 320], [0, 500, 240], [0, 0, 1]], canvas_size=(480, 640))
    >>> v2.Resize((240, 320))(camera).tolist()
    [[250.0, 0.0, 160.0], [0.0, 250.0, 120.0], [0.0, 0.0, 1.0]]
    >>> v2.CenterCrop(200)(camera).tolist()
    [[500.0, 0.0, 100.0], [0.0, 500.0, 100.0], [0.0, 0.0, 1.0]]
    """

    __module__ = _PUBLIC

    def __new__(
        cls,
        data: Any,
        *,
        canvas_size: tuple[int, int],
        dtype: torch.dtype | None = None,
        device: torch.device | str | int | None = None,
        requires_grad: bool | None = None,
    ) -> Camera:
        tensor = _floats(cls.__name__, data, dtype, device, requires_grad)
        if tensor.shape[-2:] != (3, 3):
            must = f"{cls.__name__}: data must have the shape (..., 3, 3)"
            raise ValueError(f"{must}, got {check.written(tensor.shape)}")
        camera: Any = tensor.as_subclass(cls)
        height, width = _checked_canvas(cls.__name__, canvas_size)
        camera.canvas_size = (height, width)
        return camera  # type: ignore[no-any-return]

    def __repr__(self, **keywords: Any) -> str:
        return f"{super().__repr__(**keywords)[:-1]}, canvas_size={check.written(self.canvas_size)})"


class _Field(tv_tensors.TVTensor):
    """Values of each pixel of an image, with a number of channels."""

    _count = 0

    def __new__(
        cls,
        data: Any,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | int | None = None,
        requires_grad: bool | None = None,
    ) -> Any:
        tensor = _floats(cls.__name__, data, dtype, device, requires_grad)
        if tensor.ndim < 3 or tensor.shape[-3] != cls._count:
            must = f"{cls.__name__}: data must have the shape (..., {cls._count}, H, W)"
            raise ValueError(f"{must}, got {check.written(tensor.shape)}")
        return tensor.as_subclass(cls)


class Flow(_Field):
    """The optical flow of an image, ``(..., 2, H, W)``, which follows it.

    The image shows at ``p`` what a second image shows at ``p + flow(p)``. Channel 0 is the displacement along
    x, channel 1 that along y, in pixels. If a transform with the same parameters maps both images, from
    positions ``p`` to ``A(p)``, the new flow at the position ``A(p)`` is ``A(p + flow(p)) - A(p)``: a crop
    keeps the vectors, a resize scales them, a flip negates x or y, and a rotation turns them.

    Parameters
    ----------
    data : array_like
        The displacements, floating point.
    dtype : torch.dtype, optional
        The dtype; by default that of ``data``.
    device : torch.device, optional
        The device; by default that of ``data``.
    requires_grad : bool, optional
        Whether autograd records operations on the tensor; by default as for ``data``.

    Raises
    ------
    TypeError
        If ``data`` is not floating point.
    ValueError
        If the shape of ``data`` does not end in (2, H, W).
    NotImplementedError
        In a transform that is not one projective map of the image, such as a distortion, a policy or a
        mosaic.

    Notes
    -----
    The vectors move as the pixels of an image do, with the interpolation of the transform. Where the output
    shows no part of the input, the flow is 0, whatever the fill and the padding mode of the image are; a
    ``fill`` with one or two values for the class ``Flow`` replaces the 0, and later transforms change these
    vectors as they do all others; NaN stays NaN. Transform a mask of ones together with the flow to know
    these pixels. Transforms of color, noise and dropout do not change a flow.

    In a batch with ``per_sample=True``, flows are ``(N, 2, H, W)``, ``(N, ..., 2, H, W)`` or a list of N.

    Examples
    --------
    >>> import torch
    >>> from imgops import transforms as v2
    >>> from imgops.transforms.annotations import Flow
    >>> flow = Flow(torch.ones(2, 4, 8) * torch.tensor([3.0, 1.0])[:, None, None])
    >>> v2.Resize((4, 4))(flow)[:, 0, 0].tolist()
    [1.5, 1.0]
    """

    __module__ = _PUBLIC
    _count = 2


class Disparity(_Field):
    """The disparity of the left image of a rectified stereo pair, ``(..., 1, H, W)``, which follows it.

    The image shows at (x, y) what the other image shows at (x - d, y). If a transform with the same
    parameters maps both images, a crop keeps ``d``, and a resize scales it by the factor of the width. A
    horizontal flip negates ``d``, because a mirrored left image is that of a right camera: exchange the two
    images if a network expects numbers above 0.

    Parameters
    ----------
    data : array_like
        The disparities in pixels, floating point.
    dtype : torch.dtype, optional
        The dtype; by default that of ``data``.
    device : torch.device, optional
        The device; by default that of ``data``.
    requires_grad : bool, optional
        Whether autograd records operations on the tensor; by default as for ``data``.

    Raises
    ------
    TypeError
        If ``data`` is not floating point.
    ValueError
        If the shape of ``data`` does not end in (1, H, W).
    NotImplementedError
        In a transform that can move a pixel to another row than its neighbor: a rotation, a perspective, a
        shear along y, a distortion, a policy or a mosaic. Use a :class:`Flow` for these.

    Notes
    -----
    The numbers move as the pixels of an image do, with the interpolation of the transform: use NEAREST for
    measurements with gaps. Where the output shows no part of the input, the disparity is 0, unless ``fill``
    has a value for the class ``Disparity``. Transforms of color, noise and dropout do not change it.

    In a batch with ``per_sample=True``, disparities are ``(N, 1, H, W)``, ``(N, ..., 1, H, W)`` or a list of
    N.

    Examples
    --------
    >>> import torch
    >>> from imgops import transforms as v2
    >>> from imgops.transforms.annotations import Disparity
    >>> disparity = Disparity(torch.full((1, 4, 8), 6.0))
    >>> v2.Resize((4, 4))(disparity)[0, 0].tolist()
    [3.0, 3.0, 3.0, 3.0]
    """

    __module__ = _PUBLIC
    _count = 1


class Normals(_Field):
    """The normals of the surfaces that an image shows, ``(..., 3, H, W)``, which follow the image.

    The axes are those of OpenCV's cameras: x to the right, y down, z into the scene. A normal has length 1,
    or 0 where it is not known. Crops, resizes and pads keep the normals, a horizontal flip negates x, and a
    rotation turns x and y, as if the camera had turned. An affine map whose upper left part is ``M = U Q``,
    with an upper triangular ``U`` that has positive numbers on its diagonal, and an orthogonal ``Q``,
    multiplies (x, y) by ``Q``: ``U`` is a change of the camera's intrinsic matrix.

    Parameters
    ----------
    data : array_like
        The normals, floating point.
    dtype : torch.dtype, optional
        The dtype; by default that of ``data``.
    device : torch.device, optional
        The device; by default that of ``data``.
    requires_grad : bool, optional
        Whether autograd records operations on the tensor; by default as for ``data``.

    Raises
    ------
    TypeError
        If ``data`` is not floating point.
    ValueError
        If the shape of ``data`` does not end in (3, H, W).
    NotImplementedError
        In a perspective, which turns the normals of each camera differently, and in a distortion, a policy
        or a mosaic.

    Notes
    -----
    The camera is assumed to have square pixels. For OpenGL's axes, negate y and z before and after. (A
    :class:`Camera` keeps the axes of the scene instead, and its matrix contains flips and rotations: do not
    combine it with normals that have turned.)

    The vectors move as the pixels of an image do, with the interpolation of the transform. Interpolated
    vectors are scaled to length 1; those of nearest pixels keep their bits if no axis turns. Where the output
    shows no part of the input, the normals are 0, unless ``fill`` has a value for the class ``Normals``.
    Transforms of color, noise and dropout do not change them.

    In a batch with ``per_sample=True``, normals are ``(N, 3, H, W)``, ``(N, ..., 3, H, W)`` or a list of N.

    Examples
    --------
    >>> import torch
    >>> from imgops import transforms as v2
    >>> from imgops.transforms.annotations import Normals
    >>> normals = Normals(torch.tensor([0.6, 0.0, -0.8])[:, None, None].expand(3, 4, 8))
    >>> v2.RandomHorizontalFlip(p=1)(normals)[:, 0, 0].tolist()
    [-0.6000000238418579, 0.0, -0.800000011920929]
    """

    __module__ = _PUBLIC
    _count = 3


#: The classes of the values of pixels that a map of positions changes.
_FIELDS = (Flow, Disparity, Normals)
#: The classes of what a map of positions changes.
PROJECTED = (Camera, *_FIELDS)
torchvision_private.FILLED_WITH_0.update(_FIELDS)

#: The most general maps that classes follow, and why another transform refuses them.
_FOLLOWED = (
    (PROJECTIVE, (Camera, Flow), "a Camera or a Flow", "is not one projective map of the image"),
    (AFFINE, (Normals,), "Normals", "is not one affine map of the image"),
    (KEEPS_ROWS, (Disparity,), "a Disparity", "does not keep the rows of the image"),
)


def kind_of(inpt: Any) -> type:
    """Return the class of a field, of which ``inpt`` may be a subclass."""
    return next(kind for kind in _FIELDS if isinstance(inpt, kind))


class Unfilled(_Field):
    """The class for which the steps of a transform always fill with 0: users give no fill for it.

    It has no instances. The fill of a field is a value of the result, so it comes after the values changed.
    """


torchvision_private.FILLED_WITH_0.add(Unfilled)


def canvas_of(inpt: Any) -> tuple[int, int]:
    """Return the height and width of the image of a camera or a field, or of boxes or keypoints."""
    if isinstance(inpt, (Camera, tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)):
        return inpt.canvas_size  # type: ignore[no-any-return]
    height, width = subclass.plain(inpt).shape[-2:]
    return height, width


def as_keypoints(inpt: Any) -> Any:
    """Return keypoints from which torchvision's code reads the size of the image of a camera or a field."""
    none = torch.empty(0, 2, dtype=torch.float32, device="cpu")
    return tv_tensors.KeyPoints(none, canvas_size=canvas_of(inpt))


def require(transform: Any, inputs: list[Any], maps: int) -> None:
    """Raise for a camera or a field that does not follow a transform that maps positions in this way."""
    for most, kinds, names, reason in _FOLLOWED:
        if most >= maps:
            continue
        for inpt in inputs:
            if isinstance(inpt, kinds):
                must = f"{type(transform).__name__}: inputs must not be {names}, because the transform"
                raise_error(NotImplementedError, f"{must} {reason}, got {type(inpt).__name__}")


# -- maps ------------------------------------------------------------------------------------------


def affine(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Tensor:
    """Return the map of two rows, whose entries are numbers or tensors of one shape."""
    values = (a, b, c, d, e, f)
    if not any(isinstance(v, Tensor) for v in values):
        return check.numbers_tensor(values).unflatten(-1, (2, 3))
    doubles = [v.double() if isinstance(v, Tensor) else check.numbers_tensor(v) for v in values]
    return torch.stack(torch.broadcast_tensors(*doubles), -1).unflatten(-1, (2, 3))


def shift(x: Any, y: Any) -> Tensor:
    return affine(1.0, 0.0, x, 0.0, 1.0, y)


def scaling(before: Any, after: Any) -> Tensor:
    """Return the map of a resize between two sizes, each a height and width."""
    ratios = [_quotient(n, m) for n, m in zip(after, before, strict=True)]
    return affine(ratios[1], 0.0, 0.0, 0.0, ratios[0], 0.0)


def _quotient(n: Any, m: Any) -> Any:
    return n / (m or 1) if type(m) is int else n / m  # an image may have no pixels


def references() -> Tensor:
    """Return three points; where an affine map takes them says which map it is (``of_references``)."""
    return torch.tensor([[0.0, 0], [1, 0], [0, 1]], dtype=torch.float64, device="cpu")


def of_references(points: Tensor) -> Tensor:
    """Return the affine map that takes the ``references`` to points ``(3, 2)``."""
    return torch.stack([points[1] - points[0], points[2] - points[0], points[0]], -1)


def from_centers(matrix: Tensor) -> Tensor:
    """Return the map of a matrix that takes the centers of pixels to be whole numbers, as OpenCV does."""
    half = torch.tensor([[1.0, 0, 0.5], [0, 1, 0.5], [0, 0, 1]], dtype=torch.float64, device="cpu")
    back = torch.tensor([[1.0, 0, -0.5], [0, 1, -0.5], [0, 0, 1]], dtype=torch.float64, device="cpu")
    rows = matrix.shape[-2]
    return (half @ square(matrix.to("cpu", torch.float64)) @ back)[..., :rows, :]


def square(matrix: Tensor) -> Tensor:
    """Return a map as ``(..., 3, 3)``."""
    if matrix.shape[-2] == 3:
        return matrix
    last = torch.eye(3, dtype=matrix.dtype, device=matrix.device)[2:]
    return torch.cat([matrix, last.expand(*matrix.shape[:-2], 1, 3)], -2)


def then(first: Tensor, second: Tensor) -> Tensor:
    """Return the map that applies one after the other."""
    rows = max(first.shape[-2], second.shape[-2])
    return (square(second) @ square(first))[..., :rows, :]


# -- the changes by a map ----------------------------------------------------------------------------


def _spread(matrix: Tensor, values: Tensor, own: int) -> Tensor:
    """Give maps of samples the dimensions that values have between their samples and their last ``own``."""
    if matrix.ndim == 2:
        return matrix
    between = values.ndim - own - (matrix.ndim - 2)
    return matrix.reshape(*matrix.shape[:-2], *(1,) * between, *matrix.shape[-2:]) if between > 0 else matrix


def move_camera(camera: Tensor, matrix: Tensor, is_back: bool = False) -> Tensor:
    """Multiply intrinsic matrices by a map, scaled so that its last number is 1, or by its inverse."""
    whole = square(_spread(matrix, camera, 2))
    if matrix.shape[-2] == 3:
        whole = whole / whole[..., 2:, 2:]
    if is_back:
        whole = torch.linalg.inv(whole)
    return (whole.to(camera.device, non_blocking=True) @ camera.double()).to(camera.dtype)


def move_field(field: Any, values: Tensor, matrix: Tensor, is_interpolated: bool) -> Tensor:
    """Map the values of a flow, a disparity or normals whose pixels have moved."""
    real = torch.float64 if values.dtype == torch.float64 else torch.float32
    matrix = _spread(matrix, values, 3)
    if isinstance(field, Flow):
        out = _move_flow(values, matrix, real)
    elif isinstance(field, Disparity):
        out = values * _entries(matrix, values, real)[0][0].unsqueeze(-3)
    else:
        out = _turn_normals(values.to(real), matrix, real)
        out = _with_length_1(out) if is_interpolated else out
    return out.to(values.dtype)


def _turn_normals(normals: Tensor, matrix: Tensor, real: torch.dtype) -> Tensor:
    """Multiply x and y by the orthogonal factor ``Q`` of the left part of a map, ``U Q``."""
    (a, b, _), (c, d, _) = _entries(matrix, normals, real)
    length = torch.hypot(c, d)
    sine, cosine = c / length, d / length  # the last row of Q, because that of U is (0, length)
    side = torch.copysign(torch.ones_like(length), a * d - b * c)
    x, y, z = normals.unbind(-3)
    return torch.stack([side * (cosine * x - sine * y), sine * x + cosine * y, z], -3)


def _with_length_1(vectors: Tensor) -> Tensor:
    """Scale vectors to length 1, and leave 0 as it is, also in the gradient."""
    square = vectors.square().sum(-3, keepdim=True)
    is_known = square > 0
    return torch.where(is_known, vectors * torch.where(is_known, square, 1).rsqrt(), vectors)


def _move_flow(flow: Tensor, matrix: Tensor, real: torch.dtype) -> Tensor:
    x, y = flow.to(real).unbind(-3)
    if matrix.shape[-2] == 2:
        (a, b, _), (c, d, _) = _entries(matrix, flow, real)
        return torch.stack([a * x + b * y, c * x + d * y], -3)
    # With A = (L t; g 1), A(p + f) - A(p) = (L f - A(p) (g f)) / (g p + 1 + g f). The inverse of A gives the
    # denominator at A(p).
    (a, b, _), (c, d, _), (g, h, _) = _entries(matrix, flow, real)
    *_, (i, j, k) = _entries(torch.linalg.inv(matrix), flow, real)
    columns = torch.arange(flow.shape[-1], dtype=real, device=flow.device) + 0.5
    rows = torch.arange(flow.shape[-2], dtype=real, device=flow.device)[:, None] + 0.5
    slope = g * x + h * y
    depth = 1 / (i * columns + j * rows + k) + slope
    new_x = (a * x + b * y - columns * slope) / depth
    new_y = (c * x + d * y - rows * slope) / depth
    return torch.stack([new_x, new_y], -3)


def fill_of_field(transform: Any, field: Any, fill: Any) -> list[float]:
    """Return the fill of a field as one number, or one for each channel."""
    values = 0 if fill is None else fill.tolist() if isinstance(fill, Tensor) else fill
    color = [float(v) for v in values] if isinstance(values, (list, tuple)) else [float(values)]
    count = kind_of(field)._count
    if len(color) not in (1, count):
        must = f"{type(transform).__name__}: fill of {type(field).__name__} must have 1 value or {count}"
        raise_error(ValueError, f"{must}, got {len(color)}")
    return color


def fill_hidden(field: Tensor, shown: Tensor, color: list[float]) -> Tensor:
    """Add a fill to a field by the share of each pixel that does not show the input."""
    hidden = 1 - shown.to(torch.float64 if field.dtype == torch.float64 else torch.float32)
    # A tensor of the list would be copied to the device, which waits for it.
    fill = torch.stack([torch.full((1, 1), c, dtype=hidden.dtype, device=hidden.device) for c in color])
    # Weights that add up to 1 only within rounding must not spread a NaN or a large value.
    return torch.where(hidden > 1e-5, field + fill * hidden, field).to(field.dtype)


def _entries(matrix: Tensor, values: Tensor, real: torch.dtype) -> list[list[Tensor]]:
    """Return the entries of a map, which broadcast with the pixels of a field."""
    placed = matrix.to(values.device, real, non_blocking=True)[..., None, None]
    return [list(row.unbind(-3)) for row in placed.unbind(-4)]
