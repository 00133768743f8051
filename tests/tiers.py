"""Two tiers of tests: ``make test`` runs the quick one of each kind, ``make test-all`` every sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

#: Deselected without ``--all``: tests/conftest.py.
nightly = pytest.mark.nightly


def nightly_unless(is_quick: Callable[[Any], bool], values: Iterable[Any]) -> list[Any]:
    """Return the values as parameters of a test, those that are not quick marked nightly.

    A tuple is the values of several parameters.
    """
    marks = ((v, () if is_quick(v) else nightly) for v in values)
    return [pytest.param(*(v if type(v) is tuple else (v,)), marks=m) for v, m in marks]


def every_night(*values: Any) -> list[Any]:
    """Return the values as parameters of a test that are all marked nightly."""
    return [pytest.param(v, marks=nightly) for v in values]
