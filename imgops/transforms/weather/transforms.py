"""Shadow, fog, rain, snow and sun flares with random parameters, drawn by OpenCV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

import imgops
from imgops._common import check
from imgops.transforms._core.arguments import (
    WIDEST,
    color_of,
    in_range,
    one_number,
    one_of,
    region_of,
)
from imgops.transforms._core.parameters import IS_APPLIED, Parameter
from imgops.transforms._core.probabilistic import ProbabilisticTransform, real_of, uniform
from imgops.transforms.weather import drawing

__all__ = [
    "RandomFog",
    "RandomRain",
    "RandomShadow",
    "RandomSnow",
    "RandomSunFlare",
]

Range = float | Sequence[float]
#: The largest number of shapes that are drawn one by one.
_MANY = 1000


class _Weather(ProbabilisticTransform):
    """A transform whose drawing depends on a seed and the size of the image."""

    _levels = True


def _on_device_of(pixels: np.ndarray, image: Tensor) -> Tensor:
    """Return a drawing, ``(H, W)`` or ``(H, W, C)``, as planes on the device of an image."""
    planes = torch.from_numpy(pixels)
    planes = planes if planes.ndim == 2 else planes.permute(2, 0, 1)
    return planes.to(image.device, non_blocking=True)


class RandomShadow(_Weather):
    """Darken polygons of an image like shadows, with a probability.

    Parameters
    ----------
    region : (float, float, float, float)
        The region of the corners of the shadows: left, top, right and bottom, as fractions of the image.
    num_shadows : int or (int, int)
        The range of the number of shadows.
    num_corners : int
        The number of corners of each shadow.
    darkness : float or (float, float)
        The range of the fraction of light that each shadow removes.

    Notes
    -----
    Reference: ``cv2.fillPoly``, and a product that is truncated to whole levels, as in albumentations'
    RandomShadow: bit-exact on uint8. Floats are multiplied, with the gradient of this product.
    """

    _known = ("count", "darkness", "places")

    def __init__(
        self,
        region: Sequence[float] = (0.0, 0.5, 1.0, 1.0),
        num_shadows: int | Sequence[int] = (1, 2),
        num_corners: int = 5,
        darkness: Range = (0.4, 0.6),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        counts = in_range(self, "num_shadows", num_shadows, 1, _MANY, whole=True)
        arguments = {
            "region": region_of(self, "region", region),
            "num_shadows": counts,
            "num_corners": one_number(self, "num_corners", num_corners, 3, _MANY, whole=True),
            "darkness": in_range(self, "darkness", darkness, 0.0, 1.0),
        }
        self._random_parameters = (
            IS_APPLIED,
            Parameter("count"),
            Parameter("darkness", counts[1]),
            Parameter("places", 2 * counts[1] * arguments["num_corners"]),
        )
        super().__init__(p, per_sample, generator, **arguments)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        low, high = self.num_shadows
        left, top, right, bottom = self.region
        low_high = torch.tensor([[left, top], [right, bottom]], dtype=torch.float32, device="cpu")
        shares = (
            torch.rand(high, self.num_corners, 2, dtype=torch.float32, device="cpu")
            * (low_high[1] - low_high[0])
            + low_high[0]
        )
        depths = [uniform(self.darkness) for _ in range(high)]
        count = int(torch.randint(low, high + 1, (), device="cpu"))
        return {"count": count, "darkness": depths, "places": shares.flatten().tolist()}

    def _polygons(self, height: int, width: int, count: float, places: Sequence[float]) -> np.ndarray:
        """Return the corners (x, y) of each shadow in pixels, ``(n, corners, 2)``, int32."""
        shares = np.asarray(places).reshape(-1, self.num_corners, 2)[: int(count)]
        return (shares * [width, height]).astype(np.int32)

    def _change_image(self, image: Tensor, count: float, darkness: Any, places: Any) -> Tensor:
        height, width = image.shape[-2:]
        for polygon, depth in zip(self._polygons(height, width, count, places), darkness, strict=False):
            inside = _on_device_of(cv2.fillPoly(np.zeros((height, width), np.uint8), [polygon], 1), image) > 0
            if image.dtype == torch.uint8:
                table = (torch.arange(256, dtype=torch.float64, device="cpu") * (1 - depth)).to(torch.uint8)
                dark = imgops.lut(image, table)
            else:
                dark = image * (1 - depth)
            image = torch.where(inside, dark, image)
        return image


class RandomFog(_Weather):
    """Draw patches of fog over an image, denser in the center, with a probability.

    Parameters
    ----------
    intensity : float or (float, float)
        The range of the amount of fog, in [0, 1].
    alpha : float
        The opacity of each patch at full intensity, in [0, 1].

    Notes
    -----
    Reference: ``cv2.circle`` and ``cv2.addWeighted`` for each patch, then ``cv2.GaussianBlur``, as in
    albumentations' RandomFog: bit-exact on uint8 for the same patches, and within two levels if the shortest
    side is below 300 pixels, because OpenCV then uses other kernels. All patches are computed at once,
    because the result for a value depends only on the number of patches that cover it. Floats are computed by
    the same formula without rounding, with its gradient.
    """

    _random_parameters = (IS_APPLIED, Parameter("intensity"), Parameter("seed"))
    _known = ("intensity", "seed")

    def __init__(
        self,
        intensity: Range = (0.3, 1.0),
        alpha: float = 0.08,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        strengths = in_range(self, "intensity", intensity, 0.0, 1.0)
        cover = one_number(self, "alpha", alpha, 0.0, 1.0)
        super().__init__(p, per_sample, generator, intensity=strengths, alpha=cover)

    def _patches(
        self, height: int, width: int, intensity: float, seed: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the centers (x, y) of the patches, ``(n, 2)``, and their radii, ``(n,)``, in pixels."""
        return drawing.fog_patches(height, width, intensity, seed)

    def _change_image(self, image: Tensor, intensity: float, seed: float) -> Tensor:
        height, width = image.shape[-2:]
        layers = _on_device_of(
            drawing.count_discs(height, width, *self._patches(height, width, intensity, seed)), image
        )
        alpha = self.alpha * intensity
        if image.dtype == torch.uint8:
            table = torch.from_numpy(drawing.fog_levels(int(layers.max()), alpha)).to(image.device)
            foggy = table.flatten()[layers.long() * 256 + image.long()]
        else:
            foggy = 1 - (1 - image) * ((1 - alpha) ** layers.to(real_of(image))).to(image.dtype)
        side = max(3, min(height, width) // 30) | 1
        return imgops.gaussian_blur(foggy, side, 0.3 * ((side - 1) * 0.5 - 1) + 0.8)


class RandomRain(_Weather):
    """Draw rain over an image, with a probability.

    Parameters
    ----------
    slant : float or (float, float)
        The range of the distance, in pixels, that a drop moves along x while it falls by its length.
    method : {"drizzle", "rain", "heavy", "torrential"}
        The number of drops: a quarter of the number of the image's rows, a third of it, the number itself, or
        twice the number.
    length : int, optional
        The length of a drop in pixels; by default an eighth of the height.
    width : int
        The width of a drop in pixels.
    color : (int, int, int)
        The color of a drop in levels of 255.
    kernel_size : int
        The side of the window that blurs the drops, in pixels; 1 keeps them sharp.
    brightness : float
        The factor by which the image is multiplied at the end.

    Notes
    -----
    Reference: ``cv2.polylines``, ``cv2.blur``, ``cv2.add`` and ``cv2.multiply``, as in albumentations'
    RandomRain: bit-exact on uint8 for the same drops. Floats are computed by the same formula in real
    numbers, with its gradient. The image must have 3 channels.
    """

    _channels = check.Channels((3,), "rain is drawn in RGB colors")
    _random_parameters = (IS_APPLIED, Parameter("slant"), Parameter("seed"))
    _known = ("slant", "seed")

    def __init__(
        self,
        slant: Range = (-10.0, 10.0),
        method: str = "rain",
        length: int | None = None,
        width: int = 1,
        color: Sequence[int] = (200, 200, 200),
        kernel_size: int = 7,
        brightness: float = 0.7,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        arguments: dict[str, Any] = {
            "slant": in_range(self, "slant", slant, -WIDEST, WIDEST),
            "method": one_of(self, "method", method, tuple(drawing.DROPS)),
            "length": None if length is None else one_number(self, "length", length, 1, whole=True),
            "width": one_number(self, "width", width, 1, WIDEST, whole=True),
            "color": color_of(self, "color", color),
            "kernel_size": one_number(self, "kernel_size", kernel_size, 1, WIDEST, whole=True),
            "brightness": one_number(self, "brightness", brightness, 0.0, 1e6),
        }
        super().__init__(p, per_sample, generator, **arguments)

    def _drops(self, height: int, width: int, seed: float) -> tuple[np.ndarray, int]:
        """Return the starts of the drops, (x, y) ``(n, 2)``, int32, and their length, in pixels."""
        length = max(1, height // 8) if self.length is None else min(self.length, height)
        return drawing.drops(height, width, self.method, length, seed), length

    def _change_image(self, image: Tensor, slant: float, seed: float) -> Tensor:
        height, width = image.shape[-2:]
        starts, length = self._drops(height, width, seed)
        if not len(starts):
            return image
        layer: Any = np.zeros((height, width, 3), np.uint8)
        ends = starts + np.array([[slant, length]])
        lines: Any = np.stack((starts, ends), 1).astype(np.int32)
        cv2.polylines(layer, lines, False, self.color, self.width, lineType=cv2.LINE_4)
        if self.kernel_size > 1:
            layer = cv2.blur(layer, (self.kernel_size, self.kernel_size))
        rain = _on_device_of(layer, image)
        if image.dtype != torch.uint8:
            return (image + (rain / 255).to(image.dtype)).clamp(max=1) * self.brightness
        wet = image.to(torch.int16).add_(rain).clamp_(max=255).to(torch.uint8)
        levels = np.arange(256, dtype=np.uint8)[:, None]
        table = cv2.multiply(levels, self.brightness, dtype=cv2.CV_8U)
        return imgops.lut(wet, torch.from_numpy(table[:, 0])) if self.brightness != 1 else wet


class RandomSnow(_Weather):
    """Whiten the dark parts of an image like snow, with a probability.

    Parameters
    ----------
    snow_point : float or (float, float)
        The range of the point below which pixels are whitened, in [0, 1]: those whose lightness is below
        ``snow_point / 2 + 1 / 3``.
    brightness : float
        The factor by which the lightness of these pixels is multiplied.

    Notes
    -----
    Reference: ``cv2.cvtColor`` to HLS and back, as in albumentations' RandomSnow with ``method="bleach"``:
    bit-exact on uint8. Floats are computed in real numbers, with the gradient of this computation. The image
    must have 3 channels.
    """

    _channels = check.HLS
    _random_parameters = (IS_APPLIED, Parameter("snow_point"))

    def __init__(
        self,
        snow_point: Range = (0.1, 0.3),
        brightness: float = 2.5,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        points = in_range(self, "snow_point", snow_point, 0.0, 1.0)
        factor = one_number(self, "brightness", brightness, 0.0, 1e6)
        super().__init__(p, per_sample, generator, snow_point=points, brightness=factor)

    def _change_image(self, image: Tensor, snow_point: Tensor) -> Tensor:
        hls = imgops.cvt_color(image, "rgb2hls")
        hue, light, saturation = hls.split(1, -3)
        limit = (snow_point.double() * 255 / 2 + 255 / 3)[..., None, None, None].to(
            image.device, non_blocking=True
        )
        if image.dtype == torch.uint8:
            levels = torch.arange(256, dtype=torch.float32, device="cpu")
            table = (levels * self.brightness).clamp(0, 255).to(torch.uint8)
            white, under = imgops.lut(light, table), light < limit
        else:
            white, under = (light * self.brightness).clamp(0, 1), light * 255 < limit
        snowy = torch.cat([hue, torch.where(under, white, light), saturation], -3)
        return imgops.cvt_color(snowy, "hls2rgb")


class RandomSunFlare(_Weather):
    """Draw the lens flare of the sun over an image, with a probability.

    Parameters
    ----------
    region : (float, float, float, float)
        The region of the sun: left, top, right and bottom, as fractions of the image.
    radius : int
        The radius of the sun's light in pixels.
    color : (int, int, int)
        The color of the sun's light in levels of 255.
    angle : float or (float, float)
        The range of the direction of the sun's mirror images in the lens, in degrees from 0 to 360, clockwise
        from the x axis.
    num_circles : int or (int, int)
        The range of the number of mirror images.
    method : {"overlay", "physics_based"}
        "overlay" draws circles over the image; "physics_based" adds blurred light in the blend mode "screen".

    Notes
    -----
    Reference: ``cv2.circle``, ``cv2.line`` and ``cv2.GaussianBlur``, as in albumentations' RandomSunFlare:
    "physics_based" within one level, "overlay" within three, because its fifty steps are combined into one,
    which is rounded once. Floats are computed without rounding; the gradient is the weight of the image. The
    image must have 3 channels.
    """

    _channels = check.Channels((3,), "flares are drawn in RGB colors")
    _random_parameters = (IS_APPLIED, Parameter("seed"))
    _known = ("seed",)

    def __init__(
        self,
        region: Sequence[float] = (0.0, 0.0, 1.0, 0.5),
        radius: int = 400,
        color: Sequence[int] = (255, 255, 255),
        angle: Range = (0.0, 360.0),
        num_circles: int | Sequence[int] = (6, 10),
        method: str = "overlay",
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        arguments: dict[str, Any] = {
            "region": region_of(self, "region", region),
            "radius": one_number(self, "radius", radius, 10, WIDEST, whole=True),
            "color": color_of(self, "color", color),
            "angle": in_range(self, "angle", angle, 0.0, 360.0),
            "num_circles": in_range(self, "num_circles", num_circles, 1, _MANY, whole=True),
            "method": one_of(self, "method", method, ("overlay", "physics_based")),
        }
        super().__init__(p, per_sample, generator, **arguments)

    def _flare(self, height: int, width: int, seed: float) -> tuple[tuple[int, int], list[Any]]:
        """Return the sun's position (x, y), and the opacity, position, size and color of each circle."""
        how = (self.region, self.angle, self.num_circles, self.color)
        return drawing.flare(height, width, *how, seed)

    def _change_image(self, image: Tensor, seed: float) -> Tensor:
        height, width = image.shape[-2:]
        center, circles = self._flare(height, width, seed)
        draw = drawing.overlay_light if self.method == "overlay" else drawing.screen_light
        keep, light = draw(height, width, center, self.radius, self.color, circles)
        share, glow = _on_device_of(keep, image), _on_device_of(light, image)
        if image.dtype != torch.uint8:
            share, glow = share.to(real_of(image)), (glow / 255).to(real_of(image))
            return (image * share + glow).clamp(0, 1).to(image.dtype)
        out = image.to(torch.float32) * share.float() + glow.float()
        out = out.round() if self.method == "overlay" else out.floor()
        return out.clamp(0, 255).to(torch.uint8)
