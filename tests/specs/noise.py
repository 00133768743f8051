"""The noise operators: NumPy's formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

import imgops
from tests.specs import _benchmarks as bench
from tests.specs._libraries import Array
from tests.specs._maker import LEVELS_AND_FLOATS, Maker
from tests.specs._spec import (
    LEVEL,
    ROUNDED,
    Benchmark,
    ErrorInput,
    OpSpec,
    Refused,
    Sample,
    Tolerance,
    Tolerances,
    merged,
)

_CLOSE: Tolerances = {**ROUNDED, torch.float32: Tolerance(1e-6), torch.float64: Tolerance(1e-12)}


def _parts(image: Array, noise: Array, *numbers: float) -> tuple[Any, ...]:
    """Return the arguments in float64, or for uint8 and float32 in float32, as they are computed; and the value of white."""
    exact = np.float64 if image.dtype in (np.float64, np.uint16) else np.float32
    top = _white(image)
    return image.astype(exact), noise.astype(exact), *map(exact, numbers), exact(top)


def _finished(out: Array, image: Array) -> Array:
    if image.dtype in (np.uint8, np.uint16):
        return np.clip(np.rint(out), 0, _white(image)).astype(image.dtype)
    return np.clip(out, 0, 1)


def _white(image: Array) -> int:
    return np.iinfo(image.dtype).max if image.dtype in (np.uint8, np.uint16) else 1


def salt_reference(image: Array, noise: Array, amount: float, salt: float) -> Array:
    x, n, a, s, top = _parts(image, noise, amount, salt)
    return np.where(n < a * (1 - s), 0, np.where(n >= 1 - a * s, top, x)).astype(image.dtype)


def shot_reference(image: Array, noise: Array, amount: float) -> Array:
    x, n, a, top = _parts(image, noise, amount)
    return _finished(x + np.sqrt(a * x * top) * n, image)


def multiplied_reference(image: Array, noise: Array, amount: float) -> Array:
    x, n, a, _ = _parts(image, noise, amount)
    return _finished(x * (1 + a * n), image)


def iso_reference(image: Array, noise: Array, shift: float, intensity: float) -> Array:
    """Change hue and lightness with OpenCV, in float32."""
    exact = np.float64 if image.dtype == np.float64 else np.float32
    x, n, top = image.astype(exact), noise.astype(exact), exact(_white(image))
    hls = cv2.cvtColor(
        np.ascontiguousarray((x / top).transpose(1, 2, 0).astype(np.float32)), cv2.COLOR_RGB2HLS
    )
    # OpenCV takes a hue below 0 for another color.
    hls[..., 0] = np.mod(hls[..., 0] + (shift * intensity * n[0]).astype(np.float32), np.float32(360))
    hls[..., 1] += intensity * n[1] * (1 - hls[..., 1])
    out = cv2.cvtColor(hls, cv2.COLOR_HLS2RGB).transpose(2, 0, 1)
    return _finished(out * top, image)


def _image(m: Maker, channels: int = 3) -> Tensor:
    return m.image(channels, 6, 7, 0.05, 0.95)


def _noise(m: Maker, channels: int = 3, low: float = -1, high: float = 1) -> Tensor:
    """Make noise of the image's dtype if that is floating point."""
    dtype = m.dtype if m.dtype.is_floating_point else torch.float32
    return replace(m, dtype=dtype).image(channels, 6, 7, low, high)


def _refused(call: Callable[[Tensor, Tensor], Tensor], *, channels: str = "1 or 3", bad: int = 2) -> Refused:
    return {
        TypeError: {"noise must be floating point, got torch.int64": lambda x: call(x, x.long())},
        ValueError: {
            f"noise must have {channels} channels, got {bad}": lambda x: call(
                x, torch.cat([x, x], 1)[:, :bad]
            ),
            "noise must have the leading dimensions of image (2,), got ()": lambda x: call(x, x[0]),
        },
    }


def _benchmark(
    name: str, ours: Callable[[Tensor, Tensor], Tensor], theirs: Callable[[Array, Array], Array]
) -> tuple[Benchmark]:
    """Return the comparison of imgops' call with NumPy's formula on the same numbers."""

    def calls(case: Any) -> bench.Calls:
        x = case.image()
        noise = torch.empty_like(x, dtype=torch.float32).uniform_(0, 1)
        arrays, numbers = case.arrays(x), case.arrays(noise)
        return (
            lambda: ours(x, noise),
            lambda: [theirs(a, n) for a, n in zip(arrays, numbers, strict=True)],
            None,
            None,
        )

    return (Benchmark(name, "NumPy", calls),)


def _normal(channels: int, x: Tensor) -> Tensor:
    """Return normally distributed noise for a picture."""
    return torch.randn(channels, *x.shape[-2:], generator=torch.Generator().manual_seed(0))


def _spec(name: str, samples: tuple[Sample, ...], **facts: Any) -> OpSpec:
    facts = {
        "decomposed": {},
        "decomposed_difference": "0",
        "tolerance": _CLOSE,
        "dtypes": LEVELS_AND_FLOATS,
        "dtype_names": "uint8, uint16, floats",
        "difference": "uint8, uint16 0; floats 1e-6",
        "reference_name": "NumPy's formula",
        **facts,
    }
    return OpSpec(name, samples=samples, section="Noise", border="none", **facts)


SALT_AND_PEPPER = _spec(
    "salt_and_pepper",
    (
        Sample("rgb", lambda m: (_image(m), _noise(m, 3, 0, 1), 0.4, 0.3)),
        Sample("shared", lambda m: (_image(m, 5), _noise(m, 1, 0, 1), 0.5)),
        Sample("each", lambda m: (_image(m), _noise(m, 3, 0, 1), m.per_sample(0.2, 0.9))),
    ),
    refused=merged(
        _refused(lambda x, n: imgops.salt_and_pepper(x, n, 0.1)),
        {
            ValueError: {
                "amount must be in [0, 1], got 1.5": ErrorInput(
                    lambda x: imgops.salt_and_pepper(x, x, 1.5), reads_values=True
                )
            }
        },
    ),
    reference=salt_reference,
    tolerance={},
    difference="0",
    words="``salt``",
    formula=r"y = 0\ \text{where}\ n < a(1-s),\quad 1\ \text{where}\ n \ge 1 - a s,\quad x\ \text{elsewhere}",
    transforms=("RandomSaltAndPepper",),
    picture=lambda x: imgops.salt_and_pepper(x, _normal(1, x).erf() / 2 + 0.5, 0.15),
    benchmarks=_benchmark(
        "salt and pepper",
        lambda x, n: imgops.salt_and_pepper(x, n, 0.1),
        lambda a, n: salt_reference(a, n, 0.1, 0.5),
    ),
)
SHOT_NOISE = _spec(
    "shot_noise",
    (
        Sample("rgb", lambda m: (_image(m), _noise(m), 0.01)),
        Sample("shared", lambda m: (_image(m, 5), _noise(m, 1), 0.0)),
        Sample("each", lambda m: (_image(m), _noise(m), m.per_sample(0.02, 0.3))),
    ),
    refused=merged(
        _refused(lambda x, n: imgops.shot_noise(x, n, 0.1)),
        {
            ValueError: {
                "scale must not be negative, got -0.5": ErrorInput(
                    lambda x: imgops.shot_noise(x, x, -0.5), reads_values=True
                )
            }
        },
    ),
    of_number=lambda x, v: imgops.shot_noise(x, x, v),
    reference=shot_reference,
    # PyTorch's square root is not correctly rounded.
    decomposed={**_CLOSE, **dict.fromkeys((torch.uint8, torch.uint16), Tolerance(levels=1, share=0.02))},
    decomposed_difference="1 level; floats 1e-6",
    formula=r"y = x + \sqrt{a\,x}\; n",
    transforms=("RandomShotNoise",),
    picture=lambda x: imgops.shot_noise(x, _normal(3, x), 0.08),
    benchmarks=_benchmark(
        "shot noise", lambda x, n: imgops.shot_noise(x, n, 0.01), lambda a, n: shot_reference(a, n, 0.01)
    ),
)
SPECKLE_NOISE = _spec(
    "speckle_noise",
    (
        Sample("rgb", lambda m: (_image(m), _noise(m), 0.2)),
        Sample("shared", lambda m: (_image(m, 5), _noise(m, 1), 1.3)),
        Sample("each", lambda m: (_image(m), _noise(m), m.per_sample(0.1, -0.4))),
    ),
    refused=_refused(lambda x, n: imgops.speckle_noise(x, n, 0.1)),
    of_number=lambda x, v: imgops.speckle_noise(x, x, v),
    reference=multiplied_reference,
    formula=r"y = x\,(1 + a\,n)",
    picture=lambda x: imgops.speckle_noise(x, _normal(3, x), 0.4),
    benchmarks=_benchmark(
        "multiplicative noise",
        lambda x, n: imgops.speckle_noise(x, n, 0.1),
        lambda a, n: multiplied_reference(a, n, 0.1),
    ),
)


def _iso_calls(case: Any) -> bench.Calls:
    x = case.image()
    noise = torch.empty_like(x[..., :2, :, :], dtype=torch.float32).normal_()
    image, numbers = x.numpy(), noise.numpy()
    return (
        lambda: imgops.iso_noise(x, noise, 7.2, 0.3),
        lambda: iso_reference(image, numbers, 7.2, 0.3),
        None,
        None,
    )


ISO_NOISE = _spec(
    "iso_noise",
    (
        Sample("rgb", lambda m: (_image(m), _noise(m, 2), 10.8, 0.4)),
        Sample(
            "each", lambda m: (_image(m), _noise(m, 2), m.per_sample(36.0, -72.0), m.per_sample(0.3, 0.1))
        ),
    ),
    refused=merged(
        _refused(lambda x, n: imgops.iso_noise(x, n), channels="2", bad=1),
        {
            ValueError: {
                "image must have 3 channels, because HLS is a space of RGB colors, got 1": lambda x: (
                    imgops.iso_noise(x[:, :1], x[:, :2])
                )
            }
        },
    ),
    of_number=lambda x, v: imgops.iso_noise(x, x[..., :2, :, :], 3.6 * v),
    draw=lambda d: (
        d.image(3),
        d.image(2, torch.float32 if d.dtype == torch.uint8 else d.dtype),
        d.number(0, 36),
        d.number(0, 1),
    ),
    reference=iso_reference,
    tolerance={**_CLOSE, torch.float32: Tolerance(1e-5), torch.float64: Tolerance(1e-5)},
    decomposed=LEVEL,
    smooth_on_gray=False,
    reference_name="`cv2.cvtColor` and NumPy's formula",
    difference="uint8, uint16 0; floats 1e-5",
    decomposed_difference="1 level; floats 1e-5",
    words="``color_shift`` (albumentations)",
    formula=r"h' = h + c\,i\,n_h,\quad l' = l + i\,n_l\,(1 - l)",
    transforms=("RandomISONoise",),
    picture=lambda x: imgops.iso_noise(x, _normal(2, x) * 0.5, 18.0, 0.9),
    benchmarks=(Benchmark("iso noise", "cv2.cvtColor to HLS and back, and NumPy", _iso_calls),),
)

SPECS = (SALT_AND_PEPPER, SHOT_NOISE, SPECKLE_NOISE, ISO_NOISE)
