"""The transforms as one graph: the draws of eager mode, few compilations, gradients, distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from checks import bits_equal
from groups import compiled
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode
from transform_cases import AFFINE, JITTER, picture, same, sample, seeded

import imgops
from imgops import transforms as ours
from tests.tiers import nightly, nightly_unless

#: Before torch 2.13, dynamo does not support torchvision's tensor classes.
CLASSES = pytest.mark.skipif(not hasattr(torch.Tag, "inplace"), reason="dynamo takes no tv_tensors")


def test_a_plane_becomes_an_image_with_a_channel() -> None:
    graph = torch.compile(ours.ToImage(), backend="eager", fullgraph=True)
    assert graph(torch.zeros(4, 5)).shape == ours.ToImage()(torch.zeros(4, 5)).shape == (1, 4, 5)


@CLASSES
def test_a_pipeline_of_tv_tensors_is_one_graph() -> None:
    given = sample(picture())
    given.pop("label")
    steps = [
        ours.RandomCrop(30, padding=2),
        ours.RandomHorizontalFlip(),
        ours.RandomAffine(20),
        ours.Resize(24),
    ]
    colors = [ours.ColorJitter(0.2), ours.ToDtype(torch.float32, scale=True), ours.Normalize([0.5], [0.5])]
    pipeline = ours.Compose([*steps, *colors])
    graph, counting = compiled(pipeline)
    for seed in range(5):
        found, wanted = seeded(seed, graph, given), seeded(seed, pipeline, given)
        same(found, wanted, seed, 1e-4)
        assert found["boxes"].canvas_size == (24, 24)
    assert counting.count == 1


def simclr() -> Any:
    return ours.Compose(
        [
            ours.RandomResizedCrop(24),
            ours.RandomHorizontalFlip(),
            ours.ColorJitter(**JITTER),
            ours.RandomApply([ours.GaussianBlur(5)], p=0.5),
            ours.RandomGrayscale(0.2),
            ours.ToDtype(torch.float32, scale=True),
            ours.Normalize([0.5] * 3, [0.2] * 3),
        ]
    )


def imagenet() -> Any:
    steps = [ours.RandomResizedCrop(24), ours.RandomHorizontalFlip(), ours.ToDtype(torch.float32, scale=True)]
    return ours.Compose([*steps, ours.Normalize([0.5] * 3, [0.2] * 3)])


def randaugment() -> Any:
    return ours.Compose(
        [ours.RandAugment(), ours.TrivialAugmentWide(), ours.ToDtype(torch.float32, scale=True)]
    )


@pytest.mark.parametrize(
    ("pipeline", "backend"),
    [
        *((pipeline, "aot_eager") for pipeline in (simclr, imagenet, randaugment)),
        (simclr, "inductor"),
        *(pytest.param(pipeline, "inductor", marks=nightly) for pipeline in (imagenet, randaugment)),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_pipelines(pipeline: Callable[[], Any], backend: str) -> None:
    transform = pipeline()
    graph, counting = compiled(transform, backend)
    for seed in range(20):
        image = picture(seed=seed)
        same(seeded(seed, graph, image), seeded(seed, transform, image), seed, 1e-5)
    assert counting.count <= 2


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_backward_through_a_graph(backend: str) -> None:
    transform = ours.Compose(
        [
            ours.RandomAffine(**{**AFFINE, "interpolation": InterpolationMode.BILINEAR}),
            ours.ColorJitter(**JITTER),
            ours.GaussianBlur(5),
        ]
    )
    graph, _ = compiled(transform, backend)
    for seed in range(3):
        grads = []
        for function in (graph, transform):
            image = picture(torch.float32).requires_grad_()
            grads.append(torch.autograd.grad(seeded(seed, function, image).square().sum(), image)[0])
        torch.testing.assert_close(grads[0], grads[1], rtol=1e-4, atol=1e-4)
        assert grads[0].abs().sum() > 0


@pytest.mark.parametrize("mode", ["eager", pytest.param("compiled", marks=CLASSES), "per_sample"])
def test_distributions(mode: str) -> None:
    """Chances, and the mean and spread of angles over 2,000 draws, are within 5 standard errors."""
    count = 2000
    images = torch.arange(4.0).reshape(1, 2, 2).expand(count, 1, 2, 2).contiguous()
    turn = lambda **more: ours.RandomRotation((-30, 30), **more)
    flip = lambda **more: ours.RandomHorizontalFlip(p=0.3, **more)
    torch.manual_seed(0)
    if mode == "per_sample":
        flipped = flip(per_sample=True)(images)[:, 0, 0, 0] == 1
        angles = angles_of(
            turn(per_sample=True)(tv_tensors.KeyPoints(points(count), canvas_size=(100, 100)), ramp(count))[0]
        )
    else:
        f, t = flip(), turn()
        if mode == "compiled":
            (f, _), (t, _) = compiled(f), compiled(t)
        flipped = torch.stack([f(images[0])[0, 0, 0] == 1 for _ in range(count)])
        torch.manual_seed(1)
        angles = torch.stack(
            [angles_of(t(tv_tensors.KeyPoints(points(1)[0], canvas_size=(100, 100)))) for _ in range(300)]
        )
    error = (0.3 * 0.7 / count) ** 0.5
    assert abs(flipped.double().mean() - 0.3) < 5 * error
    spread = 60 / 12**0.5
    assert abs(angles.mean()) < 5 * spread / len(angles) ** 0.5
    assert abs(angles.std() - spread) < 5 * spread / len(angles) ** 0.5
    assert angles.abs().max() <= 31


def points(count: int) -> Tensor:
    return torch.tensor([[99.0, 50.0]]).repeat(count, 1, 1)


def ramp(count: int) -> Tensor:
    return torch.zeros(count, 1, 100, 100)


def angles_of(moved: Tensor) -> Tensor:
    x, y = (moved.as_subclass(Tensor) - 50).double().unbind(-1)
    return torch.rad2deg(torch.atan2(-y, x)).flatten()


def test_gradients_to_the_parameters_of_functionals(whole: bool) -> None:
    """Of first and second order: every element nightly, in `make test` a random projection."""
    F = ours.functional
    image = (
        torch.rand(2, 3, 6, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(3)) * 0.8 + 0.1
    )
    value = lambda *v: torch.tensor(v, dtype=torch.float64).requires_grad_()
    each = value(0.9, 1.2)
    for function, parameters in (
        (lambda s: F.gaussian_blur(image, [3, 5], s), (value(0.8, 1.1),)),
        (lambda b: F.adjust_brightness(image, b), (each,)),
        (lambda c: F.adjust_contrast(image, c), (each,)),
        (lambda s: F.adjust_saturation(image, s), (each,)),
        (lambda h: F.adjust_hue(image, h), (value(0.1, -0.2),)),
        (lambda s: F.adjust_sharpness(image, s), (each,)),
        (
            lambda a, t, s, k: F.affine(image, a, list(t), s, list(k), "bilinear"),
            (
                value(11.3)[0].detach().requires_grad_(),
                value(0.3, -0.7),
                value(1.13)[0].detach().requires_grad_(),
                value(4.0, -3.0),
            ),
        ),
        (lambda x: F.affine(image, 0.0, [x, 0.0], 1.0, [0.0, 0.0], "bilinear"), (value(0.3, -0.7),)),
        (lambda a: F.rotate(image, a, "bilinear"), (value(13.0, -21.0),)),
        (
            lambda p: F.perspective(image, [[0, 0], [6, 0], [6, 5], [0, 5]], p),
            (value([0.3, 0.2], [5.1, 0.7], [5.8, 4.9], [0.4, 4.4]),),
        ),
    ):
        assert torch.autograd.gradcheck(function, parameters, fast_mode=not whole)
        assert torch.autograd.gradgradcheck(function, parameters, fast_mode=not whole)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_sizes_between_two_numbers_are_rounded_alike(backend: str) -> None:
    """Half a pixel goes to the even number, as Python rounds, where a compiler knows sizes by name, too."""
    transform = ours.LongestMaxSize(10)
    graph = torch.compile(transform, fullgraph=True, dynamic=True, backend=backend)
    for width in (5, 7, 9, 11):
        image = torch.rand(3, 20, width)
        wanted = transform(image)
        assert wanted.shape[-1] == round(width / 2)
        same(graph(image), wanted, width, 2e-6)


def test_rotation_that_expands() -> None:
    turn = ours.RandomRotation((30, 30), expand=True)
    wide = turn(picture())
    assert wide.shape[-1] > 52
    assert compiled(turn)[0](picture()).shape == wide.shape
    with pytest.raises(NotImplementedError, match="RandomRotation: per_sample must be False"):
        ours.RandomRotation(30, expand=True, per_sample=True)(picture()[None])


def test_foreign_transforms_in_a_graph() -> None:
    """A foreign transform is applied and then chosen, so that the draws around it stay those of eager mode."""
    chance = ours.RandomApply([torch.nn.Identity(), ours.RandomInvert(1.0)], p=0.5)
    graph, _ = compiled(chance)
    image = picture()
    kinds = {bits_equal(seeded(seed, graph, image), image) for seed in range(10)}
    assert kinds == {True, False}
    assert imgops.invert(image).sum() != image.sum()


def _draws_in(graph: Any, image: Tensor) -> int:
    """Count the operator calls that draw, in the graph of a transform."""
    found: list[int] = []

    def count(module: Any, _: Any) -> Any:
        found.append(
            sum(
                "imgops_transforms.sample" in str(n.target)
                for n in module.graph.nodes
                if n.op == "call_function"
            )
        )
        return module.forward

    torch.compiler.reset()
    torch.compile(graph, fullgraph=True, backend=count)(image)
    return found[0]


def _planned() -> dict[str, tuple[Any, int]]:
    """Return pipelines, and the number of draw operators in their graph."""
    crop, flip, jitter = ours.RandomCrop(30, padding=3), ours.RandomHorizontalFlip(), ours.ColorJitter(0.4)
    each = ours.RandomHorizontalFlip(per_sample=True)
    nested = ours.RandomOrder([ours.Compose([flip, jitter]), ours.RandomApply([ours.RandomInvert()], p=0.5)])
    whole = ours.RandomCrop((40, 52))  # draws nothing, because the image has that size
    inside = ours.RandomApply([flip, ours.RandomErasing(0.5)], p=0.7, per_sample=True)
    return {
        "one after the other": (simclr(), 1),
        "sizes change": (ours.Compose([ours.Resize(36), crop, ours.Pad(2), ours.RandomPerspective()]), 1),
        "nested": (ours.Compose([whole, nested, ours.RandomChoice([flip, jitter]), ours.RandAugment()]), 1),
        "a stranger between": (ours.Compose([flip, jitter, torch.nn.Identity(), flip, jitter]), 2),
        "a stranger inside": (ours.Compose([flip, jitter, ours.RandomApply([torch.nn.Identity(), flip])]), 3),
        "each and all": (ours.Compose([flip, jitter, each, each]), 2),
        "each inside": (ours.Compose([inside, each, ours.RandomRotation(20, per_sample=True)]), 1),
    }


#: The pipelines in which draws are made ahead in each of the ways.
AHEAD = ("nested", "a stranger inside", "each and all", "each inside")


@pytest.mark.parametrize("name", nightly_unless(AHEAD.__contains__, list(_planned())))
def test_a_graph_draws_as_often_as_it_must(name: str) -> None:
    transform, draws = _planned()[name]
    image = torch.stack([picture(seed=s) for s in range(3)])
    assert _draws_in(transform, image) == draws
    graph, counting = compiled(transform)
    for seed in range(20):
        same(seeded(seed, graph, image), seeded(seed, transform, image), seed, 2e-6)
    assert counting.count == 1
