"""docs/vocabulary.rst beside every public signature: one word for one thing, one order, one default."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import imgops
from imgops import transforms
from tests.specs import SPECS

PAGE = Path(__file__).parent.parent / "docs" / "vocabulary.rst"


def signatures() -> Iterator[tuple[str, inspect.Parameter]]:
    """Yield every parameter of the public functions, and of the transforms that torchvision does not have."""
    functions = {name: getattr(imgops, name) for name in imgops.__all__}
    functions = {
        name: f
        for name, f in functions.items()
        if inspect.isfunction(f) or f in (imgops.EncodedImage, imgops.EncodedImages, imgops.PackedImages)
    }
    for name, function in (functions | {n: getattr(transforms, n) for n in transforms.ADDED}).items():
        for parameter in inspect.signature(function).parameters.values():
            yield name, parameter


PARAMETERS = list(signatures())


def rows(title: str) -> list[list[list[str]]]:
    """Return the words in double backticks of each cell of the table below a title, row by row."""
    section = re.split(rf"(?m)^{title}\n-+$", PAGE.read_text())[1].split("\n---", 1)[0]
    cells = [re.split(r"\n     - ", row) for row in section.split("\n   * - ")[2:]]
    return [[re.findall(r"``(\w+)``", cell) for cell in row] for row in cells]


#: The words of one function: those of the page, and of the specs.
OWN = [*rows("Words of one function"), *(spec.own_words() for spec in SPECS.values() if spec.words)]


def test_every_word_is_on_the_page() -> None:
    general = {word for row in rows("Words") for word in row[0]}
    own = {(name, word) for names, words in OWN for name in names for word in words}
    missing = [(n, p.name) for n, p in PARAMETERS if p.name not in general and (n, p.name) not in own]
    assert not missing


def test_the_page_has_no_other_words() -> None:
    used = {p.name for _, p in PARAMETERS}
    general = [word for row in rows("Words") for word in row[0]]
    assert len(general) == len(set(general)) and set(general) <= used
    for names, words in OWN:
        of_these = {p.name for n, p in PARAMETERS if n in names}
        assert set(words) <= of_these, names
        assert set(names) <= {n for n, _ in PARAMETERS}, names


#: Words that had another name once; no signature may have them again.
GONE = {
    *(
        "border",
        "aperture",
        "mask_size",
        "block_size",
        "diameter",
        "ksize",
        "kind",
        "model",
        "maximum",
        "over",
    ),
    *("image1", "image2", "boxes", "share", "light", "circles", "holes", "shadows", "corners", "channels"),
}


def test_no_word_comes_back() -> None:
    assert not [(n, p.name) for n, p in PARAMETERS if p.name in GONE]


def entry(function: object, name: str) -> str:
    """Return what a docstring says of a parameter, or of the function's that it refers to."""
    text = inspect.getdoc(function) or ""
    found = re.search(rf"(?m)^(?:\w+, )*{name}(?:, \w+)* : .*\n(?:    .*\n)+", text)
    return found[0] if found else ""


@pytest.mark.parametrize("name", ["size", "source_size", "divisor"])
def test_sizes_are_height_and_width(name: str) -> None:
    for where, parameter in PARAMETERS:
        said = entry(getattr(imgops, where, None) or getattr(transforms, where), name)
        if parameter.name == name and said:
            assert "height" in said or "As for" in said or "side" in said, (where, said)
            assert "(width, height)" not in said and "(x, y)" not in said, where


def test_pairs_are_x_and_y() -> None:
    pairs = {"position", "center", "centering", "tiles", "cells", "kernel", "kernel_size"}
    for where, parameter in PARAMETERS:
        if parameter.name in pairs:
            said = entry(getattr(imgops, where, None) or getattr(transforms, where), parameter.name)
            assert "(height, width)" not in said, where


def test_one_default_for_each_word() -> None:
    found: dict[str, set[object]] = {}
    for where, parameter in PARAMETERS:
        if (where, parameter.name) == ("Corruption", "p"):  # for measurements, which it would falsify
            assert parameter.default == 1.0
        elif parameter.default is not inspect.Parameter.empty:
            default = getattr(parameter.default, "value", parameter.default)
            found.setdefault(parameter.name, set()).add(default)
            if parameter.name == "padding_mode":
                moves = where.startswith(("warp", "Random", "Pad")) or where in ("pad", "remap")
                moves |= where in ("erode", "dilate", "morphology")
                assert default == ("constant" if moves else "reflect"), where
    assert found["interpolation"] == {"bilinear"} and found["fill"] == {0} and found["antialias"] == {True}
    assert found["per_sample"] == {False} and found["generator"] == {None} and found["p"] == {0.5}


def test_other_libraries_names_of_padding_modes() -> None:
    image, map = torch.rand(3, 6, 7), torch.rand(2, 6, 7) * 20 - 5
    for theirs, ours in (("replicate", "edge"), ("circular", "wrap")):
        for call in (
            lambda mode: imgops.pad(image, 2, mode),
            lambda mode: imgops.box_blur(image, 3, mode),
            lambda mode: imgops.bilateral_filter(image, 3, 0.5, 2.0, mode),
            lambda mode: imgops.motion_blur(image, 3, 30.0, 0.0, mode),
            lambda mode: imgops.filter2d(image, torch.ones(3, 3), mode),
            lambda mode: imgops.sobel(image, 1, 0, 3, mode),
            lambda mode: imgops.scharr(image, 1, 0, mode),
            lambda mode: imgops.laplacian(image, 3, mode),
            lambda mode: imgops.dilate(image, 3, mode),
            lambda mode: imgops.erode(image, 3, mode),
            lambda mode: imgops.morphology(image, "open", 3, mode),
            lambda mode: imgops.warp_affine(image, [[1, 0, 2], [0, 1, 1]], padding_mode=mode),
            lambda mode: imgops.warp_perspective(image, torch.eye(3) * 2, padding_mode=mode),
            lambda mode: imgops.remap(image, map, padding_mode=mode),
        ):
            assert torch.equal(call(theirs), call(ours)), theirs
        assert transforms.RandomElastic(padding_mode=theirs).padding_mode == ours
    assert transforms.PadIfNeeded(8, padding_mode="replicate").padding_mode == "edge"
    with pytest.raises(ValueError, match=r"^pad: padding_mode must be one of .*, got 'mirror'"):
        imgops.pad(image, 2, "mirror")


def test_torchvisions_order_of_a_crop_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^crop\(\) takes 2 positional arguments but 5 were given"):
        imgops.crop(torch.zeros(3, 8, 8), 0, 0, 4, 4)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^paste: position must have 2 integers \(left, top\), got int"):
        imgops.paste(torch.zeros(3, 8, 8), torch.zeros(3, 2, 2), 3, 4)  # type: ignore[arg-type]


def test_what_a_namespace_shows() -> None:
    shown = {name for name in dir(imgops) if not name.startswith("_")}
    assert shown == {*imgops.__all__, "extend", "transforms"}
    assert imgops.extend.__all__ == [
        *("Gradient", "autocast", "config", "operator", "packed", "sharding", "testing", "vmap")
    ]
    with pytest.raises(AttributeError, match="module 'imgops' has no attribute 'operator'"):
        imgops.operator  # type: ignore[attr-defined]  # noqa: B018
