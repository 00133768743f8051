"""Compose, RandomApply, RandomChoice and RandomOrder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops._torch_private import tree_flatten, tree_unflatten
from imgops.transforms import _draw
from imgops.transforms._base import Drawn, Ours, batch_of, shape_of, where
from imgops.transforms._color import Normalize, ToDtype
from imgops.transforms._draw import Plan, Stream
from imgops.transforms.functional import _dispatch


class Compose(Ours, v2.Compose):
    """As torchvision's; compiled, its draws stay in their order."""

    def forward(self, *inputs: Any) -> Any:
        if torch.compiler.is_compiling():
            return self._run(inputs, Stream())
        if len(inputs) == 1:
            return self._of_one(inputs[0])
        return super().forward(*inputs)

    def _of_one(self, inpt: Any) -> Any:
        """What torchvision's forward does with one input; of uint8, ToDtype and Normalize are one table."""
        at = 0
        while at < len(self.transforms):
            table = _table_of(self.transforms[at : at + 2], inpt)
            if table is None:
                inpt = self.transforms[at](inpt)
                at += 1
            else:
                inpt = imgops.lut(inpt, table)
                at += 2
        return inpt

    def _run(self, inputs: tuple[Any, ...], stream: Stream) -> Any:
        return _through(self.transforms, inputs, stream)

    def _plan(self, shape: Sequence[int], plan: Plan) -> Sequence[int] | None:
        return _planned(self.transforms, shape, plan)


def _planned(transforms: Any, shape: Sequence[int], plan: Plan) -> Sequence[int] | None:
    for transform in transforms:
        after = transform._plan(shape, plan) if isinstance(transform, Ours) else None
        if after is None:
            return None
        shape = after
    return shape


def _prepare(transforms: Sequence[Any], inputs: tuple[Any, ...], stream: Stream) -> None:
    """Draw at once for as many transforms as let their numbers be known before any of them is applied."""
    flat, _ = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
    flat = [x for x in flat if _dispatch.is_image(x)]
    if not flat:
        return
    plan = Plan(batch_of(flat), stream.count is not None)
    shape: Sequence[int] = shape_of(flat)
    for transform in transforms:
        before = len(plan.steps)
        after = _planned([transform], shape, plan)
        if after is None:
            plan.forget(before)
            break
        shape = after
    if len(plan.steps) > 1:
        stream.prepare(plan)


def _table_of(pair: Sequence[Any], image: Any) -> Tensor | None:
    """What ToDtype and Normalize make of the 256 levels of each channel, by torchvision's own arithmetic."""
    if type(image) is not Tensor or image.dtype != torch.uint8 or [type(t) for t in pair] != _END:
        return None
    first, second = pair
    if first.dtype != torch.float32 or not first.scale:
        return None
    if _is_hooked(first) or _is_hooked(second) or image.ndim < 3 or not image.is_cpu:
        return None
    mean, std = second.mean, second.std
    if not isinstance(mean, (list, tuple)) or not isinstance(std, (list, tuple)):
        return None
    if len(mean) != image.shape[-3] or len(std) != len(mean) or not all(std):
        return None  # torchvision says what is wrong
    return _levels(tuple(mean), tuple(std))


_END: list[type] = [ToDtype, Normalize]


@lru_cache(maxsize=64)
def _levels(mean: tuple[float, ...], std: tuple[float, ...]) -> Tensor:
    with torch.inference_mode(False):  # the next call may be outside
        levels = torch.arange(256, dtype=torch.uint8, device="cpu").expand(len(mean), 1, 256)
        real = v2.functional.to_dtype(levels, torch.float32, scale=True)
        return v2.functional.normalize(real, list(mean), list(std))[:, 0]


def _is_hooked(module: torch.nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)


def _through(transforms: Any, inputs: tuple[Any, ...], stream: Stream) -> Any:
    several = len(inputs) > 1
    out: Any = inputs if several else inputs[0]
    for i, transform in enumerate(transforms):
        if not stream.ready and isinstance(transform, (Drawn, Compose)):
            _prepare(transforms[i:], inputs, stream)
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

    _usual = False

    def _run(self, inputs: tuple[Any, ...], stream: Stream) -> Any:
        flat, _ = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        count = self._counted(flat, stream)
        size = self._count(0, 0, 0)
        numbers = stream.draw(self._spec, self._site, size, (0, 0, 0))  # type: ignore[attr-defined]
        out = self._steps(inputs, numbers, stream)
        stream.count = count
        return out

    def _plan(self, shape: Sequence[int], plan: Plan) -> Sequence[int] | None:
        inside, step = plan.inside, len(plan.steps)
        if not plan.add(self, self._count(*shape), shape):
            return None
        plan.inside = inside or self.per_sample
        known = self._plan_steps(shape, plan, step)
        plan.inside = inside
        return shape if known else None

    def _plan_steps(self, shape: Sequence[int], plan: Plan, step: int) -> bool:
        """The draws of the transforms inside; False if not all can be known."""
        raise NotImplementedError

    def _plan_one_of(self, shape: Sequence[int], plan: Plan, step: int, column: int) -> bool:
        known = True
        for i, transform in enumerate(self.transforms):  # type: ignore[attr-defined]
            before = plan.narrowed(column, i, step)
            known = known and _planned([transform], shape, plan) is not None
            plan.gate = before
        return known

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
    _spec_name = "_Chance"

    def _plan_steps(self, shape: Sequence[int], plan: Plan, step: int) -> bool:
        before = plan.narrowed(0, None, step)
        known = _planned(self.transforms, shape, plan) is not None
        plan.gate = before
        return known

    def _steps(self, inputs: tuple[Any, ...], numbers: Tensor, stream: Stream) -> Any:
        return self._gated(self.transforms, inputs, numbers[..., 0] > 0, stream)


class RandomChoice(_Container, v2.RandomChoice):
    """As torchvision's, and per sample."""

    _drawing = ("p",)
    _spec_name = "_Choice"

    def _plan_steps(self, shape: Sequence[int], plan: Plan, step: int) -> bool:
        return self._plan_one_of(shape, plan, step, 0)

    def _steps(self, inputs: tuple[Any, ...], numbers: Tensor, stream: Stream) -> Any:
        return self._one_of(inputs, numbers[..., 0], stream)


class RandomOrder(_Container, v2.RandomOrder):
    """As torchvision's, and per sample."""

    _drawing = ("length",)
    _spec_name = "_Order"

    @property
    def length(self) -> int:
        return len(self.transforms)

    def _count(self, channels: int, height: int, width: int) -> int:
        return len(self.transforms)

    def _plan_steps(self, shape: Sequence[int], plan: Plan, step: int) -> bool:
        known = True
        for turn in range(len(self.transforms)):
            known = known and self._plan_one_of(shape, plan, step, turn)
        return known

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
