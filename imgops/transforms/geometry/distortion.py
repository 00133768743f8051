"""Distortions, which warp an image by a map."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode, v2

import imgops
from imgops._common import check
from imgops._common.torch_private import raise_error
from imgops.kernels.cpu import _threads
from imgops.transforms._core import draws, programs, projections, steps, unchanged
from imgops.transforms._core.arguments import WIDEST, fill_values, in_range, one_number, one_of, switch
from imgops.transforms._core.base import RandomTransform
from imgops.transforms._core.parameters import IS_APPLIED, Numbers, Parameter, Params, Shape
from imgops.transforms._core.probabilistic import ProbabilisticTransform, from_seed, real_of, uniform
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms._core.signatures import take_signature
from imgops.transforms._core.torchvision_private import fill_of
from imgops.transforms.geometry import inverse_map

__all__ = [
    "ElasticTransform",
    "RandomElastic",
    "RandomGridDistortion",
    "RandomOpticalDistortion",
    "RandomThinPlateSpline",
]

Range = float | Sequence[float]


class ElasticTransform(RandomTransform, v2.ElasticTransform):
    """Displace the pixels of the image by smoothed noise, as torchvision's ElasticTransform does.

    OpenCV's ``remap`` gives the pixels. Use :class:`RandomElastic` for a probability, for ranges, for a
    border mode, and for boxes and keypoints that follow the map exactly. Masks, boxes and keypoints follow
    the image.

    Parameters
    ----------
    alpha : float, (float, float) or Tensor
        The factor of the smoothed noise along x and y, in half pixels: twice that of :class:`RandomElastic`.
        A tensor of one number, or of one for x and one for y, can require a gradient.
    sigma : float or (float, float)
        The standard deviation of the smoothing along x and y, in pixels; 0 does not smooth.
    fill : float, sequence of float, dict or None
        The value of pixels outside of the image, or one for each channel; a dict has one for each class, as
        in ``{tv_tensors.Image: 128, "others": 0}``. None means 0.
    """

    _makes_planar = True
    _one_size = True
    _config = ("sigma",)
    _moves = True
    _kind_of_map = projections.OTHER
    _random_parameters = (Parameter("displacement", lambda _, shape: 2 * shape[2] * shape[3]),)

    def __init__(
        self,
        alpha: Any = 50.0,
        sigma: Any = 5.0,
        interpolation: Any = InterpolationMode.BILINEAR,
        fill: Any = 0,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        number = not isinstance(alpha, Tensor)
        v2.ElasticTransform.__init__(self, alpha if number else 1.0, sigma, interpolation, fill)
        if not number:
            self.alpha = alpha
        self._start(per_sample, generator)

    @classmethod
    def _from_config(cls, sigma: list[float]) -> ElasticTransform:
        """Construct a transform with an alpha of 1; a graph samples the displacement for this alpha."""
        return cls(1.0, sigma)

    def _factor(self) -> Tensor:
        if isinstance(self.alpha, Tensor):
            return self.alpha.to("cpu")
        return torch.tensor(self.alpha, dtype=torch.float32, device="cpu")

    def _draw(self, inputs: Any) -> Tensor:
        with _threads.OneATenThread():
            if self._draws_itself:  # by the factor, too
                found = self.make_params(inputs)["displacement"] / self._factor().detach()
                return found.nan_to_num().flatten()
            return programs.from_description(self._description).make_params(inputs)["displacement"].flatten()

    def _numbers_from(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return values["displacement"].flatten()

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        unit = copy(self)  # torchvision's displacement already contains the factor
        unit.alpha = [1.0, 1.0]
        return RandomTransform.transform(unit, inpt, params)

    def _values_from(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        unit = torch.tensor(numbers, dtype=torch.float32, device="cpu").reshape(1, height, width, 2)
        return {"displacement": unit * self._factor()}

    def _annotations(self, inpt: Any, params: Params | None = None) -> Any:
        given: Any = params
        scaled = (given.numbers.unflatten(-1, (-1, 2)) * self._factor()).flatten(-2)
        return super()._annotations(inpt, Params(given.canvas, scaled))

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        return [steps.Displace(params.numbers, self._factor(), self.interpolation, fill_of(self, kind))]


take_signature(ElasticTransform, v2.ElasticTransform)


class _Distortion(ProbabilisticTransform):
    """A transform by a map for ``remap``, which ``_map_of`` returns."""

    _moves = True
    _kind_of_map = projections.OTHER

    def __init__(
        self,
        p: float,
        per_sample: bool,
        generator: torch.Generator | None,
        interpolation: Any,
        padding_mode: str,
        fill: Any,
        **arguments: Any,
    ) -> None:
        name = check.interpolation(interpolation)
        arguments["interpolation"] = one_of(self, "interpolation", name, ("nearest", "bilinear", "bicubic"))
        modes = ("constant", "edge", "reflect", "symmetric", "wrap")
        arguments["padding_mode"] = one_of(self, "padding_mode", check.padding_mode(padding_mode), modes)
        arguments["fill"] = fill_values(self, "fill", fill)
        super().__init__(p, per_sample, generator, **arguments)

    def forward(self, *inputs: Any) -> Any:
        # Not the path of one draw, which leaves the maps in the cache: _run drops them at its end.
        return unchanged.watch(self, self._run, inputs, ParameterSampler.of(inputs))

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        if not sampler.draws_in_python:  # perhaps a graph, in which an operator makes the maps
            return super()._run(inputs, sampler)
        _maps.calls += 1
        try:
            return super()._run(inputs, sampler)
        finally:
            _maps.calls -= 1
            if not _maps.calls:
                _maps.entries.clear()

    def _map_of(self, height: int, width: int, dtype: torch.dtype, **params: Any) -> Tensor:
        """Return the position in the input that each pixel comes from, ``(2, height, width)``."""
        raise NotImplementedError

    def _map(self, image: Tensor, params: dict[str, Any]) -> Tensor:
        """Return the map on the device of an image and in the precision used to sample it."""
        height, width = image.shape[-2:]
        dtype = real_of(image)
        return self._on_canvas(height, width, dtype, params).to(image.device, non_blocking=True)

    def _on_canvas(self, height: int, width: int, dtype: torch.dtype, params: dict[str, Any]) -> Tensor:
        numbers = tuple((n, tuple(v) if isinstance(v, list) else v) for n, v in params.items())
        return _maps.of(self._description, height, width, dtype, numbers)

    def _change_image(self, image: Tensor, **params: Any) -> Tensor:
        fill = self.fill if self.padding_mode == "constant" else 0
        return imgops.remap(image, self._map(image, params), self.interpolation, self.padding_mode, fill)

    def _change_mask(self, mask: Tensor, **params: Any) -> Tensor:
        return imgops.remap(mask, self._map(mask, params), "nearest", self.padding_mode, 0)

    def _move_points(self, points: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        return inverse_map.points(self._on_canvas(*canvas, torch.float64, params), points)

    def _move_boxes(self, boxes: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        return inverse_map.boxes(self._on_canvas(*canvas, torch.float64, params), boxes)

    def _move_polygons(self, polygons: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
        return inverse_map.polygons(self._on_canvas(*canvas, torch.float64, params), polygons)


class _Maps(threading.local):
    """A cache of the maps of a call, because an image, its masks, boxes and keypoints need the same map.

    A call in eager mode drops the maps at its end. The end of a graph is unknown, so the latest maps stay.
    """

    #: The limits of the cache in bytes.
    limit_of_call, limit_of_graph = 1 << 29, 1 << 25

    def __init__(self) -> None:
        self.entries: OrderedDict[Any, Tensor] = OrderedDict()
        self.calls = 0

    def of(self, description: str, height: int, width: int, dtype: torch.dtype, numbers: Any) -> Tensor:
        key = description, height, width, dtype, numbers
        if key in self.entries:
            self.entries.move_to_end(key)
            return self.entries[key]
        with torch.inference_mode(False), torch.no_grad():
            map = programs.from_description(description)._map_of(height, width, dtype, **dict(numbers))
        self.entries[key] = map
        limit = self.limit_of_call if self.calls else self.limit_of_graph
        size = sum(m.nbytes for m in self.entries.values())
        while size > limit:
            size -= self.entries.popitem(last=False)[1].nbytes
        return map


_maps = _Maps()


class RandomElastic(_Distortion):
    """Distort an image like a rubber sheet, with a probability.

    Use :class:`ElasticTransform` for torchvision's draws, for strengths along x and y, or for a gradient with
    respect to alpha.

    Parameters
    ----------
    alpha : float or (float, float)
        The range of the factor of the smoothed noise, in pixels.
    sigma : float or (float, float)
        The range of the standard deviation of the smoothing, in pixels.
    interpolation : {"nearest", "bilinear", "bicubic"}
        The interpolation of images; masks take the nearest pixel.
    padding_mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border mode, which decides what lies outside of the image.
    fill : float or sequence of float
        The value of a constant border, for images; for masks it is 0.

    Notes
    -----
    Reference: ``cv2.remap`` with :func:`imgops.elastic_map` of noise between -1 and 1, which equals
    torchvision's ElasticTransform with half its alpha. (albumentations' ElasticTransform smooths both
    directions as one image.) Boxes and keypoints follow the map: see :doc:`the rule </transforms>`.
    """

    _one_size = True
    _random_parameters = (IS_APPLIED, Parameter("alpha"), Parameter("sigma"), Parameter("seed"))
    _known = ("alpha", "sigma", "seed")

    def __init__(
        self,
        alpha: Range = (20.0, 60.0),
        sigma: Range = (5.0, 5.0),
        interpolation: Any = "bilinear",
        padding_mode: str = "constant",
        fill: Any = 0.0,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        strengths = in_range(self, "alpha", alpha, 0.0, 1e9)
        spreads = in_range(self, "sigma", sigma, 1e-3, WIDEST // 8)
        how = (interpolation, padding_mode, fill)
        super().__init__(p, per_sample, generator, *how, alpha=strengths, sigma=spreads)

    def _map_of(
        self, height: int, width: int, dtype: torch.dtype, alpha: float, sigma: float, seed: float
    ) -> Tensor:
        noise = (
            torch.rand(2, height, width, generator=from_seed(seed), dtype=torch.float32, device="cpu") * 2 - 1
        )
        return imgops.elastic_map(noise, alpha, sigma).to(dtype)


class RandomGridDistortion(_Distortion):
    """Change the widths and heights of the columns and rows of a grid, with a probability.

    Parameters
    ----------
    num_steps : int
        The number of columns and of rows.
    distort : float or (float, float)
        The range of the change of each width and height, as a share of that width or height.
    normalize : bool
        Whether the widths and heights are scaled so that the image keeps its extent.
    interpolation : {"nearest", "bilinear", "bicubic"}
        The interpolation of images; masks take the nearest pixel.
    padding_mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border mode, which decides what lies outside of the image.
    fill : float or sequence of float
        The value of a constant border, for images; for masks it is 0.

    Notes
    -----
    Reference: ``cv2.remap`` with :func:`imgops.grid_distortion_map`, as in albumentations' GridDistortion,
    which moves pixels also with a ``distort`` of 0. Boxes and keypoints follow the map: see
    :doc:`the rule </transforms>`.
    """

    _known = ("steps_x", "steps_y")

    def __init__(
        self,
        num_steps: int = 5,
        distort: Range = (-0.3, 0.3),
        normalize: bool = True,
        interpolation: Any = "bilinear",
        padding_mode: str = "constant",
        fill: Any = 0.0,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        count = one_number(self, "num_steps", num_steps, 1, WIDEST, whole=True)
        self._random_parameters = (IS_APPLIED, *(Parameter(name, count + 1) for name in self._known))
        how = {"num_steps": count, "distort": in_range(self, "distort", distort, -1.0, 1.0)}
        if how["distort"][1] == -1:
            must = "RandomGridDistortion: distort must have a highest number above -1"
            raise ValueError(f"{must}, got {distort}")
        rest = (interpolation, padding_mode, fill)
        how["normalize"] = switch(self, "normalize", normalize)
        super().__init__(p, per_sample, generator, *rest, **how)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        count = self.num_steps + 1
        return {n: [1 + uniform(self.distort) for _ in range(count)] for n in self._known}

    def _map_of(self, height: int, width: int, dtype: torch.dtype, steps_x: Any, steps_y: Any) -> Tensor:
        if min(height, width) < self.num_steps:
            must = f"image must have at least num_steps ({self.num_steps}) rows and columns"
            raise_error(
                ValueError,
                f"{type(self).__name__}: {must}, got {check.number(height)} x {check.number(width)}",
            )
        how = {"normalize": self.normalize, "dtype": dtype}
        return imgops.grid_distortion_map(steps_x, steps_y, (height, width), **how)


class RandomOpticalDistortion(_Distortion):
    """Distort an image like a lens, with a probability.

    Parameters
    ----------
    distort : float or (float, float)
        The range of the distortion coefficient; 0 changes nothing.
    method : {"camera", "fisheye"}
        OpenCV's camera model (the coefficient is k1 and k2), or a fisheye lens.
    interpolation : {"nearest", "bilinear", "bicubic"}
        The interpolation of images; masks take the nearest pixel.
    padding_mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border mode, which decides what lies outside of the image.
    fill : float or sequence of float
        The value of a constant border, for images; for masks it is 0.

    Notes
    -----
    Reference: ``cv2.remap`` with :func:`imgops.optical_distortion_map`. (albumentations' OpticalDistortion
    has its center half a pixel away.) Boxes and keypoints follow the map: see :doc:`the rule </transforms>`.
    """

    _random_parameters = (IS_APPLIED, Parameter("k"))
    _known = ("k",)

    def __init__(
        self,
        distort: Range = (-0.3, 0.3),
        method: str = "camera",
        interpolation: Any = "bilinear",
        padding_mode: str = "constant",
        fill: Any = 0.0,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        how = {"distort": in_range(self, "distort", distort, -1e6, 1e6)}
        how["method"] = one_of(self, "method", method, ("camera", "fisheye"))
        super().__init__(p, per_sample, generator, interpolation, padding_mode, fill, **how)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"k": uniform(self.distort)}

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        return [draws.applied(self.p, draws.uniform_double(1, *self.distort))]

    def _map_of(self, height: int, width: int, dtype: torch.dtype, k: float) -> Tensor:
        return imgops.optical_distortion_map(k, (height, width), self.method, dtype=dtype)


class RandomThinPlateSpline(_Distortion):
    """Bend an image like a thin plate whose control points are moved, with a probability.

    Parameters
    ----------
    scale : float or (float, float)
        The range of the standard deviation of the points' moves, as a share of the image's sides.
    num_control_points : int
        The number of points along each side, at least 2.
    interpolation : {"nearest", "bilinear", "bicubic"}
        The interpolation of images; masks take the nearest pixel.
    padding_mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border mode, which decides what lies outside of the image.
    fill : float or sequence of float
        The value of a constant border, for images; for masks it is 0.

    Notes
    -----
    Reference: ``cv2.remap`` with :func:`imgops.thin_plate_spline_map`. (albumentations' ThinPlateSpline,
    whose scale is ten times this one, does not pass through its points.) Boxes and keypoints follow the map:
    see :doc:`the rule </transforms>`.
    """

    _known = ("moves",)

    def __init__(
        self,
        scale: Range = (0.02, 0.04),
        num_control_points: int = 4,
        interpolation: Any = "bilinear",
        padding_mode: str = "constant",
        fill: Any = 0.0,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        count = one_number(self, "num_control_points", num_control_points, 2, 64, whole=True)
        self._random_parameters = (IS_APPLIED, Parameter("moves", 2 * count**2))
        how = {"scale": in_range(self, "scale", scale, 0.0, 1e6), "num_control_points": count}
        super().__init__(p, per_sample, generator, interpolation, padding_mode, fill, **how)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        scale = uniform(self.scale)
        return {
            "moves": (
                torch.randn(2 * self.num_control_points**2, dtype=torch.float32, device="cpu") * scale
            ).tolist()
        }

    def _map_of(self, height: int, width: int, dtype: torch.dtype, moves: Sequence[float]) -> Tensor:
        places = torch.linspace(0, 1, self.num_control_points, dtype=torch.float64, device="cpu")
        sides = torch.tensor([width, height], dtype=torch.float64, device="cpu")
        targets = torch.cartesian_prod(places, places)
        points = targets + torch.tensor(moves, dtype=torch.float64, device="cpu").reshape(-1, 2)
        return imgops.thin_plate_spline_map(points * sides, targets * sides, (height, width), dtype=dtype)
