"""Transforms that have no counterpart, or one with other pixels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence


class Unmapped(Exception):
    """The reason why a transform, or one of its arguments, has no counterpart."""


def report(op: str, unmapped: Sequence[str], differences: Mapping[str, str], way_out: str = "") -> None:
    """Raise for transforms without a counterpart, and warn the caller's caller of those with differences."""
    if unmapped:
        raise ValueError(f"{op}: transforms must have a counterpart, got {', '.join(unmapped)}{way_out}")
    if differences:
        listed = "; ".join(f"{name}: {difference}" for name, difference in differences.items())
        warnings.warn(f"{op}: these come near, but differ: {listed}", stacklevel=3)
