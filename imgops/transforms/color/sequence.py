"""Color adjustments that one operator applies in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from imgops.transforms._core import draws, steps
from imgops.transforms._core.base import RandomTransform
from imgops.transforms._core.parameters import Numbers, Parameter, Params, Shape
from imgops.transforms.functional import _dispatch

__all__ = []


class ColorSteps(RandomTransform):
    """A transform whose parameters are an order, and an amount for each name in ``_names``.

    See :func:`imgops.color_sequence`.
    """

    _names = ""
    _dtypes = _dispatch.COMPUTED
    _takes_batches = True
    _random_parameters: tuple[Parameter, ...] = (Parameter("order", 4, neutral=-1.0), Parameter("amounts", 4))

    _has_pils_pixels = True

    def _pack_steps(self, values: dict[str, Any], order: Sequence[int]) -> list[float]:
        """Return the order, with -1 for steps that are left out, and the factors, from torchvision's dict."""
        factors = [values[f"{name}_factor"] for name in self._names.split(",")]
        places = [float(i) if factors[i] is not None else -1.0 for i in order]
        places += [-1.0] * (4 - len(places))  # a user's order may have fewer steps
        return [*places, *(0.0 if f is None else f for f in factors)]

    def _unpack_factors(self, numbers: list[float]) -> dict[str, Any]:
        places, names = numbers[:4], self._names.split(",")
        return {f"{name}_factor": numbers[4 + i] if i in places else None for i, name in enumerate(names)}

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        return [steps.ColorSequence(params.numbers, self._names.split(","))]


class ColorStep(ColorSteps):
    """A transform of one step, applied with a probability, whose amount is an argument."""

    _config: tuple[str, ...] = ("p",)
    _random_parameters = (Parameter("order", 1, neutral=-1.0), Parameter("amount"))

    def _numbers_from(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [0.0, self._amount()]

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        return [draws.chance(self.p, draws.put(0, 0), draws.put(1, self._amount()))]  # type: ignore[attr-defined]

    def _values_from(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        return {} if numbers[0] >= 0 else None

    def _amount(self) -> float:
        return 0.0
