"""Classes of exact processors: one of transformers above the exact backend, its functions rebound."""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any

from transformers.image_processing_backends import TorchvisionBackend

from imgops.integrations.transformers import _models, _rebinding
from imgops.integrations.transformers._backend import ExactBackend
from imgops.transforms._core import origin


def exact_class(original: Any) -> Any:
    """Return the class of exact processors for a class of transformers' backend on tensors.

    Raises
    ------
    TypeError
        If a method of transformers' own base classes, whose place the exact backend takes, was replaced.
    """
    if not origin.has_own_methods(TorchvisionBackend):
        must = "methods of transformers' TorchvisionBackend must be its own"
        raise TypeError(f"exact: {must}, got one that was replaced")
    # A class whose methods are replaced afterwards is another class.
    kinds = FunctionType, staticmethod, classmethod
    return _exact_class(original, tuple(v for v in vars(original).values() if isinstance(v, kinds)))


@functools.lru_cache(maxsize=1024)
def _exact_class(original: Any, methods: tuple[Any, ...]) -> Any:
    above = [
        b for b in original.__bases__ if issubclass(b, TorchvisionBackend) and b is not TorchvisionBackend
    ]
    parents = tuple(exact_class(b) for b in above) or (ExactBackend,)
    # With the name of the original's module, a processor of remote code is saved with its own code.
    body: dict[str, Any] = {"__module__": original.__module__, "__doc__": original.__doc__}
    body |= {"original": original, "__reduce__": _reduced}
    if _rebinding.is_of_a_model(original.__module__):
        body |= _rebound(original)
        if original.__module__.startswith("transformers."):  # other classes are as the one below them
            body["pil_backend"] = _rebinding.pil_backend(original)
            body |= _replaced(original, body)
    return type(original.__name__, (original, *parents), body)


def _rebound(original: Any) -> dict[str, Any]:
    """Return the methods of a class that call exact functions."""
    names, body = _rebinding.names_of(original.__module__), {}
    for name, value in vars(original).items():
        inner = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if isinstance(inner, FunctionType) and not name.startswith("post_process"):
            copy = names.rebound(inner)
            body[name] = copy if inner is value else type(value)(copy)
    return body


def _replaced(original: Any, body: dict[str, Any]) -> dict[str, Any]:
    """Return the methods of a class of transformers that resample by other means than PIL."""
    return {
        name: _method(function, body.get(name) or getattr(original, name))
        for name, function in _models.METHODS.get(original.__name__, {}).items()
        if origin.is_code_of(("transformers",), getattr(original, name))
    }


def _method(function: Any, usual: Any) -> Any:
    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        return function(self, usual, *args, **keywords)

    return method


def _reduced(self: Any) -> Any:
    """Pickle by the class of transformers, because this one is made when it is asked for."""
    return of_settings, (type(self).original, self.__dict__)


def of_settings(original: type, state: dict[str, Any]) -> Any:
    """Return an exact processor with the attributes of one of a class of transformers."""
    made = exact_class(original)
    new = made.__new__(made)
    new.__dict__.update(state)
    return new
