"""The loaders of transformers, which return exact processors where the backend "imgops" is asked for."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import transformers
from transformers import AutoImageProcessor, AutoProcessor, AutoVideoProcessor, ProcessorMixin
from transformers.image_processing_backends import TorchvisionBackend

from imgops.transforms._core.origin import UsersCode, known_name, name_of, package_of

BACKEND = "imgops"
_LOADERS = AutoImageProcessor, AutoVideoProcessor, AutoProcessor


class _State:
    """The state of the loaders: whether they take the backend, and return it where none is named."""

    takes_backend = False
    is_default = False


def add_backend(exact: Callable[[Any], Any], default: bool) -> None:
    """Let each loader call ``exact`` on the processor that it loads, if the backend is asked for."""
    _State.is_default = default
    if not _State.takes_backend:
        _State.takes_backend = True
        for loader in _LOADERS:
            loader.from_pretrained = _loading(loader.from_pretrained, exact, loader is not AutoProcessor)


def _loading(load: Callable[..., Any], exact: Callable[[Any], Any], names_backend: bool) -> Any:
    @functools.wraps(load)
    def from_pretrained(name: Any, *args: Any, **keywords: Any) -> Any:
        by_name = keywords.get("backend") == BACKEND
        is_free = keywords.get("backend") is None and keywords.get("use_fast") is None
        if not by_name and not (is_free and _State.is_default):
            return load(name, *args, **keywords)
        keywords.pop("backend", None)
        if names_backend:  # AutoProcessor passes all keywords on to the tokenizer, too
            keywords["backend"] = "torchvision"
        found = load(name, *args, **keywords)
        try:
            # A loader may return a tuple with the keywords that were not used.
            return (exact(found[0]), *found[1:]) if isinstance(found, tuple) else exact(found)
        except TypeError:
            if by_name:
                raise
            return found

    return from_pretrained


def class_on_tensors(processor: Any) -> type:
    """Return the class on tensors that belongs to a processor's class, one of the PIL backend.

    Methods of a user work on arrays, and would not be called with tensors.
    """
    kind, name = type(processor), name_of(processor)
    try:
        known_name(processor, (name,) if package_of(processor) == "transformers" else ())
    except UsersCode:
        must = "processor of the PIL backend must be of transformers' own class, with its methods"
        raise TypeError(f"exact: {must}, got {name} with a user's code") from None
    found = getattr(transformers, kind.__name__.removesuffix("Pil"), None)
    if not isinstance(found, type) or not issubclass(found, TorchvisionBackend):
        must = "processor must be of a class with a backend on tensors"
        raise TypeError(f"exact: {must}, got {kind.__name__}")
    return found


def with_exact_parts(processor: Any, exact: Callable[[Any], Any]) -> Any:
    """Return a copy of a processor of several kinds of inputs with exact image and video processors."""
    if not isinstance(processor, ProcessorMixin):
        must = "processor must be an image, video or multimodal processor of transformers"
        raise TypeError(f"exact: {must}, got {type(processor).__name__}")
    new = copy.copy(processor)
    for name in ("image_processor", "video_processor"):
        part = getattr(processor, name, None)
        if part is not None:
            setattr(new, name, exact(part))
    return new
