"""Erasing, mixing, and JPEG."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops import _subclass
from imgops.transforms import _torchvision
from imgops.transforms._base import Numbers, RandomTransform
from imgops.transforms._sampling import ParameterSampler, Params
from imgops.transforms.functional import _dispatch


class RandomErasing(RandomTransform, v2.RandomErasing):
    """As torchvision's, and per sample."""

    _config = ("p", "scale", "ratio", "value")

    @classmethod
    def _from_config(cls, value: Any, **config: Any) -> RandomErasing:
        return cls(value="random" if value is None else value, **config)

    def sample_params(self, inputs: list[Any]) -> dict[str, Any] | None:
        values = super().sample_params(inputs)
        return None if values is None or values["v"] is None else values

    def _count(self, samples: int, channels: int, height: int, width: int) -> int:
        """A box, and where the pixels are random a canvas that holds them."""
        return 4 + channels * height * width if self.value is None else 4

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        left, top = values["j"], values["i"]
        right, bottom = left + values["w"], top + values["h"]
        if self.value is not None:
            return [left, top, right, bottom]
        pixels = values["v"]
        canvas = torch.zeros((len(pixels), height, width), dtype=torch.float64)
        canvas[:, top:bottom, left:right] = pixels.double()
        return torch.cat([torch.tensor([left, top, right, bottom]).double(), canvas.flatten()])

    def unpack_params(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        left, top, right, bottom = map(int, numbers[:4])
        if right == left:
            return None
        if self.value is None:
            canvas = torch.tensor(numbers[4:], dtype=torch.float32).reshape(-1, height, width)
            value = canvas[:, top:bottom, left:right]
        else:
            value = torch.tensor(self.value)[:, None, None]
        return {"i": top, "j": left, "h": bottom - top, "w": right - left, "v": value}

    def identity_params(self, samples: int, channels: int, height: int, width: int) -> Numbers:
        return 0.0

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        values = params.values
        if values is not None and (self.value is None or self.inplace):
            how = [values[name] for name in ("i", "j", "h", "w", "v")]
            return _dispatch.KERNELS["erase"](image, *how, self.inplace)
        numbers = params.beside(image)
        if self.value is None:
            value = numbers[..., 4:].unflatten(-1, image.shape[-3:])
        else:
            value = torch.tensor(self.value, dtype=torch.float64, device="cpu")[:, None, None]
            value = value.expand(image.shape[-3], 1, 1)
        return imgops.erase(
            image, numbers[..., :4].long(), value.to(image.device, image.dtype, non_blocking=True)
        )


class _Mix(RandomTransform):
    """MixUp and CutMix sample for a batch; ``per_sample`` samples for each of its images."""

    _config = ("alpha",)

    def forward(self, *inputs: Any) -> Any:
        return super(RandomTransform, self).forward(*inputs)  # type: ignore[misc]

    _own_sampler: ParameterSampler | None = None

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        if sampler.record is None and sampler.replays is None:
            return self.forward(*inputs)
        again = object.__new__(type(self))
        again.__dict__ = {**self.__dict__, "_own_sampler": sampler}
        return again.forward(*inputs)

    def _record(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> None:
        self._run(inputs, sampler)

    def _plan(self, shape: Any, program: Any) -> None:
        return None

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """torchvision's parameters; tensors in a graph, and where each image has its own."""
        sampler = self._own_sampler or ParameterSampler()
        if self.per_sample:
            sampler.count = next(
                (_subclass.plain(x).shape[0] for x in flat_inputs if _dispatch.is_image(x)), None
            )
        params = sampler.params(self, flat_inputs)
        assert params is not None
        return self._named(params.numbers) if params.values is None else params.values

    def sample_params(self, inputs: list[Any]) -> dict[str, Any]:
        return super(RandomTransform, self).make_params(inputs)  # type: ignore[misc]

    def identity_params(self, samples: int, channels: int, height: int, width: int) -> Numbers:
        return self._numbers(samples, channels, height, width)  # nothing leaves a batch out

    def _named(self, numbers: Tensor) -> dict[str, Any]:
        raise NotImplementedError

    def _label(self, label: Tensor, weight: Any) -> Tensor:
        if label.ndim == 1:
            label = torch.nn.functional.one_hot(label, num_classes=self.num_classes)  # type: ignore[attr-defined]
        if not label.dtype.is_floating_point:
            label = label.float()
        if isinstance(weight, Tensor):
            weight = weight.to(label.device, label.dtype)[..., None]
        return label.roll(1, 0) * (1.0 - weight) + label * weight

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if inpt is params["labels"]:
            return self._label(inpt, params[self._weight])
        if not _dispatch.is_image(inpt):
            return inpt
        _torchvision.check_batch(self, inpt, params["batch_size"])
        return _dispatch.wrapped(self._mixed(_subclass.plain(inpt), params), inpt)

    _weight = ""

    def _mixed(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        raise NotImplementedError


class MixUp(_Mix, v2.MixUp):
    """As torchvision's, on uint8 too, and per sample."""

    _weight = "lam"

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [values["lam"]]

    def _named(self, numbers: Tensor) -> dict[str, Any]:
        return {"lam": numbers[..., 0]}

    def _mixed(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        weight = params["lam"]
        if isinstance(weight, Tensor) and weight.ndim:
            weight = weight.reshape(-1, *(1,) * (images.ndim - 4))
        return imgops.blend(images.roll(1, 0), images, weight)


class CutMix(_Mix, v2.CutMix):
    """As torchvision's, and per sample."""

    _size = 5
    _weight = "lam_adjusted"

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [*values["box"], values["lam_adjusted"]]

    def _named(self, numbers: Tensor) -> dict[str, Any]:
        return {"box": numbers[..., :4].long(), "lam_adjusted": numbers[..., 4]}

    def _mixed(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        box = params["box"]
        if not isinstance(box, Tensor):
            box = torch.tensor(box, device="cpu")
        if box.ndim > 1:
            box = box.reshape(-1, *(1,) * (images.ndim - 4), 4)
        return imgops.erase(images, box, images.roll(1, 0))


class JPEG(RandomTransform, v2.JPEG):
    """As torchvision's, with Pillow's pixels, on floats too, and per sample."""

    _config = ("quality",)

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [values["quality"]]

    def unpack_params(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        return {"quality": int(numbers[0])} if numbers[0] else None

    def identity_params(self, samples: int, channels: int, height: int, width: int) -> Numbers:
        return [0.0]

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return imgops.jpeg(image, params.beside(image)[..., 0])
