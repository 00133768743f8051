"""A converted pipeline, with the methods of albumentations' own."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from imgops._common import check
from imgops._common.torch_private import tree_flatten
from imgops.integrations.albumentations import draws
from imgops.integrations.albumentations.calls import Call
from imgops.integrations.albumentations.rules import is_container, parts_of, take_for_a_compose
from imgops.transforms import containers


class Reading(NamedTuple):
    """The counterpart of a pipeline of albumentations: its transforms, and its calls by keywords."""

    transforms: list[Any]
    call: Call
    #: Whether the pipeline is left to chance: the first transform then is the container that decides.
    is_by_chance: bool


class _Pipeline(containers.Compose):
    """A converted pipeline, which takes tensors as imgops' transforms do, or albumentations' keywords.

    albumentations accepts it as a pipeline, so that it can be a step of another pipeline.
    """

    def __init__(self, given: Any, reading: Reading, read: Callable[..., Reading]) -> None:
        super().__init__(reading.transforms)
        #: The pipeline of albumentations, whose copy draws and computes arrays; how it is read.
        self.given, self._read = given, read
        self._call, self._is_by_chance = reading.call, reading.is_by_chance
        take_for_a_compose(_Pipeline)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        take_for_a_compose(_Pipeline)

    def _get_name(self) -> str:
        return "Compose"

    def forward(self, *inputs: Any, **data: Any) -> Any:
        if data:
            if inputs:
                must = "from_albumentations: inputs must be keywords or one structure of tensors"
                raise TypeError(f"{must}, got both")
            must = "inputs must be one structure of tensors in a graph"
            got = f"the keywords {', '.join(data)}"
            check.refuse_in_graph(TypeError, "from_albumentations", must, got)
            return self._call.run(self, data)
        flat = inputs if len(inputs) == 1 and type(inputs[0]) is Tensor else tree_flatten(inputs)[0]
        if any(isinstance(x, np.ndarray) for x in flat):
            must = "from_albumentations: arrays must be given by keyword, as in pipeline(image=array)"
            raise TypeError(f"{must}, got one without a name")
        return super().forward(*inputs)

    @property
    def whole(self) -> Any:
        """The container that decides whether the pipeline is applied, if that is left to chance."""
        return self.transforms[0] if self._is_by_chance else None

    def run_plainly(self, inputs: Any) -> Any:
        """Transform a tensor, or a dict of them, after it was decided that the pipeline is applied."""
        if self.whole is not None:
            return containers.Compose(self.whole.transforms)(inputs)
        return super().forward(inputs)

    def forced(self) -> _Pipeline:
        """Return the pipeline without its own chance, by ``force_apply=True``."""
        if self.whole is not None:
            return self
        return _Pipeline(self.given, self._read(self.given, forced=True), self._read)

    def _read_again(self) -> None:
        """Take over what changed in the pipeline of albumentations, and changes the counterparts."""
        reading = self._read(self.given)
        reading.call.is_inside = self._call.is_inside
        self.transforms, self._call, self._is_by_chance = reading

    # -- what users call on a pipeline of albumentations ----------------------------------------------

    def set_random_seed(self, seed: int | None) -> None:
        """Set the seed of the draws, as albumentations does: the next draws are those of the original.

        Parameters
        ----------
        seed : int, optional
            Without one, PyTorch's generator seeds each draw.
        """
        self._set_draws(draws.set_seed, seed)

    def set_random_state(self, random_generator: np.random.Generator, py_random: random.Random) -> None:
        """Draw from generators from now on, call by call.

        Parameters
        ----------
        random_generator : numpy.random.Generator
        py_random : random.Random
        """
        self._set_draws(draws.set_state, random_generator, py_random)

    def _set_draws(self, change: Callable[..., None], *to: Any) -> None:
        before = draws.Source(self.given).has_state
        change(self.given, *to)
        if draws.Source(self.given).has_state != before:  # the numbers of a draw are others
            self._read_again()

    def to_dict(self, on_not_implemented_error: str = "raise") -> dict[str, Any]:
        """Return the pipeline of albumentations as a dict, which ``albumentations.from_dict`` reads."""
        return self.given.to_dict(on_not_implemented_error)  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._given_steps())

    def __iter__(self) -> Iterator[Any]:
        """Yield copies of albumentations' transforms."""
        return iter(deepcopy(self._given_steps()))

    def __getitem__(self, index: Any) -> Any:
        return deepcopy(self._given_steps()[index])

    def _given_steps(self) -> list[Any]:
        return list(self.given.transforms) if is_container(self.given) else [self.given]

    @property
    def seed(self) -> int | None:
        """The seed of the draws."""
        return self.given.seed  # type: ignore[no-any-return]

    @property
    def p(self) -> float:
        """The probability of the pipeline."""
        return self.given.p  # type: ignore[no-any-return]

    @property
    def additional_targets(self) -> dict[str, str]:
        """The keywords that are images, masks, boxes or keypoints under another name."""
        return self._call.targets

    @property
    def available_keys(self) -> set[str]:
        """The keywords that the pipeline reads."""
        return self.given.available_keys  # type: ignore[no-any-return]

    def add_targets(self, additional_targets: dict[str, str] | None) -> None:
        """Add keywords that are images, masks, boxes or keypoints under another name."""
        self.given.add_targets(additional_targets)
        self._call.read(self.given)

    def set_mask_interpolation(self, mask_interpolation: int | None) -> None:
        """Set OpenCV's interpolation of masks in all transforms that have one."""
        if mask_interpolation is None:
            return
        for part in parts_of(self.given):
            if hasattr(part, "mask_interpolation"):
                part.mask_interpolation = mask_interpolation
        self._read_again()

    # -- what albumentations' pipelines call on a step -------------------------------------------------

    def disable_check_args_private(self) -> None:
        """Leave checks, boxes and keypoints to the pipeline of albumentations that has this one."""
        if hasattr(self.given, "disable_check_args_private"):
            self.given.disable_check_args_private()
        self._call.is_inside = True

    @property
    def processors(self) -> dict[str, Any]:
        return self._call.processors

    @processors.setter
    def processors(self, processors: dict[str, Any]) -> None:
        for part in parts_of(self.given):
            part.processors = processors
        self._call.read(self.given)

    @property
    def check_each_transform(self) -> Any:
        return getattr(self.given, "check_each_transform", None)

    @check_each_transform.setter
    def check_each_transform(self, processors: Any) -> None:
        for part in parts_of(self.given):
            if is_container(part):
                part.check_each_transform = processors

    @property
    def targets_as_params(self) -> list[str]:
        found = [n for part in parts_of(self.given) for n in getattr(part, "targets_as_params", ())]
        return list(dict.fromkeys(found))

    def set_deterministic(self, flag: bool, save_key: str = "replay") -> None:
        """Let a ReplayCompose get the parameters of each call under a key."""
        self.given.set_deterministic(flag, save_key)

    def get_dict_with_id(self) -> dict[str, Any]:
        return self.given.get_dict_with_id()  # type: ignore[no-any-return]

    def to_dict_private(self) -> dict[str, Any]:
        return self.given.to_dict_private()  # type: ignore[no-any-return]

    def indented_repr(self, indent: int = 2) -> str:
        return repr(self).replace("\n", "\n" + " " * (indent - 2))
