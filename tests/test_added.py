"""The transforms that torchvision does not have: pixels, boxes, masks and keypoints, wrong arguments.

tests/test_transforms_calls.py has their draws, graphs and gradients.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors

import imgops
from imgops import transforms as ours
from imgops.kernels.cpu import _splines
from imgops.transforms.geometry import distortion
from tests.added_cases import JOINING, OF_BOXES, REQUIRED, ROWS, Row
from tests.groups import compiled
from tests.tiers import nightly_unless
from tests.transform_cases import check_refusals, picture, seeded

ALBUMENTATIONS = "albumentations"


def test_every_transform_has_a_row() -> None:
    assert {row.name for row in ROWS} | {*JOINING, *OF_BOXES} == set(ours.ADDED)
    assert not set(ours.ADDED) & set(ours.OURS)
    assert all(getattr(ours, name).__doc__ for name in ours.ADDED)


def _frames() -> list[Tensor]:
    return [picture(height=h, width=w, seed=s) for s, (h, w) in enumerate([(40, 52), (64, 33), (37, 90)])]


@pytest.mark.parametrize("row", [r for r in ROWS if r.reference], ids=str)
def test_pixels(row: Row, whole: bool) -> None:
    """The pixels are those of the named library, called with the same parameters."""
    if ALBUMENTATIONS in row.of or row.moves:
        pytest.importorskip("albumentations")
    transform = row.applied()
    for image in _frames()[: None if whole else 1]:
        for seed in range((10 if whole else 3) if row.per_sample else 1):
            torch.manual_seed(seed)
            frame = image.permute(1, 2, 0).contiguous().numpy()
            same = torch.from_numpy(frame).permute(
                2, 0, 1
            )  # OpenCV rounds planar and interleaved pixels differently in places
            if row.per_sample:
                params = transform.sample(same)
                values = dict(transform._numbers_by_name(params[()].numbers))
                for name, value in values.items():
                    values[name] = int(value) if name == "kernel_size" else value
                found, wanted = transform.apply(same, params), row.reference(frame, transform, **values)
            else:
                found, wanted = transform(same), row.reference(frame, transform)
            assert found.dtype == torch.uint8
            off = np.abs(found.permute(1, 2, 0).numpy().astype(int) - wanted.astype(int))
            assert (off > row.levels).mean() <= row.share, (
                f"seed {seed}: {off.max()} levels, {(off > row.levels).mean():.2%}"
            )


def _scaled(row: Row) -> Any:
    """Return the same transform for floats, whose fill is in [0, 1]."""
    fill = row.options.get("fill")
    more: dict[str, Any] = {"p": 1.0} if row.per_sample else {}
    if fill is not None and not isinstance(fill, str):
        more["fill"] = [f / 255 for f in fill] if isinstance(fill, tuple) else fill / 255
    return row.make(**more)


def test_fog_of_a_large_image() -> None:
    """From 300 pixels on, OpenCV's kernel is the Gaussian for its size: bit-exact."""
    pytest.importorskip("albumentations")
    row = next(r for r in ROWS if r.name == "RandomFog")
    image, fog = picture(height=310, width=340), row.make(p=1.0)
    params = fog.sample(image)
    wanted = row.reference(
        image.permute(1, 2, 0).contiguous().numpy(), fog, **fog._numbers_by_name(params[()].numbers)
    )
    assert np.array_equal(fog.apply(image, params).permute(1, 2, 0).numpy(), wanted)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_floats_are_the_same_picture(row: Row, whole: bool) -> None:
    """Floats in [0, 1] give the result of uint8, except for rounding."""
    transform = row.applied()
    for seed in range(3 if whole else 1):
        image = picture(torch.uint8, *row.size, seed)
        levels = seeded(seed, transform, image)
        real = seeded(seed, _scaled(row), image / 255)
        assert real.dtype == torch.float32 and real.shape == levels.shape
        if row.id != "random":
            off = (real * 255 - levels).abs()
            assert off.mean() < 4 and (off > 12).double().mean() < 0.1


def test_a_point_of_a_fold_or_outside_comes_to_the_nearest_pixel() -> None:
    from imgops.transforms.geometry import inverse_map

    x = torch.tensor([0.0, 10, 2, 12, 14]).double().expand(3, 5)
    y = torch.arange(3.0).double()[:, None].expand(3, 5)
    found = inverse_map.points(torch.stack([x, y]), torch.tensor([[12.0, 1], [30, 1], [-9, 2]]).double())
    assert found[0].tolist() in ([3.0, 1.0], [1.0, 1.0]) and found[1, 0] >= 4 and found[2, 0] <= 0


#: Transform, arguments that it refuses, the error and its text after the name.
WRONG_ARGUMENTS: tuple[tuple[str, dict[str, Any], type[Exception], str], ...] = (
    ("RandomGamma", {"p": 1.5}, ValueError, "p must be a probability in [0, 1], got 1.5"),
    ("RandomGamma", {"gamma": (2, 1)}, ValueError, "gamma must be a number from 0 on or a range"),
    ("RandomGamma", {"gamma": (0, math.inf)}, ValueError, "gamma must be a finite number"),
    ("RandomGamma", {"gamma": "1"}, TypeError, "gamma must be a number from 0 on or a range"),
    ("RandomGamma", {"generator": 3}, TypeError, "generator must be a torch.Generator"),
    ("RandomMedianBlur", {"kernel_size": (2, 4)}, ValueError, "kernel_size must be an odd"),
    ("RandomMorphology", {"operation": "melt"}, ValueError, "operation must be one of 'erode'"),
    ("RandomSunFlare", {"angle": 361}, ValueError, "angle must be a number from 0 to 360"),
    ("RandomSunFlare", {"color": (1, 2, 256)}, ValueError, "color must be 3"),
    ("RandomRain", {"method": "hail"}, ValueError, "method must be one of 'drizzle'"),
    ("RandomRain", {"color": (1, 2)}, ValueError, "color must be 3 integers"),
    ("RandomCLAHE", {"p": "1"}, ValueError, "p must be a probability in [0, 1], got '1'"),
    (
        "RandomCLAHE",
        {"tiles": (0, 8)},
        ValueError,
        "tiles must be an integer from 1 to 32767, or two, along x",
    ),
    ("RandomFog", {"alpha": (0.1, 0.2)}, TypeError, "alpha must be a number"),
    ("RandomShadow", {"region": (0, 1)}, ValueError, "region must be left, top, right"),
    ("RandomShadow", {"region": (0, 1, 1, 0)}, ValueError, "region must be left, top, right"),
    ("RandomGridDistortion", {"num_steps": 10**30}, ValueError, "num_steps"),
    ("CopyPaste", {"amount": 1.5}, ValueError, "amount must be a number from 0 to 1"),
    (
        "PadIfNeeded",
        {"size": 4, "padding_mode": "circular"},
        ValueError,
        "padding_mode must be one of 'constant', 'edge', 'reflect', 'symmetric', got 'circular'",
    ),
    ("LetterBox", {"size": (0, 3)}, ValueError, "size must be an integer from 1 on"),
    ("LetterBox", {"size": 2**16}, ValueError, "size must have a product of at most 2147483647, got 65536"),
    ("LetterBox", {"interpolation": -1}, ValueError, "interpolation must be an Interp"),
    ("FDA", {"references": []}, ValueError, "references must be images"),
    ("FDA", {"references": 5}, TypeError, "references must be images (C, H, W)"),
    ("FDA", {"references": [1, 2]}, TypeError, "references must be images (C, H, W)"),
    ("PixelDropout", {"per_channel": True, "mask_fill": 1}, ValueError, "mask_fill must be None"),
    ("PixelDropout", {"fill": (1, 2)}, TypeError, "fill must be a number"),
    ("GridDropout", {"cells": (1,)}, ValueError, "cells must be 2 integers"),
    ("GridDropout", {"cells": 3}, TypeError, "cells must be 2 integers, along x and y, got 3"),
    ("GridDropout", {"cells": 0}, TypeError, "cells must be 2 integers"),
)
_PIXELS, _LEVELS = picture(), "must be from 0 to 255 for torch.uint8, got"
#: Transform, arguments, inputs that it refuses with them, and the text of the error after the name.
WRONG_INPUTS: tuple[tuple[str, dict[str, Any], tuple[Any, ...], str], ...] = (
    ("RandomSnow", {"p": 1.0}, (_PIXELS[:2],), "image must have 3 channels, because HLS is a space of RGB"),
    ("RandomChannelDropout", {"num_channels": 3, "p": 1.0}, (_PIXELS,), "image must have more than 3"),
    *(
        (name, {"p": 1.0}, (torch.zeros(3, 0, 5),), "image must have at least one pixel, got shape (3, 0, 5)")
        for name in ("RandomFog", "RandomSunFlare", "RandomISONoise")
    ),
    (
        "RandomGridDistortion",
        {"p": 1.0},
        (_PIXELS[:, :1, :1],),
        "image must have at least num_steps (5) rows and columns, got 1 x 1",
    ),
    ("CoarseDropout", {"fill": (1, 2), "p": 1.0}, (_PIXELS,), "fill must have 1 value or 3"),
    ("CoarseDropout", {"fill": 300, "p": 1.0}, (_PIXELS,), f"fill {_LEVELS} 300"),
    ("PixelDropout", {"fill": 300, "p": 1.0}, (_PIXELS,), f"fill {_LEVELS} 300"),
    (
        "GridDropout",
        {"mask_fill": 300, "p": 1.0},
        (_PIXELS, tv_tensors.Mask(_PIXELS)),
        f"mask_fill {_LEVELS}",
    ),
    ("Mosaic", {"size": 8, "fill": -1}, ([_PIXELS] * 4,), f"fill {_LEVELS} -1"),
    (
        "Mosaic",
        {"size": 8, "fill": (1, 2)},
        ([_PIXELS] * 4,),
        "fill must have 1 value or 3, one for each channel",
    ),
    (
        "Mosaic",
        {"size": 8},
        ([torch.zeros(3, 0, 4)] * 4,),
        "image must have at least one pixel, got shape (3, 0",
    ),
)


def test_refusals() -> None:
    for name, options, error, text in WRONG_ARGUMENTS:
        check_refusals({f"{name}: {text}": [lambda: getattr(ours, name)(**options)]}, error)
    for name, options, inputs, text in WRONG_INPUTS:
        made = getattr(ours, name)(**options)
        check_refusals({f"{name}: {text}": [lambda: made(*inputs)]}, ValueError)
    of_levels = {"adjust_gamma: image must be": [lambda: ours.RandomGamma(p=1.0)(_PIXELS.int())]}
    check_refusals(of_levels, TypeError)
    text = "corruptions: seed must be an integer from 0 to 2147483647, got 2147483648"
    check_refusals({text: [lambda: ours.corruptions(torch.zeros(1, 3, 4, 4), seed=2**31)]}, ValueError)


def test_angles_are_in_degrees() -> None:
    red = torch.tensor([255, 0, 0], dtype=torch.uint8)[:, None, None].expand(3, 4, 4)
    green = ours.RandomHSV(hue=120, saturation=0, value=0, p=1.0)(red)
    assert green[:, 0, 0].tolist() == [0, 255, 0]
    real = ours.RandomHSV(hue=120, saturation=0, value=0, p=1.0)(red / 255)
    torch.testing.assert_close(real[:, 0, 0], torch.tensor([0.0, 1.0, 0.0]))
    (x, _), circles = ours.RandomSunFlare(angle=90)._flare(100, 80, 3)
    assert {place[0] for _, place, *_ in circles} == {x}


def test_pairs_are_x_and_y() -> None:
    """The numbers of cells and tiles are along x and y, as OpenCV has them; only sizes are height and width."""
    boxes = ours.GridDropout(cells=(5, 2), random_offset=False)._boxes_of(0, 20, 100)
    assert (len(set(boxes[:, 0])), len(set(boxes[:, 1]))) == (5, 2)
    image = picture()[:1]
    wanted = cv2.createCLAHE(4.0, (5, 2)).apply(image[0].numpy())
    assert np.array_equal(ours.RandomCLAHE(4.0, (5, 2), p=1.0)(image)[0].numpy(), wanted)


def test_autocast_keeps_the_dtype() -> None:
    images = torch.stack([picture(torch.float32)] * 2).half()
    blur = ours.RandomMotionBlur(p=1.0, per_sample=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert blur(images).dtype == compiled(blur)[0](images).dtype == torch.float16
        assert ours.RandomMotionBlur(p=1.0)(images).dtype == torch.float16


# -- maps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["RandomElastic", "RandomGridDistortion", "RandomOpticalDistortion", "RandomThinPlateSpline"]
)
def test_a_map_is_made_once_for_a_call_and_dropped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[torch.dtype] = []
    whole = getattr(ours, name)._map_of

    def counted(self: Any, height: int, width: int, dtype: torch.dtype, **params: Any) -> Tensor:
        made.append(dtype)
        return whole(self, height, width, dtype, **params)

    monkeypatch.setattr(getattr(ours, name), "_map_of", counted)
    given = {
        "image": tv_tensors.Image(picture()),
        "masks": tv_tensors.Mask(torch.zeros(2, 40, 52, dtype=torch.uint8)),
        "boxes": tv_tensors.BoundingBoxes([[3.0, 4, 20, 30]], format="XYXY", canvas_size=(40, 52)),
        "points": tv_tensors.KeyPoints([[3.0, 4]], canvas_size=(40, 52)),
    }
    transform = getattr(ours, name)(p=1.0)
    seeded(0, transform, given)
    assert sorted(made, key=str) == [torch.float32, torch.float64] and not distortion._maps.entries
    numbers = transform._numbers_by_name(transform.sample(given["image"])[()].numbers)
    key = tuple((n, tuple(v) if isinstance(v, list) else v) for n, v in numbers.items())
    monkeypatch.setattr(type(distortion._maps), "limit_of_graph", 2 * 2 * 40 * 52 * 4)
    for width in (52, 51, 50, 52):  # as a graph asks for maps, without an end
        distortion._maps.of(transform._description, 40, width, torch.float32, key)
        kept = sum(m.nbytes for m in distortion._maps.entries.values())
        assert kept <= 2 * 2 * 40 * 52 * 4
    distortion._maps.entries.clear()


def test_a_spline_in_parts_is_the_spline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maps computed in parts are SciPy's, also where a part has fewer rows than the map, for a batch, and with a gradient."""
    interpolate = pytest.importorskip("scipy.interpolate")
    monkeypatch.setattr(_splines, "_PART", 1 << 18)
    rng = np.random.default_rng(0)
    height, width, scale = 301, 180, np.array([180.0, 301.0])
    points = rng.uniform(0, 1, (2, 12, 2)) * scale
    targets = points + rng.normal(0, 4, points.shape)
    given = torch.from_numpy(points), torch.from_numpy(targets)
    found = imgops.thin_plate_spline_map(*given, (height, width), dtype=torch.float64)
    y, x = np.mgrid[:height, :width]
    for i in range(2):
        spline = interpolate.RBFInterpolator(targets[i], points[i], kernel="thin_plate_spline")
        wanted = spline(np.stack([x.ravel(), y.ravel()], -1)).reshape(height, width, 2)
        assert np.abs(found[i].permute(1, 2, 0).numpy() - wanted).max() < 1e-6
    leaves = [v.clone().requires_grad_() for v in given]
    again = imgops.thin_plate_spline_map(*leaves, (height, width), dtype=torch.float64)
    torch.testing.assert_close(again.detach(), found, rtol=0, atol=1e-9)
    on_a_target = imgops.thin_plate_spline_map(given[0][0], given[1][0].round(), (height, width))
    assert on_a_target.dtype == torch.float32 and bool(on_a_target.isfinite().all())


# -- arguments ---------------------------------------------------------------------------------------

HOSTILE: tuple[Any, ...] = (
    *(math.nan, math.inf, -math.inf, 10**400, 10**30, 2**63, 2**31, -1, -1e30, 1e30, 0, 1e-300, 1j),
    *("x", b"x", [], (1,), (1, 2, 3), (math.nan, math.nan), (0, math.inf), (-math.inf, math.inf), (1, 0)),
    *(("a", "b"), (None, None), ((1, 2), (3, 4)), object(), {"a": 1}, torch.tensor([1.0, 2.0])),
)
#: Truth values, and arguments that PyTorch itself checks.
UNCHECKED = ("per_sample", "generator", "antialias", "scale_up")
ARGUMENTS = [
    (name, argument)
    for name in ours.ADDED
    for argument, parameter in inspect.signature(getattr(ours, name)).parameters.items()
    if argument not in UNCHECKED and not isinstance(parameter.default, bool)
]


#: Each argument once, of the first transform that has it.
FIRST_OF_KIND = list({argument: (name, argument) for name, argument in reversed(ARGUMENTS)}.values())


@pytest.mark.parametrize(("name", "argument"), nightly_unless(FIRST_OF_KIND.__contains__, ARGUMENTS), ids=str)
def test_an_argument_is_refused_or_works(name: str, argument: str) -> None:
    """An argument is refused when it is given, or at the first call if it depends on the image (channels, dtype); quickly."""
    cls = getattr(ours, name)
    options = dict(REQUIRED.get(name, {}))
    if "p" in inspect.signature(cls).parameters:
        options["p"] = 1.0
    for value in HOSTILE:
        transform, error = outcome(lambda value=value: cls(**{**options, argument: value}))
        if error is not None:
            assert isinstance(error, (TypeError, ValueError)), (value, error)
            assert str(error).startswith(f"{name}: ") and ", got " in str(error), (value, error)
            continue
        if name in JOINING:
            continue
        start = time.perf_counter()
        image = picture(height=24, width=24)
        out, error = outcome(lambda transform=transform, image=image: seeded(0, transform, image))
        assert time.perf_counter() - start < 20, value
        if error is None:
            assert out.dtype == torch.uint8, value
        else:
            assert isinstance(error, ValueError) and " must " in str(error), (value, error)
            assert argument in ("fill", "channels", "size", "divisor", "swap_labels"), (value, error)


def outcome(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """Return the result of a call, or the error that it raises."""
    try:
        return call(), None
    except Exception as error:
        return None, error


@pytest.mark.parametrize("row", [r for r in ROWS if not r.id], ids=str)
def test_a_plane_is_no_image(row: Row) -> None:
    for shape in ((4, 5), (5,), ()):
        with pytest.raises(ValueError, match=rf"^{row.name}: image must have at least 3 dimensions"):
            row.applied()(torch.zeros(shape))


@pytest.mark.parametrize("row", [r for r in ROWS if not r.id], ids=str)
def test_dtypes_without_levels_are_refused_or_kept(row: Row) -> None:
    """They are not clamped to [0, 1]; transforms that only move or hide pixels take every dtype."""
    for dtype in (torch.uint16, torch.int16, torch.int32, torch.int64, torch.bool, torch.complex64):
        image = picture(height=row.size[0], width=row.size[1]).to(dtype)
        for each in (False, True) if row.per_sample else (False,):
            transform = row.applied(per_sample=each) if each else row.applied()
            given = torch.stack([image, image]) if each else image
            out, error = outcome(lambda transform=transform, given=given: seeded(0, transform, given))
            if error is None:
                computes = getattr(transform, "_levels", False)  # tests/test_sixteen_bits.py has its pixels
                assert out.dtype == dtype and (dtype == torch.uint16 or not computes)
            else:
                assert isinstance(error, (TypeError, ValueError)) and " must " in str(error), (dtype, error)
