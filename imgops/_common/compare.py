"""The warning about slow paths, and the comparisons of kernels with the installed libraries."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import partial, wraps
from typing import Any


class SlowPathWarning(UserWarning):
    """Warns that a call takes a slower path, with the same pixels.

    Only the first such call of a process warns; :func:`imgops.show_config` shows what is missing.
    ``IMGOPS_QUIET=1`` in the environment silences the warning.
    """


#: Each kernel that is compared with an installed library before its first use: its name, the library, and the
#: comparison. If the comparison returns a false value, the library is called instead of the kernel.
comparisons: dict[str, tuple[str, Callable[[], Any]]] = {}
#: The results of the comparisons that were made.
results: dict[str, Any] = {}

_warned = False


def warn(reason: str) -> None:
    """Warn, once per process, that a faster path is not available, and why."""
    global _warned
    if _warned or os.environ.get("IMGOPS_QUIET") == "1":
        return
    _warned = True
    advice = "python -m imgops info says what is missing, IMGOPS_QUIET=1 silences this"
    warnings.warn(f"imgops: {reason}; the pixels are the same. {advice}", SlowPathWarning, stacklevel=2)


def comparison(name: str, library: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Decorate a function that returns whether a kernel has the pixels of the installed ``library``.

    The function is called only once.
    """

    def decorate(probe: Callable[[], Any]) -> Callable[[], Any]:
        comparisons[name] = library, probe
        return wraps(probe)(partial(agrees, name))

    return decorate


def what(name: str) -> str:
    """Return what is compared: the pixels of a kernel, or the numbers that are drawn."""
    return "numbers" if name.endswith("draws") else "pixels"


def agrees(name: str) -> Any:
    """Return the result of a comparison, made at the first call; warn if it differs."""
    global _warned
    if name not in results:
        library, probe = comparisons[name]
        before, _warned = _warned, True  # the comparison is no call of the user
        try:
            results[name] = probe()
        finally:
            _warned = before
        if not results[name]:
            warn(
                f"its own {name} would have other {what(name)} than the installed {library}, which is called "
                "itself"
            )
    return results[name]
