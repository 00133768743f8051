"""Samples of everything that follows an image, and what the moved image says about where it must be.

The image of a sample has its own positions as values: x, y and 1. After a transform, its values are where each pixel
was before. So the image itself, not a matrix, is the reference for boxes, masks, keypoints, cameras and fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops.transforms._core import projections
from imgops.transforms.annotations import Camera, Disparity, Flow, Normals
from tests.checks import difference
from tests.groups import compile_together
from tests.transform_cases import seeded

Boxes, Points, Image, Mask = tv_tensors.BoundingBoxes, tv_tensors.KeyPoints, tv_tensors.Image, tv_tensors.Mask
SQUARE = (48, 48)
ANGLED = ("CXCYWHR", "XYWHR", "XYXYXYXY")
FORMATS = ("XYXY", "XYWH", "CXCYWH", *ANGLED)


def plain(value: Any) -> Any:
    return value.detach().as_subclass(Tensor) if isinstance(value, Tensor) else value


def check_in_one_graph(calls: dict[str, Any], inputs: dict[str, Any], seeds: int = 3) -> None:
    """Check that one graph of all calls has the results of eager mode, for all draws."""
    graph, counting = compile_together(calls, "eager", "own")
    for seed in range(seeds):
        found = seeded(seed, graph, inputs)
        torch.manual_seed(seed)
        for name, call in calls.items():
            assert not difference(found[name], call(*inputs[name]), 1e-5), (name, seed)
    assert counting.count == 1


def raises_each(error: type[Exception], *calls: tuple[Callable[[], Any], str]) -> None:
    """Check that each call raises this error with a message that matches."""
    for call, message in calls:
        with pytest.raises(error, match=message):
            call()


def rows(value: Any, count: int) -> list[Any]:
    """Return a batch as its samples: dicts, lists and tensors with ``count`` entries, of their classes."""
    if isinstance(value, dict):
        each = {name: rows(part, count) for name, part in value.items()}
        return [{name: part[i] for name, part in each.items()} for i in range(count)]
    if isinstance(value, Camera):
        return [Camera(x, canvas_size=value.canvas_size) for x in plain(value)]
    if isinstance(value, Tensor) and type(value) is not Tensor:
        return [tv_tensors.wrap(x, like=value) for x in plain(value)]
    assert len(value) == count
    return list(value)


def stack(samples: list[dict[str, Any]], lists: tuple[str, ...] = ("boxes", "angled")) -> dict[str, Any]:
    """Return samples as one batch; what the keys ``lists`` have stays a list."""
    return {name: _joined([s[name] for s in samples], name in lists) for name in samples[0]}


def _joined(values: list[Any], is_list: bool) -> Any:
    if is_list or not isinstance(values[0], Tensor):
        return values
    joined = torch.stack([plain(v) for v in values])
    if isinstance(values[0], Camera):
        return Camera(joined, canvas_size=values[0].canvas_size)
    return joined if type(values[0]) is Tensor else tv_tensors.wrap(joined, like=values[0])


# -- samples -----------------------------------------------------------------------------------------


def positions(height: int, width: int) -> Tensor:
    """Return the positions of the centers of all pixels, x and y, and 1 where the image is."""
    y, x = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
    return torch.stack([x, y, torch.ones(height, width)])


def flow_at(places: Tensor) -> Tensor:
    """Return a flow ``(2, ...)`` that is linear in the position, which no interpolation changes."""
    x, y = places[:2]
    return torch.stack([3 + 0.05 * x - 0.1 * y, -2 + 0.08 * x + 0.04 * y])


def disparity_at(places: Tensor) -> Tensor:
    return (2 + 0.05 * places[0] - 0.03 * places[1])[None]


def normals_at(places: Tensor) -> Tensor:
    """Return normals that turn slowly from one pixel to the next."""
    x, y = places[:2]
    raw = torch.stack([0.5 - 0.01 * x, 0.008 * y - 0.3, 0.004 * x - 1])
    return torch.nn.functional.normalize(raw, dim=0)


def intrinsics(seed: int = 0) -> Tensor:
    fx, fy, x, y, skew = np.random.default_rng(seed).uniform(0, 1, 5) * (9, 9, 4, 4, 1) + (30, 40, 20, 22, 0)
    return torch.tensor([[fx, skew, x], [0, fy, y], [0, 0, 1]])


def project(camera: Tensor) -> Tensor:
    """Return where cameras see nine points of a scene, inside and outside of their images, ``(..., 9, 2)``."""
    points = torch.from_numpy(np.random.default_rng(1).uniform((-0.5, -0.5, 1), (0.5, 0.5, 2), (9, 3)))
    u = points @ plain(camera).double().mT
    return u[..., :2] / u[..., 2:]


def converted(boxes: Any, format: str) -> Any:
    return v2.functional.convert_bounding_box_format(boxes, new_format=tv_tensors.BoundingBoxFormat[format])


def polygons(boxes: Any) -> np.ndarray:
    """Return the corners of boxes of any format, ``(n, 4, 2)``."""
    values, format = plain(boxes).double(), boxes.format
    if not tv_tensors.is_rotated_bounding_format(format):
        edges = v2.functional.convert_bounding_box_format(values, format, "XYXY")
        return edges[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2).numpy()
    corners = v2.functional.convert_bounding_box_format(values, format, "XYXYXYXY")
    return corners.reshape(-1, 4, 2).numpy()


def mask_of(polygon: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return the pixels whose centers are in a convex polygon."""
    y, x = np.mgrid[:height, :width] + 0.5
    sides = [
        (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])
        for a, b in zip(polygon, np.roll(polygon, -1, 0))
    ]
    return np.all([s >= 0 for s in sides], 0) | np.all([s <= 0 for s in sides], 0)


def masks_of(boxes: Any) -> Any:
    height, width = boxes.canvas_size
    found = [mask_of(p, height, width) for p in polygons(boxes)]
    return Mask(torch.from_numpy(np.stack(found).astype(np.uint8)))


def around(masks: Any) -> np.ndarray:
    """Return the edges of masks, left, top, right and bottom, by NumPy; of an empty mask, zeros."""
    found = np.zeros((len(masks), 4))
    for box, mask in zip(found, plain(masks).numpy()):
        y, x = np.nonzero(mask)
        if len(y):
            box[:] = x.min(), y.min(), x.max() + 1, y.max() + 1
    return found


def sample(
    size: tuple[int, int] = SQUARE,
    seed: int = 0,
    upright: str = "XYXY",
    angled: str = "CXCYWHR",
    maps: int = projections.KEEPS_ROWS,
    count: int = 3,
    offset: float = 0.0,
    scale: float = 1.0,
) -> dict[str, Any]:
    """Return an image of positions and all that follows a transform with this kind of map.

    Boxes have masks of their objects, in ``masks``, and boxes with an angle in ``shapes``. The keypoints are what the
    camera sees; ``offset`` is subtracted from them. Boxes have ``scale`` times the sides of those of a small image.
    """
    random, image = np.random.default_rng(seed), positions(*size)
    canvas: dict[str, Any] = {"canvas_size": size, "clamping_mode": None}
    middle = random.uniform(0.3, 0.7, (count, 2)) * size[::-1]
    sides = random.uniform((12, 6), (18, 10), (count, 2)) * scale
    edges = np.concatenate([(middle - sides / 2).round(), (middle + sides / 2).round()], 1)
    boxes = Boxes(torch.tensor(edges), format="XYXY", **canvas)
    turned = np.concatenate([middle, sides, random.uniform(-180, 180, (count, 1))], 1)
    turned = Boxes(torch.tensor(turned), format="CXCYWHR", **canvas)
    camera = intrinsics(seed)
    out: dict[str, Any] = {
        "image": Image(image),
        "boxes": converted(boxes, upright),
        "masks": masks_of(boxes),
        "angled": converted(turned, angled),
        "shapes": masks_of(turned),
        "points": Points((project(camera) - offset).reshape(3, 3, 2).float(), canvas_size=size),
    }
    if maps <= projections.PROJECTIVE:
        out |= {"camera": Camera(camera, canvas_size=size), "flow": Flow(flow_at(image))}
    if maps <= projections.AFFINE:
        out["normals"] = Normals(normals_at(image))
    if maps <= projections.KEEPS_ROWS:
        out["disparity"] = Disparity(disparity_at(image))
    return out


def objects(format: str, seed: int = 0, size: tuple[int, int] = (48, 60), **how: Any) -> dict[str, Any]:
    """Return a sample with boxes of one format, their masks, labels and keypoints."""
    given = sample(size, seed, **how)
    boxes, masks = ("angled", "shapes") if format in ANGLED else ("boxes", "masks")
    return {
        "image": given["image"],
        "boxes": converted(given[boxes], format),
        "masks": given[masks],
        "labels": torch.arange(len(given[boxes])) + 10 * seed,
        "points": given["points"],
    }


# -- the moved image as the reference ----------------------------------------------------------------


class Moved:
    """Computes from a moved image of positions where everything that follows it must be.

    Pixels near the edge of the image before are left out, where interpolation bends positions. The sides of boxes
    without an angle are within ``side`` pixels of those of their masks.
    """

    def __init__(
        self, out: dict[str, Any], given: dict[str, Any], tolerance: float = 0.2, side: float = 1.8
    ) -> None:
        self.out, self.given, self.tolerance, self.side = out, given, tolerance, side
        self.image = plain(out["image"]).double()
        self.size, before = tuple(self.image.shape[-2:]), given["image"].shape[-2:]
        self.centers, self.source = positions(*self.size)[:2].double(), self.image[:2]
        self.limit = torch.tensor(before[::-1]) - 2.5
        self.inside = self.is_known(self.source) & ((self.image[2] - 1).abs() < 1e-3)

    def is_known(self, source: Tensor) -> Tensor:
        return (source > 2.5).all(0) & (source.movedim(0, -1) < self.limit).all(-1)

    def check_places(self, places: Tensor, wanted: Tensor) -> None:
        """Check that the image shows, at places ``(2, ...)``, what was at the wanted places."""
        grid = places.flatten(1).T / torch.tensor(self.size[::-1]) * 2 - 1
        shown = torch.nn.functional.grid_sample(self.image[None], grid[None, None], align_corners=False)
        shown = shown[0, :, 0].unflatten(1, places.shape[1:])
        clear = ((shown[2] - 1).abs() < 1e-3) & self.is_known(wanted)
        off = (shown[:2] - wanted).abs()[:, clear]
        assert not off.numel() or off.max() < self.tolerance, off.max()

    def matrix(self) -> Tensor:
        """Return the affine map ``(2, 3)`` that fits the pixels best."""
        source = torch.cat([self.source[:, self.inside], torch.ones(1, int(self.inside.sum()))])
        return torch.linalg.lstsq(source.T, self.centers[:, self.inside].T).solution.T

    def check(self, offset: float = 0.0, boxes: tuple[str, ...] = ("boxes",), may_drop: bool = False) -> None:
        """Check everything; ``offset`` is 0.5 if the centers of pixels in keypoints are whole numbers."""
        for value in self.out.values():
            assert getattr(value, "canvas_size", self.size) == self.size
        before, after = (plain(x["points"]).double().movedim(-1, 0) + offset for x in (self.given, self.out))
        self.check_places(after, before)
        for name, masks in (("boxes", "masks"), ("angled", "shapes")):
            if masks in self.out:
                self.check_masks(masks)
            if name in boxes:
                self.check_boxes(name, masks, may_drop)
        if "camera" in self.out:
            seen = project(self.out["camera"]).movedim(-1, 0)
            torch.testing.assert_close(seen, after.flatten(1), rtol=0, atol=5e-4)
        if "flow" in self.out:
            flow = plain(self.out["flow"]).double()
            self.check_places(self.of(self.centers + flow), self.of(self.source + flow_at(self.source)))
        if "disparity" in self.out:  # the other image shows the same thing in the same row
            aside, before = plain(self.out["disparity"]).double(), disparity_at(self.source)
            self.check_places(self.of(left_of(self.centers, aside)), self.of(left_of(self.source, before)))
        if "normals" in self.out:
            normals = self.of(plain(self.out["normals"]).double())
            wanted = turn_of(self.matrix()) @ self.of(normals_at(self.source))
            assert (normals - wanted).abs().max() < 0.03 and (normals.norm(dim=0) - 1).abs().max() < 1e-5

    def of(self, values: Tensor) -> Tensor:
        return values[..., self.inside]

    def check_masks(self, name: str) -> None:
        """Check that pixels from the middle of an object belong to its mask, and those far from it do not."""
        pool = torch.nn.AvgPool2d(5, 1, 2, count_include_pad=False)
        x, y = self.of(self.source).long()
        share, found = pool(plain(self.given[name]).double())[:, y, x], self.of(plain(self.out[name]))
        assert (found[share == 1] == 1).all() and not found[share == 0].any()

    def check_boxes(self, name: str, masks: str, may_drop: bool) -> None:
        """Check that each box holds its mask and that each of its sides touches it, if the image cuts none."""
        side = 1.8 if self.out[name].format.value in ANGLED else self.side
        for polygon, mask in zip(polygons(self.out[name]), plain(self.out[masks]).numpy() == 1, strict=True):
            if not polygon.any():
                assert may_drop or mask.sum() < 9
                continue
            low, high = gaps(polygon, mask)
            assert low > -side, (polygon, low)
            is_cut = mask[[0, -1]].any() or mask[:, [0, -1]].any() or not mask.any()
            assert is_cut or high < side, (polygon, high)


def gaps(polygon: np.ndarray, mask: np.ndarray) -> tuple[float, float]:
    """Return the smallest and the largest distance of the sides of a box from the pixels of a mask."""
    y, x = np.nonzero(mask)
    pixels, found = np.stack([x + 0.5, y + 0.5], 1), []
    middle = polygon.mean(0)
    for a, b in zip(polygon, np.roll(polygon, -1, 0)):
        normal = np.array([a[1] - b[1], b[0] - a[0]]) / max(np.linalg.norm(b - a), 1e-9)
        normal *= np.sign((middle - a) @ normal) or 1
        found.append(((pixels - a) @ normal).min(initial=np.inf) - 0.5)
    return min(found), max(found)


def left_of(places: Tensor, disparity: Tensor) -> Tensor:
    return torch.stack([places[0] - disparity[0], places[1]])


def turn_of(matrix: Tensor) -> Tensor:
    """Return how a camera with square pixels must turn, so that its image is mapped by an affine matrix.

    The new intrinsic matrix times the turn is the matrix times the old one: NumPy's QR of the flipped
    transpose is that RQ decomposition, with signs that make the diagonal of the intrinsic matrix positive.
    """
    camera = np.array([[50.0, 0, 20], [0, 50, 31], [0, 0, 1]])
    whole = np.concatenate([matrix.numpy(), [[0, 0, 1]]])
    q, r = np.linalg.qr((whole @ camera)[::-1].T)
    triangle, turn = r.T[::-1, ::-1], q.T[::-1]
    return torch.from_numpy(np.sign(np.diag(triangle))[:, None] * turn)


def check_back(back: dict[str, Any], given: dict[str, Any], known: Tensor, exact: bool, turns: bool) -> None:
    """Check that a sample came back from a transform, where its pixels were seen.

    An ``exact`` transform only moves pixels. Boxes that ``turns`` are those around what they were.
    """
    assert known.shape == given["image"].shape[-2:] and known.dtype == torch.bool and known.any()
    fields = ("dtype", "shape", "canvas_size", "format")
    for name, value in given.items():
        found = back[name]
        assert type(found) is type(value)
        assert all(getattr(found, f, None) == getattr(value, f, None) for f in fields)
        if name in ("points", "camera"):
            torch.testing.assert_close(plain(found), plain(value), rtol=0, atol=2e-3)
            continue
        if name in ("boxes", "angled"):
            whole = ~(plain(given["masks" if name == "boxes" else "shapes"]).bool() & ~known).flatten(1).any(
                1
            )
            check_boxes_back(polygons(found)[whole], polygons(value)[whole], turns, name == "boxes")
            continue
        off = (plain(found).double() - plain(value).double()).abs()[..., known]
        assert not exact or off.max() == 0
        assert off.amax(0).median() < (0.1 if name == "image" else 0.03) and off.mean() < 0.5, name
        if name in ("image", "masks", "shapes"):
            assert not plain(found)[..., ~known].any()


def check_boxes_back(found: np.ndarray, wanted: np.ndarray, turns: bool, upright: bool) -> None:
    if turns and upright:
        assert (found.min(1) <= wanted.min(1) + 1e-3).all() and (found.max(1) >= wanted.max(1) - 1e-3).all()
    elif not turns:
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-3)
