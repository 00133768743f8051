"""The counterparts of open_clip's transforms, which draw by Python's generator."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from imgops import transforms
from imgops.integrations._reader import Reader, Unmapped, add_makers
from imgops.integrations._to_tensor import maybe_to_tensor
from imgops.integrations.timm.transforms import CenterCropOrPad, ResizeKeepRatio
from imgops.integrations.torchvision.transforms import resampling
from imgops.transforms import containers
from imgops.transforms._core import seeding
from imgops.transforms._core.parameters import Shape


class _OpenClipResizeKeepRatio(ResizeKeepRatio):
    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        from open_clip.transform import ResizeKeepRatio as Given

        size: Any = SimpleNamespace(size=(width, height))
        high, wide = Given.get_params(size, self.target, self.longest)
        return high, wide


class _PythonChance(containers._Chance):
    """The sampling of what is applied with a probability, by Python's generator."""

    def _draw_row(self, shape: Shape) -> list[float]:
        with seeding.own_generators():
            return [1.0 if random.random() < self.p else 0.0]


class _PythonApply(_PythonChance, containers.RandomApply):
    _described = _PythonChance

    def _get_name(self) -> str:
        return "RandomApply"


def _resize_keep_ratio(given: Any, reader: Reader) -> Any:
    if given.random_scale_prob or given.random_aspect_prob:
        raise Unmapped("a random scale or aspect ratio")
    return _OpenClipResizeKeepRatio(given.size, given.longest, resampling(given.interpolation).value)


def _apply(given: Any, reader: Reader) -> Any:
    return _PythonApply(reader.read(given.transf), given.p)


def _rgb(given: Any, reader: Reader) -> Any:
    if getattr(given, "mode", "RGB") != "RGB":
        raise Unmapped(f"mode={given.mode!r}")
    return transforms.RGB()


_TRANSFORMS: dict[str, Any] = {
    "ResizeKeepRatio": _resize_keep_ratio,
    "CenterCropOrPad": lambda t, _: CenterCropOrPad(t.size, t.fill, "constant"),
    "MaybeConvertMode": _rgb,
    "_convert_to_rgb": _rgb,
    "MaybeToTensor": maybe_to_tensor,
    "color_jitter": _apply,
    "gray_scale": _apply,
}
add_makers("open_clip.transform", _TRANSFORMS)
