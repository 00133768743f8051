"""The corruptions of ImageNet-C, compared with results of imagecorruptions 1.1.2 for the same random numbers."""

from __future__ import annotations

import copy
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors

from imgops import transforms as v2
from imgops.transforms.imagenet_c.formulas import FORMULAS, _fog_side, _moved, corrupted
from imgops.transforms.imagenet_c.pictures import DrawnFrost
from tests.tiers import every_night, nightly
from tests.transform_cases import check_refusals

DATA = np.load(Path(__file__).parent / "data" / "corruptions.npz")
NAMES = DATA["names"].tolist()
IMAGE = torch.from_numpy(DATA["image"]).permute(2, 0, 1).contiguous()
FROST = torch.from_numpy(DATA["frost"]).permute(2, 0, 1).contiguous()


def numbers_of(name: str, severity: int) -> tuple[Any, ...]:
    """Return what imagecorruptions drew for a result in the file (``tests/data/corruptions.py``)."""
    seed = 1000 * severity + NAMES.index(name)
    random, settings = np.random.RandomState(seed), FORMULAS[name].settings[severity - 1]
    height, width, channels = DATA["image"].shape
    pixels = (height, width, channels)

    def planes(values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.asarray(values).astype(np.float32)).permute(2, 0, 1)

    if name in ("gaussian_noise", "speckle_noise"):
        return (planes(random.normal(size=pixels)),)
    if name == "shot_noise":
        return (planes(random.poisson(DATA["image"] / 255.0 * settings[0])),)
    if name == "impulse_noise":
        other = np.random.default_rng(seed)
        flipped, salt = (planes(other.random(pixels) <= share) > 0 for share in (settings[0], 0.5))
        return flipped, salt
    if name == "glass_blur":
        _, reach, times = settings
        moves = random.randint(-reach, reach, size=(times, height - 2 * reach, width - 2 * reach, 2))
        return (torch.from_numpy(moves),)
    if name == "motion_blur":
        return (random.uniform(-45, 45),)
    if name in ("snow", "spatter"):
        layer = planes(random.normal(size=(height, width))[..., None])
        return (layer, random.uniform(-135, -45)) if name == "snow" else (layer,)
    if name == "frost":
        which = random.randint(5)
        large = [int(np.ceil(side * 1.1)) for side in DATA["frost"].shape[:2]]
        down, right = random.randint(0, large[0] - height), random.randint(0, large[1] - width)
        return which / 5, (down + 0.5) / (large[0] - height), (right + 0.5) / (large[1] - width), [FROST] * 5
    if name == "fog":
        side = _fog_side(IMAGE)
        return (torch.from_numpy(random.uniform(-1, 1, side**2 - 1).astype(np.float32)),)
    if name == "elastic_transform":
        shifts = [random.uniform(-1, 1, (height, width)) for _ in range(2)]
        return (planes(np.stack(shifts, -1)),)
    return ()


@pytest.mark.parametrize("severity", [3, *every_night(1, 2, 4, 5)])
@pytest.mark.parametrize("name", NAMES)
def test_pixels_are_those_of_imagecorruptions(name: str, severity: int) -> None:
    numbers = numbers_of(name, severity)
    wanted = torch.from_numpy(DATA["results"][NAMES.index(name), severity - 1]).permute(2, 0, 1).int()
    found = corrupted(name, severity, IMAGE, numbers).int()
    apart = (found - wanted).abs()
    assert apart.max() <= 1 and (apart > 0).float().mean() < 0.12


@pytest.mark.parametrize("severity", [3, *every_night(1, 2, 4, 5)])
def test_zoom_blur_of_many_sizes(severity: int) -> None:
    """The sizes of the zoomed images are rounded from products, whose last digits decide at common sizes."""
    heights = DATA["heights"].tolist()
    columns, wanted = (
        torch.from_numpy(x).split(heights) for x in (DATA["column"], DATA["zoomed"][severity - 1])
    )
    for column, right in zip(columns, wanted, strict=True):
        image = column[None, :, None].expand(3, -1, 1)
        for found in (
            corrupted("zoom_blur", severity, image, ()),
            corrupted("zoom_blur", severity, image.mT, ()).mT,
        ):
            assert (found[..., 0].int() - right.int()).abs().max() <= 1, len(column)


@pytest.mark.parametrize("severity", [3, *every_night(1, 2, 4, 5)])
def test_snow_falls_from_beyond_the_border(severity: int) -> None:
    """The zoomed flakes are a little wider than the image, and are blurred before they are cut."""
    height, width, _ = DATA["wide"].shape
    image = torch.from_numpy(DATA["wide"]).permute(2, 0, 1)
    angles = []
    for seed, wanted in enumerate(DATA["snow"][severity - 1]):
        random = np.random.RandomState(seed)
        noise = torch.from_numpy(random.normal(size=(1, height, width)).astype(np.float32))
        angles.append(random.uniform(-135, -45))
        found = corrupted("snow", severity, image, (noise, angles[-1]))
        apart = (found.int() - torch.from_numpy(wanted).permute(2, 0, 1).int()).abs()
        assert apart.max() <= 1 and (apart > 0).float().mean() < 0.12, angles[-1]
    assert min(angles) < -90 < max(angles)


@pytest.mark.parametrize("name", NAMES)
def test_floats_are_the_same(name: str) -> None:
    """They are those of levels before these are truncated; test_transforms_calls.py compares batches."""
    numbers = numbers_of(name, 3)
    levels = corrupted(name, 3, IMAGE, numbers).int()
    real = corrupted(name, 3, IMAGE / 255, numbers)
    assert real.dtype == torch.float32 and real.min() >= 0 and real.max() <= 1
    apart = (real * 255 - levels).abs()
    assert apart.max() <= (40 if name in ("glass_blur", "jpeg_compression") else 1.01) and apart.mean() < 1.1


def test_photons_are_counted() -> None:
    """Their mean and variance are the rate, in every level that a Poisson distribution is drawn for."""
    draw, generator = FORMULAS["shot_noise"].draw, torch.Generator().manual_seed(0)
    assert draw is not None
    for photons in (60, 3):
        for level in (0, 1, 40, 255):
            (counts,) = draw(torch.full((1, 300, 300), level / 255), generator, photons)
            rate = photons * level / 255
            assert abs(counts.mean() - rate) < 4 * (rate / 9e4) ** 0.5 + 1e-9
            assert abs(counts.var() - rate) < 0.03 * rate + 1e-9 and bool((counts == counts.round()).all())


def test_glass_moves_as_one_loop_after_the_other() -> None:
    moves = torch.randint(-3, 3, (2, 14, 11, 2), generator=torch.Generator().manual_seed(1))
    wanted = torch.arange(20 * 17).reshape(20, 17)
    found = wanted.flatten()
    for each in moves:
        found = found[_moved(each, 20, 17, 3)]
        for i, h in enumerate(range(17, 3, -1)):
            for j, w in enumerate(range(14, 3, -1)):
                dx, dy = each[i, j].tolist()
                wanted[h, w] = wanted[h + dy, w + dx]
    assert torch.equal(found.reshape(20, 17), wanted)


def test_the_sweep() -> None:
    images = torch.stack([IMAGE, IMAGE.flip(-2)])
    every = [(name, severity) for name in NAMES for severity in range(1, 6)]
    found = list(v2.corruptions(images, "all", pictures=[FROST]))
    assert [x[:2] for x in found] == every
    assert all(x.dtype == torch.uint8 and x.shape == images.shape for *_, x in found)
    assert [n for n, *_ in v2.corruptions(images, "common", [1])] == NAMES[:15]
    assert [n for n, *_ in v2.corruptions(images, "validation", [1])] == NAMES[15:]
    again = {(n, s): x for n, s, x in v2.corruptions(images, NAMES[:6:5], [2, 4], pictures=[FROST])}
    assert list(again) == [(name, level) for name in ("gaussian_noise", "motion_blur") for level in (2, 4)]
    for name, severity, x in found:
        if (name, severity) in again:  # a part of the sweep has the draws of the whole
            assert torch.equal(again[name, severity], x)
    (_, _, other), *_ = v2.corruptions(images, ["fog"], [1], seed=1)
    assert not torch.equal(other, next(x for n, s, x in found if n == "fog"))


def test_the_sweep_takes_lists_and_pil_images() -> None:
    """Images of a list have the draws of a batch; a name, a severity and NumPy's numbers are taken, too."""
    images = torch.stack([IMAGE, IMAGE])
    pictures = [v2.functional.to_pil_image(x) for x in images]
    for name in NAMES:
        ((_, _, wanted),) = v2.corruptions(images, name, 3, seed=np.int64(2))  # type: ignore[arg-type]
        for several in (list(images), tuple(images), pictures):
            ((found_name, severity, found),) = v2.corruptions(several, [name], [np.int64(3)], seed=2)  # type: ignore[list-item]
            assert (found_name, severity) == (name, 3) and type(found) is list and len(found) == 2
            assert all(type(a) is type(b) for a, b in zip(found, several, strict=True))
            each = [v2.functional.pil_to_tensor(x) if several is pictures else x for x in found]
            assert torch.equal(torch.stack(each), wanted), name
    for level in (np.array(3), torch.tensor(3)):
        assert [x[1] for x in v2.corruptions(IMAGE, "fog", level)] == [3]  # type: ignore[arg-type]
    ragged = [IMAGE, IMAGE[:, :20, :30]]
    ((_, _, found),) = v2.corruptions(ragged, "fog", 1)
    assert [x.shape for x in found] == [x.shape for x in ragged]
    assert not any(torch.equal(a, b) for a, b in zip(found, ragged, strict=True))


@pytest.mark.parametrize("name", ["motion_blur", "gaussian_noise", "frost"])
def test_the_frames_of_a_clip_share_a_draw(name: str) -> None:
    clip = tv_tensors.Video(torch.stack([IMAGE, IMAGE]))
    ((_, _, alone),) = v2.corruptions(clip, name, 3)
    ((_, _, batch),) = v2.corruptions(tv_tensors.Video(torch.stack([clip, clip])), name, 3)
    ((_, _, listed),) = v2.corruptions([clip, clip], name, 3)
    assert torch.equal(alone, batch[0]) and all(torch.equal(a, b) for a, b in zip(listed, batch, strict=True))
    assert torch.equal(alone[0], alone[1]) == (name != "gaussian_noise")


def test_name_and_severity_can_be_set() -> None:
    transform = v2.Corruption("contrast", 1)
    transform.name, transform.severity = "fog", 4
    torch.manual_seed(1)
    a, b = transform(IMAGE), transform(IMAGE)
    torch.manual_seed(1)
    assert torch.equal(v2.Corruption("fog", 4)(IMAGE), a) and not torch.equal(a, b)
    for transform.severity in (0, 6):
        with pytest.raises(ValueError, match=r"^Corruption: severity must be an integer from 1 to 5, got"):
            transform(IMAGE)


def test_each_image_has_its_own_draws() -> None:
    images = torch.stack([IMAGE, IMAGE])
    for name in NAMES:
        ((_, _, both),) = v2.corruptions(images, [name], [3])
        assert torch.equal(both[0], both[1]) == (FORMULAS[name].draw is None), name


def test_pictures_of_frost() -> None:
    """A graph and a copy have the pictures too; without any, drawn ones are used."""
    white = torch.full((3, 10, 12), 255, dtype=torch.uint8)
    frost = v2.Corruption("frost", 5, pictures=[white])
    wanted = torch.clamp(IMAGE * 0.6 + 0.75 * 255, max=255)
    assert (frost(IMAGE) - wanted).abs().max() <= 1
    graph = torch.compile(copy.deepcopy(frost), fullgraph=True, backend="aot_eager")
    assert torch.equal(graph(IMAGE), frost(IMAGE))
    assert torch.equal(pickle.loads(pickle.dumps(frost))(IMAGE), frost(IMAGE))
    floats = v2.Corruption("frost", 5, pictures=[white / 255])
    assert torch.equal(floats(IMAGE), frost(IMAGE))
    pictures = list(DrawnFrost())
    assert len({p.float().mean().item() for p in pictures}) == 5
    assert all(p.shape == (3, 512, 512) and 60 < p.float().mean() < 200 for p in pictures)


@pytest.mark.parametrize("size", [(1, 1), *every_night((1, 9), (7, 1), (2, 3), (31, 33))])
@pytest.mark.parametrize("name", NAMES)
def test_small_images(name: str, size: tuple[int, int]) -> None:
    image = torch.randint(0, 256, (3, *size), dtype=torch.uint8)
    for severity in (1, 5):
        assert v2.Corruption(name, severity)(image).shape == image.shape
        real = v2.Corruption(name, severity)(image / 255)
        assert bool(((real >= 0) & (real <= 1)).all())


MASK = IMAGE[0].as_subclass(tv_tensors.Mask)
#: What is no image, or holds something else.
NO_IMAGES = (DATA["image"], None, "cat.jpg", Path("cat.jpg"), {"image": IMAGE}, [DATA["image"]], [IMAGE, 3])
NO_IMAGES += ((IMAGE, {}), MASK, torch.nested.nested_tensor([IMAGE, IMAGE]))
#: Error -> the beginning of its text -> the calls that raise it.
REFUSED: dict[type[Exception], dict[str, list[Callable[[], Any]]]] = {
    ValueError: {
        "Corruption: name must be one of 'gaussian_noise', 'shot_noise'": [lambda: v2.Corruption("rain")],
        "Corruption: severity must be an integer from 1 to 5, got 6": [lambda: v2.Corruption("fog", 6)],
        "Corruption: image must have 3 channels": [lambda: v2.Corruption("fog")(torch.zeros(1, 4, 4))],
        "Corruption: pictures must be RGB images": [
            lambda: v2.Corruption("frost", pictures=[torch.zeros(1, 4, 4)])
        ],
        "Corruption: pictures must be RGB images (3, H, W), all uint8 or all floating point in [0, 1]": [
            lambda: v2.Corruption("frost", pictures=[torch.full((3, 4, 4), 200.0)]),
            lambda: v2.Corruption("frost", pictures=[torch.full((3, 4, 4), torch.nan)]),
        ],
        "corruptions: names must be 'common', 'validation', 'all' or names of corruptions, got 'every'": [
            lambda: v2.corruptions(torch.zeros(3, 4, 4), "every")
        ],
        "corruptions: seed must be an integer from 0 on, got -1": [
            lambda: v2.corruptions(torch.zeros(3, 4, 4), seed=-1)
        ],
        "Corruption: name must be one of": [lambda: v2.corruptions(torch.zeros(3, 4, 4), ["rain"])],
    },
    TypeError: {
        "Corruption: image must be uint8 or floating point": [
            lambda: v2.Corruption("fog")(torch.zeros(3, 4, 4, dtype=torch.int16)),
            lambda: list(v2.corruptions([IMAGE, torch.full((3, 1, 1), 3)], "fog", 1)),
        ],
        "corruptions: images must be a tensor, a PIL image or a list of these, got": [
            lambda given=given: v2.corruptions(given) for given in NO_IMAGES
        ],
        "corruptions: names must be a name or several, got": [
            lambda names=names: v2.corruptions(IMAGE, names) for names in (None, 3)
        ],
        "corruptions: severities must be an integer or several, got": [
            lambda n=n: v2.corruptions(IMAGE, "fog", n) for n in (None, 1.5)
        ],
        "Corruption: pictures must be RGB images": [lambda: v2.Corruption("frost", pictures=["a.png"])],
    },
}


@pytest.mark.parametrize("error", REFUSED)
def test_refusals(error: type[Exception]) -> None:
    check_refusals(REFUSED[error], error)


@nightly
def test_the_example_of_robustness() -> None:
    """Its network is right about what it knows, and corruptions cost it something."""
    pytest.importorskip("skimage")
    folder = Path(__file__).parent.parent / "examples"
    command = [sys.executable, "corruption_robustness.py", "--steps", "30", "--images", "16"]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:20]] == ["clean", *NAMES]
    clean = [float(x) for x in re.findall(r"([\d.]+)%", lines[0])]
    means = [float(re.findall(r"([\d.]+)%", line)[0]) for line in lines[-2:]]
    assert min(clean) > 60 and all(25 < mean < value for mean, value in zip(means, clean, strict=True))


def test_shot_noise_of_a_value_beyond_white_is_white() -> None:
    image = torch.full((3, 4, 4), 0.5)
    image[0, 1, 1] = 1e30
    for seed in range(3):
        torch.manual_seed(seed)
        assert v2.Corruption("shot_noise", 1)(image)[0, 1, 1] > 0.5
