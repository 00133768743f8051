"""The recipes: each program runs as printed, in a file of its own, and the statements around it are true."""

from __future__ import annotations

import re
import runpy
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2 as theirs

from imgops import transforms as v2
from imgops._common.torch_private import CountingBackend
from tests.tiers import nightly
from tests.transform_cases import seeded

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "recipes").glob("*.rst"))
BLOCK = re.compile(r"^\.\. code-block:: python\n\n((?:(?:   .*)?\n)+)", re.M)
PROGRAMS = [(page, n) for page in PAGES for n in range(len(BLOCK.findall(page.read_text())))]

needs_classes = pytest.mark.skipif(not hasattr(torch.Tag, "inplace"), reason="dynamo takes no tv_tensors")


@nightly
@pytest.mark.parametrize(("page", "n"), PROGRAMS, ids=[f"{page.stem}-{n}" for page, n in PROGRAMS])
def test_a_recipe_runs_by_itself(page: Path, n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = textwrap.dedent(BLOCK.findall(page.read_text())[n])
    if "tv_tensors in a graph need" in code and not hasattr(torch.Tag, "inplace"):
        pytest.skip("dynamo takes no tv_tensors")
    program = tmp_path / "recipe.py"
    program.write_text(code.replace("fullgraph=True)", 'fullgraph=True, backend="aot_eager")'))
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        runpy.run_path(str(program), run_name="__main__")


def image(height: int, width: int, *batch: int) -> Tensor:
    return torch.randint(0, 256, (*batch, 3, height, width), dtype=torch.uint8)


def graphs(function: Callable[..., Any], calls: list[tuple[Any, ...]], **how: Any) -> list[int]:
    """Return how many graphs there are after each call."""
    torch.compiler.reset()
    counter, counts = CountingBackend("eager"), []
    compiled = torch.compile(function, fullgraph=True, backend=counter, **how)
    for call in calls:
        compiled(*call)
        counts.append(counter.count)
    return counts


def marked(*dims: int) -> Callable[..., tuple[Any, ...]]:
    def mark(*tensors: Tensor) -> tuple[Any, ...]:
        for x in tensors:
            if dims:
                torch._dynamo.mark_dynamic(x, dims)
        return tensors

    return mark


AUGMENT = v2.Compose(
    [v2.RandomResizedCrop(16), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)],
    per_sample=True,
)
SERVE = v2.Compose([v2.Resize(235), v2.CenterCrop(224), v2.ToDtype(torch.float32, scale=True)])
#: The batches have 8, 8 and 4 images, twice the sizes of one epoch; then come one of 3 and one of 1.
BATCHES = (8, 8, 4, 8, 4, 3, 1)
SIZES = [(480, 640), (640, 480), (300, 300), (1000, 240), (200, 150), (235, 400), (224, 224)]


def mixed(per_sample: bool) -> Callable[[Tensor, Tensor], Any]:
    both = [v2.MixUp(num_classes=4), v2.CutMix(num_classes=4)]
    mix = v2.RandomChoice(both, per_sample=per_sample)
    return lambda x, y: mix(AUGMENT(x), y)


#: Options of torch.compile; whether the sizes are marked; the number of graphs after each batch, and each size.
COMPILED: list[tuple[dict[str, bool], bool, list[int], list[int]]] = [
    ({}, False, [1, 1, 2, 2, 2, 2, 3], [1, 2, 2, 2, 2, 2, 2]),
    ({}, True, [1, 1, 1, 1, 1, 1, 2], [1, 1, 1, 1, 1, 1, 1]),
    ({"dynamic": True}, False, [1, 1, 1, 1, 1, 1, 2], [1, 1, 1, 1, 1, 1, 1]),
    ({"dynamic": False}, False, [1, 1, 2, 2, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7]),
]


@nightly
@pytest.mark.parametrize(("how", "mark", "of_batches", "of_sizes"), COMPILED)
def test_numbers_of_graphs(
    how: dict[str, bool], mark: bool, of_batches: list[int], of_sizes: list[int]
) -> None:
    batch, one = (marked(0), marked(1, 2)) if mark else (marked(), marked())
    for per_sample in (False, True):
        batches = [batch(image(20, 24, n), torch.arange(n) % 4) for n in BATCHES]
        assert graphs(mixed(per_sample), batches, **how) == of_batches
    assert graphs(SERVE, [one(image(*size)) for size in SIZES], **how) == of_sizes


def boxes(count: int, height: int, width: int) -> Any:
    corners = torch.rand(count, 2, 2).sort(1).values * torch.tensor([width - 9, height - 9])
    values = torch.cat([corners[:, 0], corners[:, 1] + 9], 1)
    return tv_tensors.BoundingBoxes(values, format="XYXY", canvas_size=(height, width))


def test_a_detector_takes_an_image_without_boxes() -> None:
    augment = v2.Compose(
        [v2.RandomZoomOut(), v2.RandomIoUCrop(), v2.RandomHorizontalFlip(), v2.SanitizeBoundingBoxes()]
    )
    none = tv_tensors.BoundingBoxes(torch.zeros(0, 4), format="XYXY", canvas_size=(20, 24))
    sample = {"image": tv_tensors.Image(image(20, 24)), "boxes": none, "labels": torch.zeros(0).long()}
    for _ in range(8):
        out = augment(sample)
        assert out["boxes"].shape == (0, 4) and out["labels"].shape == (0,)
    mosaic = v2.Compose([v2.Mosaic(32), v2.SanitizeBoundingBoxes()])
    assert mosaic([sample] * 4)["boxes"].shape == (0, 4)


def test_a_box_with_its_center_outside_of_the_crop_is_dropped() -> None:
    transform = v2.Compose([v2.RandomIoUCrop(sampler_options=[0.1]), v2.SanitizeBoundingBoxes()])
    dropped = 0
    for seed in range(20):
        torch.manual_seed(seed)
        before = boxes(4, 60, 80)
        sample = {"image": tv_tensors.Image(image(60, 80)), "boxes": before, "labels": torch.arange(4)}
        params = transform.transforms[0].sample(sample)
        cropped = transform.transforms[0].apply(sample, params)
        out = v2.SanitizeBoundingBoxes()(cropped)
        dropped += 4 - len(out["boxes"])
        empty = (cropped["boxes"].as_subclass(Tensor) == 0).all(1)
        assert out["labels"].tolist() == torch.arange(4)[~empty].tolist()
    assert dropped


@nightly
@needs_classes
def test_graphs_of_a_batch_with_boxes() -> None:
    augment = v2.Compose([v2.RandomAffine(10), v2.RandomHorizontalFlip()], per_sample=True)

    def batch(*counts: int) -> tuple[Any, ...]:
        images = tv_tensors.Image(image(20, 24, len(counts)))
        return ({"image": images, "boxes": [boxes(n, 20, 24) for n in counts]},)

    several = [batch(*torch.randint(2, 9, (2,)).tolist()) for _ in range(10)]
    found = graphs(augment, [*several, batch(1, 5), batch(0, 5)])
    assert found[9] == found[2] <= 3
    assert found[10:] == [found[9] + 1, found[9] + 2]


def test_what_a_crop_adds_has_the_class_255() -> None:
    fill = {tv_tensors.Image: 0, tv_tensors.Mask: 255}
    crop = v2.RandomCrop(32, pad_if_needed=True, fill=fill)
    mask = tv_tensors.Mask(torch.ones(20, 24, dtype=torch.uint8))
    out = crop({"image": tv_tensors.Image(image(20, 24).clamp(min=1)), "mask": mask})
    added = (out["image"] == 0).all(0)
    assert added.any() and torch.equal(out["mask"] == 255, added) and torch.equal(out["mask"] == 1, ~added)


@nightly
def test_without_dynamic_sizes_there_is_a_limit() -> None:
    calls = [(image(20 + n, 24),) for n in range(torch._dynamo.config.recompile_limit)]
    transform = v2.Compose([v2.Resize(8), v2.CenterCrop(8)])
    assert graphs(transform, calls, dynamic=False)[-1] == len(calls)
    with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit, match="fullgraph=True"):
        graphs(transform, [*calls, (image(90, 24),)], dynamic=False)


# -- docs/transforms.rst ----------------------------------------------------------------------------------


class Mine(v2.RandomRotation):
    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return super().make_params(flat_inputs)


X = image(8, 9)
BATCH, LABELS = torch.stack([X] * 4), torch.tensor([3, 1, 2, 1])
TO_HALF, FLIP = v2.Resize((4, 4)), v2.RandomHorizontalFlip()


def refused() -> list[tuple[Any, tuple[Any, ...]]]:
    """Return the transforms that a graph refuses, with their inputs, in the order of the page."""
    one = {"image": BATCH, "boxes": boxes(3, 8, 9)}
    return [
        (v2.RandomApply([TO_HALF]), (X,)),
        (v2.RandomChoice([TO_HALF, FLIP]), (X,)),
        (v2.RandomApply([v2.MixUp(num_classes=10)]), (BATCH, LABELS)),
        (v2.RandomApply([v2.Mosaic(8)]), ([X] * 4,)),
        (v2.RandomRotate90(), (X,)),
        (v2.RandomResize(4, 8, per_sample=True), (BATCH,)),
        (v2.RandomHorizontalFlip(per_sample=True), (one,)),
        (v2.Compose([theirs.RandomHorizontalFlip()], per_sample=True), (BATCH,)),
        (v2.SanitizeBoundingBoxes(), ({"image": X, "boxes": boxes(3, 8, 9), "labels": [1, 2, 3]},)),
        (Mine(10), (X,)),
        (v2.ToPILImage(), (X,)),
    ]


def first_line(transform: Any, inputs: tuple[Any, ...]) -> str:
    torch.compiler.reset()
    with pytest.raises((NotImplementedError, ValueError)) as error:
        torch.compile(transform, fullgraph=True, backend="eager")(*inputs)
    return str(error.value).splitlines()[0]


@nightly
@needs_classes
def test_what_a_graph_refuses_is_on_the_page() -> None:
    page = (ROOT / "docs" / "transforms.rst").read_text()
    section = page.partition("Calls that raise in a compiled graph\n")[2].partition("\nIn a graph\n")[0]
    blocks = re.findall(r"::\n\n((?:   .*\n|\n)+)", section)
    messages = [" ".join(m.split()) for block in blocks for m in block.strip().split("\n\n")]
    assert messages == [first_line(*call) for call in refused()]
    order = first_line(v2.RandomOrder([TO_HALF, FLIP]), (X,))
    assert order.startswith("RandomOrder: transforms must give results of the structure")
    for name in ("RandomShortestSize", "ScaleJitter", "RandomZoomOut", "RandomRotation", "RandomTranspose"):
        assert name in section
    for transform in (
        v2.RandomShortestSize(4, per_sample=True),
        v2.ScaleJitter((4, 4), per_sample=True),
        v2.RandomZoomOut(p=1.0, per_sample=True),
        v2.RandomRotation(10, expand=True, per_sample=True),
    ):
        assert "per_sample must be False" in first_line(transform, (BATCH,))
    crop = v2.RandomIoUCrop(per_sample=True)
    one = {"image": tv_tensors.Image(BATCH), "boxes": boxes(1, 8, 9)}
    assert "per_sample must be False" in first_line(crop, (one,))
    with pytest.raises(NotImplementedError, match=r"^RandomIoUCrop: per_sample must be False"):
        crop(one)
    for label in (torch.tensor(3), torch.ones(5)):
        with pytest.raises(
            ValueError, match=r"^ColorJitter: the first tensor must be an image .*, got shape"
        ):
            v2.ColorJitter(0.5)({"label": label, "image": X})
    assert "image must be square" in first_line(v2.RandomTranspose(), (X,))
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(v2.RandomHorizontalFlip(), fullgraph=True)(PIL.Image.new("RGB", (8, 8)))


def test_messages_that_name_per_sample_are_raised_in_eager_mode_too() -> None:
    calls = refused()
    for place, text in ((4, "image must be square"), (5, "per_sample must be"), (6, "must be a list of 4")):
        transform, (inputs,) = calls[place]
        transform.per_sample = True
        with pytest.raises((NotImplementedError, ValueError), match=text):
            transform(BATCH if isinstance(inputs, Tensor) else inputs)
    mixing = v2.RandomApply([v2.MixUp(num_classes=10)], per_sample=True)
    with pytest.raises(ValueError, match="transforms that may be left out"):
        mixing(BATCH, LABELS)
    with pytest.raises(ValueError, match="transforms that may be left out"):
        v2.RandomApply([TO_HALF], per_sample=True)(BATCH)
    with pytest.raises(ValueError, match="transforms must give results of"):
        v2.RandomChoice([TO_HALF, FLIP], per_sample=True)(BATCH)


# -- a generator's images --------------------------------------------------------------------------------


def functions_of(page: str) -> list[dict[str, Any]]:
    """Return the names that each program of a page defines."""
    found: list[dict[str, Any]] = []
    for block in BLOCK.findall((ROOT / "docs" / "recipes" / f"{page}.rst").read_text()):
        found.append({})
        exec(textwrap.dedent(block), found[-1])
    return found


def diff_augment(images: Tensor) -> Tensor:
    """DiffAugment step by step, with the draws of the page's program."""
    n, _, height, width = images.shape
    brightness, saturation, contrast = (
        d[:, None, None, None] for d in (torch.rand(n) - 0.5, 2 * torch.rand(n), torch.rand(n) + 0.5)
    )
    x = images + brightness
    x = (x - x.mean(1, keepdim=True)) * saturation + x.mean(1, keepdim=True)
    x = (x - x.mean((1, 2, 3), keepdim=True)) * contrast + x.mean((1, 2, 3), keepdim=True)
    across, down = (torch.randint(-s // 8, s // 8 + 1, (n,)) for s in (width, height))
    wide = torch.nn.functional.pad(x, (width, width, height, height))
    x = torch.stack(
        [
            w[:, height - b :, width - a :][:, :height, :width]
            for w, a, b in zip(wide, across, down, strict=True)
        ]
    )
    across, down = (torch.randint(-s // 4, s - s // 4 + 1, (n,)) for s in (width, height))
    mask = torch.ones_like(x)
    for m, a, b in zip(mask, across.tolist(), down.tolist(), strict=True):
        m[:, max(b, 0) : b + height // 2, max(a, 0) : a + width // 2] = 0
    return x * mask


@nightly
def test_the_augmentations_of_a_generator() -> None:
    first, second = functions_of("generator")
    images = torch.rand(6, 3, 24, 32, requires_grad=True)
    for seed in range(5):
        found, wanted = (seeded(seed, f, images) for f in (first["diff_augment"], diff_augment))
        torch.testing.assert_close(found, wanted)
        weight = torch.rand_like(found)
        torch.testing.assert_close(*(torch.autograd.grad(y, images, weight)[0] for y in (found, wanted)))
    calls = [first["diff_augment"], lambda x: second["augment"](x, 0.6)]
    for call in calls:
        compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(seeded(3, compiled, images), seeded(3, call, images))
