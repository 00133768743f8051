"""Real images through whole pipelines: photographs, and thirty-five million pixels."""

from __future__ import annotations

from typing import Any

import matplotlib.cbook
import pytest
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import v2

from imgops import transforms as ours
from tests.tiers import nightly, nightly_unless
from tests.transform_cases import JITTER, seeded


def photographs() -> dict[str, Image.Image]:
    data = pytest.importorskip("skimage.data")
    with Image.open(matplotlib.cbook.get_sample_data("grace_hopper.jpg")) as image:
        hopper = image.convert("RGB")
    names = ("astronaut", "chelsea", "coffee", "camera")
    return {"hopper": hopper, **{name: Image.fromarray(getattr(data, name)()) for name in names}}


def geometric(module: Any) -> Any:
    return module.Compose(
        [module.RandomResizedCrop(96), module.RandomHorizontalFlip(), module.RandomRotation(15)]
    )


def steps(module: Any) -> dict[str, Any]:
    jitter = {name: value for name, value in JITTER.items() if name in ("brightness", "hue")}
    return {
        "geometry": geometric(module),
        "blur": module.Compose([module.Resize(120), module.GaussianBlur(23)]),
        "jitter": module.ColorJitter(**jitter),
        "sharpness": module.RandomAdjustSharpness(1.6, p=1.0),
        "histogram": module.RandomEqualize(p=1.0),
    }


@pytest.mark.parametrize("name", nightly_unless(("geometry", "jitter").__contains__, list(steps(v2))))
def test_photographs(name: str) -> None:
    """99.9 % of the pixels are within a level of torchvision's, in both memory formats.

    A new hue is that of torchvision's PIL images, to the bit.
    """
    for title, picture in photographs().items():
        planar = v2.functional.pil_to_tensor(picture).contiguous()
        interleaved = planar.permute(1, 2, 0).contiguous().permute(2, 0, 1)
        for seed in range(4):
            if name == "jitter":
                wanted = v2.functional.pil_to_tensor(seeded(seed, steps(v2)[name], picture))
            else:
                wanted = seeded(seed, steps(v2)[name], planar)
            for image in (planar, interleaved):
                found = seeded(seed, steps(ours)[name], image)
                assert found.shape == wanted.shape
                off = ((found.int() - wanted.int()).abs() > 1).double().mean()
                assert off <= (0 if name == "jitter" else 0.001), (
                    f"{title}: {off:.3%} of the pixels differ by more than a level"
                )


@nightly
def test_thirty_five_million_pixels() -> None:
    rows = torch.arange(5000).reshape(1, -1, 1) // 20
    image = ((rows + torch.arange(7000) // 28 + torch.tensor([0, 40, 90]).reshape(3, 1, 1)) % 256).to(
        torch.uint8
    )
    for seed in range(2):
        found = seeded(seed, geometric(ours), image)
        wanted = seeded(seed, geometric(v2), image)
        assert ((found.int() - wanted.int()).abs() > 1).double().mean() <= 0.002
    turned: Tensor = ours.RandomRotation((3, 3))(image)
    assert turned.shape == image.shape
