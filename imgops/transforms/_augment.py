"""Erasing, mixing, and JPEG."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops import _layout, _subclass
from imgops.transforms import _torchvision
from imgops.transforms._base import OperatorTransform, RandomTransform, batch_of
from imgops.transforms._parameters import Numbers, Parameter, Params, Shape, as_integers
from imgops.transforms._sampling import ParameterSampler
from imgops.transforms.functional import _dispatch


class RandomErasing(RandomTransform, v2.RandomErasing):
    """As torchvision's, and per sample."""

    _config = ("p", "scale", "ratio", "value")

    @classmethod
    def _from_config(cls, value: Any, **config: Any) -> RandomErasing:
        return cls(value="random" if value is None else value, **config)

    random_parameters = (
        Parameter("box", 4),
        Parameter("pixels", lambda t, shape: 0 if t.value is not None else shape[1] * shape[2] * shape[3]),
    )

    def _draw(self, inputs: Any) -> Numbers | None:
        if torch.rand(1).item() >= self._p_in_float32:
            return None
        values = self.make_params(inputs)
        return None if values["v"] is None else self.pack(values, 0, 0)

    def pack(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        left, top = values["j"], values["i"]
        box = [left, top, left + values["w"], top + values["h"]]
        if self.value is not None:
            return box
        return torch.cat([torch.tensor(box, dtype=torch.float32), values["v"].flatten()])

    def draw_row(self, shape: Shape) -> Numbers | None:
        numbers = super().draw_row(shape)
        if numbers is None or self.value is not None:
            return numbers
        left, top, right, bottom = (int(n) for n in numbers[:4])
        canvas = torch.zeros(tuple(shape[1:]), dtype=torch.float64)  # rows of a batch have one length
        canvas[:, top:bottom, left:right] = numbers[4:].reshape(shape[1], bottom - top, right - left)
        return torch.cat([numbers[:4], canvas.flatten()])

    def unpack(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        left, top, right, bottom = map(int, numbers[:4])
        if right == left:
            return None
        if self.value is None:
            value = torch.tensor(numbers[4:], dtype=torch.float32)
            channels, rest = divmod(len(value), height * width)
            if rest or not channels:  # the pixels of the box alone
                value = value.reshape(-1, bottom - top, right - left)
            else:
                value = value.reshape(channels, height, width)[:, top:bottom, left:right]
        else:
            value = torch.tensor(self.value)[:, None, None]
        return {"i": top, "j": left, "h": bottom - top, "w": right - left, "v": value}

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        numbers = params.beside(image)
        if params.is_known or self._has_box_alone(numbers, image):
            left, top, right, bottom = map(int, numbers[:4])
            high, wide = bottom - top, right - left
            if self.value is None:
                value = numbers[4:].reshape(-1, high, wide)
            else:
                value = torch.tensor(self.value)[:, None, None]
            if self.inplace or not _layout.is_dense(image):
                return _dispatch.KERNELS["erase"](image, top, left, high, wide, value, self.inplace)
            out = image.clone()
            out[..., top:bottom, left:right] = value
            return out
        if self.value is None:
            value = numbers[..., 4:].unflatten(-1, image.shape[-3:])
        else:
            value = torch.tensor(self.value, dtype=torch.float64, device="cpu")[:, None, None]
            value = value.expand(image.shape[-3], 1, 1)
        value = value.to(image.device, image.dtype, non_blocking=True)
        return imgops.erase(image, numbers[..., :4].long(), value)

    def _has_box_alone(self, numbers: Tensor, image: Tensor) -> bool:
        """Return whether random pixels are those of the box, which eager mode draws, not a canvas of the image's."""
        if self.value is not None or numbers.ndim > 1 or _subclass.in_graph():
            return False
        return numbers.shape[0] != 4 + image.shape[-3] * image.shape[-2] * image.shape[-1]


class _Mix(RandomTransform):
    """MixUp and CutMix sample for a batch; ``per_sample`` samples for each of its images."""

    _config = ("alpha",)
    #: Whether samples are joined: what comes out of one depends on others, and labels get another form.
    joins_samples = True

    def forward(self, *inputs: Any) -> Any:
        return super(OperatorTransform, self).forward(*inputs)  # type: ignore[misc]

    _own_sampler: ParameterSampler | None = None

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        if _subclass.in_graph():  # a compiler follows one call at a time, and cannot make the object below
            self._own_sampler = sampler
            out = self.forward(*inputs)
            self._own_sampler = None
            return out
        again = object.__new__(type(self))
        again.__dict__ = {**self.__dict__, "_own_sampler": sampler}
        return again.forward(*inputs)

    def _record(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> None:
        self._run(inputs, sampler)

    def _plan(self, shape: Any, program: Any) -> None:
        return None

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Sample torchvision's parameters; tensors in a graph, and where each image has its own."""
        sampler = self._own_sampler or ParameterSampler()
        before = sampler.count
        if self.per_sample and before is None:
            sampler.count = batch_of(flat_inputs)
        params = sampler.params(self, flat_inputs)
        sampler.count = before
        assert params is not None
        names = [parameter.name for parameter in self.random_parameters]
        return dict(zip(names, self.split(params.numbers), strict=True))

    def _draw(self, inputs: Any) -> Numbers:
        _, _, height, width = self.shape_of(inputs)
        return self.pack(super(RandomTransform, self).make_params(inputs), height, width)  # type: ignore[misc]

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
            return self._label(inpt, params[self.random_parameters[-1].name])
        if not _dispatch.is_image(inpt):
            return inpt
        _torchvision.check_batch(self, inpt, params["batch_size"])
        return _dispatch.wrapped(self._mixed(_subclass.plain(inpt), params), inpt)

    def _mixed(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        raise NotImplementedError


class MixUp(_Mix, v2.MixUp):
    """As torchvision's, on uint8 too, and per sample."""

    random_parameters = (Parameter("lam", neutral=1.0),)

    def _mixed(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        weight = params["lam"]
        if isinstance(weight, Tensor) and weight.ndim:
            weight = weight.reshape(-1, *(1,) * (images.ndim - 4))
        return imgops.blend(images.roll(1, 0), images, weight)


class CutMix(_Mix, v2.CutMix):
    """As torchvision's, and per sample."""

    random_parameters = (Parameter("box", 4), Parameter("lam_adjusted", neutral=1.0))

    def _mixed(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        box = torch.as_tensor(as_integers(params["box"]), device="cpu")
        if box.ndim > 1:
            box = box.reshape(-1, *(1,) * (images.ndim - 4), 4)
        return imgops.erase(images, box, images.roll(1, 0))


class JPEG(RandomTransform, v2.JPEG):
    """As torchvision's, with Pillow's pixels, on floats too, and per sample."""

    _config = ("quality",)

    random_parameters = (Parameter("quality", kind=int),)

    def unpack(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        return super().unpack(numbers, height, width) if numbers[0] else None

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return imgops.jpeg(image, self.split(params.beside(image))[0])
