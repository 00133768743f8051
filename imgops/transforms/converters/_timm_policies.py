"""The counterparts of timm's policies and of its RandomErasing: drawn by timm's code, with PIL's pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageFilter
import torch
from torch import Tensor
from torchvision import tv_tensors

import imgops
from imgops._torch_private import raise_error
from imgops.transforms._core import pil_images, seeding
from imgops.transforms._core.parameters import IS_APPLIED, Numbers, Parameter
from imgops.transforms._core.probabilistic import ProbabilisticTransform
from imgops.transforms.converters._reader import MAKERS, Reader, Unmapped
from imgops.transforms.converters._timm_sizes import as_tuple

#: A step: the place of its name in ``_KINDS``, six numbers, and PIL's number of an interpolation.
_WIDTH = 8


def _row(kind: str, *numbers: float, mode: int = 0) -> list[float]:
    given = [float(n) for n in numbers]
    return [float(_KINDS.index(kind)), *given, *[0.0] * (6 - len(given)), float(mode)]


class _Canvas:
    """A stand-in for an image, with which timm's functions are run for their draws alone."""

    mode = "RGB"

    def __init__(self, size: tuple[int, int], note: Callable[[list[float]], None]) -> None:
        self.size, self._note = size, note

    def transform(
        self, size: Any, method: Any, data: Sequence[float], *, resample: int, **how: Any
    ) -> _Canvas:
        self._note(_row("affine", *data, mode=resample))
        return self

    def rotate(self, degrees: float, *, resample: int, **how: Any) -> _Canvas:
        self._note(_row("rotate", degrees, mode=resample))
        return self

    def filter(self, given: Any) -> _Canvas:
        self._note(_row("blur", given.radius))
        return self


class _DrawnByTimm(ProbabilisticTransform):
    """A transform whose probability is a matter of timm's code, so that PyTorch draws nothing for it."""

    def __init__(self, p: float = 1.0, **given: Any) -> None:
        super().__init__(p, False, None, **given)

    def _get_name(self) -> str:
        return type(self).__name__.removeprefix("_Timm")

    def _draw(self, inputs: Any) -> Numbers | None:
        return self.pack(self.make_params(inputs), 0, 0)


class _TimmPolicy(_DrawnByTimm):
    """A policy of timm: steps that are drawn beforehand, and applied as numbers."""

    random_parameters = (IS_APPLIED, Parameter("steps", lambda t, _: _WIDTH * t._most_steps(), kind=float))
    _known = ("steps",)
    #: The color that comes in from outside of an image.
    fill: Any

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        for inpt in flat_inputs:  # a step moves pixels, which they would not follow
            if isinstance(inpt, (tv_tensors.Mask, tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)):
                must = f"{self._get_name()}: inputs must not be masks, boxes or keypoints"
                raise_error(TypeError, f"{must}, got {type(inpt).__name__}")

    def _most_steps(self) -> int:
        raise NotImplementedError

    def _policy(self, noted: Callable[[list[Any]], Any]) -> Any:
        """Return timm's policy, whose operations only note what they would do."""
        raise NotImplementedError

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        _, _, height, width = self.shape_of(flat_inputs)
        rows: list[list[float]] = []
        with seeding.own_generators():
            self._policy(lambda op: _noting(op, rows.append))(_Canvas((width, height), rows.append))
        rows += [_row("nothing")] * (self._most_steps() - len(rows))
        return {"steps": [n for row in rows for n in row]}

    def change_image(self, image: Tensor, steps: list[float]) -> Tensor:
        if image.dtype != torch.uint8 or image.shape[-3] not in (1, 3):
            must = f"{self._get_name()}: image must be uint8 of 1 or 3 channels"
            raise_error(TypeError, f"{must}, got {image.dtype} of {image.shape[-3]}")
        rows = [steps[i : i + _WIDTH] for i in range(0, len(steps), _WIDTH)]
        known = [(_KINDS[int(row[0])], row[1:7], int(row[7])) for row in rows]
        return pil_images.each_frame(image, lambda frame: self._walk(frame, known))

    def _walk(self, image: Tensor, steps: list[tuple[str, list[float], int]]) -> Tensor:
        base = now = image
        mixed: Any = np.float32(0)
        for kind, numbers, mode in steps:
            if kind == "chain":  # of AugMix: from the image again
                now = image
            elif kind == "add":
                mixed = mixed + np.float32(numbers[0]) * np.asarray(_pil(now), np.float32)
            elif kind == "blend":
                base = now = _tensor(PIL.Image.blend(_pil(base), _pil(now), numbers[0]))
            elif kind == "blend all":
                other = PIL.Image.fromarray(mixed.clip(0, 255).astype(np.uint8))
                now = _tensor(PIL.Image.blend(_pil(image), other, numbers[0]))
            elif kind != "nothing":
                now = self._step(now, kind, numbers, mode)
        return now

    def _step(self, image: Tensor, kind: str, numbers: list[float], mode: int) -> Tensor:
        if kind in _COLORS:
            return _COLORS[kind](image, numbers[0])
        how: dict[str, Any] = {"resample": mode, "fillcolor": as_tuple(self.fill)}
        given = _pil(image)
        if kind == "affine":
            return _tensor(given.transform(given.size, PIL.Image.Transform.AFFINE, numbers, **how))
        if kind == "rotate":
            return _tensor(given.rotate(numbers[0], **how))
        return _tensor(given.filter(PIL.ImageFilter.GaussianBlur(numbers[0])))


_pil, _tensor = pil_images.to_pil, pil_images.to_tensor


def _looked_up(level: Callable[[int, int], int]) -> Callable[[Tensor, float], Tensor]:
    """Return a step that changes each level by itself."""
    return lambda image, number: imgops.lut(
        image, torch.tensor([level(i, int(number)) for i in range(256)], dtype=torch.uint8, device="cpu")
    )


#: timm's functions of color -> the operators with PIL's bits.
_COLORS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "auto_contrast": lambda image, _: imgops.autocontrast(image),
    "equalize": lambda image, _: imgops.equalize(image),
    "invert": lambda image, _: imgops.invert(image),
    "solarize": _looked_up(lambda level, threshold: level if level < threshold else 255 - level),
    "solarize_add": _looked_up(lambda level, add: min(255, level + add) if level < 128 else level),
    "posterize": _looked_up(lambda level, bits: level & ~(2 ** (8 - bits) - 1) if bits < 8 else level),
    "contrast": imgops.adjust_contrast,
    "color": imgops.adjust_saturation,
    "brightness": imgops.adjust_brightness,
    "sharpness": imgops.adjust_sharpness,
    "desaturate": lambda image, factor: imgops.adjust_saturation(image, min(1.0, max(0.0, 1.0 - factor))),
}
_KINDS = ("nothing", "affine", "rotate", "blur", *_COLORS, "chain", "add", "blend", "blend all")


def _noting(op: Any, note: Callable[[list[float]], None]) -> Any:
    """Return a copy of an operation of timm that notes a step in the place of taking it."""
    function, own = op.aug_fn, copy(op)

    def noted(image: Any, *numbers: float, **how: Any) -> Any:
        if function.__name__ in _COLORS:
            note(_row(function.__name__, *numbers[:1]))
            return image
        return function(image, *numbers, **how)

    own.aug_fn = noted
    return own


def _written(op: Any) -> list[Any]:
    """Return an operation as text can hold it."""
    hparams = {n: int(v) if n == "interpolation" and isinstance(v, int) else v for n, v in op.hparams.items()}
    resample = op.kwargs.get("resample")
    modes = [int(m) for m in resample] if isinstance(resample, (list, tuple)) else int(resample)
    return [op.name, op.prob, op.magnitude, hparams, op.magnitude_std, op.magnitude_max, modes]


def _read(written: list[Any]) -> Any:
    from timm.data.auto_augment import AugmentOp

    name, prob, magnitude, hparams, deviation, most, modes = written
    made = AugmentOp(name, prob, magnitude, hparams)
    made.magnitude_std, made.magnitude_max = deviation, most
    made.kwargs["resample"] = tuple(modes) if isinstance(modes, list) else modes
    return made


class _TimmRandAugment(_TimmPolicy):
    def _most_steps(self) -> int:
        return self.num_layers

    def _policy(self, noted: Callable[[Any], Any]) -> Any:
        from timm.data.auto_augment import RandAugment

        return RandAugment([noted(_read(op)) for op in self.ops], self.num_layers, self.choice_weights)


class _TimmAugmentOp(_TimmPolicy):
    def _most_steps(self) -> int:
        return 1

    def _policy(self, noted: Callable[[Any], Any]) -> Any:
        return noted(_read(self.op))


class _TimmAutoAugment(_TimmPolicy):
    def _most_steps(self) -> int:
        return max(map(len, self.policy), default=0)

    def _policy(self, noted: Callable[[Any], Any]) -> Any:
        from timm.data.auto_augment import AutoAugment

        return AutoAugment([[noted(_read(op)) for op in part] for part in self.policy])


class _TimmAugMixAugment(_TimmPolicy):
    def _most_steps(self) -> int:
        return self.width * ((self.depth if self.depth > 0 else 3) + 2) + 1

    def _policy(self, noted: Callable[[Any], Any]) -> Any:
        from timm.data.auto_augment import AugMixAugment

        class Noted(AugMixAugment):
            """timm's mixture, whose chains are drawn in the same order, and noted."""

            def _chains(self, canvas: _Canvas, end: str, weights: Any) -> _Canvas:
                for weight in weights:
                    depth = self.depth if self.depth > 0 else np.random.randint(1, 4)
                    canvas._note(_row("chain"))
                    for op in np.random.choice(self.ops, depth, replace=True):
                        op(canvas)
                    canvas._note(_row(end, weight))
                return canvas

            def _apply_blended(self, canvas: _Canvas, weights: Any, m: Any) -> _Canvas:
                return self._chains(canvas, "blend", self._calc_blended_weights(weights, m))

            def _apply_basic(self, canvas: _Canvas, weights: Any, m: Any) -> _Canvas:
                self._chains(canvas, "add", weights)
                canvas._note(_row("blend all", m))
                return canvas

        ops = [noted(_read(op)) for op in self.ops]
        return Noted(ops, self.alpha, self.width, self.depth, self.blended)


def _fill_of(ops: Sequence[Any]) -> Any:
    fills = {as_tuple(op.kwargs["fillcolor"]) for op in ops}
    if len(fills) > 1:
        raise Unmapped("operations with several colors of the border")
    return fills.pop() if fills else (128, 128, 128)


def _rand_augment(given: Any, reader: Reader) -> Any:
    weights = None if given.choice_weights is None else [float(w) for w in given.choice_weights]
    ops = [_written(op) for op in given.ops]
    return _TimmRandAugment(
        ops=ops, num_layers=given.num_layers, choice_weights=weights, fill=_fill_of(given.ops)
    )


def _auto_augment(given: Any, reader: Reader) -> Any:
    policy = [[_written(op) for op in part] for part in given.policy]
    return _TimmAutoAugment(policy=policy, fill=_fill_of([op for part in given.policy for op in part]))


def _augmix(given: Any, reader: Reader) -> Any:
    how = {name: getattr(given, name) for name in ("alpha", "width", "depth", "blended")}
    return _TimmAugMixAugment(ops=[_written(op) for op in given.ops], fill=_fill_of(given.ops), **how)


# -- erasing ---------------------------------------------------------------------------------------------


class _Erased:
    """A stand-in for an image, with which timm's RandomErasing is run for its draws alone."""

    def __init__(self) -> None:
        self.blocks: list[tuple[slice, slice, Tensor]] = []

    def __setitem__(self, place: tuple[slice, slice, slice], values: Tensor) -> None:
        self.blocks.append((place[1], place[2], values))


class _TimmRandomErasing(_DrawnByTimm):
    """Erase blocks that timm draws; their values are 0, one for each channel, or one for each pixel."""

    _known = ("blocks",)
    random_parameters = (IS_APPLIED, Parameter("blocks", lambda t, shape: t._length(shape), kind=float))

    def _length(self, shape: Any) -> int:
        """Return the length of the numbers: corners and values of each block, and those of all pixels."""
        _, channels, height, width = shape
        return self.max_count * (4 + channels) + (channels * height * width if self.mode == "pixel" else 0)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        from timm.data.random_erasing import RandomErasing

        given = RandomErasing.__new__(RandomErasing)
        settings = {name: getattr(self, name) for name in self._config}
        given.__dict__.update(
            settings, rand_color=self.mode == "rand", per_pixel=self.mode == "pixel", device="cpu"
        )
        shape = self.shape_of(flat_inputs)
        _, channels, height, width = shape
        image = _Erased()
        with seeding.own_generators():
            given._erase(image, channels, height, width, torch.float32)
        numbers: list[float] = []
        pixels = torch.zeros(channels, height, width, dtype=torch.float32, device="cpu")
        for rows, columns, values in image.blocks:
            corner = [rows.start, columns.start, rows.stop - rows.start, columns.stop - columns.start]
            pixels[:, rows, columns] = values
            numbers += [*map(float, corner), *values[:, 0, 0].double().tolist()]
        numbers += [0.0] * (self.max_count * (4 + channels) - len(numbers))
        if self.mode == "pixel":
            numbers += pixels.flatten().double().tolist()
        return {"blocks": numbers}

    def change_image(self, image: Tensor, blocks: list[float]) -> Tensor:
        out, channels = image.clone(), image.shape[-3]
        size = 4 + channels
        if self.mode == "pixel":
            pixels = (
                torch.tensor(blocks[self.max_count * size :], dtype=torch.float32, device="cpu")
                .reshape(image.shape[-3:])
                .to(out)
            )
        for i in range(self.max_count):
            block = blocks[size * i : size * (i + 1)]
            top, left, high, wide = map(int, block[:4])
            where = ..., slice(top, top + high), slice(left, left + wide)
            if self.mode == "pixel":
                out[where] = pixels[where]
            else:
                out[where] = torch.tensor(block[4:], dtype=torch.float32, device="cpu").to(out)[:, None, None]
        return out


def _erasing(given: Any, reader: Reader) -> Any:
    if given.num_splits > 1:
        raise Unmapped(f"num_splits={given.num_splits}, by which a part of a batch stays as it is")
    names = ("probability", "min_area", "max_area", "log_aspect_ratio", "min_count", "max_count", "mode")
    return _TimmRandomErasing(**{name: getattr(given, name) for name in names})


MAKERS["timm.data.auto_augment.AugmentOp"] = lambda t, _: _TimmAugmentOp(op=_written(t), fill=_fill_of([t]))
MAKERS["timm.data.auto_augment.RandAugment"] = _rand_augment
MAKERS["timm.data.auto_augment.AutoAugment"] = _auto_augment
MAKERS["timm.data.auto_augment.AugMixAugment"] = _augmix
MAKERS["timm.data.random_erasing.RandomErasing"] = _erasing
