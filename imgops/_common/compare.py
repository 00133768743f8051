"""Slow paths: a warning, given once per process, and the list for :func:`imgops.show_config`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import partial, wraps
from typing import Any


class SlowPathWarning(UserWarning):
    """A warning that a call runs without its faster form; the pixels are the same.

    The warning is given once per process, by the first such call; :func:`imgops.show_config` says what is
    missing. ``IMGOPS_QUIET=1`` in the environment silences it.
    """


#: The kernels that are compared with an installed library before their first use: the name, the library and
#: the comparison, whose result is false if the pixels differ. Then the library is used.
comparisons: dict[str, tuple[str, Callable[[], Any]]] = {}
#: The results of the comparisons that were made.
results: dict[str, Any] = {}

_warned = False


def warn(reason: str) -> None:
    """Warn that a faster form cannot run, and why, unless a warning of this kind was given before."""
    global _warned
    if _warned or os.environ.get("IMGOPS_QUIET") == "1":
        return
    _warned = True
    advice = "python -m imgops info says what is missing, IMGOPS_QUIET=1 silences this"
    warnings.warn(f"imgops: {reason}; the pixels are the same. {advice}", SlowPathWarning, stacklevel=2)


def comparison(name: str, library: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Decorate a function that tells whether a kernel has the pixels of the installed ``library``.

    The function is called once.
    """

    def decorate(probe: Callable[[], Any]) -> Callable[[], Any]:
        comparisons[name] = library, probe
        return wraps(probe)(partial(agrees, name))

    return decorate


def agrees(name: str) -> Any:
    """Return the result of a comparison, which is made once; warn if the pixels differ."""
    if name not in results:
        library, probe = comparisons[name]
        results[name] = probe()
        if not results[name]:
            warn(
                f"its own {name} would have other pixels than the installed {library}, which is called itself"
            )
    return results[name]
