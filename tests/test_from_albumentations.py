"""Pipelines of albumentations 2.0.8, converted: its draws under its seeds, its pixels, masks, boxes, keypoints and labels.

What is wanted is always what albumentations itself returns. Classes, pipelines and inputs are in
:mod:`tests.albumentations_cases`.
"""

from __future__ import annotations

import copy
import functools
import io
import pickle
import random
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torchvision import tv_tensors

from imgops import transforms as ours
from imgops.integrations.albumentations import convert as table
from imgops.integrations.albumentations import host, moves, rules, values
from tests import albumentations_cases as cases
from tests.albumentations_cases import BOXES, IMAGE, MASK, NAMES, SCENE, A, assert_equal, converted
from tests.groups import compile_together, groups
from tests.tiers import nightly, nightly_unless
from tests.transform_cases import check_refusals, picture, seeded

pytestmark = pytest.mark.filterwarnings("ignore:Got processor for")

#: An image that is square.
SQUARE_SCENE = np.ascontiguousarray(SCENE[:60, :60])
SQUARE = torch.from_numpy(SQUARE_SCENE).permute(2, 0, 1).contiguous()


def outcome(pipeline: Any, sample: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a call gives, None if it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return pipeline(**copy.deepcopy(sample))
        except Exception:
            return None


def pixels(image: Any) -> np.ndarray:
    """Return an array of the pixels of a tensor."""
    return np.ascontiguousarray(image.as_subclass(Tensor).permute(1, 2, 0).numpy())


# -- each class ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_each_class(name: str, whole: bool) -> None:
    """A class alone draws and gives what albumentations does, with equal types and dtypes, or both raise.

    `make test` shows each class what follows an image, and a twentieth of the other cases.
    """
    every, turn = cases.cases_of(name), NAMES.index(name)
    for where, arguments, params, sample in every if whole else [every[0], *every[1 + turn % 20 :: 20]]:
        given = A.Compose(
            [cases.made(name, p=cases.chance(name), **arguments)], seed=4, **copy.deepcopy(params)
        )
        mine = converted(given)
        for _ in range(3 if whole else 2):
            wanted, found = outcome(given, sample), outcome(mine, sample)
            assert (found is None) == (wanted is None), where
            if wanted is not None:
                assert_equal(found, wanted, where)


@pytest.mark.parametrize("name", sorted(set(NAMES) - cases.READS - {"ToTensorV2", "FromFloat"}))
def test_each_class_on_tensors(name: str, whole: bool) -> None:
    """Tensors give the pixels and dtypes of arrays, or the class says which dtypes it takes."""
    for dtype, channels in (("uint8", 4), ("uint16", 3), ("uint16", 1))[: 3 if whole else 1]:
        image = cases.image_of((45, 57, channels), dtype)
        given = A.Compose([cases.made(name, p=1.0, **cases.QUICK.get(name, {}))], seed=4)
        mine, more = converted(given), {cases.METADATA[name]: [cases.OTHER]} if name in cases.METADATA else {}
        wanted = outcome(given, {"image": image} | more)
        if wanted is not None:
            found = mine(torch.from_numpy(image).permute(2, 0, 1))
            assert_equal(found.permute(1, 2, 0).numpy(), wanted["image"], f"{name} of {dtype}")


@nightly
@pytest.mark.parametrize("seed", [6, None])
@pytest.mark.parametrize("names", groups(sorted(set(NAMES) - {"FromFloat", "Lambda", "ToTensorV2"}), 12))
def test_graphs_samples_and_copies(names: list[str], seed: int | None) -> None:
    """A graph draws what eager mode does, a batch what a loop over it does, and a copy what its original does."""
    mine = {}
    for name in names:
        resizes = table._changes_size(cases.made(name)) or name in ("Normalize", "ToFloat")
        mine[name] = converted(A.Compose([cases.made(name, p=1.0 if resizes else 0.7)], seed=seed))
    here = {"image": tv_tensors.Image(SQUARE), "mask": tv_tensors.Mask(SQUARE[0] // 60)}
    here |= {"boxes": tv_tensors.BoundingBoxes([[5.0, 6, 40, 50]], format="XYXY", canvas_size=(60, 60))}
    graph, _ = compile_together(copy.deepcopy(mine))
    again, eager = pickle.loads(pickle.dumps(mine)), copy.deepcopy(mine)
    for number in range(3):
        wanted = seeded(number, lambda: {name: eager[name](here) for name in names})
        copies = seeded(number, lambda: {name: again[name](here) for name in names})
        torch.testing.assert_close(copies, wanted, rtol=0, atol=0)
        torch.testing.assert_close(seeded(number, graph, here), wanted, rtol=0, atol=1e-4)
    batch = torch.stack([SQUARE, SQUARE.flip(-1), 255 - SQUARE])
    for name, one in mine.items():
        each, loop = ours.Compose([copy.deepcopy(one)], per_sample=True), copy.deepcopy(one)
        if name in cases.READS or host._ResizedByAlbumentations in map(type, one.transforms):
            with pytest.raises(NotImplementedError, match=f"^{name}: per_sample must be False"):
                each(batch)
            continue
        found = seeded(5, each, batch)
        assert torch.equal(found, seeded(5, lambda loop=loop: torch.stack([loop(x) for x in batch]))), name


@pytest.mark.parametrize("name", sorted({*values.OPERATORS, *values.INEXACT} & set(NAMES)))
def test_operators_on_floats(name: str) -> None:
    """With a gradient, floats come within their last bits of what albumentations makes of them."""
    given = A.Compose([cases.made(name, p=1.0)], seed=8)
    mine, again = converted(given), copy.deepcopy(given)
    scene = SCENE.clip(1, 254)  # a power has an infinite gradient at 0
    image = (torch.from_numpy(scene).permute(2, 0, 1) / 255).requires_grad_()
    own = values.INEXACT.get(name) or values.OPERATORS[name]
    params = host.sampled(again.transforms[0], {"image": scene / np.float32(255)})
    if own(image.detach(), again.transforms[0], params) is None:
        with pytest.raises(NotImplementedError, match=f"^{name}: image must not require a gradient"):
            mine(image)
        return
    found = mine(image)
    wanted = given(image=scene / np.float32(255))["image"]
    np.testing.assert_allclose(pixels(found.detach()), wanted, rtol=0, atol=2e-6)
    found.square().sum().backward()
    assert image.grad is not None and image.grad.abs().sum() > 0


class _Watched(dict[str, Any]):
    """Arguments that record which of them are read."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(arguments)
        self.unread = set(arguments)

    def __getitem__(self, name: str) -> Any:
        self.unread.discard(name)
        return super().__getitem__(name)


ONLY_FOR_A_PADDING = {"fill", "fill_mask", "border_mode", "pad_position"}
#: Arguments that only decide what albumentations draws, or have no effect there.
DRAWS = {"p", "erosion_factor", "erosion_rate", "scale", "ratio", "min_max_height", "w2h_ratio"}
DRAWS |= {"ignore_values", "ignore_channels"}
PASSED_OVER = {
    **dict.fromkeys(("CenterCrop", "Crop", "RandomCrop"), ONLY_FOR_A_PADDING),
    "LongestMaxSize": {"max_size_hw"},
    "SmallestMaxSize": {"max_size_hw"},
    "PadIfNeeded": {"padding"},
    "RandomSizedBBoxSafeCrop": {"mask_interpolation"},
}


@pytest.mark.parametrize("name", sorted(moves.MOVES))
def test_no_argument_is_passed_over(name: str) -> None:
    arguments = _Watched({**cases.made(name, p=0.5).get_transform_init_args(), "p": 0.5})
    arguments["rule"] = rules.Rule()
    moves.MOVES[name](arguments)
    assert arguments.unread <= DRAWS | PASSED_OVER.get(name, set()) | {"rule"}


def test_every_class_is_listed() -> None:
    kinds = {n for n in dir(A) if isinstance(getattr(A, n), type)}
    for listed in (
        moves.MOVES,
        values.OPERATORS,
        values.INEXACT,
        table.WITHOUT,
        cases.VARIANTS,
        cases.NEEDED,
    ):
        assert set(listed) <= kinds
    assert not set(NAMES) & set(table.WITHOUT)


# -- pipelines -------------------------------------------------------------------------------------------

#: The pipelines that ``make test`` runs, of each kind.
QUICK_PIPELINES = ("draws of all kinds", "tensors", "left out", "SomeOf, 0.6", "public, yolo")
QUICK_PIPELINES += ("visibility in two steps", "inside", "around, strict")
QUICK_PIPELINES += ("derived, apply", "derived, in containers")


@pytest.mark.parametrize("name", nightly_unless(QUICK_PIPELINES.__contains__, cases.PIPELINES))
def test_pipelines(name: str) -> None:
    """Arrays by keywords give what albumentations gives, tensors its pixels and, within 0.002, its boxes.

    Tensors come in one structure or by keywords.

    Copies give the same. Nothing is written to the inputs.
    """
    given = cases.seeded_pipeline(cases.PIPELINES[name])
    sample = cases.sample_of(given)
    given(**copy.deepcopy(sample))  # a conversion goes on from the state of its original
    mine, on_tensors = converted(given), converted(given)
    calls = [copy.deepcopy(mine), pickle.loads(pickle.dumps(mine)), mine]
    here = {key: value for key, value in cases.sample_here().items() if key in sample}
    here |= {key: here["image"].flip(-2, -1) // 2 + 40 for key in ("right",) if key in sample}
    if "bboxes" in sample:
        here["bboxes"] = tv_tensors.wrap(torch.tensor(sample["bboxes"]), like=here["bboxes"])
    labels = set(sample) - {"image", "mask", "masks", "bboxes", "keypoints", "right"}
    is_alike = labels <= set(here) and ("bboxes" not in sample or sample["bboxes"][0] == BOXES[0])
    for number in range(6):
        wanted = given(**copy.deepcopy(sample))
        for call in calls:
            given_again = copy.deepcopy(sample)
            found = call(**given_again)
            np.testing.assert_equal(found.pop("replay", None), wanted.get("replay"))
            assert_equal(found, {k: v for k, v in wanted.items() if k != "replay"}, name)
            assert_equal(given_again, sample, "the inputs")
        if is_alike and name != "points that a distortion loses":
            found = on_tensors(here) if number % 2 else on_tensors(**here)
            cases.assert_same(found, {key: wanted[key] for key in here})


@pytest.mark.parametrize("name", nightly_unless("ReplayCompose".__eq__, cases.AROUND))
def test_a_converted_pipeline_as_a_step(name: str) -> None:
    given, mine = cases.AROUND[name](cases.inner()), cases.AROUND[name]([converted(t) for t in cases.inner()])
    given.set_random_seed(13)
    mine.set_random_seed(13)
    assert A.to_dict(mine) == A.to_dict(given) and mine.available_keys == given.available_keys
    again = converted(mine)
    for _ in range(6):
        wanted = given(**cases.sample_of(given))
        for each in (mine, again):
            np.testing.assert_equal(each(**cases.sample_of(given)), wanted)


@nightly
def test_every_class_as_a_step() -> None:
    """Alone in a container: by its own chance, and without it where the container chooses."""
    known = set(NAMES) - set(cases.METADATA) - {"Lambda"}  # they read data of their own, or have no dict
    makers = {
        name: functools.partial(cases.made, name, p=1.0 if name == "ToTensorV2" else 0.4) for name in known
    }
    for name, make in (makers | cases.DERIVED).items():
        for around in (lambda t: [t], lambda t: [A.OneOf([t], p=1)]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                given = cases.annotated(around(make()), seed=2)
                mine = cases.annotated(around(converted(make())), seed=2)
            for _ in range(3):
                assert_equal(*(outcome(each, cases.sample_of(given)) for each in (mine, given)), name)


def test_random_pipelines(whole: bool) -> None:
    """Any steps in containers give arrays, boxes and labels alike, and interleaved tensors the pixels."""
    interleaved = tv_tensors.Image(torch.from_numpy(SCENE).permute(2, 0, 1))
    for number in range(200 if whole else 12):
        given = cases.seeded_pipeline(lambda: cases.random_pipeline(number), number)
        mine, on_tensors = converted(given), converted(given)
        # Boxes of tensors are float32, which may decide where a crop that reads them lies.
        is_alike = not any(f"{name}(" in repr(given) for name in cases.READS)
        for _ in range(3):
            wanted, found = (outcome(each, cases.sample_of(given)) for each in (given, mine))
            assert_equal(found, wanted, f"pipeline {number}")
            if wanted is None:  # such as a crop that is larger than what is left
                break
            if is_alike:
                here = on_tensors(cases.sample_here(image=interleaved))
                cases.assert_same({"image": here["image"]}, {"image": wanted["image"]})


@nightly
def test_one_graph_per_sample_and_with_boxes() -> None:
    """Dropped boxes keep their place in the tensors, so that one graph holds the pipeline."""
    turned = A.Affine(rotate=(20, 20), p=1), A.Sequential([A.VerticalFlip(p=1)], p=0.5)
    on_boxes = converted(cases.composed(A.CenterCrop(40, 50), *turned, min_area=150))
    here = cases.sample_here(tags=torch.arange(len(cases.POINTS)))
    images = torch.stack([picture(height=64, width=64, seed=s) for s in range(3)])
    noisy = [A.ImageCompression(quality_range=(40, 90)), A.GaussNoise(), A.CoarseDropout()]
    whole = ours.Compose([converted(A.Compose([*cases.steps(), *noisy]))], per_sample=True)
    calls = {"boxes": lambda here, _: on_boxes(here), "samples": lambda _, images: whole(images)}
    graph, _ = compile_together(calls)
    for seed in range(3):
        wanted = seeded(seed, lambda: {name: call(here, images) for name, call in calls.items()})
        torch.testing.assert_close(seeded(seed, graph, here, images), wanted, rtol=0, atol=1e-4)
        assert len(wanted["boxes"]["bboxes"]) == len(wanted["boxes"]["labels"]) < len(BOXES)


@pytest.mark.parametrize("format", ["XYXY", "XYWH", "CXCYWH"])
def test_formats_of_boxes(format: str) -> None:
    pipeline = cases.composed(A.CenterCrop(40, 50), A.Pad(5), min_area=150, points=False)
    wanted, here = pipeline(**cases.sample_of(pipeline)), cases.sample_here()
    convert = ours.ConvertBoundingBoxFormat(format)
    found = converted(pipeline)(here | {"bboxes": convert(here["bboxes"])})
    assert found["bboxes"].format.value == format and found["bboxes"].clamping_mode == "soft"
    cases.assert_same(found | {"bboxes": ours.ConvertBoundingBoxFormat("XYXY")(found["bboxes"])}, wanted)


def test_labels_by_their_names() -> None:
    given = A.Compose([A.CenterCrop(30, 30)], A.BboxParams("coco", label_fields=["kinds", "scores"]))
    boxes = tv_tensors.BoundingBoxes([[0.0, 0, 9, 9], [30, 20, 20, 20]], format="XYWH", canvas_size=(64, 80))
    sample = {
        "image": tv_tensors.Image(IMAGE),
        "boxes": boxes,
        "masks": tv_tensors.Mask(torch.zeros(2, 61, 83)),
        "kinds": ["a", "b"],
        "scores": torch.tensor([0.1, 0.2]),
    }
    found = converted(given)(sample)
    assert found["kinds"] == ["b"] and found["scores"].tolist() == [torch.tensor(0.2).item()]
    assert len(found["boxes"]) == 1 and len(found["masks"]) == 2  # albumentations drops no masks
    assert sample["kinds"] == ["a", "b"] and len(sample["boxes"]) == 2
    must = "inputs must be a dict with the label fields kinds, scores, got a dict of image, boxes, .*kinds"
    with pytest.raises(ValueError, match=f"^from_albumentations: {must}$"):
        converted(given)({k: v for k, v in sample.items() if k != "scores"})
    with pytest.raises(ValueError, match="kinds must be a tensor or a list of 2 labels, got 3 labels"):
        converted(given)(sample | {"kinds": [1, 2, 3]})
    assert converted(given)(IMAGE).shape == (3, 30, 30)


def test_a_batch_with_boxes() -> None:
    """Each sample of a batch has its own draws, boxes and labels."""
    turn, params = A.Affine(rotate=(-40, 40), p=1), A.BboxParams("coco", label_fields=["labels"])
    pipeline, here = converted(A.Compose([turn], params)), cases.sample_here()
    boxes = [tv_tensors.wrap(here["bboxes"][:n].clone(), like=here["bboxes"]) for n in (2, 4, 5)]
    batch = {"image": tv_tensors.Image(torch.stack([IMAGE] * 3)), "boxes": boxes}
    batch["labels"] = [here["labels"][:n] for n in (2, 4, 5)]
    found = seeded(0, ours.Compose([pipeline], per_sample=True), batch)
    assert [len(b) for b in found["boxes"]] == [len(n) for n in found["labels"]]
    assert not torch.equal(found["image"][0], found["image"][1])


def test_mirrored_borders() -> None:
    mirrored = A.Affine(rotate=(20, 20), border_mode=cv2.BORDER_REFLECT_101, p=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.from_albumentations(A.Compose([mirrored, A.OpticalDistortion(), A.LongestMaxSize(9)]))
        ours.from_albumentations(cases.composed(A.Affine(), points=False))
    with pytest.warns(
        UserWarning, match="Affine: boxes and keypoints are not repeated in a mirrored border$"
    ):
        mine = ours.from_albumentations(cases.composed(mirrored, A.OpticalDistortion()))
    found, plain = mine(cases.sample_here()), cases.composed(A.Affine(rotate=(20, 20), p=1))
    wanted = plain(**cases.sample_of(plain))
    assert found["labels"].tolist() == [int(n) for n in wanted["labels"]]
    with pytest.warns(UserWarning, match="Pad: boxes"):
        mine = ours.from_albumentations(cases.composed(A.Pad(30, border_mode=4)))
    found, wanted = mine(cases.sample_here()), cases.composed(A.Pad(30))(**cases.sample_of(cases.composed()))
    np.testing.assert_allclose(found["bboxes"].numpy(), np.array(wanted["bboxes"]), atol=2e-3)


# -- seeds and draws -------------------------------------------------------------------------------------


def test_without_a_seed() -> None:
    """PyTorch's generator decides; the given pipeline, and the generators of the process, are left alone."""
    given = A.Compose([A.HorizontalFlip(), A.GaussNoise(p=0.7), *cases.drawing()[2:]])
    states = np.random.get_state()[1].tolist(), given.transforms[1].random_generator.bit_generator.state
    mine = converted(given)
    first = [seeded(seed, mine, IMAGE) for seed in range(8)]
    assert all(torch.equal(a, seeded(seed, mine, IMAGE)) for seed, a in enumerate(first))
    assert len({tuple(a.flatten().tolist()) for a in first}) > 5
    for seed, image in enumerate(first):
        on_arrays = seeded(seed, lambda: mine(image=SCENE)["image"])
        assert_equal(on_arrays, pixels(image), "arrays draw what tensors draw")
    assert states[0] == np.random.get_state()[1].tolist()
    assert states[1] == given.transforms[1].random_generator.bit_generator.state


def test_keys_stand_above_a_seed() -> None:
    mine = converted(
        A.Compose([A.GaussNoise(p=1), A.RandomRotate90(p=1), A.OneOf(cases.steps(), p=0.9)], seed=3)
    )
    both = [ours.seeded(mine, (0, name))(SQUARE) for name in "ab"]
    mine(SQUARE)
    assert not torch.equal(*both)
    assert all(map(torch.equal, [ours.seeded(mine, (0, name))(SQUARE) for name in "ab"], both))
    each = ours.seeded(ours.Compose([mine], per_sample=True), [(0, "a"), (0, "b")])(torch.stack([SQUARE] * 2))
    assert all(torch.equal(a, b) for a, b in zip(each, both, strict=True))
    found = [ours.seeded(mine, (0, name))(image=SQUARE_SCENE)["image"] for name in "ab"]
    assert_equal(found, [pixels(x) for x in both], "arrays")


@pytest.mark.parametrize("seed", [None, 3])
def test_set_random_seed(seed: int | None) -> None:
    """A seed gives the draws of albumentations, whether the pipeline had one before, and gives them again."""
    given = A.Compose(cases.drawing(), p=0.9, seed=seed)
    mine, on_tensors = converted(given), converted(given)
    first: list[Any] = []
    for number in (5, 6, 5):
        for each in (given, mine, on_tensors):
            each.set_random_seed(number)
        assert mine.seed == number
        wanted = [given(image=SCENE)["image"] for _ in range(8)]
        assert_equal([mine(image=SCENE)["image"] for _ in range(8)], wanted, "arrays")
        found = [pixels(on_tensors(IMAGE)) for _ in range(8)]
        assert_equal(found, wanted, "tensors")
        first = first or wanted
    assert_equal(wanted, first, "the same seed")
    mine.set_random_seed(None)
    found, again = ([seeded(n, lambda x: mine(image=x)["image"], SCENE) for n in (0, 1)] for _ in range(2))
    assert_equal(found, again, "without a seed, PyTorch's decides")
    assert found[0].shape != found[1].shape or (found[0] != found[1]).any()


@nightly
def test_a_seed_in_a_graph() -> None:
    """With a seed, a draw of albumentations' own code has other numbers: the graph is made again."""
    torch.compiler.reset()
    given = A.Compose([A.GaussNoise(p=1), A.HorizontalFlip(), A.ColorJitter(p=0.7)])
    mine = converted(given)
    graph = torch.compile(mine, fullgraph=True, backend="eager")
    seeded(0, graph, IMAGE)
    for number in (3, 4):
        for each in (given, mine):
            each.set_random_seed(number)
        for _ in range(3):
            assert_equal(pixels(graph(IMAGE)), given(image=SCENE)["image"], "graph")


def test_set_random_state() -> None:
    """All transforms share the generators, and so do pipelines that get the same ones."""

    def generators() -> tuple[Any, Any]:
        return np.random.default_rng(1), random.Random(1)

    given = [A.Compose(cases.drawing(), p=p) for p in (1, 0.8)]
    mine = [converted(each) for each in given]
    for both in (given, mine):
        shared = generators()
        for each in both:
            each.set_random_state(*shared)
    for _ in range(8):
        found, wanted = ([each(image=SCENE)["image"] for each in both] for both in (mine, given))
        assert_equal(found, wanted, "generators")
    assert converted(A.Compose([A.CLAHE()])).set_random_state(*generators()) is None


class Frames(torch.utils.data.Dataset[Any]):
    """Images that are all the same before the draws, as tensors or as arrays."""

    def __init__(self, transform: Any, arrays: bool = True) -> None:
        self.transform, self.arrays = transform, arrays

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        found = self.transform(image=SCENE)["image"] if self.arrays else self.transform(IMAGE)
        return found.tobytes() if self.arrays else found.numpy().tobytes()


@pytest.mark.parametrize("arrays", nightly_unless(bool, [False, True]))
@pytest.mark.parametrize("seed", nightly_unless(lambda seed: seed is not None, [None, 4]))
def test_workers_draw_differently(seed: int | None, arrays: bool) -> None:
    mine = converted(A.Compose([A.OneOf([A.GaussNoise(), A.RandomToneCurve()], p=1)], seed=seed))
    torch.manual_seed(0)
    found = list(DataLoader(Frames(mine, arrays), num_workers=2, batch_size=None))
    assert len(set(found)) == len(found) == 8


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


# -- what albumentations' pipelines offer -----------------------------------------------------------------


def whole() -> Any:
    inside = [
        A.OneOf(cases.steps(), p=0.6),
        A.SomeOf(cases.steps(), n=2),
        A.Sequential([A.Affine(rotate=20)], p=0.5),
    ]
    return cases.annotated(
        [A.RandomCrop(40, 50), *inside, A.Normalize(p=1)], additional_targets={"right": "image"}
    )


def test_a_dict_and_back() -> None:
    for given in (whole(), A.ReplayCompose([A.HorizontalFlip()]), A.CLAHE(), A.OneOf(cases.steps())):
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
        for _ in range(4):
            np.testing.assert_equal(back(**cases.sample_of(given)), given(**cases.sample_of(given)))


def test_force_apply_of_any_transform() -> None:
    for given in (
        A.InvertImg(p=0.1),
        A.OneOf([A.InvertImg(p=0.1)], p=0.1),
        A.Compose([A.InvertImg(p=1)], p=0),
    ):
        mine = converted(given)
        for image in (SCENE, IMAGE):
            found = mine(image=image, force_apply=True)["image"]
            assert (np.asarray(found) == 255 - np.asarray(image)).all()


def test_replays() -> None:
    """The parameters of a call come back under albumentations' key, and albumentations itself replays them."""
    given = cases.annotated(
        [A.RandomCrop(50, 60), A.OneOf(cases.steps()), A.GaussNoise(p=0.7)], A.ReplayCompose
    )
    mine = converted(given)
    for each in (given, mine):
        each.set_random_seed(3)
    for _ in range(6):
        found, wanted = mine(**cases.sample_of(given)), given(**cases.sample_of(given))
        np.testing.assert_equal(found, wanted)
        again = A.ReplayCompose.replay(found["replay"], **cases.sample_of(given))
        for name in ("image", "mask", "bboxes", "keypoints"):
            np.testing.assert_equal(again[name], found[name])
    flip = A.HorizontalFlip()
    flip.replay_mode = True
    with pytest.raises(ValueError, match=r"HorizontalFlip \(it replays a call\)"):
        ours.convert(flip)


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
    assert_equal(mine(**cases.sample_of(given)), given(**cases.sample_of(given)), "after a copy")
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
    sample = {"image": SCENE, "right": cases.OTHER, "mask": MASK}
    wanted = given(**sample)
    assert_equal(mine(**sample), wanted, "arrays")
    found = mine(
        image=IMAGE, right=torch.from_numpy(cases.OTHER).permute(2, 0, 1), mask=torch.from_numpy(MASK)
    )
    assert (found["mask"].numpy() == wanted["mask"]).all()
    assert (pixels(found["right"]) == wanted["right"]).all()


# -- refusals --------------------------------------------------------------------------------------------


def call(given: Any, *args: Any, **keywords: Any) -> Callable[[], Any]:
    return lambda: converted(given)(*args, **keywords)


PLAIN, BY_KEYWORD = (
    A.Compose(cases.steps()),
    "from_albumentations: arrays must be given by keyword, as in pipeline",
)
#: Error -> the beginning of its text -> the calls that raise it.
REFUSED: dict[type[Exception], dict[str, list[Callable[[], Any]]]] = {
    ValueError: {
        "from_albumentations: keywords must have image or images, got mask": [call(PLAIN, mask=MASK)],
        "from_albumentations: bboxes must come with bbox_params": [call(PLAIN, image=SCENE, bboxes=BOXES)],
        "from_albumentations: keypoints must come with key": [
            call(PLAIN, image=SCENE, keypoints=cases.POINTS)
        ],
        "from_albumentations: images and masks must share a size, got image of 61 x 83, mask of 60 x": [
            call(PLAIN, image=SCENE, mask=MASK[1:])
        ],
        "from_albumentations: image must have at least one pixel, got shape": [call(PLAIN, image=SCENE[:0])],
        "CenterCrop: image must be at least 100 x 50, got 61 x 83": [call(A.CenterCrop(100, 50), IMAGE)],
        "Enlarged: image must keep its size 61 x 83, got 122 x 83": [call(cases.Enlarged(p=1), IMAGE)],
    },
    TypeError: {
        "from_albumentations: keywords must not be volumes": [call(PLAIN, image=SCENE, volume=SCENE[None])],
        "from_albumentations: arrays must be named image, ": [call(PLAIN, image=SCENE, right=SCENE)],
        "from_albumentations: image must be a NumPy array or a tensor, got str": [call(PLAIN, image="a.jpg")],
        "from_albumentations: image must be an array (H, W) or (H, W, C), got (3,)": [
            call(PLAIN, image=SCENE[0, 0])
        ],
        BY_KEYWORD: [
            call(PLAIN, wrong) for wrong in (SCENE, {"image": SCENE}, {"image": IMAGE, "extra": [SCENE]})
        ],
        "from_albumentations: inputs must be keywords or one structure of tensors, got both": [
            call(PLAIN, IMAGE, image=SCENE)
        ],
        "from_albumentations: image must be a NumPy array in a pipeline of albumentations, got a tensor": [
            lambda: A.Compose([converted(A.CLAHE(p=1))], is_check_shapes=False)(image=IMAGE)
        ],
        "FromFloat: image must be uint8 or floating point, got ": [call(A.FromFloat("uint8"), IMAGE.short())],
        "ToFloat: image must be uint8, uint16 or floating point": [call(A.ToFloat(), IMAGE.int())],
    },
    NotImplementedError: {
        "Spatter: image must not require a gradient": [call(A.Spatter(p=1), (IMAGE / 255).requires_grad_())]
    },
}


@pytest.mark.parametrize("error", REFUSED)
def test_refusals(error: type[Exception]) -> None:
    check_refusals(REFUSED[error], error)


@nightly
def test_refusals_in_a_graph() -> None:
    """Where the size and the dtype are known beforehand, other ones are refused; so are keywords."""
    image = torch.zeros(3, 64, 80, dtype=torch.uint8)
    for given, must, inputs, keywords in (
        (cases.Floats(p=1), "Floats: image must keep its dtype in a graph", (image,), {}),
        (cases.Doubled(p=1), "Doubled: image must keep its size 64 x 80", (image,), {}),
        (A.Blur(), "inputs must be one structure of tensors in a graph", (), {"image": image}),
    ):
        torch.compiler.reset()
        graph = torch.compile(converted(A.Compose([given])), fullgraph=True, backend="eager")
        with pytest.raises(Exception, match=must):
            graph(*inputs, **keywords)


def own(self: Any, *args: Any, **data: Any) -> Any:
    return data


#: What has no counterpart, and what the error calls it.
WITHOUT: dict[str, Any] = {
    "TextImage (it takes other images or texts from the call)": A.SomeOf(
        [A.TextImage("a.ttf", p=1), A.Blur()], n=1
    ),
    "ToTensor3D (it takes volumes)": A.ToTensor3D(),
    "RandomCropNearBBox (it takes a box from the call)": A.OneOf([A.Blur(), A.RandomCropNearBBox()]),
    "RandomGridShuffle (it cuts boxes into several)": A.RandomGridShuffle(),
    "HistogramMatching (metadata_key=hm_metadata)": A.HistogramMatching(),
    "SelectiveChannelTransform (its transforms see a part of the channels)": A.SelectiveChannelTransform(
        [A.Blur()]
    ),
    "Called (it has its own __call__)": cases.derived("Called", A.HorizontalFlip, __call__=own)(),
    "WithParams (it has its own apply_with_params)": cases.derived(
        "WithParams", A.HorizontalFlip, apply_with_params=own
    )(),
    "OneOf (it has its own __call__)": cases.derived("OneOf", A.OneOf, __call__=own)([A.Blur()]),
    "Order (it has its own _get_idx)": cases.derived("Order", A.SomeOf, _get_idx=own)([A.Blur()]),
    "Text (it takes other images or texts from the call)": cases.derived("Text", A.TextImage)("a.ttf"),
}


def test_what_has_no_counterpart_is_named() -> None:
    must = f"from_albumentations: transforms must have a counterpart, got {', '.join(WITHOUT)}"
    with pytest.raises(ValueError) as found:
        ours.convert(A.Compose([*WITHOUT.values(), A.Blur()], A.BboxParams("coco", label_fields=[])))
    assert str(found.value) == must
    for format in ("xya", "xys", "xyas"):
        with pytest.raises(ValueError, match=rf"got KeypointParams\(format={format}\)$"):
            ours.convert(A.Compose([A.HorizontalFlip()], keypoint_params=A.KeypointParams(format)))
    with pytest.raises(TypeError, match="compose must be a pipeline of albumentations, got RandomGamma"):
        ours.from_albumentations(ours.RandomGamma())


def test_classes_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [n for n in NAMES if rules.name_of(cases.made(n)) != n] == []
    assert rules.name_of(cases.Cropped(3, 3)) == "RandomCrop" and not rules.name_of(cases.HorizontalFlip())
    monkeypatch.setattr(A.VerticalFlip, "apply", lambda self, img, **params: img)
    assert not rules.name_of(A.VerticalFlip())
    given = A.Compose([A.VerticalFlip(p=1)])
    assert_equal(converted(given)(image=SCENE)["image"], SCENE, "a method that was replaced")


@pytest.mark.parametrize(
    ("kind", "name"), [(A.HorizontalFlip, "apply"), (A.BasicTransform, "should_apply"), (A.OneOf, "__call__")]
)
def test_a_method_that_was_replaced(kind: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module of a function decides whose it is, not the name that functools.wraps gives it."""

    @functools.wraps(getattr(kind, name))
    def own(self: Any, *args: Any, **keywords: Any) -> Any:
        return original(self, *args, **keywords)

    original = getattr(kind, name)
    given = A.OneOf([A.HorizontalFlip(p=0.5)], p=1)
    assert rules.changed_names(given.transforms[0]) | rules.changed_names(given) == set()
    monkeypatch.setattr(kind, name, own)
    assert rules.changed_names(given.transforms[0]) | rules.changed_names(given) == {name}


def test_a_step_of_albumentations_takes_tensors_alone() -> None:
    mine = A.Compose([converted(A.CLAHE(p=1))], is_check_shapes=False)
    found = mine.transforms[0](IMAGE)
    assert_equal(pixels(found), mine(image=SCENE)["image"], "the step alone")


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
