"""A faster form of a call that cannot run: said once a process, and listed by :func:`imgops.show_config`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, Protocol


class SlowPathWarning(UserWarning):
    """A call runs without its faster form. The pixels are the same.

    It is given once a process, by the first such call; :func:`imgops.show_config` says what is missing.
    ``IMGOPS_QUIET=1`` in the environment silences it.
    """


class Agrees(Protocol):
    """What :func:`comparison` makes of a function; it computes once."""

    def __call__(self) -> Any: ...
    def cache_clear(self) -> None: ...


#: What is compared with an installed library before its first use. Where they differ the library computes.
comparisons: dict[str, tuple[str, Callable[[], Any]]] = {}

_warned = False


def warn(reason: str) -> None:
    """Say why a faster form cannot run, unless something of this kind was said before."""
    global _warned
    if _warned or os.environ.get("IMGOPS_QUIET") == "1":
        return
    _warned = True
    advice = "python -m imgops info says what is missing, IMGOPS_QUIET=1 silences this"
    warnings.warn(f"imgops: {reason}; the pixels are the same. {advice}", SlowPathWarning, stacklevel=2)


def different(name: str, library: str) -> None:
    """Say that a kernel's pixels are not those of the installed library."""
    warn(f"its own {name} would have other pixels than the installed {library}, which is called itself")


def comparison(name: str, library: str) -> Callable[[Callable[[], Any]], Agrees]:
    """Decorates a function that says whether a kernel has the pixels of the installed ``library``.

    It is asked once; what it returns is false where they differ.
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
