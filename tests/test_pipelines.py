"""Pipelines whose steps the native module runs on each image before the next one begins."""

from __future__ import annotations

from typing import Any
from unittest import mock

import fuzz_pipelines
import pytest
import torch

from imgops import transforms as v2
from imgops.kernels.cpu import native
from imgops.kernels.cpu.program import accepts

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
    "choices": [v2.RandomOrder([JITTER, v2.RandomInvert(1.0)]), v2.RandomChoice([v2.RandomEqualize(1.0)])],
}


@pytest.mark.parametrize("part", range(6))
def test_random_pipelines_equal_a_loop(part: int) -> None:
    counts, wrong = fuzz_pipelines.run(100_000 + 40 * part, 40)
    assert not wrong
    assert counts["one draw"] > 30 and counts["per sample"] > 10


@pytest.mark.skipif(native.module is None, reason="there is no native module")
@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("name", WHOLE)
def test_one_call_runs_all_steps(name: str, per_sample: bool) -> None:
    if per_sample and name == "choices":
        pytest.skip("each sample has another transform: they run one after the other")
    pipeline = v2.Compose(WHOLE[name], per_sample=per_sample)
    images = torch.randint(0, 256, (4, 3, 40, 44), dtype=torch.uint8)
    with mock.patch.object(native, "run_program", side_effect=native.run_program) as calls:
        out = pipeline(images)
    assert calls.call_count == 1 and out.shape[0] == 4


def test_a_pipeline_without_the_native_module(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, images = v2.Compose(WHOLE["SimCLR"]), torch.randint(0, 256, (3, 40, 44), dtype=torch.uint8)
    torch.manual_seed(0)
    wanted = pipeline(images)
    monkeypatch.setattr(native, "module", None)
    torch.manual_seed(0)
    torch.testing.assert_close(pipeline(images), wanted, rtol=0, atol=0)


def test_a_box_outside_raises_as_the_operator_does() -> None:
    crop = v2.RandomResizedCrop(8)
    crop.make_params = lambda flat: {"top": 0, "left": 30, "height": 20, "width": 20}  # type: ignore[method-assign]
    image = torch.zeros(3, 40, 40, dtype=torch.uint8)
    with pytest.raises(ValueError, match="resized_crop: box must"):
        v2.Compose([crop, v2.RandomHorizontalFlip(1.0)])(image)


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


def test_only_images_that_programs_take_are_collected() -> None:
    image = torch.zeros(3, 8, 8, dtype=torch.uint8)
    assert accepts(image)
    for other in (image.float(), image[:, ::2], torch.zeros(5, 8, 8, dtype=torch.uint8), image[:0], image[0]):
        assert not accepts(other)
