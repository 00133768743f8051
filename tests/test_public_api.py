"""The public names, parameters and defaults are those of tests/public_api.json."""

from __future__ import annotations

import json
from typing import Any

from tests.public_api import FILE, public


def differences(old: Any, new: Any, where: str = "") -> list[str]:
    """Return what differs between two trees, a line for each place."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            line
            for key in sorted(old.keys() | new.keys())
            for line in differences(old.get(key), new.get(key), f"{where} {key}".strip())
        ]
    return [] if old == new else [f"{where}: {old} -> {new}"]


def test_the_public_api_is_that_of_the_file() -> None:
    found = differences(json.loads(FILE.read_text()), json.loads(json.dumps(public())))
    assert not found, (
        "the public API changed: if it should, write a line in the CHANGELOG and run "
        "python -m tests.public_api\n" + "\n".join(found)
    )


def test_differences_are_seen() -> None:
    old = {"imgops": {"crop": ["image", "box"], "Gone": "int"}}
    new = {"imgops": {"crop": ["image", "box=None"], "new": ["x"]}}
    assert differences(old, new) == [
        "imgops Gone: int -> None",
        "imgops crop: ['image', 'box'] -> ['image', 'box=None']",
        "imgops new: None -> ['x']",
    ]
    assert not differences(old, old)
