"""Base classes of transforms whose output size is an argument, or differs between samples."""

from __future__ import annotations

from typing import Any

from torch.compiler import is_compiling

from imgops._common.torch_private import raise_error
from imgops._operator import subclass
from imgops.transforms._core import operators
from imgops.transforms._core.base import OperatorTransform, RandomTransform
from imgops.transforms._core.parameters import Params
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms.functional import _dispatch


class FixedTransform(OperatorTransform):
    """A transform that depends on its arguments alone, and gives exactly PIL's pixels."""

    _moves = True

    def _has_pils_pixels(self) -> bool:
        return True


class RandomSizeTransform(RandomTransform):
    """A :class:`RandomTransform` whose samples come out in different sizes, and so cannot form a batch."""

    _moves = True

    #: The lower bound of each size that depends on the parameters.
    _least: tuple[int, ...] = (1, 1)

    def _sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        """Return the sizes that the parameters imply: a height and a width."""
        raise NotImplementedError

    def _out_size(self, height: int, width: int) -> tuple[int, int] | None:
        return None

    def _sample_params(self, inputs: list[Any], sampler: ParameterSampler) -> Params | None:
        self._refuse_a_batch(inputs, sampler)
        return super()._sample_params(inputs, sampler)

    def _refuse_a_batch(self, inputs: list[Any], sampler: ParameterSampler) -> None:
        if sampler.count is not None or (self.per_sample and self._is_batch(inputs)):
            must = "per_sample must be False, because samples of different sizes cannot form a batch"
            raise_error(NotImplementedError, f"{self._get_name()}: {must}, got True")

    @staticmethod
    def _is_batch(inputs: list[Any]) -> bool:
        return any(_dispatch.is_image(x) and subclass.plain(x).ndim > 3 for x in inputs)

    def _sizes(self, params: Params) -> tuple[int, ...]:
        if params.sizes is None:
            if params.is_known:
                params.sizes = self._sampled_sizes(params.numbers, *params.canvas)
            elif is_compiling():
                how = (*params.canvas, self._least, self._description)
                params.sizes = tuple(operators.sizes(params.numbers, *how).shape[: len(self._least)])
            else:
                params.sizes = self._sampled_sizes(params.numbers.tolist(), *params.canvas)
        return params.sizes

    def _canvas(self, params: Params) -> tuple[int, int]:
        height, width = self._sizes(params)
        return height, width
