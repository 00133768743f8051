"""Pipelines of albumentations on NumPy arrays: its own code computes them.

A call by keywords without tensors takes this path. It does what albumentations' own call does, with three
differences. The draws follow :mod:`.draws`, as those of the counterparts do. Calls from several threads do
not disturb each other. Boxes and keypoints are not checked again after a transform that leaves them alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import cv2
import numpy as np

from imgops.integrations.albumentations import conversions, draws
from imgops.integrations.albumentations.rules import name_of

Data = dict[str, Any]


class _Transform:
    """A single transform; ``is_silent`` says that its counterpart draws nothing but its chance."""

    #: Whether the container lists the transform among those that were applied.
    is_listed = True

    def __init__(self, given: Any, forced: bool, is_silent: bool) -> None:
        self.given, self.is_silent = given, is_silent
        self.source = draws.Source(given, forced)
        # References that the transform has itself need none in the call.
        self.reads = frozenset(given.targets_as_params) - {getattr(given, "metadata_key", None)}
        self.moves = self.source.is_foreign or not {"bboxes", "keypoints"}.isdisjoint(given.targets)

    def run(self, data: Data, forced: bool = False) -> Data:
        """Return the transformed data, or the same dict if the transform is not applied."""
        given, source = self.given, self.source
        if not source.chance(forced):
            return data
        missing = self.reads - data.keys()
        if missing and (missing != {"image"} or "images" not in data):
            must = f"{type(given).__name__}: keywords must have {' and '.join(sorted(missing))}"
            raise ValueError(f"{must}, got none")
        if self.is_silent and not source.is_foreign:
            return self._apply(self._noted(draws.sampled(given, data), data), data)
        with source.generators():
            params = self._noted(draws.sampled(given, data), data)
            if source.is_foreign:  # its code may draw while it changes the image
                return self._apply(params, data)
        return self._apply(params, data)

    def _noted(self, params: Data, data: Data) -> Data:
        """Return parameters, after a ReplayCompose around the transform got them."""
        if self.given.deterministic:
            data[self.given.save_key][id(self.given)] = deepcopy(params)
        return params

    def _apply(self, params: Data, data: Data) -> Data:
        out = self.given.apply_with_params(params, **data)
        if _APPLIED in out and self.is_listed:
            out[_APPLIED].append((type(self.given).__name__, params.copy()))
        return out


#: The key under which albumentations lists the applied transforms, if a pipeline has save_applied_params.
_APPLIED = "applied_transforms"


class _Levels(_Transform):
    """A transform that makes floats of levels: one table serves all its calls."""

    def __init__(self, given: Any, forced: bool, is_silent: bool) -> None:
        super().__init__(given, forced, is_silent)
        self.known = frozenset(given.available_keys)
        self.tables = [t.reshape(1, 256, -1) for t in conversions.tables_of(given)]

    def _apply(self, params: Data, data: Data) -> Data:
        image = data.get("image")
        if (
            not isinstance(image, np.ndarray)
            or image.dtype != np.uint8
            or _APPLIED in data
            or len(self.known & data.keys()) > 1
        ):
            return super()._apply(params, data)
        count = image.shape[2] if image.ndim == 3 else 1
        table = self.tables[min(count, len(self.tables)) - 1]
        if table.shape[2] != count:
            table = np.ascontiguousarray(table[..., :1])
        found = cv2.LUT(np.ascontiguousarray(image), table)
        return data | {"image": found.reshape(image.shape)}


class _Container:
    """A container and the transforms inside; some containers apply those without a further draw."""

    forces = False
    is_listed = False

    def __init__(self, given: Any, forced: bool, is_silent: Callable[[Any], bool]) -> None:
        self.given, self.source = given, self._source(given, forced)
        self.inner = [step_of(t, self.forces, is_silent) for t in given.transforms]
        self.moves = any(t.moves for t in self.inner)

    def _source(self, given: Any, forced: bool) -> draws.Source:
        return draws.Chance(given, forced)

    def run(self, data: Data, forced: bool = False) -> Data:
        """Return the transformed data; ``forced`` says that a container of albumentations chose this one."""
        raise NotImplementedError

    def run_checked(self, step: Any, data: Data, is_first: bool) -> Data:
        """Run one step, and drop the boxes and keypoints that albumentations drops after it."""
        out: Data = step.run(data)
        if is_first or (step.moves and out is not data):
            out = self.given.check_data_post_transform(out if out is not data else dict(data))
        return out


class _Sequence(_Container):
    """Compose or Sequential."""

    def run(self, data: Data, forced: bool = False) -> Data:
        given = self.given
        if not forced and (given.p < 1 or self.source.shares) and not self.source.chance():
            applied = self._nothing_applied()
            return data | applied if applied else data
        if not hasattr(given, "preprocess"):
            return self._run_all(data)
        # Compose writes down the kinds of its inputs, which must not be those of a call in another thread.
        own, data = _copy(given), dict(data)
        own.processors = {kind: _fresh(processor) for kind, processor in given.processors.items()}
        data.update(self._nothing_applied())
        own.preprocess(data)
        return own.postprocess(self._run_all(data))

    def _nothing_applied(self) -> Data:
        is_listed = getattr(self.given, "save_applied_params", False) and self.given.main_compose
        return {_APPLIED: []} if is_listed else {}

    def _run_all(self, data: Data) -> Data:
        is_first = True
        for step in self.inner:
            data, is_first = self.run_checked(step, data, is_first), False
        return data


def _copy(given: Any) -> Any:
    """Copy an object of Python, in a fifth of the time of the module copy."""
    made = object.__new__(type(given))
    made.__dict__.update(given.__dict__)
    return made


def _fresh(processor: Any) -> Any:
    made = _copy(processor)
    made.is_sequence_input, made.label_manager = {}, type(processor.label_manager)()
    return made


class _Replay(_Sequence):
    """ReplayCompose, which adds the parameters of the call to the result."""

    def run(self, data: Data, forced: bool = False) -> Data:
        given = self.given
        out = super().run(data | {given.save_key: defaultdict(dict)}, forced)
        applied = given.get_dict_with_id()
        given.fill_with_params(applied, out[given.save_key])
        given.fill_applied(applied)
        return out | {given.save_key: applied}


class _One(_Container):
    """OneOf or OneOrOther."""

    forces = True

    def __init__(self, given: Any, forced: bool, is_silent: Callable[[Any], bool]) -> None:
        super().__init__(given, forced, is_silent)
        if self.source.name == "OneOrOther":
            for step in self.inner:
                step.is_listed = False

    def _source(self, given: Any, forced: bool) -> draws.Source:
        return draws.Choice(given, forced)

    def run(self, data: Data, forced: bool = False) -> Data:
        index = self.source.index(forced) if self.inner else 0
        return self.inner[index].run(data) if index < len(self.inner) else data


class _Some(_Container):
    """SomeOf or RandomOrder."""

    def _source(self, given: Any, forced: bool) -> draws.Source:
        return draws.Order(given)

    def run(self, data: Data, forced: bool = False) -> Data:
        is_first = True
        for index in self.source.numbers(None, (1, 1, 0, 0)):
            if index >= 0:
                data, is_first = self.run_checked(self.inner[int(index)], data, is_first), False
        return data


_KINDS: dict[str, type[_Container]] = {
    **dict.fromkeys(("Compose", "Sequential"), _Sequence),
    "ReplayCompose": _Replay,
    **dict.fromkeys(("OneOf", "OneOrOther"), _One),
    **dict.fromkeys(("RandomOrder", "SomeOf"), _Some),
}


def step_of(given: Any, forced: bool, is_silent: Callable[[Any], bool]) -> Any:
    """Return the step that runs a transform, or a container, on arrays."""
    kind = _KINDS.get(name_of(given))
    if kind is not None:
        return kind(given, forced, is_silent)
    return (_Levels if conversions.has_tables(given) else _Transform)(given, forced, is_silent(given))
