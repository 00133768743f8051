"""What users call on a pipeline of albumentations, on a converted one: seeds, dicts, indices; pipelines inside of others.

What is wanted is always what albumentations itself returns.
"""

from __future__ import annotations

import copy
import io
import pickle
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from test_albumentations_classes import ARRAYS, DERIVED, Frames, drawing
from test_albumentations_inputs import assert_equal
from test_from_albumentations import MASK, METADATA, NAMES, OTHER, SCENE, converted, made, pixels, steps
from torch.utils.data import DataLoader
from transform_cases import seeded

from imgops import transforms as ours

A = pytest.importorskip("albumentations", "2.0.8")

TENSOR = torch.from_numpy(SCENE).permute(2, 0, 1)


def annotated(listed: list[Any], kind: Any = A.Compose, **more: Any) -> Any:
    boxes = A.BboxParams("pascal_voc", label_fields=["labels"], min_visibility=0.2)
    return kind(listed, boxes, A.KeypointParams("xy", label_fields=["tags"]), **more)


def assert_called_equally(mine: Any, given: Any, calls: int = 6, **more: Any) -> None:
    for number in range(calls):
        sample = copy.deepcopy(ARRAYS) | {"masks": [MASK, MASK // 2]} | more
        assert_equal(mine(**copy.deepcopy(sample)), given(**sample), f"call {number}")


# -- seeds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [None, 3])
def test_set_random_seed(seed: int | None) -> None:
    """A seed gives the draws of albumentations, whether the pipeline had one before, and gives them again."""
    given = A.Compose(drawing(), p=0.9, seed=seed)
    mine, on_tensors = converted(given), converted(given)
    first: list[Any] = []
    for number in (5, 6, 5):
        for each in (given, mine, on_tensors):
            each.set_random_seed(number)
        assert mine.seed == number
        wanted = [given(image=SCENE)["image"] for _ in range(8)]
        assert_equal([mine(image=SCENE)["image"] for _ in range(8)], wanted, "arrays")
        found = [np.ascontiguousarray(pixels(on_tensors(TENSOR))) for _ in range(8)]
        assert_equal(found, wanted, "tensors")
        first = first or wanted
    assert_equal(wanted, first, "the same seed")
    mine.set_random_seed(None)
    found, again = ([seeded(n, lambda x: mine(image=x)["image"], SCENE) for n in (0, 1)] for _ in range(2))
    assert_equal(found, again, "without a seed, PyTorch's decides")
    assert found[0].shape != found[1].shape or (found[0] != found[1]).any()


def test_a_seed_in_a_graph() -> None:
    """With a seed, a draw of albumentations' own code has other numbers: the graph is made again."""
    torch.compiler.reset()
    given = A.Compose([A.GaussNoise(p=1), A.HorizontalFlip(), A.ColorJitter(p=0.7)])
    mine = converted(given)
    graph = torch.compile(mine, fullgraph=True, backend="eager")
    seeded(0, graph, TENSOR)
    for number in (3, 4):
        for each in (given, mine):
            each.set_random_seed(number)
        for _ in range(3):
            assert_equal(np.ascontiguousarray(pixels(graph(TENSOR))), given(image=SCENE)["image"], "graph")


def test_set_random_state() -> None:
    """All transforms share the generators, and so do pipelines that get the same ones."""

    def generators() -> tuple[Any, Any]:
        return np.random.default_rng(1), random.Random(1)

    given = [A.Compose(drawing(), p=p) for p in (1, 0.8)]
    mine = [converted(each) for each in given]
    for both in (given, mine):
        shared = generators()
        for each in both:
            each.set_random_state(*shared)
    for _ in range(8):
        found, wanted = ([each(image=SCENE)["image"] for each in both] for both in (mine, given))
        assert_equal(found, wanted, "generators")
    assert converted(A.Compose([A.CLAHE()])).set_random_state(*generators()) is None


class _Seeded:
    """What a user gives as ``worker_init_fn``: one seed, or one for each worker."""

    def __init__(self, transform: Any, differs: bool) -> None:
        self.transform, self.differs = transform, differs

    def __call__(self, worker: int) -> None:
        torch.utils.data.get_worker_info().dataset.transform.set_random_seed(7 + self.differs * worker)


def test_seeds_in_workers() -> None:
    """Draws of a seed that is set in a worker are those of the seed, not of the worker."""
    given = A.Compose([A.OneOf([A.GaussNoise(), A.RandomToneCurve()], p=1)], seed=4)
    for differs in (False, True):
        mine = converted(given)
        loader = DataLoader(
            Frames(mine), num_workers=2, batch_size=None, worker_init_fn=_Seeded(mine, differs)
        )
        found = list(loader)
        wanted = []
        for worker in range(2):
            own = copy.deepcopy(given)
            own.set_random_seed(7 + differs * worker)
            wanted.append([own(image=SCENE)["image"].tobytes() for _ in range(4)])
        assert found == [wanted[i % 2][i // 2] for i in range(8)]


# -- dicts -----------------------------------------------------------------------------------------------------


def whole() -> Any:
    inner = [A.OneOf(steps(), p=0.6), A.SomeOf(steps(), n=2), A.Sequential([A.Affine(rotate=20)], p=0.5)]
    return annotated([A.RandomCrop(40, 50), *inner, A.Normalize(p=1)], additional_targets={"right": "image"})


def test_a_dict_and_back() -> None:
    for given in (whole(), A.ReplayCompose([A.HorizontalFlip()]), A.CLAHE(), A.OneOf(steps())):
        mine, text = converted(given), io.StringIO()
        assert mine.to_dict() == A.to_dict(mine) == A.to_dict(given)
        A.save(mine, text)
        text.seek(0)
        again = A.load(text)
        assert type(again) is type(given) and A.to_dict(again) == A.to_dict(given)
        back = converted(A.from_dict(mine.to_dict()))
        assert repr(back) == repr(mine)
        for each in (given, back):
            each.set_random_seed(2)
        sample = ARRAYS if hasattr(given, "processors") and given.processors else {"image": SCENE}
        for _ in range(4):
            np.testing.assert_equal(back(**sample), given(**copy.deepcopy(sample)))


# -- pipelines inside of others -----------------------------------------------------------------------------------


def inner() -> list[Any]:
    """Return pipelines that are used as a step: of all kinds, and a single transform."""
    return [
        A.Compose([A.RandomCrop(35, 45), A.GaussNoise(p=0.5)], seed=1),
        A.Compose([A.Affine(rotate=(-30, 30), p=0.9)], A.BboxParams("coco", label_fields=["other"]), p=0.6),
        A.Sequential([A.VerticalFlip(), A.CoarseDropout()], p=0.7),
        A.OneOf([A.Transpose(), A.InvertImg(p=0.2)], p=0.8),
        A.SomeOf([A.CLAHE(), A.HorizontalFlip(), A.ColorJitter()], n=2),
        A.OneOrOther(A.Blur(), A.ToGray(), p=0.3),
        A.RandomSizedBBoxSafeCrop(40, 50, p=0.5),
        A.D4(p=0.4),
    ]


OUTER: dict[str, Callable[[list[Any]], Any]] = {
    "Compose": lambda listed: annotated([A.HorizontalFlip(), *listed, A.RandomGamma()], seed=3),
    "Compose, strict": lambda listed: annotated(
        [*listed, A.Rotate()], seed=4, strict=True, save_applied_params=True
    ),
    "targets": lambda listed: annotated(
        listed, additional_targets={"right": "image", "depth": "mask"}, seed=5, p=0.8
    ),
    "mask_interpolation": lambda listed: annotated([*listed, A.Rotate()], mask_interpolation=1, seed=6),
    "OneOf": lambda listed: annotated([A.OneOf(listed, p=0.9), A.VerticalFlip()], seed=7),
    "SomeOf": lambda listed: annotated([A.SomeOf(listed, n=5)], seed=8),
    "RandomOrder": lambda listed: annotated([A.RandomOrder(listed, n=4)], seed=9),
    "Sequential": lambda listed: annotated([A.Sequential(listed, p=0.9)], seed=10),
    "OneOrOther": lambda listed: annotated([A.OneOrOther(*listed[:2], p=0.4)], seed=11),
    "Compose of Compose": lambda listed: annotated(
        [A.Compose([A.Compose(listed[:3]), *listed[3:]])], seed=12
    ),
    "ReplayCompose": lambda listed: annotated(listed, A.ReplayCompose),
}


@pytest.mark.parametrize("name", OUTER)
def test_a_converted_pipeline_as_a_step(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given, mine = OUTER[name](inner()), OUTER[name]([converted(t) for t in inner()])
        given.set_random_seed(given.seed or 13)
        mine.set_random_seed(given.seed)
        twice = converted(mine)
    assert A.to_dict(mine) == A.to_dict(given) and mine.available_keys == given.available_keys
    more = {"right": OTHER, "depth": MASK} if name == "targets" else {}
    copies = [copy.deepcopy(mine), pickle.loads(pickle.dumps(mine)), twice]
    before = copy.deepcopy(given)
    assert_called_equally(mine, given, 12, **more)
    for each in copies:
        assert_called_equally(each, copy.deepcopy(before), 6, **more)


def test_every_class_as_a_step() -> None:
    """Alone in a container: by its own chance, and without it where the container chooses."""
    for name in NAMES:
        if name in METADATA or name == "Lambda":  # they read data of their own, or have no dict
            continue
        p = 1.0 if name == "ToTensorV2" else 0.4
        for around in (lambda t: [t], lambda t: [A.OneOf([t], p=1)]):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                given = annotated(around(made(name, p=p)), seed=2)
                mine = annotated(around(converted(made(name, p=p))), seed=2)
                for _ in range(3):
                    results = []
                    for each in (mine, given):
                        try:
                            results.append(each(**copy.deepcopy(ARRAYS)))
                        except Exception as error:
                            results.append((type(error), str(error)))
                    assert_equal(*results, name)


def test_derived_classes_as_a_step() -> None:
    for name, make in DERIVED.items():
        given, mine = annotated([make()], seed=2), annotated([converted(make())], seed=2)
        for number in range(4):
            found, wanted = mine(**copy.deepcopy(ARRAYS)), given(**copy.deepcopy(ARRAYS))
            assert_equal(found, wanted, f"{name}, call {number}")


def test_tensors_in_a_pipeline_of_albumentations() -> None:
    mine = A.Compose([converted(A.CLAHE(p=1))], is_check_shapes=False)
    must = "image must be a NumPy array in a pipeline of albumentations, got a tensor; convert the whole pipeline"
    with pytest.raises(TypeError, match=f"^from_albumentations: {must}$"):
        mine(image=TENSOR)
    found = mine.transforms[0](TENSOR)  # as a transform of imgops, it takes them
    assert_equal(np.ascontiguousarray(pixels(found)), mine(image=SCENE)["image"], "the step alone")


def test_force_apply_of_any_transform() -> None:
    for given in (
        A.InvertImg(p=0.1),
        A.OneOf([A.InvertImg(p=0.1)], p=0.1),
        A.Compose([A.InvertImg(p=1)], p=0),
    ):
        mine = converted(given)
        for image in (SCENE, TENSOR):
            found = mine(image=image, force_apply=True)["image"]
            assert (np.asarray(found) == 255 - np.asarray(image)).all()


# -- replays -------------------------------------------------------------------------------------------------------


def test_replays() -> None:
    """The parameters of a call come back under albumentations' key, and albumentations itself replays them."""
    given = annotated([A.RandomCrop(50, 60), A.OneOf(steps()), A.GaussNoise(p=0.7)], A.ReplayCompose)
    mine = converted(given)
    for each in (given, mine):
        each.set_random_seed(3)
    for _ in range(6):
        found, wanted = mine(**copy.deepcopy(ARRAYS)), given(**copy.deepcopy(ARRAYS))
        np.testing.assert_equal(found, wanted)
        again = A.ReplayCompose.replay(found["replay"], **copy.deepcopy(ARRAYS))
        for name in ("image", "mask", "bboxes", "keypoints"):
            np.testing.assert_equal(again[name], found[name])
    flip = A.HorizontalFlip()
    flip.replay_mode = True
    with pytest.raises(ValueError, match=r"HorizontalFlip \(it replays a call\)"):
        ours.convert(flip)


# -- as a list -----------------------------------------------------------------------------------------------------


def test_a_pipeline_as_a_list() -> None:
    given = whole()
    mine = converted(given)
    assert len(mine) == len(given) and bool(mine) and not converted(A.Compose([]))
    assert [repr(t) for t in mine] == [repr(t) for t in given]
    assert repr(mine[0]) == repr(given[0]) and repr(mine[-2:]) == repr(given[-2:])
    with pytest.raises(IndexError):
        mine[9]
    assert [type(t) for t in converted(A.CLAHE())] == [A.CLAHE]
    assert isinstance(mine, A.Compose) and ours.convert(mine) is mine
    # What albumentations' pages do to show images: nothing that happens to the copies happens to the pipeline.
    shown = A.Compose([t for t in mine if not isinstance(t, A.Normalize)], seed=2)
    mine.set_random_seed(2)
    given.set_random_seed(2)
    assert shown(image=SCENE)["image"].dtype == np.uint8
    assert_called_equally(mine, given, 3)
    outer = A.Compose([converted(A.Compose([A.HorizontalFlip(), A.Transpose()]))])
    assert "\n  Compose(\n        RandomHorizontalFlip(p=0.5)\n" in repr(outer)


def test_changes_of_a_converted_pipeline() -> None:
    """Targets and the interpolation of masks may change later, for arrays and for tensors."""
    given = A.Compose([A.Rotate((30, 30), p=1), A.HorizontalFlip(p=1)])
    mine = converted(given)
    for each in (given, mine):
        each.add_targets({"right": "image"})
        each.set_mask_interpolation(1)
    assert mine.additional_targets == {"right": "image"} and "right" in mine.available_keys
    sample = {"image": SCENE, "right": OTHER, "mask": MASK}
    wanted = given(**sample)
    assert_equal(mine(**sample), wanted, "arrays")
    found = mine(image=TENSOR, right=torch.from_numpy(OTHER).permute(2, 0, 1), mask=torch.from_numpy(MASK))
    assert (found["mask"].numpy() == wanted["mask"]).all()
    assert (pixels(found["right"]) == wanted["right"]).all()


# -- other versions ----------------------------------------------------------------------------------------------------


def test_a_library_that_draws_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """AlbumentationsX has the name of albumentations; 2.5 has none of the methods by which 2.0.8 draws."""
    given = A.Compose([A.Blur(), A.OneOf([A.CLAHE(), A.Blur()])])
    monkeypatch.setattr(A.BasicTransform, "sample_parameters", None, raising=False)
    assert converted(given)
    monkeypatch.delattr(A.BasicTransform, "get_params_dependent_on_data")
    monkeypatch.setattr(A, "__version__", "2.5.1")
    must = "compose must be a pipeline of albumentations 2, up to 2.0.8, got Blur, CLAHE of AlbumentationsX 2.5.1, "
    with pytest.raises(
        TypeError, match=f"^from_albumentations: {must}whose draws and arguments are others; "
    ):
        ours.convert(given)
