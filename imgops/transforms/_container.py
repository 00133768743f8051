"""Compose, RandomApply, RandomChoice and RandomOrder."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten
from torchvision.transforms import v2

from imgops.transforms import _draw
from imgops.transforms._base import Drawn, Ours, batch_of, where
from imgops.transforms._draw import Stream


class Compose(Ours, v2.Compose):
    """As torchvision's; compiled, its draws stay in their order."""

    def forward(self, *inputs: Any) -> Any:
        if torch.compiler.is_compiling():
            return self._run(inputs, Stream())
        return super().forward(*inputs)

    def _run(self, inputs: tuple[Any, ...], stream: Stream) -> Any:
        return _through(self.transforms, inputs, stream)


def _through(transforms: Any, inputs: tuple[Any, ...], stream: Stream) -> Any:
    several = len(inputs) > 1
    out: Any = inputs if several else inputs[0]
    for transform in transforms:
        out = _applied(transform, inputs, stream)
        inputs = out if several else (out,)
    return out


def _applied(transform: Any, inputs: tuple[Any, ...], stream: Stream) -> Any:
    """One transform; one that does not know of streams is applied and then chosen or not."""
    if isinstance(transform, (Drawn, Compose)):
        return transform._run(inputs, stream)
    out = transform._run(inputs, stream) if isinstance(transform, Ours) else transform(*inputs)
    if stream.gate is None:
        return out
    before, spec = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
    after, _ = tree_flatten(out)
    return tree_unflatten(
        [_either(stream.gate, a, b, transform) for a, b in zip(after, before, strict=True)], spec
    )


def _either(gate: Tensor, changed: Any, unchanged: Any, transform: Any) -> Any:
    if changed is unchanged or not isinstance(changed, Tensor):
        return unchanged
    if changed.shape != unchanged.shape or changed.dtype != unchanged.dtype:
        name = type(transform).__name__
        must = "transforms that may be left out must keep the shape and dtype of their input in a graph"
        raise ValueError(
            f"RandomApply: {must}, got {name}: {tuple(unchanged.shape)} to {tuple(changed.shape)}"
        )
    return where(gate, changed, unchanged)


class _Container(Drawn):
    """A draw says which of the transforms are applied; those draw after it, and only where they are."""

    def _of_tensor(self, image: Tensor) -> Any:
        return super(Drawn, self).forward(image)

    def _run(self, inputs: tuple[Any, ...], stream: Stream) -> Any:
        flat, _ = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        count = stream.count
        if self.per_sample and count is None:
            stream.count = batch_of(flat)
        size = self._count(0, 0, 0)
        numbers = stream.draw(self._recipe, self._site, size, (0, 0, 0))  # type: ignore[attr-defined]
        out = self._steps(inputs, numbers, stream)
        stream.count = count
        return out

    def _gated(self, transforms: Any, inputs: tuple[Any, ...], gate: Tensor, stream: Stream) -> Any:
        before = stream.narrowed(gate)
        out = _through(transforms, inputs, stream)
        stream.gate = before
        return out

    def _one_of(self, inputs: tuple[Any, ...], chosen: Tensor, stream: Stream) -> Any:
        """All of the transforms in turn, each only where it was chosen."""
        several, out = len(inputs) > 1, None
        for i, transform in enumerate(self.transforms):  # type: ignore[attr-defined]
            out = self._gated([transform], inputs, chosen == i, stream)
            inputs = out if several else (out,)
        return out

    def _steps(self, inputs: tuple[Any, ...], numbers: Tensor, stream: Stream) -> Any:
        raise NotImplementedError


class RandomApply(_Container, v2.RandomApply):
    """As torchvision's, and per sample."""

    _drawing = ("p",)
    _recipe_name = "_Chance"

    def _steps(self, inputs: tuple[Any, ...], numbers: Tensor, stream: Stream) -> Any:
        return self._gated(self.transforms, inputs, numbers[..., 0] > 0, stream)


class RandomChoice(_Container, v2.RandomChoice):
    """As torchvision's, and per sample."""

    _drawing = ("p",)
    _recipe_name = "_Choice"

    def _steps(self, inputs: tuple[Any, ...], numbers: Tensor, stream: Stream) -> Any:
        return self._one_of(inputs, numbers[..., 0], stream)


class RandomOrder(_Container, v2.RandomOrder):
    """As torchvision's, and per sample."""

    _drawing = ("length",)
    _recipe_name = "_Order"

    @property
    def length(self) -> int:
        return len(self.transforms)

    def _count(self, channels: int, height: int, width: int) -> int:
        return len(self.transforms)

    def _steps(self, inputs: tuple[Any, ...], numbers: Tensor, stream: Stream) -> Any:
        several, out = len(inputs) > 1, None
        for turn in range(len(self.transforms)):
            out = self._one_of(inputs, numbers[..., turn], stream)
            inputs = out if several else (out,)
        return out


class _Chance:
    """What RandomApply draws."""

    def __init__(self, p: float) -> None:
        self.p = p

    def _draw(self, *shape: int) -> list[float]:
        return [0.0 if torch.rand(1) >= self.p else 1.0]

    def _unchosen(self, *shape: int) -> list[float]:
        return [0.0]


class _Choice:
    def __init__(self, p: list[float]) -> None:
        self.p = p

    def _draw(self, *shape: int) -> list[float]:
        return [float(torch.multinomial(torch.tensor(self.p), 1))]

    def _unchosen(self, *shape: int) -> list[float]:
        return [-1.0]


class _Order:
    def __init__(self, length: int) -> None:
        self.length = length

    def _draw(self, *shape: int) -> list[float]:
        return torch.randperm(self.length).double().tolist()

    def _unchosen(self, *shape: int) -> list[float]:
        return [-1.0] * self.length


_draw.CLASSES.update(_Chance=_Chance, _Choice=_Choice, _Order=_Order)
