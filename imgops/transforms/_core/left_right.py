"""Let left and right change places in a mirror image: keypoints, classes of boxes, values of masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors

from imgops._common import check
from imgops._common.torch_private import raise_error, tree_flatten
from imgops._operator import subclass
from imgops.transforms._core.arguments import name_of
from imgops.transforms._core.base import RandomTransform
from imgops.transforms._core.parameters import Params
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms.functional import _dispatch

#: The left and right keypoints by name, and how many there are: COCO's eyes, ears, shoulders and so on.
NAMED: dict[str, tuple[list[list[int]], int]] = {"coco": ([[i, i + 1] for i in range(1, 17, 2)], 17)}


#: The arguments that a graph needs to make the transform again.
SWAPS = ("swap", "swap_labels", "swap_masks")


class Mirror(RandomTransform):
    """The base of transforms that mirror, and in which pairs of names change places."""

    swap: Any = None
    swap_labels: Any = None
    swap_masks: Any = None
    #: The number of keypoints, if the pairs were given by a name.
    _swap_count: int | None = None
    _find_labels: Any = None
    _find_flags: Any = None
    _added_arguments: tuple[str, ...] = (
        *RandomTransform._added_arguments,
        *(*SWAPS, "labels_getter", "visible_getter"),
    )

    def __setattr__(self, name: str, value: Any) -> None:
        pairs = value
        if name == "swap":
            self._swap_count = None
            if isinstance(value, str):
                if value not in NAMED:
                    must = (
                        f"{type(self).__name__}: swap must be pairs of keypoints or one of {', '.join(NAMED)}"
                    )
                    raise_error(ValueError, f"{must}, got {check.shown(value)}")
                pairs, self._swap_count = NAMED[value]
        if name in SWAPS and value is not None:
            pairs = _pairs(self, name, pairs)
        super().__setattr__(name, pairs)

    def _set_swaps(self, swap: Any, labels: Any, masks: Any, labels_getter: Any, visible_getter: Any) -> None:
        """Check the arguments and keep those that are given, so that ``repr`` shows no others."""
        for name, value in zip(SWAPS, (swap, labels, masks), strict=True):
            if value is not None:
                setattr(self, name, value)
        self._find_labels = getter_of(self, "labels_getter", labels_getter)
        self._find_flags = getter_of(self, "visible_getter", visible_getter)

    @property
    def _is_simple(self) -> bool:  # type: ignore[override]
        return not self.swap_labels  # missing labels raise

    def _is_direct(self, inputs: tuple[Any, ...]) -> bool:
        return self._is_simple and super()._is_direct(inputs)

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        if self.swap or self.swap_labels or self.swap_masks:
            # Raise if something cannot change places, also when this call will not mirror.
            whole = inputs if len(inputs) > 1 else inputs[0]
            flat, _ = tree_flatten(whole)
            for inpt in flat:
                if self.swap and isinstance(inpt, tv_tensors.KeyPoints):
                    _order(self, subclass.plain(inpt).shape[-2])
                if self.swap_masks and isinstance(inpt, tv_tensors.Mask):
                    _check_exact(self, "swap_masks", subclass.plain(inpt).dtype)
            self._labels(whole, flat)
            self._flags(whole, flat)
        return super()._run(inputs, sampler)

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        out = super()._by_torchvision(inpt, values)
        if not self.swap or not isinstance(inpt, tv_tensors.KeyPoints):
            return out
        return _dispatch.wrap_like(_swap_rows(self, subclass.plain(out), -2), out)

    def _swap_values(self, mask: Tensor) -> Tensor:
        return _swap_numbers(self, "swap_masks", mask) if self.swap_masks else mask

    def _transform_others(
        self,
        inputs: tuple[Any, ...],
        flat: list[Any],
        changed: list[Any],
        params: Params,
        owners: list[int | None],
    ) -> list[Any]:
        whole = inputs if len(inputs) > 1 else inputs[0]
        chosen = None if params.is_one_draw else params.numbers[..., 0] > 0
        out = list(changed)

        def put(places: list[int], sample: int | None, swap: Callable[[Tensor], Tensor]) -> None:
            for at in places:
                own, gate = sample if owners[at] is None else owners[at], chosen
                if chosen is not None and chosen.ndim and own is not None:
                    gate = chosen[own]
                values = subclass.plain(out[at])
                result = swap(values)
                if gate is not None:
                    to = gate.to(values.device, non_blocking=True)
                    to = to.reshape(*to.shape, *(1,) * (values.ndim - to.ndim))
                    result = torch.where(to, result, values)
                out[at] = _dispatch.wrap_like(result, out[at])

        labels, is_each = self._labels(whole, flat)
        for i, places in enumerate(labels):
            put(places, i if is_each else None, lambda x: _swap_numbers(self, "swap_labels", x))
        for places, dim in self._flags(whole, flat):
            put(places, None, lambda x, dim=dim: _swap_rows(self, x, dim))  # type: ignore[misc]
        return out

    def _labels(self, inputs: Any, flat: list[Any]) -> tuple[list[list[int]], bool]:
        """Return where labels are that change places, and whether each belongs to a sample of its own."""
        if not self.swap_labels:
            return [], False
        places = places_of(self, "labels", self._find_labels, LABELS, inputs, flat)
        found = [flat[at[0]] for at in places]
        boxes = [subclass.plain(x) for x in flat if isinstance(x, tv_tensors.BoundingBoxes)]
        parts = [part for x in boxes for part in (x.unbind() if x.is_nested else [x])]
        masks = [subclass.plain(x) for x in flat if isinstance(x, tv_tensors.Mask)]
        wanted = [tuple(x.shape[:-1]) for x in parts] or [tuple(x.shape[:-2]) for x in masks if x.ndim > 2]
        shapes = [tuple(x.shape) for x in found]
        is_each = bool(parts) and shapes == wanted
        of_batch = len(set(wanted)) == 1 and shapes == [(len(wanted), *wanted[0])]
        if not wanted or not (shapes == wanted or of_batch):
            want, got = (", ".join(map(check.written, each)) for each in (wanted, shapes))
            must = f"{type(self).__name__}: labels must be one for each box or mask"
            text = (
                f"{must}, of shape [{want}], got [{got}]" if wanted else f"{must}, got no boxes and no masks"
            )
            raise_error(ValueError, text)
        for value in found:
            _check_exact(self, "swap_labels", value.dtype)
        return places, is_each

    def _flags(self, inputs: Any, flat: list[Any]) -> list[tuple[list[int], int]]:
        """Return where flags of keypoints are, and in which dimension they change places.

        Flags are ``(..., K)`` or ``(..., K, 1)``.
        """
        if not self.swap:
            return []
        shapes = [tuple(subclass.plain(x).shape[:-1]) for x in flat if isinstance(x, tv_tensors.KeyPoints)]
        flags = []
        for places in places_of(self, "visible", self._find_flags, FLAGS, inputs, flat):
            own = tuple(flat[places[0]].shape)
            if own in shapes:
                flags.append((places, -1))
            elif own[-1:] == (1,) and own[:-1] in shapes:
                flags.append((places, -2))
            else:
                refuse_flags(self, shapes, [own])
        return flags


def refuse_flags(owner: Any, shapes: list[tuple[int, ...]], got: list[tuple[int, ...]]) -> None:
    """Raise because flags do not have the shapes of keypoints."""
    must = f"{name_of(owner)}: visible must have a flag for each keypoint"
    want, found = (", ".join(map(check.written, each)) for each in (shapes, got))
    raise_error(ValueError, f"{must}, [{want}], got shape {found}" if got else f"{must}, [{want}], got none")


def getter_of(owner: Any, name: str, value: Any) -> Callable[[Any], Any] | None:
    """Check a getter, and return the function that finds labels or flags; None searches the keys of dicts."""
    is_default = isinstance(value, str) and value == "default"
    if not (is_default or value is None or callable(value)):
        must = f"{name_of(owner)}: {name} must be 'default', a callable or None"
        raise_error(ValueError, f"{must}, got {check.shown(value)}")
    return None if is_default else value or _find_nothing


def places_of(
    owner: Any,
    what: str,
    find: Callable[[Any], Any] | None,
    keys: Sequence[Callable[[str], bool]],
    inputs: Any,
    flat: list[Any],
) -> list[list[int]]:
    """Return for each tensor of labels or flags where it is among the flat inputs.

    By default it is under a key of the first kind that there is. A function returns tensors: one that is
    returned once changes in all of its places, one that is returned as often as it has places in one of them
    each time.
    """
    if find is None:
        places: list[list[int]] = []
        for fits in keys:
            places = places or [[at] for at in under(owner, what, inputs, fits)]
        found = [flat[at] for (at,) in places]
    else:
        result = find(inputs)
        found = list(result) if isinstance(result, (list, tuple)) else [] if result is None else [result]
        places = []
        for i, value in enumerate(found):
            all_of_it = [at for at, inpt in enumerate(flat) if inpt is value]
            times = [j for j, other in enumerate(found) if other is value]
            one_each = len(times) == len(all_of_it)
            places.append([all_of_it[times.index(i)]] if one_each else all_of_it if len(times) == 1 else [])
    if all(isinstance(value, Tensor) and not value.is_nested for value in found) and all(places):
        return places
    got = ", ".join(type(value).__name__ for value in found)
    must = f"{type(owner).__name__}: {what} must be tensors of the inputs, not nested ones"
    return raise_error(ValueError, f"{must}, got {got}")


def _find_nothing(inputs: Any) -> None:
    """Stand for a getter that is None."""


def _pairs(owner: Any, name: str, value: Any) -> list[list[int]]:
    """Check pairs of whole numbers; no number may be in two pairs."""
    plain = value.tolist() if hasattr(value, "tolist") else value
    rows = [list(pair) for pair in plain] if _is_list(plain) and all(map(_is_list, plain)) else [[]]
    whole = [n for pair in rows for n in map(check.plain, pair)]
    is_right = all(len(pair) == 2 for pair in rows) and all(type(n) is int and n >= 0 for n in whole)
    if not is_right or len(set(whole)) < len(whole):
        must = f"{type(owner).__name__}: {name} must be pairs of different whole numbers from 0 on"
        raise_error(ValueError, f"{must}, got {check.shown(value)}")
    return [whole[i : i + 2] for i in range(0, len(whole), 2)]


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _order(owner: Any, count: int) -> list[int]:
    """Return the order of rows in which those of pairs have changed places."""
    order = {}
    for a, b in owner.swap:
        order[a], order[b] = b, a
    if max(order, default=-1) >= count:
        must = f"{type(owner).__name__}: keypoints must be at least {max(order) + 1} for swap"
        raise_error(ValueError, f"{must}, got {check.number(count)}")
    if owner._swap_count not in (None, count):
        must = f"{type(owner).__name__}: keypoints must be {owner._swap_count} for a swap by name"
        raise_error(ValueError, f"{must}, got {check.number(count)}")
    return [order.get(i, i) for i in range(count)]


def _swap_rows(owner: Any, values: Tensor, dim: int) -> Tensor:
    """Let the rows of pairs change places along a dimension."""
    return torch.stack([values.select(dim, i) for i in _order(owner, values.shape[dim])], dim)


def _swap_numbers(owner: Any, name: str, values: Tensor) -> Tensor:
    """Let the numbers of pairs change places."""
    _check_exact(owner, name, values.dtype)
    wide = values.long() if values.dtype in UNSIGNED else values
    out = wide
    for a, b in getattr(owner, name):
        out = out.masked_fill(wide == a, b).masked_fill(wide == b, a)
    return out.to(values.dtype)


#: The dtypes that PyTorch does not compute with; their bits are those of int64.
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


def _check_exact(owner: Any, name: str, dtype: torch.dtype) -> None:
    """Raise if a dtype does not hold the numbers of pairs, or not as they are."""
    if dtype.is_complex:
        raise_error(TypeError, f"{type(owner).__name__}: {name} must be for real numbers, got {dtype}")
    if dtype == torch.bool:
        most = 1
    else:
        most = int(2 / torch.finfo(dtype).eps) if dtype.is_floating_point else torch.iinfo(dtype).max
    largest = max((n for pair in getattr(owner, name) for n in pair), default=0)
    if largest > most:
        must = f"{type(owner).__name__}: {name} must be from 0 to {most} for {dtype}"
        raise_error(ValueError, f"{must}, got {largest}")


def under(owner: Any, what: str, inputs: Any, fits: Callable[[str], bool], start: int = 0) -> list[int]:
    """Return where the leaves under keys that fit are, in all dicts; the first leaf is number ``start``.

    The fields of a named tuple are keys, too. PyTorch does not open a dict of any class, and what it does not
    open cannot be changed.
    """
    leaves, _ = tree_flatten(inputs)
    if isinstance(inputs, Mapping):
        pairs = list(inputs.items())
    elif isinstance(inputs, (list, tuple)):
        pairs = list(zip(getattr(inputs, "_fields", [None] * len(inputs)), inputs, strict=True))
    else:
        return []
    wanted = [key is not None and fits(str(key).lower()) for key, _ in pairs]
    if len(leaves) == 1 and leaves[0] is inputs:
        if any(fit and isinstance(value, Tensor) for fit, (_, value) in zip(wanted, pairs, strict=True)):
            must = f"{name_of(owner)}: {what} must be in dicts, lists or tuples"
            raise_error(TypeError, f"{must}, got {type(inputs).__name__}")
        return []
    places: list[int] = []
    for fit, (_, value) in zip(wanted, pairs, strict=True):
        leaves, _ = tree_flatten(value)
        places += range(start, start + len(leaves)) if fit else under(owner, what, value, fits, start)
        start += len(leaves)
    return places


#: The keys of labels: "labels", else others with "label" in their name.
LABELS: tuple[Callable[[str], bool], ...] = (lambda key: key == "labels", lambda key: "label" in key)
#: The keys of flags, such as "visible", "visibility" or "keypoints_visible".
FLAGS: tuple[Callable[[str], bool], ...] = (lambda key: "visib" in key and "invisib" not in key,)
