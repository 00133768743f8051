"""The counterparts of timm's policies and of its RandomErasing: drawn by timm's code, with PIL's pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageFilter
import torch
from torch import Tensor
from torchvision import tv_tensors

import imgops
from imgops._common import check
from imgops._common.torch_private import raise_error
from imgops.integrations._counterparts import RandomCounterpart
from imgops.integrations._reader import MAKERS, Reader, Unmapped, UsersCode, add_makers
from imgops.integrations.timm import timm_private
from imgops.integrations.timm.sizes import as_tuple
from imgops.transforms._core import pil_images, seeding
from imgops.transforms._core.origin import is_code_of, known_name
from imgops.transforms._core.parameters import IS_APPLIED, Numbers, Parameter, Params
from imgops.transforms._core.probabilistic import ProbabilisticTransform
from imgops.transforms._core.sampling import ParameterSampler

#: A step: the place of its name in ``_KINDS``, six numbers, and PIL's number of an interpolation.
_WIDTH = 8


def _row(kind: str, *numbers: float, mode: int = 0) -> list[float]:
    given = [float(n) for n in numbers]
    return [float(_KINDS.index(kind)), *given, *[0.0] * (6 - len(given)), float(mode)]


class _Canvas:
    """A stand-in for an image, with which timm's functions are run for their draws alone."""

    mode = "RGB"

    def __init__(self, size: tuple[int, int]) -> None:
        self.size = size
        self.rows: list[list[float]] = []

    def note(self, kind: str, *numbers: float, mode: int = 0) -> _Canvas:
        self.rows.append(_row(kind, *numbers, mode=mode))
        return self

    def transform(
        self, size: Any, method: Any, data: Sequence[float], *, resample: int, **how: Any
    ) -> _Canvas:
        return self.note("affine", *data, mode=resample)

    def rotate(self, degrees: float, *, resample: int, **how: Any) -> _Canvas:
        return self.note("rotate", degrees, mode=resample)

    def filter(self, given: Any) -> _Canvas:
        return self.note("blur", given.radius)


class _Policy(ProbabilisticTransform):
    """A policy of timm: steps that are drawn beforehand, and applied as numbers.

    timm's code draws whether it is applied, so that PyTorch draws nothing for it.
    """

    _random_parameters = (IS_APPLIED, Parameter("steps", lambda t, _: _WIDTH * t._most_steps(), kind=float))
    _known = ("steps",)
    #: The name of timm's class.
    _name: str
    #: The color that comes in from outside of an image.
    fill: Any
    #: timm's own transform, for PIL images whose pixels no tensor of levels holds.
    _given: Any = None

    def __init__(self, p: float = 1.0, **given: Any) -> None:
        super().__init__(p, False, None, **given)

    def _get_name(self) -> str:
        return self._name

    def _most_steps(self) -> int:
        return _POLICIES[self._name][0](self)

    def _draw(self, inputs: Any) -> Numbers | None:
        return self._numbers_from(self.make_params(inputs), 0, 0)

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        if isinstance(inputs[0], PIL.Image.Image) and not pil_images.is_known(inputs[0]):
            with seeding.own_generators():
                return self._given(*inputs)
        return super()._run(inputs, sampler)

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        for inpt in flat_inputs:  # a step moves pixels, which they would not follow
            if isinstance(inpt, (tv_tensors.Mask, tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)):
                must = f"{self._get_name()}: inputs must not be masks, boxes or keypoints"
                raise_error(TypeError, f"{must}, got {type(inpt).__name__}")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        _, _, height, width = self._shape_of(flat_inputs)
        canvas = _Canvas((width, height))
        with seeding.own_generators():
            _POLICIES[self._name][1](self)(canvas)
        rows = canvas.rows + [_row("nothing")] * (self._most_steps() - len(canvas.rows))
        return {"steps": [n for row in rows for n in row]}

    def _change_image(self, image: Tensor, steps: list[float]) -> Tensor:
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
    """Return a step that maps each level to another one."""
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

# -- operations as text ----------------------------------------------------------------------------------


def _operations(value: Any) -> Iterator[Any]:
    """Yield the operations in a list, or in a list of lists."""
    if isinstance(value, (list, tuple)):
        for inner in value:
            yield from _operations(inner)
    else:
        yield value


def _written(value: Any) -> Any:
    """Return an operation, or lists of them, as text can hold it; its functions must be timm's own."""
    if isinstance(value, (list, tuple)):
        return [_written(inner) for inner in value]
    known_name(value, MAKERS)
    hparams = {
        n: int(v) if n == "interpolation" and isinstance(v, int) else v for n, v in value.hparams.items()
    }
    resample = value.kwargs.get("resample")
    modes = [int(m) for m in resample] if isinstance(resample, (list, tuple)) else int(resample)
    numbers = value.prob, value.magnitude, hparams, value.magnitude_std, value.magnitude_max
    return [_name_of(value), *numbers, modes]


def _name_of(op: Any) -> str:
    """Return the name of an operation's functions, which may have been changed, unlike its ``name``."""
    from timm.data import auto_augment

    functions = op.aug_fn, op.level_fn
    if all(is_code_of(("timm",), f) for f in functions if f is not None):
        for name in (op.name, *auto_augment.NAME_TO_OP):
            if functions == (auto_augment.NAME_TO_OP.get(name), auto_augment.LEVEL_TO_ARG.get(name)):
                return str(name)
    raise UsersCode


def _read(written: list[Any]) -> Any:
    """Return an operation of timm that notes its step on the canvas in the place of taking it."""
    from timm.data.auto_augment import AugmentOp

    name, prob, magnitude, hparams, deviation, most, modes = written
    made = AugmentOp(name, prob, magnitude, hparams)
    made.magnitude_std, made.magnitude_max = deviation, most
    made.kwargs["resample"] = tuple(modes) if isinstance(modes, list) else modes
    function = made.aug_fn

    def noted(canvas: _Canvas, *numbers: float, **how: Any) -> Any:
        if function.__name__ in _COLORS:
            return canvas.note(function.__name__, *numbers[:1])
        return function(canvas, *numbers, **how)

    made.aug_fn = noted
    return made


# -- policies --------------------------------------------------------------------------------------------


def _rand_augment(t: Any) -> Any:
    from timm.data.auto_augment import RandAugment

    return RandAugment([_read(op) for op in t.ops], t.num_layers, t.choice_weights)


def _auto_augment(t: Any) -> Any:
    from timm.data.auto_augment import AutoAugment

    return AutoAugment([[_read(op) for op in part] for part in t.policy])


def _augmix(t: Any) -> Callable[[_Canvas], None]:
    """Return a function that draws a mixture as timm's code does, which blends pixels."""
    ops = [_read(op) for op in t.ops]

    def draw(canvas: _Canvas) -> None:
        weights: Any = np.float32(np.random.dirichlet([t.alpha] * t.width))
        m: Any = np.float32(np.random.beta(t.alpha, t.alpha))
        for weight in timm_private.blended_weights(weights, m) if t.blended else weights:
            depth = t.depth if t.depth > 0 else np.random.randint(1, 4)
            canvas.note("chain")
            for op in np.random.choice(ops, depth, replace=True):
                op(canvas)
            canvas.note("blend" if t.blended else "add", weight)
        if not t.blended:
            canvas.note("blend all", m)

    return draw


#: Name -> the greatest number of steps, and a function that returns timm's policy, which a canvas records.
_POLICIES: dict[str, tuple[Callable[[Any], int], Callable[[Any], Any]]] = {
    "AugMixAugment": (lambda t: t.width * ((t.depth if t.depth > 0 else 3) + 2) + 1, _augmix),
    "AugmentOp": (lambda t: 1, lambda t: _read(t.op)),
    "AutoAugment": (lambda t: max(map(len, t.policy), default=0), _auto_augment),
    "RandAugment": (lambda t: t.num_layers, _rand_augment),
}


def _policy(name: str, where: str, others: Sequence[str], given: Any, reader: Reader) -> Any:
    """Return a policy whose operations are in one attribute, or which is one, and its other settings."""
    ops, known = getattr(given, where, given), {n: getattr(given, n) for n in others}
    if known.get("choice_weights") is not None:
        known["choice_weights"] = [float(w) for w in known["choice_weights"]]
    written = {where: _written(ops)}
    fills = {as_tuple(op.kwargs["fillcolor"]) for op in _operations(ops)}
    if len(fills) > 1:
        raise Unmapped("operations with several colors of the border")
    made = _Policy(_name=name, **written, **known, fill=fills.pop() if fills else (128, 128, 128))
    made._given = given
    return made


_SETTINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "AugMixAugment": ("ops", ("alpha", "width", "depth", "blended")),
    "AugmentOp": ("op", ()),
    "AutoAugment": ("policy", ()),
    "RandAugment": ("ops", ("num_layers", "choice_weights")),
}
add_makers("timm.data.auto_augment", {n: partial(_policy, n, *known) for n, known in _SETTINGS.items()})


# -- erasing ---------------------------------------------------------------------------------------------


class _Blocks(list[tuple[slice, slice, Tensor]]):
    """The blocks that timm's RandomErasing writes to an image: rows, columns and values."""

    def __setitem__(self, place: Any, values: Any) -> None:
        self.append((*place[1:], values))


class RandomErasing(RandomCounterpart):
    """Erase blocks that timm draws; their values are 0, one for each channel, or one for each pixel.

    The numbers of an image are the edges of its blocks, and their colors or the pixels of a whole image.
    """

    _random_parameters = (Parameter("blocks", lambda t, shape: shape[0] * t.count_for_image(shape)),)

    def count_for_image(self, shape: Any) -> int:
        _, channels, height, width = shape
        values = {"rand": self.max_count * channels, "pixel": channels * height * width}
        return 4 * self.max_count + values.get(self.mode, 0)

    def _draw_blocks(self, shape: Any, dtype: torch.dtype) -> list[_Blocks]:
        """Run timm's method for each image of a shape."""
        found = [_Blocks() for _ in range(shape[0])]
        with seeding.own_generators():
            timm_private.erase({name: getattr(self, name) for name in self._config}, found, shape[1:], dtype)
        return found

    def forward(self, *inputs: Any) -> Any:
        if not self._is_direct(inputs) or inputs[0].ndim > 4:
            return super().forward(*inputs)
        (image,) = inputs
        found = self._draw_blocks(self._shape_of(inputs), image.dtype)
        if not any(found):
            return image
        out = image.clone()
        for sample, blocks in zip(out if out.ndim == 4 else [out], found, strict=True):
            for rows, columns, values in blocks:
                sample[:, rows, columns] = values
        return out

    def _draw(self, inputs: Any) -> Tensor:
        shape = self._shape_of(inputs)
        dtype = inputs[0].dtype if isinstance(inputs[0], Tensor) else torch.float32
        found = self._draw_blocks(shape, dtype)
        return torch.cat([self._numbers_of(blocks, shape) for blocks in found])

    def _numbers_of(self, blocks: _Blocks, shape: Any) -> Tensor:
        _, channels, height, width = shape
        numbers = torch.zeros(self.count_for_image(shape), dtype=torch.float64, device="cpu")
        edges, rest = numbers[: 4 * self.max_count].view(-1, 4), numbers[4 * self.max_count :]
        for i, (rows, columns, values) in enumerate(blocks):
            corners = rows.start, columns.start, rows.stop, columns.stop
            edges[i] = torch.tensor(corners, dtype=torch.float64, device="cpu")
            if self.mode == "rand":
                rest.view(-1, channels)[i] = values[:, 0, 0]
            elif self.mode == "pixel":
                rest.view(channels, height, width)[:, rows, columns] = values
        return numbers

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        if self.mode in ("rand", "pixel") and image.dtype != torch.float32:
            must = "image must be torch.float32 in a graph and with per_sample=True"
            must += ", because timm draws in the dtype of the image"  # which is not known ahead
            check.refuse_in_graph(TypeError, "RandomErasing", must, image.dtype)
            if params.is_per_sample:
                check.fail(TypeError, "RandomErasing", must, image.dtype)
        channels, height, width = image.shape[-3:]
        numbers = params.tensor().to(image.device)
        if numbers.ndim == 1 and image.ndim == 4:
            numbers = numbers.unflatten(0, (image.shape[0], -1))
        numbers = numbers.reshape(*numbers.shape[:-1], *(1,) * (image.ndim - 3 - numbers.ndim + 1), -1)
        edges = numbers[..., : 4 * self.max_count].unflatten(-1, (-1, 4))[..., None, None, None]
        rest = numbers[..., 4 * self.max_count :].to(image.dtype)
        rows = torch.arange(height, dtype=torch.int64, device=image.device)[:, None]
        columns = torch.arange(width, dtype=torch.int64, device=image.device)
        for i in range(self.max_count):
            top, left, bottom, right = edges[..., i, :, :, :, :].unbind(-4)
            inside = (rows >= top) & (rows < bottom) & (columns >= left) & (columns < right)
            values: Any = 0
            if self.mode == "rand":
                values = rest[..., channels * i : channels * (i + 1), None, None]
            elif self.mode == "pixel":
                values = rest.unflatten(-1, (channels, height, width))
            image = torch.where(inside, values, image)
        return image

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        raise_error(TypeError, f"RandomErasing: image must be a Tensor, got {type(inpt).__name__}")


def _erasing(given: Any, reader: Reader) -> Any:
    if given.num_splits > 1:
        raise Unmapped(f"num_splits={given.num_splits}, by which a part of a batch stays as it is")
    names = ("probability", "min_area", "max_area", "log_aspect_ratio", "min_count", "max_count")
    mode = "pixel" if given.per_pixel else "rand" if given.rand_color else "const"
    return RandomErasing(mode=mode, **{name: getattr(given, name) for name in names})


MAKERS["timm.data.random_erasing.RandomErasing"] = _erasing
