"""Let left and right change places in a mirror image: keypoints, classes of boxes, values of masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors

from imgops import _check, _subclass
from imgops._torch_private import raise_error
from imgops.transforms._core import torchvision_private
from imgops.transforms._core.arguments import check_held
from imgops.transforms._core.base import RandomTransform
from imgops.transforms._core.parameters import Params
from imgops.transforms.functional import _dispatch

#: The left and right keypoints of people in COCO, which has 17 of each: eyes, ears, shoulders and so on.
NAMED: dict[str, list[list[int]]] = {"coco": [[i, i + 1] for i in range(1, 17, 2)]}


#: The arguments that a graph needs to make the transform again.
SWAPS = ("swap", "swap_labels", "swap_masks")


class Mirror(RandomTransform):
    """The base of transforms that mirror, and in which pairs of names change places."""

    swap: Any = None
    swap_labels: Any = None
    swap_masks: Any = None
    _find_labels: Any = None
    _find_visible: Any = None
    added_arguments: tuple[str, ...] = (
        *RandomTransform.added_arguments,
        *(*SWAPS, "labels_getter", "visible_getter"),
    )

    def _set_swaps(self, swap: Any, labels: Any, masks: Any, labels_getter: Any, visible_getter: Any) -> None:
        """Check the arguments and keep those that are given, so that ``repr`` shows no others."""
        pairs = NAMED.get(swap) if isinstance(swap, str) else swap
        if pairs is None and swap is not None:
            must = f"{type(self).__name__}: swap must be pairs of keypoints or one of {', '.join(NAMED)}"
            raise_error(ValueError, f"{must}, got {_check.shown(swap)}")
        for name, value in zip(SWAPS, (pairs, labels, masks), strict=True):
            if value is not None:
                setattr(self, name, _pairs(self, name, value))
        for name, value in (("labels_getter", labels_getter), ("visible_getter", visible_getter)):
            is_default = value is None or (isinstance(value, str) and value == "default")
            if not is_default and not callable(value):
                must = f"{type(self).__name__}: {name} must be 'default', a callable or None"
                raise_error(ValueError, f"{must}, got {_check.shown(value)}")
        self._find_labels = torchvision_private.labels_getter(labels_getter)
        self._find_visible = _visible_of if visible_getter == "default" else visible_getter

    def by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        out = super().by_torchvision(inpt, values)
        if not self.swap or not isinstance(inpt, tv_tensors.KeyPoints):
            return out
        return _dispatch.wrap_like(_swap_rows(self, _subclass.plain(out), -2), out)

    def _swap_values(self, mask: Tensor) -> Tensor:
        return _swap_numbers(self, "swap_masks", mask) if self.swap_masks else mask

    def _change_others(
        self, inputs: tuple[Any, ...], flat: list[Any], changed: list[Any], params: Params
    ) -> list[Any]:
        whole = inputs if len(inputs) > 1 else inputs[0]
        chosen = None if params.is_known else params.numbers[..., 0] > 0
        if self.swap_labels:
            labels = self._find_labels(whole)
            changed = self._replace("labels", labels, flat, changed, chosen, self._swap_classes)
        if self.swap and self._find_visible is not None:
            flags = self._find_visible(whole)
            if flags is not None:
                how = flat, changed, chosen, lambda x: self._swap_flags(x, flat)
                changed = self._replace("visible", flags, *how)
        return changed

    def _swap_classes(self, labels: Tensor) -> Tensor:
        return _swap_numbers(self, "swap_labels", labels)

    def _swap_flags(self, flags: Tensor, flat: list[Any]) -> Tensor:
        """Let flags change places, one for each keypoint: ``(..., K)`` or ``(..., K, 1)``."""
        shapes = [tuple(_subclass.plain(x).shape[:-1]) for x in flat if isinstance(x, tv_tensors.KeyPoints)]
        if tuple(flags.shape) in shapes:
            return _swap_rows(self, flags, -1)
        if (*flags.shape[-1:], tuple(flags.shape[:-1])) in [(1, shape) for shape in shapes]:
            return _swap_rows(self, flags, -2)
        must = f"{type(self).__name__}: visible must have a flag for each keypoint"
        return raise_error(ValueError, f"{must}, {shapes}, got shape {tuple(flags.shape)}")

    def _replace(
        self,
        what: str,
        found: Any,
        flat: list[Any],
        changed: list[Any],
        chosen: Tensor | None,
        swap: Callable[[Tensor], Tensor],
    ) -> list[Any]:
        """Swap in a tensor among the inputs, or in a list of one for each sample, where the mirror is."""
        several = isinstance(found, (list, tuple))
        values = list(found) if several else [found]
        each = chosen is not None and chosen.ndim == 1
        places = [[i for i, inpt in enumerate(flat) if inpt is value] for value in values]
        known = all(places) and all(isinstance(x, Tensor) for x in values)
        if not known or (several and each and len(values) != chosen.shape[0]):  # type: ignore[union-attr]
            must = f"{what} must be a tensor of the inputs, or a list of one for each sample"
            got = [type(x).__name__ for x in values]
            raise_error(ValueError, f"{type(self).__name__}: {must}, got {got}")
        out = list(changed)
        for sample, its_places in enumerate(places):
            gate = chosen[sample] if chosen is not None and several and each else chosen
            for at in its_places:
                out[at] = _dispatch.wrap_like(_where(gate, swap, _subclass.plain(changed[at])), changed[at])
        return out


def _where(gate: Tensor | None, swap: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
    """Swap in values where a gate is open; without a gate everywhere."""
    result = swap(values)
    if gate is None:
        return result
    gate = gate.to(values.device, non_blocking=True)
    return torch.where(gate.reshape(*gate.shape, *(1,) * (values.ndim - gate.ndim)), result, values)


def _pairs(owner: Any, name: str, value: Any) -> list[list[int]]:
    """Check pairs of whole numbers; no number may be in two pairs."""
    plain = value.tolist() if hasattr(value, "tolist") else value
    rows = [list(pair) for pair in plain] if _is_list(plain) and all(map(_is_list, plain)) else [[]]
    whole = [n for pair in rows for n in map(_check.plain, pair)]
    is_right = all(len(pair) == 2 for pair in rows) and all(type(n) is int and n >= 0 for n in whole)
    if not is_right or len(set(whole)) < len(whole):
        must = f"{type(owner).__name__}: {name} must be pairs of different whole numbers from 0 on"
        raise_error(ValueError, f"{must}, got {_check.shown(value)}")
    return [whole[i : i + 2] for i in range(0, len(whole), 2)]


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _swap_rows(owner: Any, values: Tensor, dim: int) -> Tensor:
    """Let the rows of pairs change places along a dimension."""
    count, order = values.shape[dim], {}
    for a, b in owner.swap:
        order[a], order[b] = b, a
    if max(order, default=-1) >= count:
        must = f"{type(owner).__name__}: keypoints must be at least {max(order) + 1} for swap"
        raise_error(ValueError, f"{must}, got {count}")
    rows = [order.get(i, i) for i in range(count)]
    return torch.stack([values.select(dim, i) for i in rows], dim)


def _swap_numbers(owner: Any, name: str, values: Tensor) -> Tensor:
    """Let the numbers of pairs change places."""
    out = values
    for a, b in getattr(owner, name):
        check_held(owner, name, max(a, b), values.dtype)
        out = out.masked_fill(values == a, b).masked_fill(values == b, a)
    return out


def _visible_of(inputs: Any) -> Any:
    """Return what a dict of annotations has under a key like "visible" or "visibility", or None."""
    sample = inputs[1] if isinstance(inputs, (tuple, list)) and len(inputs) > 1 else inputs
    if not isinstance(sample, Mapping):
        return None
    return next((value for key, value in sample.items() if "visib" in str(key).lower()), None)
