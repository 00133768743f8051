"""The transforms that torchvision does not have, at their limits: empty input, a key used twice, wrong arguments."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from added_cases import JOINING, REQUIRED, ROWS, Row
from checks import bits_equal
from torch import Tensor
from torchvision import tv_tensors
from transform_cases import picture, seeded

import imgops
from imgops import transforms as ours
from imgops._common.torch_private import CountingBackend
from imgops.kernels.cpu import _splines
from imgops.transforms.geometry import distortion
from tests.tiers import nightly, nightly_unless

SAMPLING = [row for row in ROWS if row.per_sample]
BENT = ("RandomElastic", "RandomGridDistortion", "RandomOpticalDistortion", "RandomThinPlateSpline")


def chosen(row: Row, **more: Any) -> Any:
    return row.make(p=1.0, **more) if row.per_sample else row.make(**more)


# -- nothing ---------------------------------------------------------------------------------------


# -- a key twice -------------------------------------------------------------------------------------


# -- copy and paste ----------------------------------------------------------------------------------


def objects(height: int, width: int, boxes: list[list[int]], dtype: torch.dtype = torch.uint8) -> Any:
    masks = torch.zeros(len(boxes), height, width, dtype=dtype)
    for mask, (x0, y0, x1, y1) in zip(masks, boxes):
        mask[y0:y1, x0:x1] = 1
    canvas = {"canvas_size": (height, width)}
    corners = torch.tensor(boxes, dtype=torch.float32)
    return {
        "image": tv_tensors.Image(torch.zeros(3, height, width, dtype=torch.uint8)),
        "boxes": tv_tensors.BoundingBoxes(corners, format="XYXY", **canvas),
        "masks": tv_tensors.Mask(masks),
        "points": tv_tensors.KeyPoints(corners[:, :2].clone(), **canvas),
        "pairs": tv_tensors.KeyPoints(corners.reshape(-1, 2, 2).clone(), **canvas),
        "parts": tv_tensors.Mask(masks.clone()),
        "classes": tv_tensors.Mask(masks.any(0).to(torch.uint8) * (5 if width == 40 else 7)),
        "planes": tv_tensors.Mask(masks.any(0, keepdim=True).repeat(3, 1, 1).to(torch.int64)),
    }


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64])
def test_what_is_pasted_has_another_size(dtype: torch.dtype) -> None:
    """A keypoint at the corner of its box stays there, masks keep their dtype, and class masks get the pasted objects."""
    first = objects(30, 40, [[0, 0, 9, 9], [30, 20, 40, 30]], dtype)
    second = objects(60, 80, [[20, 20, 40, 40]], dtype)
    out = ours.CopyPaste(amount=1.0, p=1.0)([first, second])
    assert out["boxes"][2].tolist() == [10, 10, 20, 20] and out["points"][2].tolist() == [10, 10]
    assert out["pairs"][2].tolist() == [[10, 10], [20, 20]]
    for name in ("masks", "parts"):
        assert out[name].dtype == dtype and out[name].shape == (3, 30, 40)
    assert bits_equal(out["parts"].as_subclass(Tensor), out["masks"].as_subclass(Tensor))
    classes = np.zeros((30, 40), np.uint8)
    classes[:9, :9] = classes[20:, 30:] = 5
    classes[10:20, 10:20] = 7
    assert np.array_equal(out["classes"].numpy(), classes) and out["classes"].dtype == torch.uint8
    assert np.array_equal(out["planes"].numpy(), np.repeat((classes > 0)[None], 3, 0).astype(np.int64))
    nothing = ours.CopyPaste(amount=0.0, p=1.0)([first, second])
    for name in ("classes", "planes"):
        assert bits_equal(nothing[name].as_subclass(Tensor), first[name].as_subclass(Tensor))


def test_classes_behind_an_object_are_its_own() -> None:
    """A pasted object hides the class below it, also where its own class is 0."""
    first, second = objects(30, 40, [[0, 0, 40, 30]]), objects(30, 40, [[5, 5, 10, 10]])
    second["classes"] = tv_tensors.Mask(torch.zeros(30, 40, dtype=torch.uint8))
    out = ours.CopyPaste(amount=1.0, p=1.0)([first, second])
    assert out["classes"][5:10, 5:10].sum() == 0 and out["classes"].sum() == 5 * (30 * 40 - 25)
    second["planes"] = tv_tensors.Mask(torch.zeros(2, 30, 40, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"^CopyPaste: masks .* got \(3,\) and \(2,\)"):
        ours.CopyPaste(amount=1.0, p=1.0)([first, second])


@nightly
@pytest.mark.skipif(not hasattr(torch.Tag, "inplace"), reason="dynamo takes no tv_tensors")
def test_how_often_other_numbers_of_boxes_compile() -> None:
    """PyTorch compiles one graph for one box and one for more, in each sample, after the first call."""
    transform, counting = ours.CopyPaste(p=1.0), CountingBackend("aot_eager")
    torch.compiler.reset()
    graph = torch.compile(transform, fullgraph=True, backend=counting)
    for i, (a, b) in enumerate([(3, 2), (2, 3), (1, 4), (5, 1), (1, 1), (4, 6), (1, 2)]):
        sizes = [(30, 40, [[j, j, j + 9, j + 9] for j in range(n)]) for n in (a, b)]
        samples = [objects(*size) for size in sizes]
        found, wanted = (seeded(i, f, samples) for f in (graph, transform))
        for name, value in wanted.items():
            assert torch.equal(found[name].as_subclass(Tensor), value.as_subclass(Tensor)), (i, name)
    assert counting.count <= 2**2 + 1


# -- boxes with an angle -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["CoarseDropout", "GridDropout", "PixelDropout"])
def test_boxes_with_an_angle_stay(name: str) -> None:
    formats = {"CXCYWHR": 5, "XYWHR": 5, "XYXYXYXY": 8}
    for format, length in formats.items():
        boxes = tv_tensors.BoundingBoxes(torch.rand(2, length), format=format, canvas_size=(20, 20))
        out = getattr(ours, name)(p=1.0)(torch.zeros(3, 20, 20), boxes)[1]
        assert bits_equal(out.as_subclass(Tensor), boxes.as_subclass(Tensor)) and out.format == boxes.format
        both = torch.zeros(2, 3, 20, 20), boxes, boxes
        out = getattr(ours, name)(p=1.0, per_sample=True)(*both)[2]
        assert bits_equal(out.as_subclass(Tensor), boxes.as_subclass(Tensor))


# -- maps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BENT)
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

HOSTILE: dict[str, Any] = {
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "10**400": 10**400,
    "10**30": 10**30,
    "2**63": 2**63,
    "2**31": 2**31,
    "-1": -1,
    "-1e30": -1e30,
    "1e30": 1e30,
    "0": 0,
    "1e-300": 1e-300,
    "text": "x",
    "bytes": b"x",
    "empty": [],
    "one": (1,),
    "three": (1, 2, 3),
    "nans": (math.nan, math.nan),
    "to inf": (0, math.inf),
    "from -inf": (-math.inf, math.inf),
    "texts": ("a", "b"),
    "reversed": (1, 0),
    "complex": 1j,
    "nones": (None, None),
    "nested": ((1, 2), (3, 4)),
    "object": object(),
    "dict": {"a": 1},
    "tensor": torch.tensor([1.0, 2.0]),
}
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
    for case, value in HOSTILE.items():
        transform, error = outcome(lambda value=value: cls(**{**options, argument: value}))
        if error is not None:
            assert isinstance(error, (TypeError, ValueError)), (case, error)
            assert str(error).startswith(f"{name}: ") and ", got " in str(error), (case, error)
            continue
        if name in JOINING:
            continue
        start = time.perf_counter()
        image = picture(height=24, width=24)
        out, error = outcome(lambda transform=transform, image=image: seeded(0, transform, image))
        assert time.perf_counter() - start < 20, case
        if error is None:
            assert out.dtype == torch.uint8, case
        else:
            assert isinstance(error, ValueError) and " must " in str(error), (case, error)
            assert argument in ("fill", "channels", "size", "divisor", "swap_labels"), (case, error)


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
            chosen(row)(torch.zeros(shape))


@pytest.mark.parametrize("row", [r for r in ROWS if not r.id], ids=str)
def test_dtypes_without_levels_are_refused_or_kept(row: Row) -> None:
    """They are not clamped to [0, 1]; transforms that only move or hide pixels take every dtype."""
    for dtype in (torch.uint16, torch.int16, torch.int32, torch.int64, torch.bool, torch.complex64):
        image = picture(height=row.size[0], width=row.size[1]).to(dtype)
        for each in (False, True) if row.per_sample else (False,):
            transform = chosen(row, per_sample=each) if each else chosen(row)
            given = torch.stack([image, image]) if each else image
            out, error = outcome(lambda transform=transform, given=given: seeded(0, transform, given))
            if error is None:
                computes = getattr(transform, "_levels", False)  # tests/test_sixteen_bits.py has its pixels
                assert out.dtype == dtype and (dtype == torch.uint16 or not computes)
            else:
                assert isinstance(error, (TypeError, ValueError)) and " must " in str(error), (dtype, error)
