"""Erasing, mixing, and the automatic policies."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops import _subclass
from imgops.transforms import _torchvision
from imgops.transforms._base import Drawn, Stream, fill_of, like
from imgops.transforms.functional import _dispatch, _kernels, _matrices


class RandomErasing(Drawn, v2.RandomErasing):
    """As torchvision's, and per sample."""

    _drawing = ("p", "scale", "ratio", "value")

    @classmethod
    def _from_spec(cls, value: Any, **config: Any) -> RandomErasing:
        return cls(value="random" if value is None else value, **config)

    def _count(self, channels: int, height: int, width: int) -> int:
        """A box, and where the pixels are random a canvas that holds them."""
        return 4 + channels * height * width if self.value is None else 4

    def _flat(self, params: dict[str, Any]) -> Any:
        if params["v"] is None:
            return [0.0] * 4
        left, top = params["j"], params["i"]
        return [left, top, left + params["w"], top + params["h"]]

    def _draw(self, channels: int, height: int, width: int) -> Any:
        if torch.rand(1) >= self.p:
            return self._unchosen(channels, height, width)
        params = self.make_params([like(channels, height, width)])
        box = torch.tensor(self._flat(params), dtype=torch.float64)
        if self.value is not None:
            return box
        canvas = torch.zeros((channels, height, width), dtype=torch.float64)
        if params["v"] is not None:
            rows, columns = (
                slice(params["i"], params["i"] + params["h"]),
                slice(params["j"], params["j"] + params["w"]),
            )
            canvas[:, rows, columns] = params["v"].double()
        return torch.cat([box, canvas.flatten()])

    def _unchosen(self, channels: int, height: int, width: int) -> Any:
        return torch.zeros(self._count(channels, height, width), dtype=torch.float64)

    def _image(self, image: Tensor, numbers: Tensor, kind: type) -> Tensor:
        boxes = numbers[..., :4].long()
        if self.value is None:
            value = numbers[..., 4:].reshape(*numbers.shape[:-1], *image.shape[-3:])
        else:
            value = torch.tensor(self.value, dtype=torch.float64)[:, None, None]
            value = value.expand(image.shape[-3], 1, 1)
        return imgops.erase(image, boxes, value.to(image.device, image.dtype))


class _Mix(Drawn):
    """MixUp and CutMix draw for a batch; ``per_sample`` draws for each of its images."""

    _drawing = ("alpha",)

    def forward(self, *inputs: Any) -> Any:
        return super(Drawn, self).forward(*inputs)  # type: ignore[misc]

    def _run(self, inputs: tuple[Any, ...], stream: Stream) -> Any:
        return self(*inputs)  # type: ignore[operator]

    def _plan(self, shape: Any, plan: Any) -> None:
        return None

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        if not (torch.compiler.is_compiling() or self.per_sample):
            return super().make_params(flat_inputs)  # type: ignore[misc]
        numbers, _ = self._numbers(flat_inputs, Stream())
        return self._tensors(numbers)

    def _tensors(self, numbers: Tensor) -> dict[str, Any]:
        raise NotImplementedError

    def _unchosen(self, channels: int, height: int, width: int) -> Any:
        return self._draw(channels, height, width)

    def _mixup_label(self, label: Tensor, *, lam: Any) -> Tensor:
        if label.ndim == 1:
            label = torch.nn.functional.one_hot(label, num_classes=self.num_classes)  # type: ignore[attr-defined]
        if not label.dtype.is_floating_point:
            label = label.float()
        if isinstance(lam, Tensor):
            lam = lam.to(label.device, label.dtype)[..., None]
        return label.roll(1, 0) * (1.0 - lam) + label * lam

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if inpt is params["labels"]:
            return self._mixup_label(inpt, lam=params["weight"])
        if not _dispatch.is_image(inpt):
            return inpt
        self._check_image_or_video(inpt, batch_size=params["batch_size"])  # type: ignore[attr-defined]
        return _dispatch.wrapped(self._mixed(_subclass.plain(inpt), params), inpt)

    def _mixed(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        raise NotImplementedError


class MixUp(_Mix, v2.MixUp):
    """As torchvision's, on uint8 too, and per sample."""

    def _flat(self, params: dict[str, Any]) -> list[float]:
        return [params["lam"]]

    def _tensors(self, numbers: Tensor) -> dict[str, Any]:
        return {"weight": numbers[..., 0]}

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        params = super().make_params(flat_inputs)
        return {"weight": params["lam"]} if "lam" in params else params

    def _draw(self, channels: int, height: int, width: int) -> Any:
        return [float(self._dist.sample(()))]

    def _mixed(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        weight = params["weight"]
        if isinstance(weight, Tensor) and weight.ndim:
            weight = weight.reshape(-1, *(1,) * (images.ndim - 4))
        return imgops.blend(images.roll(1, 0), images, weight)


class CutMix(_Mix, v2.CutMix):
    """As torchvision's, and per sample."""

    _size = 5

    def _flat(self, params: dict[str, Any]) -> list[float]:
        return [*params["box"], params["lam_adjusted"]]

    def _tensors(self, numbers: Tensor) -> dict[str, Any]:
        return {"box": numbers[..., :4].long(), "weight": numbers[..., 4]}

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        params = super().make_params(flat_inputs)
        if "lam_adjusted" in params:
            return {"box": torch.tensor(params["box"]), "weight": params["lam_adjusted"]}
        return params

    def _draw(self, channels: int, height: int, width: int) -> Any:
        return self._flat(v2.CutMix.make_params(self, [like(channels, height, width)]))

    def _mixed(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        box = params["box"]
        if box.ndim > 1:
            box = box.reshape(-1, *(1,) * (images.ndim - 4), 4)
        return imgops.erase(images, box, images.roll(1, 0))


# -- AutoAugment, RandAugment, TrivialAugmentWide ------------------------------------------------

#: A step: a forward matrix, the place of a kind in ``_COLORS`` or -1, its amounts on uint8 and on floats.
_WIDTH = 9
_NOTHING = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0]


class _Policy(Drawn):
    """A draw has the numbers of each step: a warp, perhaps the identity, and a color, perhaps none."""

    _usual = False
    _drawing: tuple[str, ...] = ()

    def _steps(self) -> int:
        raise NotImplementedError

    def _count(self, channels: int, height: int, width: int) -> int:
        return _WIDTH * self._steps()

    def _unchosen(self, channels: int, height: int, width: int) -> list[float]:
        return _NOTHING * self._steps()

    def _draw(self, channels: int, height: int, width: int) -> list[float]:
        """torchvision's own forward, whose steps are written down instead of taken."""
        recorder = copy(self)  # threads share what a spec made
        taken: list[tuple[str, float]] = []
        recorder._taken = taken
        super(Drawn, recorder).forward(like(channels, height, width))  # type: ignore[misc]
        numbers = [n for kind, magnitude in taken for n in _numbers_of(kind, magnitude, height, width)]
        return numbers + _NOTHING * (self._steps() - len(taken))

    _taken: list[tuple[str, float]] | None = None

    def _apply_image_or_video_transform(
        self, image: Any, transform_id: str, magnitude: float, interpolation: Any, fill: Any
    ) -> Any:
        if self._taken is not None:
            self._taken.append((transform_id, float(magnitude)))
            return image
        if not _dispatch.is_image(image):
            return super()._apply_image_or_video_transform(
                image, transform_id, magnitude, interpolation, fill
            )  # type: ignore[misc]
        plain, color = _subclass.plain(image), _torchvision.get_fill(fill, type(image))
        return _dispatch.wrapped(_applied(plain, transform_id, magnitude, interpolation, color), image)

    def _image(self, image: Tensor, numbers: Tensor, kind: type) -> Tensor:
        fill = fill_of(self, kind)
        for i in range(self._steps()):
            image = self._step(image, numbers[..., _WIDTH * i : _WIDTH * (i + 1)], fill)
        return image

    def _step(self, image: Tensor, step: Tensor, fill: Any) -> Tensor:
        matrix = step[..., :6].unflatten(-1, (2, 3))
        image = _kernels.warp(image, matrix, self.interpolation, fill)  # type: ignore[attr-defined]
        amount = step[..., 7:8] if image.dtype == torch.uint8 else step[..., 8:]
        amounts = amount.expand(*amount.shape[:-1], len(_COLORS))  # only that of one kind is read
        return imgops.color_sequence(image, step[..., 6:7].long(), amounts, _STEPS)


def _numbers_of(kind: str, magnitude: float, height: int, width: int) -> list[float]:
    if kind in _MOVES:
        return [*_matrix(kind, magnitude, height, width).flatten().tolist(), *_NOTHING[6:]]
    if kind == "Identity":
        return _NOTHING
    place = float(list(_COLORS).index(kind))
    return [*_NOTHING[:6], place, _amount(kind, magnitude, 255.0), _amount(kind, magnitude, 1.0)]


def _applied(image: Tensor, kind: str, magnitude: float, interpolation: Any, fill: Any) -> Tensor:
    """Of a kind that is known."""
    if kind == "Identity":
        return image
    if kind in _MOVES:
        return _kernels.warp(image, _matrix(kind, magnitude, *image.shape[-2:]), interpolation, fill)
    amount = _amount(kind, magnitude, 255.0 if image.dtype == torch.uint8 else 1.0)
    return _color_step(image, kind, amount)


def _matrix(kind: str, magnitude: float, height: int, width: int) -> Tensor:
    angle, translate, scale, shear, center = _MOVES[kind](magnitude)
    return _matrices.affine(angle, translate, scale, shear, center, height, width)


def _amount(kind: str, magnitude: float, most: float) -> float:
    """The number that the operator of a color kind takes; ``most`` is white."""
    if kind == "Posterize":
        return float(int(magnitude))
    return most * magnitude if kind == "Solarize" else 1 + magnitude


def _slanted(magnitude: float) -> float:
    return math.degrees(math.atan(magnitude))


#: angle, translation, scale, shear and center of a forward matrix
_MOVES: dict[str, Callable[[float], tuple[Any, ...]]] = {
    "ShearX": lambda m: (0.0, (0.0, 0.0), 1.0, (_slanted(m), 0.0), (0.0, 0.0)),
    "ShearY": lambda m: (0.0, (0.0, 0.0), 1.0, (0.0, _slanted(m)), (0.0, 0.0)),
    "TranslateX": lambda m: (0.0, (float(int(m)), 0.0), 1.0, (0.0, 0.0), None),
    "TranslateY": lambda m: (0.0, (0.0, float(int(m))), 1.0, (0.0, 0.0), None),
    "Rotate": lambda m: (-m, (0.0, 0.0), 1.0, (0.0, 0.0), None),
}
#: torchvision's names of the color steps -> those of :func:`imgops.color_sequence`
_COLORS: dict[str, str] = {
    kind: {"Color": "saturation"}.get(kind, kind.lower())
    for kind in (
        *("Brightness", "Color", "Contrast", "Sharpness", "Posterize", "Solarize"),
        *("AutoContrast", "Equalize", "Invert"),
    )
}
_STEPS = ",".join(_COLORS.values())
_TAKE_NO_AMOUNT = ("AutoContrast", "Equalize", "Invert")


def _color_step(image: Tensor, kind: str, amount: float) -> Tensor:
    function: Any = getattr(imgops, f"adjust_{_COLORS[kind]}", None) or getattr(imgops, _COLORS[kind])
    return function(image) if kind in _TAKE_NO_AMOUNT else function(image, amount)


class AutoAugment(_Policy, v2.AutoAugment):
    """As torchvision's, with PIL's and OpenCV's pixels, and per sample."""

    _drawing = ("policy",)

    @classmethod
    def _from_spec(cls, policy: str) -> AutoAugment:
        return cls(v2.AutoAugmentPolicy(policy))

    def _steps(self) -> int:
        return 2


class RandAugment(_Policy, v2.RandAugment):
    """As torchvision's, with PIL's and OpenCV's pixels, and per sample."""

    _drawing = ("num_ops", "magnitude", "num_magnitude_bins")

    def _steps(self) -> int:
        return self.num_ops


class TrivialAugmentWide(_Policy, v2.TrivialAugmentWide):
    """As torchvision's, with PIL's and OpenCV's pixels, and per sample."""

    _drawing = ("num_magnitude_bins",)

    def _steps(self) -> int:
        return 1
