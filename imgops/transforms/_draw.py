"""Drawing parameters inside a graph: torchvision's own code, in an operator that no compiler looks into.

Eager transforms draw as torchvision does, number by number, in Python. A compiler can neither follow that nor
keep its order; there, and where every sample has a draw of its own, one operator call draws for a transform.
It makes the transform again from its spec and runs its ``make_params``: the same code, the same draws.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

import imgops

#: name -> class, for everything that draws.
CLASSES: dict[str, type] = {}


def spec(transform: Any) -> str:
    """What a draw depends on: the class and its parameters."""
    config = {name: _plain(getattr(transform, name)) for name in transform._drawing}
    return json.dumps([type(transform)._spec_name, config])


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value.value if hasattr(value, "value") else value


@lru_cache(maxsize=1024)
def from_spec(text: str) -> Any:
    name, config = json.loads(text)
    cls = CLASSES[name]
    return getattr(cls, "_from_spec", cls)(**config)


@lru_cache(maxsize=1024)
def _program(text: str) -> list[tuple[Any, list[list[Any]]]]:
    return [(from_spec(json.dumps(step)), conditions) for step, conditions in json.loads(text)]


def _fake(
    gate: Tensor,
    previous: Tensor,
    count: int,
    sizes: Sequence[int],
    shapes: Sequence[int],
    site: int,
    program: str,
) -> Tensor:
    return torch.empty((count, sum(sizes)), dtype=torch.float64, device=gate.device)


def _kernel(
    out: Tensor,
    gate: Tensor,
    previous: Tensor,
    count: int,
    sizes: Sequence[int],
    shapes: Sequence[int],
    site: int,
    program: str,
) -> None:
    values, is_open = out.numpy(), gate.expand(count).tolist()
    starts = [0, *accumulate(sizes)]
    for i, (transform, conditions) in enumerate(_program(program)):
        shape, columns = shapes[3 * i : 3 * i + 3], slice(starts[i], starts[i + 1])
        for sample, row in enumerate(values):
            chosen = is_open[sample]
            for step, column, value in conditions:
                found = row[starts[step] + column]
                chosen = chosen and (found > 0 if value is None else found == value)
            row[columns] = transform._draw(*shape) if chosen else transform._unchosen(*shape)


@imgops.operator("imgops_transforms::draw", kernel=_kernel, fake=_fake, random=True)
def _draw(
    gate: Tensor,
    previous: Tensor,
    count: int,
    sizes: Sequence[int],
    shapes: Sequence[int],
    site: int,
    program: str,
) -> Tensor: ...


class Plan:
    """The draws of several transforms, before any of them is made: one operator call makes them all.

    ``add`` is called in the order in which the transforms will ask for their numbers. ``gate`` holds the
    conditions under which one is made at all: numbers of earlier draws, ``[step, column, value]`` with null
    for any value above 0. A plan is for one kind of draw: one per sample, or one for all.
    """

    def __init__(self, batch: int | None, inside: bool) -> None:
        self.batch = batch
        self.inside = inside  # a container that draws for each sample
        self.each: bool | None = None
        self.site = -1
        self.gate = ""
        self.steps: list[str] = []
        self.sizes: list[int] = []
        self.shapes: list[int] = []

    def add(self, transform: Any, size: int, shape: Sequence[int]) -> bool:
        """Whether the transform can have its numbers from this plan."""
        each = self.batch is not None and (self.inside or transform.per_sample)
        if not transform._spec or (self.each is not None and self.each != each):
            return False
        self.each = each
        if not self.steps:
            self.site = transform._site
        self.steps.append(f"[{transform._spec},[{self.gate}]]")
        self.sizes.append(size)
        self.shapes.extend(shape)
        return True

    def narrowed(self, column: int, value: int | None, step: int) -> str:
        """Go on only where a number is as said; returns the gate to go back to."""
        before = self.gate
        condition = f"[{step},{column},{'null' if value is None else value}]"
        self.gate = f"{before},{condition}" if before else condition
        return before

    def forget(self, steps: int) -> None:
        """All but the first ``steps``."""
        del self.steps[steps:], self.sizes[steps:], self.shapes[3 * steps :]


class Stream:
    """The draws of one call: each knows the one before it, so that none can be moved or merged with another.

    ``gate`` says where draws are made at all: a transform inside of RandomApply draws only if it was chosen.
    ``count`` is the number of samples that draw for themselves; None where all share a draw. ``ready`` holds
    numbers that were drawn ahead, in the order in which they will be asked for.
    """

    def __init__(self) -> None:
        self.gate: Tensor | None = None
        self.count: int | None = None
        self.last: Tensor | None = None
        self.ready: list[Tensor] = []

    def draw(self, text: str, site: int, size: int, shape: tuple[int, int, int]) -> Tensor:
        """``(size,)``, or ``(count, size)``."""
        if self.ready:
            return self.ready.pop(0)
        numbers = self._drawn(self.count, (size,), shape, site, f"[[{text},[]]]")
        return numbers[0] if self.count is None else numbers

    def prepare(self, plan: Plan) -> None:
        """Draw what was planned."""
        count = plan.batch if plan.each else None
        program = f"[{','.join(plan.steps)}]"
        numbers = self._drawn(count, plan.sizes, plan.shapes, plan.site, program)
        each = numbers.split(list(plan.sizes), -1)
        self.ready = [n[0] for n in each] if count is None else list(each)

    def _drawn(
        self, count: int | None, sizes: Sequence[int], shapes: Sequence[int], site: int, program: str
    ) -> Tensor:
        gate = torch.ones((), dtype=torch.bool, device="cpu") if self.gate is None else self.gate
        last = torch.zeros((), dtype=torch.float64, device="cpu") if self.last is None else self.last
        self.last = _draw(gate, last, 1 if count is None else count, sizes, shapes, site, program)
        return self.last

    def narrowed(self, gate: Tensor) -> Tensor | None:
        """Open ``gate`` only where this stream is open; returns the gate to go back to."""
        before = self.gate
        self.gate = gate if before is None else before & gate
        return before


# -- bounding boxes and keypoints ----------------------------------------------------------------


def _annotated_fake(values: Tensor, numbers: Tensor, height: int, width: int, spec: str, kind: str) -> Tensor:
    return torch.empty(values.shape, dtype=values.dtype, device=values.device)


def _annotated_kernel(
    out: Tensor, values: Tensor, numbers: Tensor, height: int, width: int, spec: str, kind: str
) -> None:
    from torchvision import tv_tensors

    transform = from_spec(spec)
    whole = numbers.ndim == 1
    rows = [numbers] if whole else list(numbers)
    for target, source, row in zip([out] if whole else out, [values] if whole else values, rows, strict=True):
        plain = source.detach()
        if not kind:
            wrapped: Any = tv_tensors.KeyPoints(plain, canvas_size=(height, width))
        else:
            format, clamping = kind.split(",")
            boxes: dict[str, Any] = {"format": format, "canvas_size": (height, width)}
            if clamping != "soft":  # older versions of torchvision know no other
                boxes["clamping_mode"] = None if clamping == "None" else clamping
            wrapped = tv_tensors.BoundingBoxes(plain, **boxes)
        target.copy_(transform._annotate(wrapped, row.tolist(), height, width).as_subclass(Tensor))


@imgops.operator("imgops_transforms::annotated", kernel=_annotated_kernel, fake=_annotated_fake)
def annotated(values: Tensor, numbers: Tensor, height: int, width: int, spec: str, kind: str) -> Tensor: ...


# -- flips ---------------------------------------------------------------------------------------


def _flipped_fake(image: Tensor, chosen: Tensor, dim: int) -> Tensor:
    return torch.empty_like(image)


def _flipped_formula(image: Tensor, chosen: Tensor, dim: int) -> Tensor:
    return torch.where(chosen.to(image.device)[..., None, None, None], image.flip(dim), image)


def _flipped_kernel(out: Tensor, image: Tensor, chosen: Tensor, dim: int) -> None:
    image = image.detach()
    if chosen.numel() == 1:
        out.copy_(image.flip(dim) if chosen.item() else image)
        return
    each = chosen.expand(image.shape[:-3])
    for i in np.ndindex(*each.shape):
        out[i].copy_(image[i].flip(dim) if each[i] else image[i])


@imgops.operator(
    "imgops_transforms::flipped",
    kernel=_flipped_kernel,
    fake=_flipped_fake,
    vmap=imgops.vmap.leading(3, 0),
    sharding=imgops.sharding.leading(3, 0),
    decomposition=_flipped_formula,
)
def flipped(image: Tensor, chosen: Tensor, dim: int) -> Tensor:
    """The samples that were chosen, mirrored: a compiler would mirror all of them and then choose."""
