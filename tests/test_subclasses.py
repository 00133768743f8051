"""Tensor classes: torchvision's annotated images keep their class."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from checks import bits_equal
from groups import compile_together
from torch import Tensor
from torchvision import tv_tensors

import imgops
from tests.tiers import every_night, nightly

X = torch.arange(3 * 6 * 7).reshape(3, 6, 7).float()
CLASSES = {
    "Image": lambda: tv_tensors.Image(X.clone()),
    "Video": lambda: tv_tensors.Video(torch.stack([X, X + 1])),
    "Mask": lambda: tv_tensors.Mask(X[:1].long()),
}
CALLS: dict[str, Any] = {
    "crop": lambda x: imgops.crop(x, (1, 1, 4, 5)),
    "paste": lambda x: imgops.paste(x, x[..., :2, :2].clone(), (1, 1)),
    "pad": lambda x: imgops.pad(x, (1, 2), "reflect"),
    "pad-fill": lambda x: imgops.pad(x, 1, fill=3),
    "resize": lambda x: imgops.resize(x, (3, 4), "nearest"),
    "resize-box": lambda x: imgops.resize(x, (3, 4), "nearest", box=(0, 0, 4.5, 5)),
}


@pytest.mark.parametrize("kind", list(CLASSES))
@pytest.mark.parametrize("name", list(CALLS))
def test_the_class_comes_out(name: str, kind: str) -> None:
    image = CLASSES[kind]()
    out = CALLS[name](image)
    assert type(out) is type(image)
    assert bits_equal(out.as_subclass(Tensor), CALLS[name](image.as_subclass(Tensor)))


@pytest.mark.parametrize("kind", list(CLASSES))
def test_in_place_gives_the_same_object(kind: str) -> None:
    image = CLASSES[kind]()
    plain = image.as_subclass(Tensor).clone()
    assert imgops.paste_(image, torch.zeros_like(plain[..., :2, :2]), (1, 1)) is image
    assert bits_equal(
        image.as_subclass(Tensor), imgops.paste(plain, torch.zeros_like(plain[..., :2, :2]), (1, 1))
    )


def test_the_first_image_decides() -> None:
    image, mask = tv_tensors.Image(X.clone()), tv_tensors.Mask(torch.ones(1, 2, 2))
    assert type(imgops.paste(image, X[:, :2, :2], (0, 0), mask)) is tv_tensors.Image
    assert type(imgops.paste(X, image[:, :2, :2], (0, 0), mask)) is Tensor
    batch = imgops.paste(image, torch.ones(4, 3, 2, 2), (0, 0))
    assert type(batch) is tv_tensors.Image and batch.shape == (4, 3, 6, 7)


def test_metadata_of_a_class_that_hands_it_on() -> None:
    class Labeled(tv_tensors.Image):
        label: str

        @classmethod
        def wrap(cls, tensor: Tensor, like: Any, **kwargs: Any) -> Any:
            out = tensor.as_subclass(cls)
            out.label = like.label
            return out

    image = X.clone().as_subclass(Labeled)
    image.label = "cat"
    out = imgops.resize(image, (3, 4))
    assert type(out) is Labeled and out.label == "cat"


def test_gradients_pass_through() -> None:
    leaf = X.clone().requires_grad_()
    out = imgops.crop(leaf.as_subclass(tv_tensors.Image), (0, 0, 2, 2))
    assert type(out) is tv_tensors.Image
    out.sum().backward()
    assert leaf.grad.sum() == 12


def test_boxes_are_no_images() -> None:
    boxes = tv_tensors.BoundingBoxes(torch.zeros(2, 4), format="XYXY", canvas_size=(6, 7))
    with pytest.raises(ValueError, match="crop: image must have at least 3 dimensions"):
        imgops.crop(boxes, (0, 0, 1, 1))


@pytest.mark.skipif(torch.__version__ < "2.13", reason="compiled custom operators take no such class before")
@pytest.mark.parametrize("backend", ["aot_eager", *every_night("inductor")])
@pytest.mark.parametrize("kind", ["Image", *every_night("Video", "Mask")])
def test_compiled(kind: str, backend: str) -> None:
    image = CLASSES[kind]()
    calls = {name: CALLS[name] for name in ("crop", "paste", "pad", "resize")}
    found = compile_together(calls, backend)[0](image)
    for name, out in found.items():
        assert type(out) is type(image), name
        assert bits_equal(out.as_subclass(Tensor), CALLS[name](image.as_subclass(Tensor))), name


@nightly
def test_torchvision_is_not_imported_for_those_who_do_not_use_it() -> None:
    code = (
        "import sys, torch, imgops; x = torch.zeros(3, 4, 4).as_subclass(type('Own', (torch.Tensor,), {}));"
        "imgops.crop(x, (0, 0, 2, 2)); assert 'torchvision' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
