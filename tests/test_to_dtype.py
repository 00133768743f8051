"""ToDtype with ``scale=True``: every pair of dtypes, in every form of the call."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from checks import bits_equal
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

import imgops
from imgops import transforms as ours

DTYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
)
PAIRS = list(itertools.permutations(DTYPES, 2))
#: torchvision raises for these.
UNSAFE = [(torch.float32, torch.int32), (torch.float32, torch.int64), (torch.float64, torch.int64)]


def white(dtype: torch.dtype) -> float:
    return 1 if dtype.is_floating_point or dtype == torch.bool else torch.iinfo(dtype).max


def ramp(dtype: torch.dtype) -> Tensor:
    """Return levels from 0 to white, ``(1, 1, n)``."""
    shares = torch.linspace(0, 1, 511, dtype=torch.float64)
    if dtype.is_floating_point:
        return shares.to(dtype)[None, None]
    whole = [min(int(x * white(dtype)), white(dtype)) for x in shares.tolist()]
    return torch.tensor(whole, dtype=torch.int64).to(dtype)[None, None]


@pytest.mark.parametrize("pair", [p for p in PAIRS if p not in UNSAFE], ids=lambda p: f"{p[0]}-{p[1]}")
def test_every_pair(pair: tuple[torch.dtype, torch.dtype]) -> None:
    """0 stays 0, white is white, levels keep their order and place; where torchvision's do, they are its own."""
    before, after = pair
    image = ramp(before)
    out = ours.ToDtype(after, scale=True)(image)
    assert out.dtype == after and out.shape == image.shape
    values = [int(x) if not after.is_floating_point else x for x in out.flatten().tolist()]
    assert values[0] == 0 and values[-1] == white(after) and values == sorted(values)
    if torch.bool not in pair:
        steps = min(white(t) if not t.is_floating_point else 2 / torch.finfo(t).eps for t in pair)
        for share, value in zip(torch.linspace(0, 1, 511, dtype=torch.float64).tolist(), values, strict=True):
            assert abs(value / white(after) - share) <= 1.01 * (
                1 / steps + 1 / white(before) * (not before.is_floating_point)
            )
    try:
        theirs = v2.ToDtype(after, scale=True)(image)
    except (RuntimeError, TypeError):
        return
    there = theirs.flatten().tolist()
    if there[0] == 0 and there[-1] == white(after) and there == sorted(there):
        assert bits_equal(out, theirs)
    whole = torch.tensor([[[True]]]).to(before) * 0  # a plane of one level
    assert ours.functional.to_dtype(whole, after, scale=True).item() == 0


@pytest.mark.parametrize("pair", UNSAFE, ids=lambda p: f"{p[0]}-{p[1]}")
def test_pairs_that_torchvision_refuses(pair: tuple[torch.dtype, torch.dtype]) -> None:
    with pytest.raises(RuntimeError, match="cannot be performed safely"):
        ours.ToDtype(pair[1], scale=True)(ramp(pair[0]))


@pytest.mark.parametrize("before", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_what_lies_outside_is_clamped(before: torch.dtype) -> None:
    image = torch.tensor([-0.5, -2.0, 1.25, 3.0], dtype=before)[None, None]
    assert ours.ToDtype(torch.uint8, scale=True)(image).flatten().tolist() == [0, 0, 255, 255]
    out = ours.ToDtype(torch.int16, scale=True)(image).flatten().tolist()
    assert out[1:] == [-32768, 32767, 32767] and abs(out[0] + 16384) <= 128


FORMS: dict[str, Any] = {
    "functional": lambda t, x: ours.functional.to_dtype(x, t, scale=True),
    "old functional": lambda t, x: ours.ConvertImageDtype(t)(x),
    "class": lambda t, x: ours.ToDtype(t, scale=True)(x),
    "Image": lambda t, x: ours.ToDtype(t, scale=True)(tv_tensors.Image(x)).as_subclass(Tensor),
    "classes": lambda t, x: ours.ToDtype({Tensor: t}, scale=True)(x),
    "graph": lambda t, x: torch.compile(
        ours.ToDtype(t, scale=True), fullgraph=True, backend="aot_eager", isolate_recompiles=True
    )(x),
    "pipeline": lambda t, x: ours.Compose(
        [ours.RandomInvert(0.0), ours.ToDtype(t, scale=True)], per_sample=True
    )(x[None])[0],
    "packed": lambda t, x: ours.ToDtype(t, scale=True)(imgops.PackedImages.of([x, x])).unpack()[0],
    "converted": lambda t, x: ours.convert(v2.Compose([v2.ToDtype(t, scale=True)]))(x),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form(form: str) -> None:
    for before, after in (
        (torch.float16, torch.uint8),
        (torch.bfloat16, torch.uint8),
        (torch.float32, torch.uint16),
    ):
        image = ramp(before).expand(3, 2, -1).contiguous()
        assert bits_equal(FORMS[form](after, image), ours.ToDtype(after, scale=True)(image)), (before, after)
        assert FORMS[form](after, image)[0, 0, -1].item() == white(after)
