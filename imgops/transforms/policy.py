"""The automatic policies: AutoAugment, RandAugment, TrivialAugmentWide and AugMix."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import PIL.Image
import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops.decomposition._precision import LEVELS
from imgops.kernels.cpu.program import Columns, ImageProgram
from imgops.transforms._core import draws, first_draws, projections, steps, torchvision_private
from imgops.transforms._core.base import OperatorTransform, RandomTransform
from imgops.transforms._core.inputs import decode_all, meta_image
from imgops.transforms._core.parameters import Numbers, Parameter, Params, Shape
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms._core.steps import COLORS, Compute, names_for
from imgops.transforms.functional import _dispatch, _geometry, _matrices

__all__ = ["AugMix", "AutoAugment", "RandAugment", "TrivialAugmentWide"]

Named = tuple[str, float]  # torchvision's name of a step, and its magnitude

#: The numbers of a step: a forward matrix; the index of a kind in ``_COLORS``, or -1; its amounts on uint8
#: and on floats; and, for PIL images, torchvision's step: the index of its name in ``_KINDS``, and its
#: magnitude.
_WIDTH = 11
_NO_STEP = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0]


class _Policy(torchvision_private.PolicyHooks, RandomTransform):
    """An automatic policy, whose parameters are the numbers of each step.

    A step is a warp, perhaps the identity, and a change of color, perhaps none.
    """

    _goes_back = False
    _makes_planar = True
    _dtypes = _dispatch.COMPUTED
    _needs_pixels = True
    _kind_of_map = projections.OTHER
    _is_simple = True
    _random_parameters = (Parameter("steps", lambda t, _: _WIDTH * t._count_steps(), kind=float),)
    #: The steps that torchvision's ``forward`` takes, while it is run to record them.
    _recorded_steps: list[Named] | None = None

    def _count_steps(self) -> int:
        """Return the largest number of steps."""
        raise NotImplementedError

    def _neutral_numbers(self, shape: Shape) -> list[float]:
        return _NO_STEP * self._count_steps()

    def make_params(self, flat_inputs: Any) -> dict[str, Any]:
        """Run torchvision's own ``forward``, and record its steps instead of applying them."""
        recorder = self._recorder(_recorded_steps=[])
        recorder._torchvision_forward(meta_image(*self._shape_of(flat_inputs)))
        return {"steps": recorder._recorded_steps}

    def _kinds(self) -> list[tuple[bool, bool]]:
        """Return for each step whether it has a magnitude, and whether it has a sign."""
        own: Any = type(self)
        return _kinds_of(own)

    def _numbers_of_index(
        self, bins: int, kind: float, magnitude: float | None, is_negative: float, shape: Shape
    ) -> list[float]:
        """Return the numbers of a step that was drawn as indices."""
        own: Any = type(self)
        index = None if magnitude is None else int(magnitude)
        return _numbers_of_index(own, bins, int(kind), index, is_negative > 0, *shape[2:])

    def _recorder(self, **state: Any) -> Any:
        """Copy the transform with separate state; threads share the transform made from a description."""
        recorder = object.__new__(type(self))
        recorder.__dict__ = {**self.__dict__, **state}
        return recorder

    def _torchvision_forward(self, *inputs: Any) -> Any:
        return super(OperatorTransform, self).forward(*inputs)  # type: ignore[misc]

    def _numbers_from(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        steps = values["steps"]
        numbers = [n for kind, magnitude in steps for n in _numbers_of(kind, magnitude, height, width)]
        return numbers + _NO_STEP * (self._count_steps() - len(steps))

    def _values_from(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        starts = range(0, _WIDTH * self._count_steps(), _WIDTH)
        return {"steps": [(_KINDS[int(numbers[at + 9])], numbers[at + 10]) for at in starts]}

    def _step(self, image: Any, kind: str, magnitude: float, interpolation: Any, fill: Any) -> Any:
        if self._recorded_steps is not None:
            self._recorded_steps.append((kind, float(magnitude)))
            return image
        return self._torchvision_step(image, kind, magnitude, interpolation, fill)

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        inputs = decode_all(inputs)
        if self._runs_users_code(inputs):
            return super()._run(inputs, sampler)
        flat, structure, place = torchvision_private.one_image(self, inputs)
        projections.require(self, flat, self._kind_of_map)
        before = sampler.count
        params: Any = self._sample_params([flat[place]], sampler)
        out = self._transform_input(flat[place], params, sampler)
        sampler.count = before
        return torchvision_private.with_image(self, flat, structure, place, out)

    def _record(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> None:
        flat, _, place = torchvision_private.one_image(self, inputs)
        projections.require(self, flat, self._kind_of_map)
        self._sample_params([flat[place]], sampler)

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        for kind, magnitude in values["steps"]:
            how = (self.interpolation, torchvision_private.fills(self))  # type: ignore[attr-defined]
            inpt = self._torchvision_step(inpt, kind, magnitude, *how)
        return inpt

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        fill = torchvision_private.fill_of(self, kind)
        return self._list_steps(params.numbers, range(self._count_steps()), fill)

    def _add_to(self, program: ImageProgram, params: Params, kind: type) -> bool:
        # One interleaved image becomes planar only if a step is drawn, which a plan does not know.
        is_unknown = isinstance(params.numbers, Columns) and program.image.ndim == 3
        return not (is_unknown and program.interleaved) and super()._add_to(program, params, kind)

    def _list_steps(self, numbers: Any, which: range, fill: Any) -> list[steps.Step]:
        """Return some of the steps; in eager mode, only the parts of a known step that have an effect."""
        listed: list[steps.Step] = []
        for start in range(_WIDTH * which.start, _WIDTH * which.stop, _WIDTH):
            if not isinstance(numbers, (list, tuple)):
                listed.append(self._move(numbers[..., start : start + 6], fill))
                listed.append(_Color(numbers[..., start + 6 : start + 9]))
                continue
            step = numbers[start : start + _WIDTH]
            if step[:6] != _NO_STEP[:6]:
                listed.append(self._move(torch.tensor(step[:6], dtype=torch.float64, device="cpu"), fill))
            if step[6] >= 0:
                listed.append(_Color(step[6:9]))
        return listed

    def _move(self, numbers: Any, fill: Any) -> steps.Warp:
        # Here and not earlier: steps that move no pixels take any interpolation, as in torchvision.
        name = _geometry.warp_interpolation("affine", self.interpolation)  # type: ignore[attr-defined]
        return steps.Warp(numbers, name, fill)

    def _walk(self, image: Tensor, numbers: Any, which: range, fill: Any) -> Tensor:
        """Apply some of the steps."""
        for step in self._list_steps(numbers, which, fill):
            image = step.image(image)
        return image


class _Color(steps.Step):
    """The color of a policy's step; ``numbers`` are its index, or -1, and the amounts on uint8 and floats.

    Only RGB colors have a saturation: that of other images does not change.
    """

    def image(self, image: Tensor) -> Tensor:
        place, names = 1 if image.dtype == torch.uint8 else 2, names_for(image, _STEPS)
        # The amounts of floats serve uint16, too, but a threshold is a share of white.
        white = float(LEVELS[image.dtype]) if image.dtype == torch.uint16 else 1.0
        if self.is_one_draw:
            which = int(self.numbers[0])
            if which >= len(names):
                return image
            amount = self.numbers[place]
            return COLORS[names[which]](image, amount * white if names[which] == "solarize" else amount)
        amount = self.numbers[..., place : place + 1]
        amounts = amount.expand(*amount.shape[:-1], len(names))  # only the amount of one color is read
        if white != 1:
            whites = [white if name == "solarize" else 1.0 for name in names]
            amounts = amounts * torch.tensor(whites, dtype=torch.float64, device="cpu")
        return imgops.color_sequence(image, self.numbers[..., :1].long(), amounts, names)

    def add_to(self, program: ImageProgram) -> bool:
        numbers = self.numbers[:2] if self.is_one_draw else self.numbers[..., :2]
        return program.colors(numbers, 1, _STEPS)


@lru_cache(maxsize=1024)
def _numbers_of(kind: str, magnitude: float, height: int, width: int) -> list[float]:
    """Return the numbers of a step. They are cached, because a policy has few magnitudes."""
    name = [float(_KINDS.index(kind)), magnitude]
    if kind in _MOVES:
        angle, translate, scale, shear, center = _MOVES[kind](magnitude)
        matrix = _matrices.affine(angle, translate, scale, shear, center, height, width)
        return [*matrix.flatten().tolist(), *_NO_STEP[6:9], *name]
    if kind == "Identity":
        return _NO_STEP
    place = float(list(_COLORS).index(kind))
    return [*_NO_STEP[:6], place, _amount(kind, magnitude, 255.0), _amount(kind, magnitude, 1.0), *name]


@lru_cache(maxsize=64)
def _kinds_of(cls: type) -> list[tuple[bool, bool]]:
    found = torchvision_private.space(cls).values()
    return [(magnitudes(10, 1, 1) is not None, signed) for magnitudes, signed in found]


@lru_cache(maxsize=4096)
def _numbers_of_index(
    cls: type, bins: int, kind: int, magnitude: int | None, is_negative: bool, height: int, width: int
) -> list[float]:
    name, (magnitudes, _) = list(torchvision_private.space(cls).items())[kind]
    found = magnitudes(bins, height, width)
    value = 0.0 if found is None else float(found[magnitude])  # type: ignore[index]
    return _numbers_of(name, -value if is_negative else value, height, width)


def _amount(kind: str, magnitude: float, most: float) -> float:
    """Return the number that the operator of a color kind takes; ``most`` is white."""
    if kind == "Posterize":
        return float(int(magnitude))
    return most * magnitude if kind == "Solarize" else 1 + magnitude


def _slant(magnitude: float) -> float:
    return math.degrees(math.atan(magnitude))


#: angle, translation, scale, shear and center of a forward matrix
_MOVES: dict[str, Callable[[float], tuple[Any, ...]]] = {
    "ShearX": lambda m: (0.0, (0.0, 0.0), 1.0, (_slant(m), 0.0), (0.0, 0.0)),
    "ShearY": lambda m: (0.0, (0.0, 0.0), 1.0, (0.0, _slant(m)), (0.0, 0.0)),
    "TranslateX": lambda m: (0.0, (float(int(m)), 0.0), 1.0, (0.0, 0.0), None),
    "TranslateY": lambda m: (0.0, (0.0, float(int(m))), 1.0, (0.0, 0.0), None),
    "Rotate": lambda m: (-m, (0.0, 0.0), 1.0, (0.0, 0.0), None),
}
#: torchvision's names of the color steps -> those of :func:`imgops.color_sequence`
_COLORS: dict[str, str] = {
    kind: {"Color": "saturation"}.get(kind, kind.lower())
    for kind in (
        *("Brightness", "Contrast", "Sharpness", "Posterize", "Solarize"),
        *("AutoContrast", "Equalize", "Invert", "Color"),
    )
}
_STEPS = tuple(_COLORS.values())
#: The names of all steps.
_KINDS = ("Identity", *_MOVES, *_COLORS)


class AutoAugment(_Policy, v2.AutoAugment):
    """Apply a random pair of steps of a learned policy, as torchvision's AutoAugment does.

    The pixels are PIL's and OpenCV's. Use this transform for a policy that was learned on ImageNet,
    CIFAR-10 or SVHN; :class:`RandAugment` and :class:`TrivialAugmentWide` do not depend on a data set.
    Masks, boxes and keypoints raise. Images may have any number of channels; unless they have 3, the step
    Color changes nothing, and Contrast is around the mean of all values.

    Parameters
    ----------
    policy : AutoAugmentPolicy
        The data set whose policy is applied: IMAGENET (the default), CIFAR10 or SVHN.
    interpolation : InterpolationMode, str or int
        The interpolation of the steps that move pixels.
    fill : float, sequence of float, dict or None
        The value of pixels that a step moves into the image, or one for each channel, or a dict of these by
        class. None, the default, means 0.
    """

    _config = ("policy", "_pairs")

    @classmethod
    def _from_config(cls, policy: str, _pairs: list[Any]) -> AutoAugment:
        made = cls(v2.AutoAugmentPolicy(policy))
        torchvision_private.set_pairs(made, _pairs)
        return made

    def _count_steps(self) -> int:
        return 2

    _draws_much = True

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        """Draw the index of a pair; for each of its steps, whether it is applied and its sign changed."""
        known = dict(zip(torchvision_private.space(self), self._kinds(), strict=True))
        rule = [draws.integer(0, 0, len(self._pairs)), *(draws.put(i, 0) for i in range(1, 5))]
        for index, pair in enumerate(self._pairs):
            found = []
            for at, (kind, probability, _) in zip((1, 3), pair, strict=True):
                sign = [draws.chance(0.5, draws.put(at + 1, 1), relation="<=")] if all(known[kind]) else []
                found.append(draws.chance(probability, draws.put(at, 1), *sign, relation="<="))
            rule.append(draws.when(0, index, *found))
        return rule

    _pairs = property(torchvision_private.pairs_of)

    def make_params(self, flat_inputs: Any) -> dict[str, Any]:
        if not first_draws.overrides(self):
            return super().make_params(flat_inputs)
        _, _, height, width = self._shape_of(flat_inputs)
        index, chances, signs = self.get_params(len(self._pairs))
        found: list[Named] = []
        for (kind, p, place), chance, sign in zip(self._pairs[index], chances, signs, strict=True):
            if chance <= p:
                magnitudes, is_signed = torchvision_private.space(self)[kind]
                listed = magnitudes(10, height, width)
                magnitude = 0.0 if listed is None else float(listed[place])  # type: ignore[index]
                found.append((kind, -magnitude if is_signed and sign == 0 else magnitude))
        return {"steps": found}

    def _numbers_of_draw(self, drawn: list[float], shape: Shape) -> list[float]:  # type: ignore[override]
        pair, kinds = self._pairs[int(drawn[0])], list(torchvision_private.space(self))
        numbers: list[float] = []
        for (kind, _, magnitude), is_applied, sign in zip(pair, drawn[1:5:2], drawn[2:5:2], strict=True):
            if is_applied:
                numbers += self._numbers_of_index(10, kinds.index(kind), magnitude, sign, shape)
        return numbers + _NO_STEP * (2 - len(numbers) // _WIDTH)


class RandAugment(_Policy, v2.RandAugment):
    """Apply random steps of one magnitude, as torchvision's RandAugment does.

    The pixels are PIL's and OpenCV's. Use this transform to tune the number and the strength of the
    steps, and :class:`TrivialAugmentWide` to tune nothing. Masks, boxes and keypoints raise. Images may
    have any number of channels; unless they have 3, the step Color changes nothing, and Contrast is
    around the mean of all values.

    Parameters
    ----------
    num_ops : int
        The number of steps that are applied one after the other.
    magnitude : int
        The strength of each step, from 0 to ``num_magnitude_bins - 1``.
    num_magnitude_bins : int
        The number of strengths between the weakest and the strongest.
    interpolation : InterpolationMode, str or int
        The interpolation of the steps that move pixels.
    fill : float, sequence of float, dict or None
        The value of pixels that a step moves into the image, or one for each channel, or a dict of these by
        class. None, the default, means 0.
    """

    _config = ("num_ops", "magnitude", "num_magnitude_bins")
    _draws_much = True

    def _draw_rule(self, shape: Shape) -> draws.Rule | None:
        if not 0 <= self.magnitude < self.num_magnitude_bins:
            return None
        return [draws.policy(_WIDTH * i, 0, self._kinds()) for i in range(self.num_ops)] or None

    def _numbers_of_draw(self, drawn: list[float], shape: Shape) -> list[float]:  # type: ignore[override]
        numbers: list[float] = []
        for at in range(0, len(drawn), _WIDTH):
            kind, _, sign = drawn[at : at + 3]
            numbers += self._numbers_of_index(self.num_magnitude_bins, kind, self.magnitude, sign, shape)
        return numbers

    def _count_steps(self) -> int:
        return self.num_ops


class TrivialAugmentWide(_Policy, v2.TrivialAugmentWide):
    """Apply one random step of a random magnitude, as torchvision's TrivialAugmentWide does.

    The pixels are PIL's and OpenCV's. There is nothing to tune; use :class:`RandAugment` for several
    steps, or for weaker ones. Masks, boxes and keypoints raise. Images may have any number of channels;
    unless they have 3, the step Color changes nothing, and Contrast is around the mean of all values.

    Parameters
    ----------
    num_magnitude_bins : int
        The number of strengths between the weakest and the strongest, of which one is drawn.
    interpolation : InterpolationMode, str or int
        The interpolation of the steps that move pixels.
    fill : float, sequence of float, dict or None
        The value of pixels that a step moves into the image, or one for each channel, or a dict of these by
        class. None, the default, means 0.
    """

    _config = ("num_magnitude_bins",)
    _draws_much = True

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        return [draws.policy(0, self.num_magnitude_bins, self._kinds())]

    def _numbers_of_draw(self, drawn: list[float], shape: Shape) -> list[float]:  # type: ignore[override]
        kind, magnitude, sign = drawn[:3]
        return [*self._numbers_of_index(self.num_magnitude_bins, kind, magnitude, sign, shape)]

    def _count_steps(self) -> int:
        return 1


@lru_cache(maxsize=256)
def _stand_in(samples: int, height: int, width: int) -> Tensor:
    return torch.empty(
        (0, height, width) if samples == 1 else (samples, 0, height, width), device="cpu", dtype=torch.float32
    )


class AugMix(_Policy, v2.AugMix):
    """Mix the image with random chains of steps, as torchvision's AugMix does.

    The pixels are PIL's and OpenCV's. Use this transform for robustness: unlike with
    :class:`RandAugment`, the image stays visible in the mixture. Masks, boxes and keypoints raise. Images
    may have any number of channels; unless they have 3, the step Color changes nothing, and Contrast is
    around the mean of all values. The sampled parameters are the weights of the image and of each chain,
    for every sample of a batch, and the steps of the chains; shorter chains are filled up with steps that
    do nothing.

    Parameters
    ----------
    severity : int
        The strength of the steps, from 1 to 10.
    mixture_width : int
        The number of chains that are mixed.
    chain_depth : int
        The number of steps of each chain. If it is not positive (the default), a number from 1 to 3 is drawn
        for each chain.
    alpha : float
        The parameter of the Beta and Dirichlet distributions from which the weights are drawn, above 0.
    all_ops : bool
        Whether steps may also change brightness, contrast, saturation and sharpness.
    interpolation : InterpolationMode, str or int
        The interpolation of the steps that move pixels.
    fill : float, sequence of float, dict or None
        The value of pixels that a step moves into the image, or one for each channel, or a dict of these by
        class. None, the default, means 0.
    """

    _config = ("severity", "mixture_width", "chain_depth", "alpha", "all_ops")
    _makes_planar = False
    _weights: list[Tensor] | None = None

    def _depth(self) -> int:
        return self.chain_depth if self.chain_depth > 0 else 3

    def _count_steps(self) -> int:
        return self.mixture_width * self._depth()

    _random_parameters = (
        Parameter(
            "steps_and_weights",
            lambda t, shape: _WIDTH * t._count_steps() + shape[0] * (1 + t.mixture_width),
        ),
    )

    def _neutral_numbers(self, shape: Shape) -> list[float]:
        samples = shape[0]
        return [*_NO_STEP * self._count_steps(), *[1.0] * samples, *[0.0] * (samples * self.mixture_width)]

    def make_params(self, flat_inputs: Any) -> dict[str, Any]:
        samples, _, height, width = self._shape_of(flat_inputs)
        recorder = self._recorder(_recorded_steps=[], _weights=[], _chain=None)
        # The placeholder has the size of the image, but no channels, and therefore no values to mix;
        # torchvision's code cannot draw for a batch without images.
        recorder._torchvision_forward(_stand_in(max(samples, 1), height, width))
        first, second = recorder._weights
        weights = torch.cat([first[:, :1], second * first[:, 1:]], 1)[:samples]
        # Each chain is filled up to the same length.
        recorded: Any = recorder._recorded_steps
        starts = [i for i, (kind, _) in enumerate(recorded) if kind == "|"]
        found: list[Named] = []
        for start, stop in zip(starts, [*starts[1:], len(recorded)], strict=True):
            chain = recorded[start + 1 : stop]
            found += [*chain, *[("Identity", 0.0)] * (self._depth() - len(chain))]
        return {"steps": found, "weights": weights.reshape(samples, 1 + self.mixture_width)}

    _chain: Any = None

    def _step(self, image: Any, kind: str, magnitude: float, interpolation: Any, fill: Any) -> Any:
        if self._recorded_steps is None:
            return self._torchvision_step(image, kind, magnitude, interpolation, fill)
        # A chain begins with the image itself; each step returns a new tensor, so that chains differ.
        if self._chain is not image:
            self._recorded_steps.append(("|", 0.0))
        self._recorded_steps.append((kind, float(magnitude)))
        self._chain = torch.empty_like(image)
        return self._chain

    def _dirichlet(self, concentration: Any) -> Any:
        if self._weights is None:
            return super()._dirichlet(concentration)
        alphas = torch.full(concentration.shape, self.alpha, dtype=torch.float32, device="cpu")
        self._weights.append(super()._dirichlet(alphas))
        return torch.empty_like(concentration)

    def _numbers_from(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [*super()._numbers_from(values, height, width), *values["weights"].T.flatten().tolist()]

    def _values_from(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        weights = torch.tensor(numbers[_WIDTH * self._count_steps() :], dtype=torch.float32, device="cpu")
        return {
            **super()._values_from(numbers, height, width),
            "weights": weights.reshape(1 + self.mixture_width, len(weights) // (1 + self.mixture_width)).T,
        }

    def _transform_input(self, inpt: Any, params: Params, sampler: ParameterSampler) -> Any:
        if isinstance(inpt, PIL.Image.Image):
            tensor = v2.functional.pil_to_tensor(inpt)
            return v2.functional.to_pil_image(super()._transform_input(tensor, params, sampler))
        return super()._transform_input(inpt, params, sampler)

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        def walk(start: int) -> Any:
            chain = {"steps": values["steps"][start : start + self._depth()]}
            return super(AugMix, self)._by_torchvision(inpt, chain)

        return self._mix(inpt, values["weights"].T, walk)

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[Compute]:
        fill, depth = torchvision_private.fill_of(self, kind), self._depth()

        def mixed(image: Tensor, numbers: Numbers) -> Tensor:
            def walk(start: int) -> Tensor:
                return self._walk(image, numbers, range(start, start + depth), fill)

            first = _WIDTH * self._count_steps()
            if isinstance(numbers, Tensor):
                weights = numbers[..., first:]
            else:
                weights = torch.tensor(numbers[first:], dtype=torch.float64, device="cpu")
            if weights.ndim == 1:  # the weights of all samples of a batch
                return self._mix(image, weights.unflatten(-1, (1 + self.mixture_width, -1)), walk)
            return self._mix(image, weights.movedim(-1, 0), walk)

        return [Compute(params.numbers, mixed)]

    def _mix(self, image: Tensor, weights: Tensor, walk: Callable[[int], Tensor]) -> Tensor:
        """Mix the image and its chains by weights ``(1 + width, samples)``, in float32 like torchvision."""

        def of(weight: Tensor) -> Tensor:
            weight = weight.to(image.device, torch.float32, non_blocking=True)
            if weight.numel() == 1 and image.ndim < 4:
                return weight.reshape(())
            return weight.reshape(*weight.shape, *(1,) * (image.ndim - weight.ndim))

        mixture = of(weights[0]) * image
        for i in range(self.mixture_width):
            mixture = mixture + of(weights[1 + i]) * walk(i * self._depth())
        return mixture.to(image.dtype)
