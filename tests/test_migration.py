"""The tables of the migration page have every transform of the other libraries, with every parameter of it."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from imgops import transforms
from imgops.integrations.albumentations import conversions, convert, moves

sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "_ext"))

from migration import Row, route, rows

#: Parameters that the page explains once for all transforms of a library.
OF_ALL = {
    "albumentations": {"p", "save_applied_params", "seed", "kwargs"},
    "kornia": {"p", "p_batch", "same_on_batch", "keepdim", "resample", "align_corners", "size"},
}


def by_name(library: str) -> dict[str, Row]:
    named = [(name, row) for row in rows(library) for name in row.names]
    assert len({n for n, _ in named}) == len(named), "a name stands there twice"
    return dict(named)


@pytest.mark.parametrize("library", ["albumentations", "kornia", "imgaug"])
def test_counterparts_exist(library: str) -> None:
    for row in rows(library):
        if row.here:
            assert row.here in {*transforms.OURS, *transforms.ADDED}, row
            known = ("yes", "draws nothing", "one sample of several", "one sample of two")
            assert row.per_sample in known, row
        else:
            assert row.text, f"{row.names}: why?"
        for name in re.findall(r"imgops\.(\w+)", row.text):
            assert hasattr(__import__("imgops"), name), row


def classes(module: Any, *bases: type) -> dict[str, type]:
    found = {n: getattr(module, n) for n in dir(module)}
    return {n: c for n, c in found.items() if inspect.isclass(c) and (not bases or issubclass(c, bases))}


def check(library: str, given: dict[str, type]) -> None:
    table = by_name(library)
    assert set(table) == set(given)
    for name, cls in given.items():
        parameters = set(inspect.signature(cls.__init__).parameters) - {"self", *OF_ALL[library]}
        missing = {p for p in parameters if not re.search(rf"\b{p}\b", table[name].text)}
        if not re.search(r"of volumes|of spectrograms", table[name].text):
            assert not missing, (name, missing)


def test_albumentations() -> None:
    A = pytest.importorskip("albumentations", "2.0.8")
    bases = {"BasicTransform", "BaseCompose", "DualTransform", "ImageOnlyTransform", "Transform3D"}
    given = classes(A, A.BasicTransform, A.BaseCompose)
    check("albumentations", {n: c for n, c in given.items() if n not in bases})


def test_kornia() -> None:
    K = pytest.importorskip("kornia.augmentation")
    given = {n: c for n, c in classes(K).items() if "Base" not in n}
    assert {n for names in (r.names for r in rows("kornia")) for n in names} == set(given)
    check("kornia", given)


def test_imgaug() -> None:
    """The names were counted in the wheel of 0.4.0, which NumPy 2 cannot import."""
    assert len(by_name("imgaug")) == 201


def test_what_the_page_says_of_conversions() -> None:
    """The page names how each class is converted; the tests of the converter compare all that it names."""
    names = set(by_name("albumentations"))
    assert {*convert.CONTAINERS, *convert.WITHOUT, *conversions.CONVERSIONS, *moves.MOVES} <= names
    assert {name for name in names if route(name).startswith("no: ")} == set(convert.WITHOUT)
