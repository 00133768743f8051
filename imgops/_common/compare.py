"""Slow paths: a warning, given once per process, and the list for :func:`imgops.show_config`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, Protocol


class SlowPathWarning(UserWarning):
    """A warning that a call runs without its faster form; the pixels are the same.

    The warning is given once per process, by the first such call; :func:`imgops.show_config` says what is
    missing. ``IMGOPS_QUIET=1`` in the environment silences it.
    """


class Agrees(Protocol):
    """The function that :func:`comparison` returns; it computes its result once."""

    def __call__(self) -> Any: ...
    def cache_clear(self) -> None: ...


#: The kernels that are compared with an installed library before their first use: the name, the library and
#: the comparison. If they differ, the library is used.
comparisons: dict[str, tuple[str, Callable[[], Any]]] = {}

_warned = False


def warn(reason: str) -> None:
    """Warn that a faster form cannot run, and why, unless a warning of this kind was given before."""
    global _warned
    if _warned or os.environ.get("IMGOPS_QUIET") == "1":
        return
    _warned = True
    advice = "python -m imgops info says what is missing, IMGOPS_QUIET=1 silences this"
    warnings.warn(f"imgops: {reason}; the pixels are the same. {advice}", SlowPathWarning, stacklevel=2)


def different(name: str, library: str) -> None:
    """Warn that a kernel's pixels are not those of the installed library."""
    warn(f"its own {name} would have other pixels than the installed {library}, which is called itself")


def comparison(name: str, library: str) -> Callable[[Callable[[], Any]], Agrees]:
    """Decorate a function that tells whether a kernel has the pixels of the installed ``library``.

    The function is called once; its result is false if the pixels differ.
    """

    def decorate(probe: Callable[[], Any]) -> Agrees:
        @cache
        @wraps(probe)
        def agrees() -> Any:
            found = probe()
            if not found:
                different(name, library)
            return found

        comparisons[name] = library, agrees
        return agrees

    return decorate
