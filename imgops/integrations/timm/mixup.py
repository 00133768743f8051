"""The counterpart of timm's Mixup, which blends or pastes the images of a batch in reverse order."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

from imgops._common.torch_private import raise_error
from imgops._operator import subclass
from imgops.integrations._reader import MAKERS, Reader
from imgops.transforms._core import seeding
from imgops.transforms._core.base import RandomTransform
from imgops.transforms._core.parameters import Numbers, Parameter
from imgops.transforms._core.sampling import ParameterSampler

#: The numbers of an image: its box (top, bottom, left, right), two weights, and the weight of its label.
_WIDTH = 7
_SETTINGS = ("mixup_alpha", "cutmix_alpha", "cutmix_minmax", "mix_prob", "switch_prob", "mode", "correct_lam")
_OF_LABELS = ("label_smoothing", "num_classes", "multi_label")


class _TimmMixup(RandomTransform, v2.Transform):
    _random_parameters = (Parameter("mix", lambda t, shape: _WIDTH * shape[0]),)
    _joins_samples = True
    _config = (*_SETTINGS, *_OF_LABELS, "mixup_enabled")

    def __init__(self, **settings: Any) -> None:
        v2.Transform.__init__(self)
        for name in self._config:
            setattr(self, name, settings[name])
        self._start(False, None)

    def _get_name(self) -> str:
        return "Mixup"

    def _neutral_numbers(self, shape: Any) -> list[float]:
        return [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0] * shape[0]

    def _draw(self, inputs: Any) -> Numbers:
        """Run timm's own method on a batch without channels, and note its boxes and weights."""
        from timm.data.mixup import Mixup

        samples, _, height, width = self._shape_of(inputs)
        given, boxes = Mixup.__new__(Mixup), []
        given.__dict__.update({name: getattr(self, name) for name in self._config})
        method = getattr(Mixup, f"_mix_{self.mode}" if self.mode in ("elem", "pair") else "_mix_batch")
        whole = method.__globals__["cutmix_bbox_and_lam"]

        def noted(*args: Any, **keywords: Any) -> Any:
            box, lam = whole(*args, **keywords)
            boxes.append([float(n) for n in box])
            return box, lam

        params: list[Any] = []

        def drawn(name: str) -> Any:
            def draw(*args: Any) -> Any:
                lam, use_cutmix = getattr(Mixup, name)(given, *args)
                # The method writes the weights of boxes into the array; they are those of blends before.
                params.append((lam.copy() if hasattr(lam, "copy") else lam, use_cutmix))
                return lam, use_cutmix

            return draw

        given._params_per_batch = drawn("_params_per_batch")
        given._params_per_elem = drawn("_params_per_elem")
        names = {**method.__globals__, "cutmix_bbox_and_lam": noted}
        with seeding.own_generators():
            of_labels = FunctionType(method.__code__, names)(
                given, torch.zeros(samples, 0, height, width, dtype=torch.float32, device="cpu")
            )
        lams, are_boxes = params[0]
        return self._rows(samples, lams, are_boxes, boxes, of_labels)

    def _rows(
        self, samples: int, lams: Any, are_boxes: Any, boxes: list[list[float]], labels: Any
    ) -> list[float]:
        rows: list[list[float]] = []
        following = iter(boxes)
        for i in range(samples):
            each = hasattr(lams, "copy")
            if each and i >= len(lams):  # the second of a pair has the numbers of the first
                rows.append(rows[samples - 1 - i])
                continue
            lam, is_box = (lams[i], are_boxes[i]) if each else (lams, are_boxes)
            label = float(labels[i, 0]) if isinstance(labels, Tensor) else float(labels)
            row = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, label]
            if lam != 1.0 and is_box:
                row[:4] = next(following) if each or not rows else rows[0][:4]
            elif lam != 1.0:
                row[4:6] = [float(lam), float(1 - lam)]
            rows.append(row)
        return [n for row in rows for n in row]

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
        own, other = (
            (x.to(precise) * weights.to(precise)).to(images.dtype)
            for x, weights in ((images, first), (others, second))
        )
        return torch.where(inside, others, torch.where(second == 0, images, own + other))

    def _labels(self, labels: Tensor, numbers: Tensor, dtype: torch.dtype) -> Tensor:
        from timm.data.mixup import mixup_target

        weights: Any = numbers[:, 6:].to(labels.device)
        weights = weights[0, 0] if self.mode == "batch" else weights.to(dtype)
        return mixup_target(labels, self.num_classes, weights, self.label_smoothing, self.multi_label)


def _mixup(given: Any, reader: Reader) -> Any:
    return _TimmMixup(**{name: getattr(given, name, None) for name in _TimmMixup._config})


MAKERS["timm.data.mixup.Mixup"] = _mixup
