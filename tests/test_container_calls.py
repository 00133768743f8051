"""A container does at every call what its transforms do: its second and third call, and those after a change.

Each container holds each transform, with a probability of 0, a half and 1, and is called three times and again
after each change of an attribute, a list or a module in place. The results and the states of the generator are
those of torchvision's containers, which keep nothing from call to call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torchvision.transforms import InterpolationMode
from torchvision.transforms import v2 as reference
from transform_cases import outcome, picture, same

import imgops
from imgops import transforms as ours

Make = Callable[[Any], Any]
NEAREST = InterpolationMode.NEAREST
IMAGE = picture(height=24, width=28)

#: Transforms with the pixels of torchvision's: of pixels, of the size, of the dtype, of the class; with draws or not.
INNER: dict[str, Make] = {
    "flip": lambda t: t.RandomHorizontalFlip(),
    "invert": lambda t: t.RandomInvert(1.0),
    "posterize": lambda t: t.RandomPosterize(3, p=0.5),
    "resize": lambda t: t.Resize(33, NEAREST),
    "pad": lambda t: t.Pad([1, 2, 3, 4]),
    "center": lambda t: t.CenterCrop([8, 9]),
    "crop": lambda t: t.RandomCrop([9, 11]),
    "padded crop": lambda t: t.RandomCrop([24, 28], padding=3),
    "floats": lambda t: t.ToDtype(torch.float32, scale=True),
    "image": lambda t: t.ToImage(),
    "identity": lambda t: t.Identity(),
}
CONTAINERS: dict[str, Callable[[Any, Make, float], Any]] = {
    "RandomApply": lambda t, inner, p: t.RandomApply([inner(t)], p),
    "of two": lambda t, inner, p: t.RandomApply([t.RandomVerticalFlip(), inner(t)], p),
    "Compose of one": lambda t, inner, p: t.Compose([t.RandomApply([inner(t)], p)]),
    "Compose": lambda t, inner, p: t.Compose(
        [t.RandomVerticalFlip(), t.RandomApply([inner(t)], p), t.RandomHorizontalFlip(1.0)]
    ),
    "nested": lambda t, inner, p: t.RandomApply([t.RandomApply([inner(t)], 0.5), t.RandomVerticalFlip()], p),
    "modules": lambda t, inner, p: t.RandomApply(torch.nn.ModuleList([inner(t)]), p),
    "RandomChoice": lambda t, inner, p: t.RandomChoice([inner(t), t.RandomVerticalFlip(1.0)], [p, 1.01 - p]),
    "RandomOrder": lambda t, inner, p: t.RandomOrder([inner(t), t.RandomVerticalFlip(p)]),
}
PROBABILITIES = (0.0, 0.5, 1.0)


def has_one_form(container: str, inner: str, p: float) -> bool:
    """Return whether all samples of a batch are known to come out in one form, whatever is drawn."""
    if inner in ("flip", "invert", "posterize", "identity", "padded crop"):
        return True
    return (
        p in (0.0, 1.0)
        and container not in ("RandomChoice", "RandomOrder")
        and (container != "nested" or not p)
    )


def changes(transform: Any, path: str = "") -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Yield changes of the attributes, lists and modules of a container and of those inside it, in order."""
    inside = list(getattr(transform, "transforms", ()))
    for i, inner in enumerate(inside):
        for name, change in changes(inner):
            yield f"{path}[{i}]{name}", lambda t, i=i, change=change: change(t.transforms[i])
    if isinstance(getattr(transform, "p", None), float):
        for p in (1.0, 0.0, 0.5):
            yield f"{path}.p = {p}", lambda t, p=p: setattr(t, "p", p)
    if isinstance(getattr(transform, "p", None), list):
        yield f"{path}.p in place", lambda t: t.p.__setitem__(slice(None), t.p[::-1])
    for name in ("padding", "size"):
        if isinstance(getattr(transform, name, None), list):

            def change(t: Any, name: str = name) -> None:
                getattr(t, name)[0] += 1

            yield f"{path}.{name} in place", change
    if inside:
        yield (
            f"{path}.transforms gets one more",
            lambda t: t.transforms.append(_of(t).RandomVerticalFlip(1.0)),
        )
        yield f"{path}.transforms loses the first", lambda t: t.transforms.__delitem__(0)
        yield f"{path}.transforms is another", _replace_transforms


def _replace_transforms(container: Any) -> None:
    container.transforms = type(container.transforms)([_of(container).RandomInvert(1.0)])


def _of(transform: Any) -> Any:
    return ours if type(transform).__module__.startswith("imgops.") else reference


#: Transforms that `make test` holds: of pixels, of the size, of the dtype, with a border.
QUICK = ("flip", "resize", "floats", "padded crop")


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_call_is_that_of_new_objects(container: str, whole: bool) -> None:
    for name, inner in INNER.items() if whole else [(name, INNER[name]) for name in QUICK]:
        for p in PROBABILITIES if whole else (0.5,):
            transform = CONTAINERS[container](ours, inner, p)
            theirs = CONTAINERS[container](reference, inner, p)
            which = f"{name}, p = {p}"
            for call in range(4):
                wanted = outcome(call, theirs, IMAGE)
                same(outcome(call, transform, IMAGE), wanted, f"{which}, call {call + 1}", 1e-6)
            for what, change in list(changes(transform)):
                if container == "RandomChoice" and "transforms" in what:
                    continue  # the weights are for as many transforms as before
                change(transform), change(theirs)
                which += f", then {what}"
                for call in range(2):
                    wanted = outcome(call, theirs, IMAGE)
                    same(outcome(call, transform, IMAGE), wanted, f"{which}, call {call + 1}", 1e-6)


@pytest.mark.parametrize("container", CONTAINERS)
def test_samples_are_a_loop(container: str, whole: bool) -> None:
    """With ``per_sample=True``, on a batch and on packed images."""
    batch = torch.stack([IMAGE, IMAGE.flip(-1), IMAGE.flip(-2)])
    for name, inner in INNER.items() if whole else [(name, INNER[name]) for name in QUICK]:
        for p in PROBABILITIES:
            torch.manual_seed(4)
            loop = [CONTAINERS[container](reference, inner, p)(x) for x in batch]
            state = torch.rand(1)
            transform = ours.Compose([CONTAINERS[container](ours, inner, p)], per_sample=True)
            for call in range(3):
                for form in ("batch", "packed"):
                    x = batch if form == "batch" else imgops.PackedImages.of(list(batch))
                    which = f"{name}, p = {p}, call {call + 1}, {form}"
                    if form == "batch" and has_one_form(container, name, p):
                        out, after = outcome(4, transform, x)
                    else:
                        try:
                            out, after = outcome(4, transform, x)
                        except (TypeError, ValueError):
                            continue
                    for a, b in zip(out, loop, strict=True):
                        assert a.shape == b.shape and a.dtype == b.dtype, which
                        assert torch.allclose(a.double(), b.double(), rtol=0, atol=1e-6), which
                    assert torch.equal(after, state), f"{which}: other draws"
