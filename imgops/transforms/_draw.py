"""Drawing parameters inside a graph: torchvision's own code, in an operator that no compiler looks into.

Eager transforms draw as torchvision does, number by number, in Python. A compiler can neither follow that nor
keep its order; there, and where every sample has a draw of its own, one operator call draws for a transform.
It makes the transform again from its recipe and runs its ``make_params``: the same code, the same draws.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

import imgops

#: name -> class, for everything that draws.
CLASSES: dict[str, type] = {}


def recipe(transform: Any) -> str:
    """What a draw depends on: the class and its parameters."""
    config = {name: _plain(getattr(transform, name)) for name in transform._drawing}
    return json.dumps([type(transform)._recipe_name, config])


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value.value if hasattr(value, "value") else value


@lru_cache(maxsize=1024)
def made(text: str) -> Any:
    name, config = json.loads(text)
    cls = CLASSES[name]
    return getattr(cls, "_from_recipe", cls)(**config)


def _fake(
    gate: Tensor,
    previous: Tensor,
    count: int,
    size: int,
    channels: int,
    height: int,
    width: int,
    site: int,
    recipe: str,
) -> Tensor:
    return torch.empty((count, size), dtype=torch.float64, device=gate.device)


def _kernel(
    out: Tensor,
    gate: Tensor,
    previous: Tensor,
    count: int,
    size: int,
    channels: int,
    height: int,
    width: int,
    site: int,
    recipe: str,
) -> None:
    transform = made(recipe)
    shape = channels, height, width
    for row, is_open in zip(out, gate.expand(count).tolist(), strict=True):
        numbers = transform._draw(*shape) if is_open else transform._unchosen(*shape)
        row.copy_(torch.as_tensor(numbers, dtype=torch.float64))


@imgops.operator("imgops_transforms::draw", kernel=_kernel, fake=_fake, random=True)
def _draw(
    gate: Tensor,
    previous: Tensor,
    count: int,
    size: int,
    channels: int,
    height: int,
    width: int,
    site: int,
    recipe: str,
) -> Tensor: ...


class Stream:
    """The draws of one call: each knows the one before it, so that none can be moved or merged with another.

    ``gate`` says where draws are made at all: a transform inside of RandomApply draws only if it was chosen.
    ``count`` is the number of samples that draw for themselves; None where all share a draw.
    """

    def __init__(self) -> None:
        self.gate: Tensor | None = None
        self.count: int | None = None
        self.last: Tensor | None = None

    def draw(self, text: str, site: int, size: int, shape: tuple[int, int, int]) -> Tensor:
        """``(size,)``, or ``(count, size)``."""
        gate = torch.ones((), dtype=torch.bool, device="cpu") if self.gate is None else self.gate
        last = torch.zeros((), dtype=torch.float64, device="cpu") if self.last is None else self.last
        numbers = _draw(gate, last, 1 if self.count is None else self.count, size, *shape, site, text)
        self.last = numbers
        return numbers[0] if self.count is None else numbers

    def narrowed(self, gate: Tensor) -> Tensor | None:
        """Open ``gate`` only where this stream is open; returns the gate to go back to."""
        before = self.gate
        self.gate = gate if before is None else before & gate
        return before


# -- bounding boxes and keypoints ----------------------------------------------------------------


def _annotated_fake(
    values: Tensor, numbers: Tensor, height: int, width: int, recipe: str, kind: str
) -> Tensor:
    return torch.empty(values.shape, dtype=values.dtype, device=values.device)


def _annotated_kernel(
    out: Tensor, values: Tensor, numbers: Tensor, height: int, width: int, recipe: str, kind: str
) -> None:
    from torchvision import tv_tensors

    transform = made(recipe)
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
def annotated(values: Tensor, numbers: Tensor, height: int, width: int, recipe: str, kind: str) -> Tensor: ...


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
    out.copy_(image)
    out[each] = image[each].flip(dim)


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
