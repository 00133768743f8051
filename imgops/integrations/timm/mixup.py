"""The counterpart of timm's Mixup, which blends or pastes the images of a batch in reverse order."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops._common.torch_private import raise_error
from imgops._operator import subclass
from imgops.integrations._counterparts import RandomCounterpart
from imgops.integrations._reader import MAKERS
from imgops.integrations.timm import timm_private
from imgops.transforms._core import seeding
from imgops.transforms._core.parameters import Numbers, Parameter
from imgops.transforms._core.sampling import ParameterSampler

#: The numbers of an image: its box (top, bottom, left, right), two weights, and the weight of its label.
_WIDTH = 7
_SETTINGS = (
    *("mixup_alpha", "cutmix_alpha", "cutmix_minmax", "mix_prob", "switch_prob", "mode", "correct_lam"),
    *("label_smoothing", "num_classes", "multi_label", "mixup_enabled"),
)


class Mixup(RandomCounterpart):
    """Blend the images of a batch, or paste boxes of them, and blend their labels."""

    _random_parameters = (Parameter("mix", lambda t, shape: _WIDTH * shape[0]),)
    _joins_samples = True

    def _neutral_numbers(self, shape: Any) -> list[float]:
        return [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0] * shape[0]

    def _draw(self, inputs: Any) -> Numbers:
        """Draw the weights and then the boxes, in the order of timm's loops over images."""
        samples, _, height, width = self._shape_of(inputs)
        known = {name: getattr(self, name) for name in _SETTINGS}
        with seeding.own_generators():
            if self.mode not in ("elem", "pair"):
                return self._row(*timm_private.draw_mixup(known, None), height, width) * samples
            count = samples // 2 if self.mode == "pair" else samples
            drawn = zip(*timm_private.draw_mixup(known, count), strict=True)
            rows = [self._row(lam, is_box, height, width) for lam, is_box in drawn]
        if self.mode == "pair":  # the second of a pair has the numbers of the first
            rows += rows[::-1]
        return [n for row in rows for n in row]

    def _row(self, lam: Any, is_box: bool, height: int, width: int) -> list[float]:
        """Return the numbers of an image, whose box is drawn; its label has the precision of the weight."""
        from timm.data.mixup import cutmix_bbox_and_lam

        if lam == 1.0:
            return [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0]
        if not is_box:
            return [0.0, 0.0, 0.0, 0.0, float(lam), float(1 - lam), float(lam)]
        how = {"ratio_minmax": self.cutmix_minmax, "correct_lam": self.correct_lam}
        box, share = cutmix_bbox_and_lam((height, width), lam, **how)
        return [*map(float, box), 1.0, 0.0, float(type(lam)(share))]

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        if len(inputs) != 2 or not all(isinstance(x, Tensor) for x in inputs):
            raise_error(TypeError, "Mixup: inputs must be a batch and its labels")
        images, labels = inputs
        pastes = self.cutmix_alpha > 0
        if not images.ndim or (pastes and images.ndim != 4):
            must = "Mixup: images must be a batch (N, C, H, W)" if pastes else "Mixup: images must be a batch"
            raise_error(ValueError, f"{must}, got {images.ndim} dimensions")
        only_pastes = self.mode == "batch" and not (self.mixup_enabled and self.mixup_alpha > 0)
        if not (images.is_floating_point() or only_pastes):
            raise_error(TypeError, f"Mixup: images must be floating point, got {images.dtype}")
        if len(images) % 2:
            raise_error(ValueError, f"Mixup: images must be even in number, got {len(images)}")
        if self.per_sample or sampler.count is not None:
            must = "Mixup: per_sample must be False, because images are mixed with others"
            raise_error(NotImplementedError, f"{must}, got True")
        batch = subclass.plain(images)
        if batch.ndim != 4:  # where every value of a sample has the same weights, its shape does not count
            batch = batch.reshape(len(batch), 1, -1, 1)
        params: Any = self._sample_params([batch], sampler)
        numbers = params.tensor().reshape(len(batch), _WIDTH)
        mixed = self._mixed(batch, numbers).reshape(images.shape)
        return subclass.rewrap(mixed, images), self._labels(labels, numbers, images.dtype)

    def _mixed(self, images: Tensor, numbers: Tensor) -> Tensor:
        numbers = numbers.to(images.device)
        top, bottom, left, right, first, second = numbers[:, :6, None, None, None].unbind(1)
        rows = torch.arange(images.shape[-2], device=images.device, dtype=torch.int64)[:, None]
        columns = torch.arange(images.shape[-1], device=images.device, dtype=torch.int64)
        inside = (rows >= top) & (rows < bottom) & (columns >= left) & (columns < right)
        others = images.flip(0)
        if not images.is_floating_point():
            return torch.where(inside, others, images)
        # timm multiplies by numbers, which have the precision of the arithmetic and not that of the images.
        precise = torch.promote_types(images.dtype, torch.float32)
        one, other = (
            (x.to(precise) * weights.to(precise)).to(images.dtype)
            for x, weights in ((images, first), (others, second))
        )
        return torch.where(inside, others, torch.where(second == 0, images, one + other))

    def _labels(self, labels: Tensor, numbers: Tensor, dtype: torch.dtype) -> Tensor:
        from timm.data.mixup import mixup_target

        weights: Any = numbers[:, 6:].to(labels.device)
        weights = weights[0, 0] if self.mode == "batch" else weights.to(dtype)
        return mixup_target(labels, self.num_classes, weights, self.label_smoothing, self.multi_label)


MAKERS["timm.data.mixup.Mixup"] = lambda given, _: Mixup(
    **{name: getattr(given, name, None) for name in _SETTINGS}
)
