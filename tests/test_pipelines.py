"""Pipelines whose steps the native module runs on each image before the next one begins."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any
from unittest import mock

import cv2
import numpy as np
import pytest
import torch
import torchvision
from torch.nn.modules.module import register_module_forward_hook
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional

from imgops import transforms as v2
from imgops.kernels.cpu import geometry, native
from imgops.kernels.cpu.program import ImageProgram, accepts
from imgops.transforms._core import pending
from imgops.transforms._core.plans import Plan
from tests import fuzz_pipelines
from tests.groups import compiled
from tests.tiers import every_night, nightly
from tests.transform_cases import picture, same, sample, seeded

FLOATS = [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4])]
JITTER = v2.ColorJitter(0.4, 0.4, 0.4, 0.1)
#: Pipelines that need one native call each.
WHOLE = {
    "ImageNet": [v2.RandomResizedCrop(24), v2.RandomHorizontalFlip(), *FLOATS],
    "SimCLR": [
        v2.RandomResizedCrop(24),
        v2.RandomHorizontalFlip(),
        v2.RandomApply([JITTER], 0.8),
        v2.RandomGrayscale(0.2),
        v2.GaussianBlur(5),
        FLOATS[0],
    ],
    "evaluation": [v2.Resize(36), v2.CenterCrop(24), *FLOATS],
    "CIFAR": [v2.RandomCrop(24, padding=4), v2.RandomHorizontalFlip(), v2.RandomErasing(1.0, value=0)],
    "levels": [
        v2.RandomPosterize(3, 1.0),
        v2.RandomSolarize(99.0, 1.0),
        v2.RandomEqualize(1.0),
        v2.RandomAutocontrast(1.0),
        v2.RandomInvert(1.0),
        v2.RandomAdjustSharpness(1.7, 1.0),
        v2.RandomVerticalFlip(1.0),
    ],
    "warps": [v2.RandomRotation(30, fill=7), v2.RandomAffine(20, (0.1, 0.1), fill=(1, 2, 3)), JITTER],
    "weights": [
        v2.RandomAffine(20, (0.1, 0.1), interpolation=InterpolationMode.BILINEAR, fill=(1, 2, 3)),
        v2.RandAugment(interpolation=InterpolationMode.BILINEAR),
        *FLOATS,
    ],
    "borders": [
        v2.RandomCrop(24, padding=4, padding_mode="reflect"),
        v2.Pad((3, 0, 5, -2), fill=(1, 2, 3)),
        v2.RandomCrop((40, 30), pad_if_needed=True, fill=9, padding_mode="symmetric"),
        v2.CenterCrop(44),
    ],
    "choices": [v2.RandomOrder([JITTER, v2.RandomInvert(1.0)]), v2.RandomChoice([v2.RandomEqualize(1.0)])],
}


@pytest.mark.parametrize("part", [0, *every_night(1, 2, 3, 4, 5)])
def test_random_pipelines_equal_a_loop(part: int) -> None:
    counts, wrong = fuzz_pipelines.run(100_000 + 40 * part, 40)
    assert not wrong
    assert counts["one draw"] > 30 and counts["per sample"] > 10


@pytest.mark.needs("native")
@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("name", WHOLE)
def test_one_call_runs_all_steps(name: str, per_sample: bool) -> None:
    if per_sample and name == "choices":
        pytest.skip("each sample has another transform: they run one after the other")
    pipeline = v2.Compose(WHOLE[name], per_sample=per_sample)
    images = torch.randint(0, 256, (4, 3, 40, 44), dtype=torch.uint8)
    geometry.blends_alike()  # which runs programs
    with mock.patch.object(native, "run_program", side_effect=native.run_program) as calls:
        out = pipeline(images)
    assert calls.call_count == 1 and out.shape[0] == 4


BOX, MATRIX = [3.0, 2.0, 20.0, 19.0], [0.9, 0.2, 3.0, -0.1, 1.1, 0.5]
#: Steps of a program of every kind, for 3 channels and for others.
STEPS: list[tuple[str, Any]] = [
    ("crop", lambda p: p.crop(-3, 2, 30, 50)),
    *(
        ("resize", lambda p, form=form, n=n: p.resized_crop(BOX[:n], (9, 11), "bicubic", True, form))
        for form, n in (("edges", 4), ("sides", 4), ("corner", 2), ("whole", 0))
    ),
    ("mirror", lambda p: p.flip([1.0], -1)),
    ("flip", lambda p: p.flip([1.0], -2)),
    ("colors", lambda p: p.colors([1.0, 0.0, 1.7, 2.0], 2, ["contrast", "posterize"])),
    *(
        ("colors", lambda p, name=name, amount=amount: p.colors([0.0, amount], 1, [name]))
        for name, amount in product(native.ALL_STEPS, (-0.3, 0.0, 0.4, 1.0, 1.7, 99.5))
    ),
    ("gray", lambda p: p.gray([1.0])),
    ("blur", lambda p: p.gaussian_blur([0.8, 1.3], (5, 7))),
    *(
        ("warp", lambda p, name=name: p.warp(MATRIX, name, list(range(5, 5 + p.channels))))
        for name in native.WARPS
    ),
    ("erase", lambda p: p.erase(BOX, list(range(p.channels)))),
    ("split", lambda p: p.planar()),
    *(
        ("pad", lambda p, mode=mode: p.pad(3, 60, (110, 60), mode, [200, 100, 50, 255][: p.channels]))
        for mode in native.BORDERS
    ),
]


@pytest.mark.needs("native")
def test_operators_stand_for_the_steps() -> None:
    """What a graph computes without the program has the bits and the strides of the program."""
    met = set()
    for channels, interleaved in product((1, 2, 3, 4), (False, True)):
        image = torch.randint(0, 256, (2, 40, 44, channels), dtype=torch.uint8).movedim(-1, -3)
        image = image if interleaved else image.contiguous()
        for kind, add in STEPS:
            program = ImageProgram(image)
            if not add(program) or not program.steps:
                continue
            met.add(kind)
            numbers, steps = torch.from_numpy(program.rows()), [n for step in program.steps for n in step]
            found, wanted = program.run(), pending._by_operators(image, numbers, None, steps)
            assert found is not None and pending.run_program(image, numbers, None, steps).equal(found)
            assert not fuzz_pipelines.compared(f"{kind} of {channels} channels", wanted, found)
    assert met == set(native.STEP_KINDS) - {"window"}  # which only begins programs of images of several sizes


@pytest.mark.needs("native")
def test_bilinear_warps_have_opencvs_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    for turn in range(240):
        monkeypatch.setattr(native, "SIMD_LEVEL", turn % 3)
        most, channels = int(rng.choice([4, 40, 260])), int(rng.choice([1, 2, 3, 3, 4]))
        height, width, high, wide = map(int, rng.integers(1, most, 4))
        frame = rng.integers(0, 256, (height, width, channels), dtype=np.uint8)
        interleaved = channels != 2 and bool(rng.integers(2))
        matrix = rng.normal(np.eye(2, 3), [0.5, 0.5, 20]) * rng.choice([1, 1, 0.01, 300, 1e30])
        matrix *= [[1, 1, 1], [1, 1, 1]] if rng.random() < 0.9 else [[1, 1, 1], [0, 0, 1]]
        image, fill = torch.from_numpy(frame).movedim(-1, 0), rng.integers(0, 256, channels).tolist()
        image = image if interleaved else image.contiguous()
        out = torch.empty((high, wide, channels), dtype=torch.uint8).movedim(-1, 0)
        out = out if interleaved else out.contiguous()
        if not native.blend(out, image, matrix.reshape(1, 6), fill):
            assert interleaved and 1 in (height * width, high * wide)  # a pixel has both memory formats
            continue
        how = {"flags": cv2.INTER_LINEAR}
        parts = [(frame, (*fill, 0, 0, 0)[:4])] if interleaved else zip(image.numpy(), fill, strict=True)
        each = [cv2.warpAffine(p, matrix, (wide, high), borderValue=f, **how) for p, f in parts]
        wanted = each[0] if interleaved else np.stack(each, -1)
        np.testing.assert_array_equal(out.movedim(0, -1).numpy(), wanted.reshape(high, wide, channels))


def test_a_pipeline_without_the_native_module(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, images = v2.Compose(WHOLE["SimCLR"]), torch.randint(0, 256, (3, 40, 44), dtype=torch.uint8)
    wanted = seeded(0, pipeline, images)
    monkeypatch.setattr(native, "module", None)
    torch.testing.assert_close(seeded(0, pipeline, images), wanted, rtol=0, atol=0)


def test_a_box_outside_is_filled_as_by_torchvision() -> None:
    image = torch.full((3, 40, 40), 200, dtype=torch.uint8)
    found = []
    for library in (v2, torchvision.transforms.v2):
        crop = library.RandomResizedCrop(8)
        crop.make_params = lambda flat: {"top": 0, "left": 30, "height": 20, "width": 20}
        found.append(library.Compose([crop, library.RandomHorizontalFlip(1.0)])(image))
    assert (found[0].int() - found[1].int()).abs().max() <= 1


def test_hooks_see_the_image_of_their_step() -> None:
    seen: list[Any] = []
    flip = v2.RandomHorizontalFlip(1.0)
    flip.register_forward_hook(lambda module, inputs, out: seen.append((inputs[0], out)))
    image = torch.randint(0, 256, (3, 40, 44), dtype=torch.uint8)
    v2.Compose([v2.RandomInvert(1.0), flip, v2.RandomSolarize(9.0, 1.0)])(image)
    ((given, out),) = seen
    assert torch.equal(given, 255 - image) and torch.equal(out, given.flip(-1))


def test_nothing_applied_returns_the_input() -> None:
    image = torch.randint(0, 256, (3, 40, 44), dtype=torch.uint8)
    assert v2.Compose([v2.RandomHorizontalFlip(0.0), v2.RandomInvert(0.0)])(image) is image


@pytest.mark.needs("native")
def test_only_images_that_programs_take_are_collected() -> None:
    image = torch.zeros(3, 8, 8, dtype=torch.uint8)
    assert accepts(image)
    for other in (image.float(), image[:, ::2], torch.zeros(5, 8, 8, dtype=torch.uint8), image[:0], image[0]):
        assert not accepts(other)


# -- plans: whole pipelines for images of one shape ------------------------------------------------------


def pipeline_of(name: str = "ImageNet") -> v2.Compose:
    """Return a pipeline that has met images of a shape, and so has a plan for them."""
    steps = copy.deepcopy(WHOLE[name])
    pipeline = v2.Compose(steps)
    for _ in range(2):
        pipeline(IMAGE)
    assert native.module is None or [type(p) for p in vars(pipeline)["_plans"].values()] == [Plan]
    return pipeline


def same_as_new(pipeline: v2.Compose) -> None:
    """Check that a call gives what a pipeline of the same transforms without plans gives."""
    new = v2.Compose(copy.deepcopy(list(pipeline.transforms)))
    found, wanted = (seeded(3, call, IMAGE) for call in (pipeline, new))
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)


IMAGE = torch.randint(0, 256, (3, 40, 44), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def add_hook(pipeline: v2.Compose) -> None:
    pipeline.transforms[1].register_forward_hook(lambda module, inputs, out: 255 - out)


CHANGES: dict[str, Any] = {
    "nothing": lambda p: None,
    "an attribute": lambda p: setattr(p.transforms[1], "p", 1.0),
    "the size": lambda p: setattr(p.transforms[0], "size", (9, 13)),
    "the mean": lambda p: setattr(p.transforms[3], "mean", [0.1, 0.2, 0.3]),
    "the mean in place": lambda p: p.transforms[3].mean.__setitem__(0, 0.9),
    "a generator": lambda p: setattr(p.transforms[0], "generator", torch.Generator().manual_seed(5)),
    "a transform": lambda p: p.transforms.__setitem__(1, v2.RandomVerticalFlip(1.0)),
    "another transform": lambda p: p.transforms.insert(1, v2.RandomInvert(1.0)),
    "one transform less": lambda p: p.transforms.pop(1),
    "a hook": add_hook,
    "a method": lambda p: setattr(p.transforms[1], "make_params", lambda flat: {}),
    "forward": lambda p: setattr(p.transforms[1], "forward", lambda image: 255 - image),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_plan_ends_when_something_changes(change: str) -> None:
    pipeline = pipeline_of()
    CHANGES[change](pipeline)
    same_as_new(pipeline)
    same_as_new(pipeline)


def test_copies_make_plans_of_their_own() -> None:
    for pipeline in (copy.deepcopy(pipeline_of()), pickle.loads(pickle.dumps(pipeline_of()))):
        assert "_plans" not in vars(pipeline)
        for _ in range(3):
            same_as_new(pipeline)


def test_plans_with_keys() -> None:
    pipeline, images = v2.Compose(WHOLE["ImageNet"], per_sample=True), torch.stack([IMAGE, IMAGE.flip(-1)])
    for _ in range(3):
        found = v2.seeded(pipeline, ["a", "b"])(images)
    for image, key, wanted in zip(images, "ab", found, strict=True):
        one = v2.seeded(v2.Compose(WHOLE["ImageNet"]), key)(image)
        torch.testing.assert_close(one, wanted, rtol=0, atol=0)


@pytest.mark.needs("native")
def test_plans_of_many_shapes_are_few() -> None:
    pipeline = v2.Compose(WHOLE["ImageNet"])
    for side in range(30, 80):
        for _ in range(2):
            pipeline(torch.zeros(3, side, 40, dtype=torch.uint8))
    assert len(vars(pipeline)["_plans"]) <= 16


def test_threads_share_a_plan() -> None:
    pipeline = pipeline_of("evaluation")
    wanted = pipeline(IMAGE)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(pipeline, [IMAGE.clone() for _ in range(200)]):
            torch.testing.assert_close(found, wanted, rtol=0, atol=0)


def test_results_that_go_around_the_cache() -> None:
    """Floats of more than 8 MB are stored in another way."""
    images = torch.randint(0, 256, (18, 3, 230, 226), dtype=torch.uint8)
    interleaved, gray = images.movedim(-3, -1).contiguous().movedim(-1, -3), images[:, :1].repeat(3, 1, 1, 1)
    for x, steps in ((images, FLOATS), (interleaved, FLOATS), (gray, FLOATS[:1])):
        listed = [v2.RandomCrop(225), *steps]
        found = seeded(0, v2.Compose(listed), x)
        assert found.nbytes > 8 << 20
        torch.testing.assert_close(found, seeded(0, fuzz_pipelines.one_by_one, listed, x), rtol=0, atol=0)


# -- what a call of each transform alone does ----------------------------------------------------------


def test_users_code_is_called() -> None:
    class Called(v2.Resize):
        def __call__(self, image: Any) -> Any:
            return image

    class Computed(v2.RandomHorizontalFlip):
        p = property(lambda self: self.now, lambda self, value: None)  # type: ignore[assignment]
        now = 0.0

    flips = v2.Compose([Computed(), v2.RandomVerticalFlip(0.0)])
    for _ in range(3):
        assert v2.Compose([Called(20), v2.RandomVerticalFlip(1.0)])(IMAGE).shape == IMAGE.shape
        assert torch.equal(flips(IMAGE), IMAGE)
    Computed.now = 1.0
    assert torch.equal(flips(IMAGE), IMAGE.flip(-1))


def test_hooks_of_all_modules_run() -> None:
    seen: list[str] = []
    pipeline = pipeline_of()
    handle = register_module_forward_hook(lambda module, inputs, out: seen.append(type(module).__name__))
    try:
        pipeline(IMAGE)
    finally:
        handle.remove()
    assert seen == ["RandomResizedCrop", "RandomHorizontalFlip", "ToDtype", "Normalize", "Compose"]


def test_probabilities_that_only_the_constructor_refuses() -> None:
    flip = v2.RandomHorizontalFlip()
    flip.p = 1.5
    pipeline = v2.Compose([flip, v2.RandomVerticalFlip(0.0)])
    for _ in range(3):
        assert torch.equal(pipeline(IMAGE), IMAGE.flip(-1))


@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_another_default_device(device: str) -> None:
    pipeline, wanted = pipeline_of("evaluation"), pipeline_of("evaluation")(IMAGE)
    with torch.device(device):
        for _ in range(3):
            torch.testing.assert_close(pipeline(IMAGE), wanted, rtol=0, atol=0)


def test_a_graph_sees_other_transforms_of_the_same_class() -> None:
    pipeline = v2.Compose([v2.RandomHorizontalFlip(0.0), v2.RandomVerticalFlip(0.0)])
    graph, _ = compiled(pipeline)
    assert torch.equal(graph(IMAGE), IMAGE)
    pipeline.transforms[0] = v2.RandomHorizontalFlip(1.0)
    assert torch.equal(graph(IMAGE), IMAGE.flip(-1))
    pipeline.transforms.reverse()
    assert torch.equal(graph(IMAGE), IMAGE.flip(-1))


def test_a_hook_in_a_graph_draws_once() -> None:
    flips = [v2.RandomVerticalFlip(0.5), v2.RandomHorizontalFlip(0.5)]
    flips[0].register_forward_hook(lambda module, inputs, out: out + 1)
    pipeline = v2.Compose(flips)
    compiled = torch.compile(pipeline, backend="aot_eager")
    for seed in range(4):
        assert torch.equal(*(seeded(seed, call, IMAGE) for call in (compiled, pipeline)))


def test_a_pil_image_keeps_its_memory_format() -> None:
    steps = [v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.ToImage()]
    image = functional.to_pil_image(IMAGE)
    assert v2.Compose(steps)(image).stride() == steps[1](steps[0](image)).stride()


@pytest.mark.parametrize("side", [46342, 1 << 20, 1 << 40])
def test_sizes_beyond_the_limit(side: int) -> None:
    pipeline = v2.Compose([v2.RandomHorizontalFlip(0.0), v2.Resize((side, side)), v2.CenterCrop(4)])
    for _ in range(3):
        with pytest.raises(ValueError, match=r"resize: size must span fewer than 2\*\*31 pixels"):
            pipeline(IMAGE)


def changed(transform: Any, **arguments: Any) -> Any:
    for name, value in arguments.items():
        setattr(transform, name, value)
    return transform


REFUSED = {
    "an even kernel": lambda: changed(v2.GaussianBlur(3), kernel_size=(4, 3)),
    "an empty kernel": lambda: changed(v2.GaussianBlur(3), kernel_size=(0, 3)),
    "a wide kernel": lambda: v2.GaussianBlur(301, 40.0),
    "a size of 0": lambda: v2.Resize((0, 5)),
    "a size below 0": lambda: v2.Resize((-1, 5)),
    "a middle of 0": lambda: v2.CenterCrop(0),
    "a crop of 0": lambda: v2.RandomCrop(0),
    "a resized crop of 0": lambda: v2.RandomResizedCrop((0, 4)),
    "nothing left": lambda: v2.Pad(-20),
    "less than nothing left": lambda: v2.Pad(-21),
    "nine bits": lambda: v2.RandomPosterize(9, 1.0),
    "a crop beyond the image": lambda: v2.RandomCrop(100),
    "a color of five channels": lambda: v2.Pad(2, fill=(1, 2, 3, 4, 5)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_that_operators_refuse(name: str) -> None:
    steps = [v2.RandomVerticalFlip(1.0), REFUSED[name]()]
    pipeline = v2.Compose(steps)
    wanted, state = fuzz_pipelines.result(lambda: fuzz_pipelines.one_by_one(steps, IMAGE), 5)
    for _ in range(3):
        found, after = fuzz_pipelines.result(lambda: pipeline(IMAGE), 5)
        assert isinstance(wanted, str) == isinstance(found, str)
        assert found == wanted if isinstance(wanted, str) else torch.equal(found, wanted)
        assert torch.equal(state, after)


@pytest.mark.parametrize("per_sample", [False, True])
def test_transforms_that_are_skipped_together_may_change_the_size(per_sample: bool) -> None:
    """Padding without its crop is no neutral step: the image that skips both is whole."""
    image = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    for back in (v2.RandomCrop(32), v2.CenterCrop(32), v2.RandomResizedCrop(32)):
        pipeline = v2.Compose([v2.RandomApply([v2.Pad(4), back], p=1e-9)], per_sample=per_sample)
        for _ in range(4):
            if per_sample:
                with pytest.raises(ValueError, match="must keep"):
                    pipeline(image)
            else:
                assert torch.equal(pipeline(image), image)


def test_no_call_of_a_pipeline_aliases_its_input_where_its_transforms_copy() -> None:
    """The first calls have no plan; the calls with one return the image itself where the others do."""
    one = torch.randint(0, 256, (3, 40, 48), dtype=torch.uint8)
    size = (40, 48)
    makers = {
        "copies": [
            lambda: v2.RandomCrop(size),
            lambda: v2.CenterCrop(size),
            lambda: v2.Pad(0),
            lambda: v2.GaussianBlur(1),
            lambda: v2.RandomAffine(0),
            lambda: v2.RandomResizedCrop(size, (1, 1), (1.2, 1.2)),
        ],
        "stays": [
            lambda: v2.RandomHorizontalFlip(0.0),
            lambda: v2.Resize(size),
            lambda: v2.RandomErasing(0.0),
            lambda: v2.RandomGrayscale(0.0),
            lambda: v2.RandomApply([v2.GaussianBlur(3), v2.RandomResizedCrop(size)], p=1e-9),
            lambda: v2.RandomApply([v2.RandomApply([v2.RandomAffine(9)], p=1e-9)], p=0.9),
        ],
    }
    for kind, listed in makers.items():
        for make in listed:
            for image in (one, one.expand(2, -1, -1, -1).clone()):
                for pipeline in (v2.Compose([make()]), v2.Compose([make(), v2.RandomHorizontalFlip(0.0)])):
                    for _ in range(4):
                        out = pipeline(image)
                        assert torch.equal(out, image) and (out is image) is (kind == "stays"), pipeline


# -- graphs -----------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(torch.Tag, "inplace"), reason="dynamo takes no tv_tensors")
@pytest.mark.parametrize("backend", ["aot_eager", *every_night("inductor")])
def test_pipelines_in_a_graph(backend: str, whole: bool) -> None:
    """Values and gradients are those of eager mode, for levels, floats, and an image with all that follows it."""
    pipelines = {name: v2.Compose(WHOLE[name]) for name in (WHOLE if whole else ("SimCLR", "choices"))}
    turn = v2.RandomAffine(20, (0.1, 0.1), interpolation=InterpolationMode.BILINEAR)
    smooth = v2.Compose([turn, v2.RandomPerspective(), JITTER, v2.GaussianBlur(5), v2.Resize(24)])
    scene = {name: value for name, value in sample(picture()).items() if name != "label"}

    def call(image: torch.Tensor, real: torch.Tensor, scene: Any) -> Any:
        return {name: pipeline(image) for name, pipeline in pipelines.items()}, smooth(real), smooth(scene)

    graph, counting = compiled(call, backend)
    for seed in range(5):
        with torch._inductor.config.patch(fallback_random=True):  # which draws as in eager mode
            found, wanted = (
                (seeded(seed, f, picture(seed=seed), real, scene), real)
                for f in (graph, call)
                for real in [picture(torch.float32).requires_grad_()]
            )
        same(found[0], wanted[0], seed, 1e-4)
        grads = [torch.autograd.grad(out[1].square().sum(), real)[0] for out, real in (found, wanted)]
        torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-4)
    assert counting.count <= 2


def test_a_plane_becomes_an_image_with_a_channel() -> None:
    graph = torch.compile(v2.ToImage(), backend="eager", fullgraph=True)
    assert graph(torch.zeros(4, 5)).shape == v2.ToImage()(torch.zeros(4, 5)).shape == (1, 4, 5)


@pytest.mark.parametrize("backend", ["aot_eager", *every_night("inductor")])
def test_sizes_between_two_numbers_are_rounded_alike(backend: str) -> None:
    """Half a pixel goes to the even number, as Python rounds, where a compiler knows sizes by name, too."""
    transform = v2.LongestMaxSize(10)
    graph = torch.compile(transform, fullgraph=True, dynamic=True, backend=backend)
    for width in (5, 7, 9, 11):
        image = torch.rand(3, 20, width)
        wanted = transform(image)
        assert wanted.shape[-1] == round(width / 2)
        same(graph(image), wanted, width, 2e-6)


def _draws_in(graph: Any, image: torch.Tensor) -> int:
    """Count the operator calls that draw, in the graph of a transform."""
    found: list[int] = []

    def count(module: Any, _: Any) -> Any:
        targets = [str(n.target) for n in module.graph.nodes if n.op == "call_function"]
        found.append(sum(".sample" in target or ".run_pipeline" in target for target in targets))
        return module.forward

    torch.compiler.reset()
    torch.compile(graph, fullgraph=True, backend=count)(image)
    return found[0]


def _planned() -> dict[str, tuple[Any, int]]:
    """Return pipelines, and the number of draw operators in their graph."""
    crop, flip, jitter = v2.RandomCrop(30, padding=3), v2.RandomHorizontalFlip(), v2.ColorJitter(0.4)
    each = v2.RandomHorizontalFlip(per_sample=True)
    nested = v2.RandomOrder([v2.Compose([flip, jitter]), v2.RandomApply([v2.RandomInvert()], p=0.5)])
    whole = v2.RandomCrop((40, 52))  # draws nothing, because the image has that size
    inside = v2.RandomApply([flip, v2.RandomErasing(0.5)], p=0.7, per_sample=True)
    return {
        "one after the other": (v2.Compose(WHOLE["SimCLR"]), 1),
        "sizes change": (v2.Compose([v2.Resize(36), crop, v2.Pad(2), v2.RandomPerspective()]), 1),
        "nested": (v2.Compose([whole, nested, v2.RandomChoice([flip, jitter]), v2.RandAugment()]), 1),
        "a stranger between": (v2.Compose([flip, jitter, torch.nn.Identity(), flip, jitter]), 2),
        "a stranger inside": (v2.Compose([flip, jitter, v2.RandomApply([torch.nn.Identity(), flip])]), 3),
        "each and all": (v2.Compose([flip, jitter, each, each]), 2),
        "each inside": (v2.Compose([inside, each, v2.RandomRotation(20, per_sample=True)]), 1),
    }


@nightly
@pytest.mark.parametrize("name", _planned())
def test_a_graph_draws_as_often_as_it_must(name: str) -> None:
    transform, draws = _planned()[name]
    image = torch.stack([picture(seed=s) for s in range(3)])
    assert _draws_in(transform, image) == draws
    graph, counting = compiled(transform)
    for seed in range(20):
        same(seeded(seed, graph, image), seeded(seed, transform, image), seed, 2e-6)
    assert counting.count == 1
