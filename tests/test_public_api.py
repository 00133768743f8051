"""The public names, parameters and defaults are those of tests/public_api.json; other programs can serialize them."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

import imgops
from imgops import transforms
from imgops.transforms import functional
from tests.public_api import FILE, public
from tests.tiers import nightly_unless


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


NAMES = [(module, name) for module in (imgops, transforms, functional) for name in module.__all__]


@pytest.mark.parametrize(
    ("module", "name"), nightly_unless(lambda pair: pair[1] in ("crop", "ToImage"), NAMES)
)
def test_dill_comes_to_an_end(module: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """datasets.map() hashes a user's function with dill, which follows each global function, and a cycle forever."""
    detect = pytest.importorskip("dill.detect")
    count, follow = 0, detect.nestedglobals

    def counted(*args: Any, **keywords: Any) -> Any:
        nonlocal count
        count += 1
        assert count < 12_000, f"{args[0]} is looked at again and again"
        return follow(*args, **keywords)

    monkeypatch.setattr(detect, "nestedglobals", counted)
    detect.globalvars(getattr(module, name))
