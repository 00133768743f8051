"""Classes that users derive from albumentations', and the draws of converted pipelines on arrays."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from test_albumentations_inputs import assert_equal
from test_from_albumentations import (
    BOXES,
    MASK,
    NAMES,
    POINTS,
    SCENE,
    assert_same,
    converted,
    made,
    pixels,
    sample_here,
    steps,
    theirs,
)
from torch.utils.data import DataLoader
from transform_cases import seeded

from imgops import transforms as ours
from imgops.integrations.albumentations import rules

A = pytest.importorskip("albumentations", "2.0.8")

#: The arrays of ``sample_here``.
ARRAYS = {"image": SCENE, "mask": MASK, "bboxes": BOXES, "labels": list(range(len(BOXES)))}
ARRAYS |= {"keypoints": POINTS, "tags": list(range(len(POINTS)))}


class Cropped(A.RandomCrop):  # type: ignore[misc]
    """A class under another name."""


class HorizontalFlip(A.HorizontalFlip):  # type: ignore[misc]
    """A class under the same name with a method of its own."""

    def apply(self, img: np.ndarray, **params: Any) -> np.ndarray:
        return np.ascontiguousarray(img[::-1])


class FixedMask(A.HorizontalFlip):  # type: ignore[misc]
    def apply_to_mask(self, mask: np.ndarray, **params: Any) -> np.ndarray:
        return mask


class Doubled(A.DualTransform):  # type: ignore[misc]
    """A class of its own that changes the size."""

    def apply(self, img: np.ndarray, **params: Any) -> np.ndarray:
        return np.repeat(img, 2, 0)

    def apply_to_bboxes(self, bboxes: np.ndarray, **params: Any) -> np.ndarray:
        return bboxes

    def apply_to_keypoints(self, keypoints: np.ndarray, **params: Any) -> np.ndarray:
        return keypoints * np.array([1, 2, *[1] * (keypoints.shape[1] - 2)], keypoints.dtype)


class CutResize(A.Resize):  # type: ignore[misc]
    def apply(self, img: np.ndarray, **params: Any) -> np.ndarray:
        return np.ascontiguousarray(img[:20, :22])

    def apply_to_mask(self, mask: np.ndarray, **params: Any) -> np.ndarray:
        return np.ascontiguousarray(mask[:20, :22])


class OneTurn(A.RandomRotate90):  # type: ignore[misc]
    def get_params(self) -> dict[str, Any]:
        return {"factor": 1}


class CornerCrop(A.RandomCrop):  # type: ignore[misc]
    def get_params_dependent_on_data(self, params: Any, data: Any) -> dict[str, Any]:
        return {"crop_coords": (1, 2, 1 + self.width, 2 + self.height)}


class LessBright(A.RandomBrightnessContrast):  # type: ignore[misc]
    def update_transform_params(self, params: Any, data: Any) -> Any:
        return super().update_transform_params(params, data) | {"alpha": 0.5}


class Seldom(A.HorizontalFlip):  # type: ignore[misc]
    def should_apply(self, force_apply: bool = False) -> bool:
        return bool(self.py_random.random() < 0.3)


class Late(A.ImageOnlyTransform):  # type: ignore[misc]
    """A class that draws while it changes the image."""

    def apply(self, img: np.ndarray, **params: Any) -> np.ndarray:
        return img // 2 + np.uint8(self.py_random.randint(0, 90))


class Floats(A.ImageOnlyTransform):  # type: ignore[misc]
    def apply(self, img: np.ndarray, **params: Any) -> np.ndarray:
        return img.astype(np.float32) / 7


class Either(A.OneOf):  # type: ignore[misc]
    """A container under another name."""


class Steps(A.Compose):  # type: ignore[misc]
    def __init__(self, transforms: list[Any], p: float) -> None:
        super().__init__(transforms, p=p)


def with_a_method() -> Any:
    made = A.HorizontalFlip(p=1)
    made.apply_to_mask = lambda mask, **params: mask
    made._set_keys()
    return made


DERIVED: dict[str, Any] = {
    "another name": lambda: Cropped(20, 30, p=1),
    "another name, by chance": lambda: Cropped(20, 30, p=0.5),
    "apply": lambda: HorizontalFlip(p=0.5),
    "apply_to_mask": lambda: FixedMask(p=1),
    "another size": lambda: Doubled(p=0.5),
    "another size than Resize": lambda: CutResize(30, 40, p=1),
    "get_params": lambda: OneTurn(p=1),
    "get_params_dependent_on_data": lambda: CornerCrop(20, 20, p=1),
    "update_transform_params": lambda: LessBright(p=1),
    "should_apply": Seldom,
    "draws in apply": lambda: Late(p=0.6),
    "another dtype": lambda: Floats(p=1),
    "a method of the instance": with_a_method,
    "in a container": lambda: Either([HorizontalFlip(), A.Blur(), Cropped(20, 30)], p=0.8),
    "in containers": lambda: Steps([Doubled(p=0.5), A.SomeOf([FixedMask(), A.Transpose()], 2)], p=0.6),
}


@pytest.mark.parametrize("name", DERIVED)
def test_derived_classes(name: str) -> None:
    """Their own code computes arrays and tensors, whatever they override."""
    given = A.Compose(
        [DERIVED[name](), A.VerticalFlip(p=0.5)],
        A.BboxParams("pascal_voc", label_fields=["labels"]),
        A.KeypointParams("xy", label_fields=["tags"]),
        seed=5,
    )
    again, mine, on_tensors = copy.deepcopy(given), converted(given), converted(given)
    for _ in range(5):
        assert_equal(mine(**ARRAYS), given(**copy.deepcopy(ARRAYS)), name)
        assert_same(on_tensors(sample_here()), theirs(again))


def test_derived_classes_in_an_operator() -> None:
    """In a graph, where the size and the dtype are known beforehand, other ones are refused."""
    torch.compiler.reset()
    for given, must in ((Floats(p=1), "dtype in a graph"), (Doubled(p=1), "size 64 x 80")):
        graph = torch.compile(converted(A.Compose([given])), backend="eager")
        with pytest.raises(Exception, match=f"{type(given).__name__}: image must keep its {must}"):
            graph(torch.zeros(3, 64, 80, dtype=torch.uint8))


class Called(A.HorizontalFlip):  # type: ignore[misc]
    def __call__(self, *args: Any, force_apply: bool = False, **data: Any) -> Any:
        return data


class WithParams(A.HorizontalFlip):  # type: ignore[misc]
    def apply_with_params(self, params: Any, *args: Any, **data: Any) -> Any:
        return data


class OneOf(A.OneOf):  # type: ignore[misc]
    def __call__(self, *args: Any, force_apply: bool = False, **data: Any) -> Any:
        return data


class Order(A.SomeOf):  # type: ignore[misc]
    def _get_idx(self) -> Any:
        return [0]


class Text(A.TextImage):  # type: ignore[misc]
    """A class of one that has no counterpart."""


def test_what_only_a_call_of_albumentations_runs() -> None:
    given = [Called(), WithParams(), OneOf([A.Blur()]), Order([A.Blur()]), Text("a.ttf")]
    listed = [
        "Called (it has its own __call__)",
        "WithParams (it has its own apply_with_params)",
        "OneOf (it has its own __call__)",
        "Order (it has its own _get_idx)",
        "Text (it takes other images or texts from the call)",
    ]
    with pytest.raises(ValueError) as found:
        ours.convert(A.Compose(given))
    must = "from_albumentations: transforms must have a counterpart"
    assert str(found.value) == f"{must}, got {', '.join(listed)}"


def test_classes_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [n for n in NAMES if rules.name_of(made(n)) != n] == []
    assert rules.name_of(Cropped(3, 3)) == "RandomCrop" and not rules.name_of(HorizontalFlip())
    monkeypatch.setattr(A.VerticalFlip, "apply", lambda self, img, **params: img)
    assert not rules.name_of(A.VerticalFlip())
    given = A.Compose([A.VerticalFlip(p=1)])
    assert_equal(converted(given)(image=SCENE)["image"], SCENE, "a method that was replaced")


# -- draws of calls with arrays ---------------------------------------------------------------------------------


def drawing() -> list[Any]:
    """Return transforms of all kinds, whose draws are counted differently."""
    chosen = [A.RandomCrop(40, 50), A.HorizontalFlip(), A.GaussNoise(p=0.6), A.InvertImg(p=0.5)]
    chosen += [A.RandomScale(p=0.5), A.Resize(30, 40), A.D4(p=0.7), A.Normalize(p=0.5), A.PadIfNeeded(50, 50)]
    chosen += [A.OneOf(steps(), p=0.8), A.SomeOf(steps(), n=2, p=0.7), A.RandomOrder(steps(), n=3, p=1)]
    return [*chosen, A.Sequential([A.OneOrOther(A.VerticalFlip(), A.CoarseDropout(), p=0.4)], p=0.6)]


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("p", [1.0, 0.7])
def test_arrays_draw_what_tensors_draw(seed: int | None, p: float) -> None:
    given = A.Compose(drawing(), p=p, seed=seed)
    on_arrays, on_tensors = converted(given), converted(given)
    image = torch.from_numpy(SCENE).permute(2, 0, 1)
    for number in range(25):
        found = seeded(number, lambda x: on_arrays(image=x)["image"], SCENE)
        wanted = pixels(seeded(number, on_tensors, image))
        assert_equal(found, np.ascontiguousarray(wanted), f"call {number}")


def test_keys_decide_the_draws_of_arrays() -> None:
    given = converted(A.Compose(drawing()))
    found = [ours.seeded(given, (0, name))(image=SCENE)["image"] for name in "abab"]
    assert_equal(found[:2], found[2:], "keys")
    assert found[0].shape != found[1].shape or (found[0] != found[1]).any()


def test_an_outermost_container() -> None:
    """A container other than Compose keeps its own chance when it stands alone."""
    for given in (A.OneOrOther(A.VerticalFlip(), A.Transpose(), p=0.4), A.OneOf(steps(), p=0.6)):
        given.set_random_seed(3)
        again, mine, on_tensors = copy.deepcopy(given), converted(given), converted(given)
        for _ in range(12):
            assert_equal(mine(image=SCENE), given(image=SCENE), "arrays")
            found = on_tensors(torch.from_numpy(SCENE).permute(2, 0, 1))
            assert_equal(np.ascontiguousarray(pixels(found)), again(image=SCENE)["image"], "tensors")


def test_force_apply() -> None:
    given = A.Compose([A.InvertImg(p=1)], p=0)
    mine = converted(given)
    for more in ({}, {"force_apply": True}):
        assert_equal(mine(image=SCENE, **more), given(image=SCENE, **more), str(more))
    found = mine(image=torch.from_numpy(SCENE).permute(2, 0, 1), force_apply=True)
    assert_equal(pixels(found["image"]), 255 - SCENE, "tensors")


class Frames(torch.utils.data.Dataset[Any]):
    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        return self.transform(image=SCENE)["image"].tobytes()


@pytest.mark.parametrize("seed", [None, 4])
def test_workers_draw_differently(seed: int | None) -> None:
    mine = converted(A.Compose([A.OneOf([A.GaussNoise(), A.RandomToneCurve()], p=1)], seed=seed))
    torch.manual_seed(0)
    found = list(DataLoader(Frames(mine), num_workers=2, batch_size=None))
    assert len(set(found)) == len(found) == 8


def test_calls_from_several_threads() -> None:
    """Labels and lists of one call do not come back from another."""
    given = A.Compose([A.HorizontalFlip(p=1)], A.BboxParams("pascal_voc", label_fields=["labels"]))
    mine, samples = converted(given), []
    for number in range(8):
        labels: Any = [f"{number} {i}" for i in range(5)]
        boxes: Any = np.array(BOXES) if number % 2 else BOXES
        samples.append(
            {"image": SCENE, "bboxes": boxes, "labels": np.array(labels) if number % 3 else labels}
        )
    wanted = [copy.deepcopy(given)(**sample) for sample in samples]
    with ThreadPoolExecutor(8) as pool:
        for found, right in zip(
            pool.map(lambda s: [mine(**s) for _ in range(20)], samples), wanted, strict=True
        ):
            for result in found:
                assert_equal(result, right, "threads")
