"""Videos: one draw for a clip or one for each frame, in every transform, dtype and memory format."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from transform_cases import picture

from imgops import transforms as v2


def clip(dtype: torch.dtype, interleaved: bool, *lead: int) -> Tensor:
    """Return frames ``(*lead, 3, 40, 40)``."""
    frames = [picture(dtype, 40, 40, seed) for seed in range(int(np.prod(lead)))]
    made_of = torch.stack(frames)
    if interleaved:
        made_of = made_of.contiguous(memory_format=torch.channels_last)
    return made_of.unflatten(0, lead)


@pytest.mark.parametrize("per_clip", [True, False])
def test_draws_for_clips_and_for_frames(per_clip: bool) -> None:
    """``per_sample`` draws for each clip of videos; frames that are images have draws of their own."""
    transform = v2.Compose([v2.RandomRotation(40), v2.ColorJitter(0.4, 0.4, 0.4)], per_sample=True)
    alone = v2.Compose([v2.RandomRotation(40), v2.ColorJitter(0.4, 0.4, 0.4)])
    clips = clip(torch.uint8, False, 2, 3)
    torch.manual_seed(1)
    if per_clip:
        out = transform(tv_tensors.Video(clips))
        torch.manual_seed(1)
        wanted = torch.stack([alone(tv_tensors.Video(each)).as_subclass(Tensor) for each in clips])
    else:
        out = tv_tensors.Video(transform(tv_tensors.Image(clips.flatten(0, 1))).unflatten(0, (2, 3)))
        torch.manual_seed(1)
        wanted = torch.stack([alone(frame) for frame in clips.flatten(0, 1)]).unflatten(0, (2, 3))
    assert torch.equal(out.as_subclass(Tensor), wanted)


@pytest.mark.parametrize("backend", [None, "eager"])
def test_a_subsample_refuses_what_it_cannot_take(backend: str | None) -> None:
    for wrong in (-1, 1.5, None, "3", True):
        with pytest.raises(
            (TypeError, ValueError), match=r"^UniformTemporalSubsample: num_samples must be an integer"
        ):
            v2.UniformTemporalSubsample(wrong)  # type: ignore[arg-type]
        with pytest.raises((TypeError, RuntimeError)):  # torchvision's own words
            v2.functional.uniform_temporal_subsample(torch.zeros(4, 3, 5, 5), wrong)  # type: ignore[arg-type]
    for video in (torch.zeros(3, 5, 5), torch.zeros(0, 3, 5, 5), tv_tensors.Video(torch.zeros(0, 3, 5, 5))):
        transform: Any = v2.UniformTemporalSubsample(2)
        if backend is not None:
            torch._dynamo.reset()
            transform = torch.compile(transform, backend=backend)
        with pytest.raises(
            ValueError, match=r"^UniformTemporalSubsample: video must be \(\.\.\., T, C, H, W\) with"
        ):
            transform(video)
    assert v2.UniformTemporalSubsample(0)(torch.zeros(2, 3, 5, 5)).shape == (0, 3, 5, 5)


def test_a_subsample_takes_the_right_frames() -> None:
    """torchvision's single precision takes the frame before in places: of 3 frames 15, of 5 frames 27."""
    for count in range(1, 70):
        frames = tv_tensors.Video(torch.arange(count).reshape(count, 1, 1, 1))
        for samples in range(1, 66):
            wanted = [i * (count - 1) // max(samples - 1, 1) for i in range(samples)]
            assert v2.UniformTemporalSubsample(samples)(frames).flatten().tolist() == wanted
            apart = np.abs(np.linspace(0, count - 1, samples) - wanted)
            assert (apart < 1 + 1e-9).all()
    graph = torch.compile(
        v2.functional.uniform_temporal_subsample, fullgraph=True, backend="aot_eager", dynamic=True
    )
    for count in (3, 9, 30):
        video = torch.arange(count).reshape(count, 1, 1, 1)
        wanted = [i * (count - 1) // 14 for i in range(15)]
        assert graph(video, 15).flatten().tolist() == wanted
