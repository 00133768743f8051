"""Calls of a converted pipeline as albumentations' own are made: by keywords, with arrays in and out."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchvision import tv_tensors

from imgops._common import layout
from imgops._operator import subclass
from imgops.integrations.albumentations.annotations import ROWS
from imgops.integrations.albumentations.rules import OUTSIDE

#: The keywords of albumentations that these transforms do not take.
_REFUSED = ("volume", "volumes", "mask3d", "masks3d")
_IMAGES, _MASKS = ("image", "images"), ("mask", "masks")
_SPECIAL = frozenset({*_REFUSED, "bboxes", "images", "keypoints", "masks"})


class Call:
    """How a pipeline of albumentations reads its keywords: its processors, targets and last step.

    Arrays alone go to :mod:`.arrays`. Where one of the keywords is a tensor, all of them become tensors,
    which imgops' own transforms take.
    """

    def __init__(self, given: Any, last: Any, on_arrays: Any) -> None:
        self.on_arrays = on_arrays
        #: The ToTensorV2 of the pipeline, if it has one.
        self.last = last
        #: Whether a Compose of albumentations has the pipeline, and checks and reads the keywords.
        self.is_inside = False
        self.read(given)

    def read(self, given: Any) -> None:
        """Read what a user may change in a pipeline: its processors and targets."""
        #: Boxes and keypoints are read and written by albumentations' own code.
        self.processors: dict[str, Any] = dict(getattr(given, "processors", None) or {})
        self.fields = {f for p in self.processors.values() for f in p.params.label_fields or ()}
        #: All keywords that the pipeline reads.
        self.known = frozenset(given.available_keys)
        self.targets: dict[str, str] = dict(getattr(given, "additional_targets", None) or {})
        self.checks_shapes = getattr(given, "is_check_shapes", False)

    def kind_of(self, name: str) -> str:
        return self.targets.get(name, name)

    def run(self, pipeline: Any, data: dict[str, Any]) -> dict[str, Any]:
        """Run a pipeline on keywords, and return a dict of the same names."""
        is_forced = bool(data.pop("force_apply", False))
        if self.is_inside:
            self._refuse_tensors(data)
            return dict(self.on_arrays.run(data, is_forced))
        if not self._are_usual(data):
            self._check(data)
            size = self._size(data)
            if any(self._is_tensor(n, x) for n, x in data.items()):
                return self._run_on_tensors(pipeline, data, size, is_forced)
        return dict(self.on_arrays.run(data, is_forced))

    def _run_on_tensors(
        self, pipeline: Any, data: dict[str, Any], size: tuple[int, int], is_forced: bool
    ) -> dict[str, Any]:
        """Run a pipeline on keywords that contain a tensor; their images have this height and width."""
        if is_forced:
            pipeline = pipeline.forced()
        if pipeline.whole is not None and not (is_forced or pipeline.whole._source.chance()):
            return dict(data)
        data, processors = dict(data), deepcopy(self.processors)
        # albumentations' processors read lists; what was given as tensors comes back as tensors.
        annotations_in_tensors = {
            n: x
            for n, x in data.items()
            if isinstance(x, Tensor) and (self.kind_of(n) in ("bboxes", "keypoints") or n in self.fields)
        }
        for name in annotations_in_tensors:
            data[name] = data[name].tolist()
        self._preprocess(processors, data, size)
        inputs = {}
        # Images come first, because what a transform draws may depend on their values.
        for name in sorted(data, key=lambda n: self.kind_of(n) not in _IMAGES):
            made = self._input(name, data[name], size)
            if made is not None:
                inputs[name] = made
        for kind in ("bboxes", "keypoints"):
            if kind in inputs:
                inputs[ROWS[kind]] = torch.arange(len(data[kind]), dtype=torch.int64, device="cpu")
        for kind, processor in processors.items():
            for field in processor.params.label_fields or ():
                if kind in inputs:
                    inputs[field] = inputs[ROWS[kind]]
        out = pipeline.run_plainly(inputs)
        kept = {n: v for n, v in data.items() if n not in self.fields}
        result = {n: self._output(n, out[n], v) if n in out else v for n, v in kept.items()}
        self._restore(result, data, out, processors)
        for name in annotations_in_tensors.keys() & result.keys():
            result[name] = self._tensor_like(annotations_in_tensors[name], name, result[name])
        return result

    def _tensor_like(self, given: Tensor, name: str, rows: Any) -> Tensor:
        """Convert rows to a tensor of the given dtype; integer boxes and points become float32."""
        dtype = given.dtype if given.is_floating_point() or name in self.fields else torch.float32
        made = torch.as_tensor(np.asarray(rows), dtype=dtype, device="cpu")
        return made if len(rows) else made.new_zeros((0, *given.shape[1:]))

    def _is_tensor(self, name: str, value: Any) -> bool:
        if self.kind_of(name) in ("images", "masks") and isinstance(value, (list, tuple)) and value:
            value = value[0]
        return isinstance(value, Tensor)

    def _refuse_tensors(self, data: dict[str, Any]) -> None:
        for name, value in data.items():
            if self.kind_of(name) in (*_IMAGES, *_MASKS) and self._is_tensor(name, value):
                must = f"from_albumentations: {name} must be a NumPy array in a pipeline of albumentations"
                raise TypeError(f"{must}, got a tensor; convert the whole pipeline")

    # -- checks ----------------------------------------------------------------------------------------

    def _are_usual(self, data: dict[str, Any]) -> bool:
        """Return whether keywords are a valid image and its annotations, as arrays and lists."""
        size = None
        for name, value in data.items():
            kind = self.targets.get(name, name)  # kind_of, without the time of its call
            if kind in ("image", "mask"):
                shape = value.shape if type(value) is np.ndarray else ()
                size = size or shape[:2]
                if len(shape) not in (2, 3) or shape[:2] != size or not shape[0]:
                    return False
            elif kind in self.processors:
                if isinstance(value, Tensor):
                    return False
            elif kind in _SPECIAL or (name not in self.known and _may_be_image(value)):
                return False
        return "image" in data and not any(isinstance(data.get(n), Tensor) for n in self.fields)

    def _check(self, data: dict[str, Any]) -> None:
        if not any(self.kind_of(n) in _IMAGES for n in data):
            raise ValueError(
                f"from_albumentations: keywords must have image or images, got {', '.join(data)}"
            )
        for name, value in data.items():
            kind = self.kind_of(name)
            if kind in _REFUSED:
                raise TypeError(f"from_albumentations: keywords must not be volumes, got {name}")
            if kind in ("bboxes", "keypoints") and value is not None and kind not in self.processors:
                params = {"bboxes": "bbox_params", "keypoints": "keypoint_params"}[kind]
                must = f"from_albumentations: {name} must come with {params} of the pipeline"
                raise ValueError(f"{must}, got none")
            if kind == "mask" and value is None:
                continue
            if kind in (*_IMAGES, "mask") and not isinstance(value, (np.ndarray, Tensor, list, tuple)):
                must = f"from_albumentations: {name} must be a NumPy array or a tensor"
                raise TypeError(f"{must}, got {type(value).__name__}")
            known = (*_IMAGES, *_MASKS, "bboxes", "keypoints")
            if kind not in known and name not in self.known and _may_be_image(value):
                must = (
                    f"from_albumentations: arrays must be named {', '.join(known)} or in additional_targets"
                )
                raise TypeError(f"{must}, got {name}")

    def _size(self, data: dict[str, Any]) -> tuple[int, int]:
        """Return the height and width of the image; all images and masks must share them."""
        sizes: dict[str, Any] = {}
        for name, value in data.items():
            kind = self.kind_of(name)
            if kind not in (*_IMAGES, *_MASKS) or value is None or (kind == "masks" and not len(value)):
                continue
            if not len(value):
                must = f"from_albumentations: {name} must have at least one pixel"
                raise ValueError(f"{must}, got shape {getattr(value, 'shape', (0,))}")
            one = value[0] if kind in ("images", "masks") else value
            if isinstance(one, Tensor):
                sizes[name] = tuple(one.shape[-2:])
            elif isinstance(one, np.ndarray) and one.ndim in (2, 3):
                sizes[name] = one.shape[:2]
            else:
                must = f"from_albumentations: {name} must be an array (H, W) or (H, W, C)"
                raise TypeError(f"{must}, got {getattr(one, 'shape', type(one).__name__)}")
        first = next(s for n, s in sizes.items() if self.kind_of(n) in _IMAGES)
        if self.checks_shapes and len(set(sizes.values())) > 1:
            listed = ", ".join(f"{n} of {s[0]} x {s[1]}" for n, s in sizes.items())
            raise ValueError(f"from_albumentations: images and masks must share a size, got {listed}")
        return first

    # -- to tensors ------------------------------------------------------------------------------------

    def _input(self, name: str, value: Any, canvas: tuple[int, int]) -> Any:
        """Return a keyword as imgops' transforms take it; None if they ignore it."""
        kind = self.kind_of(name)
        if value is None or (isinstance(value, (list, tuple)) and not value):
            return None
        if kind in (*_IMAGES, *_MASKS):
            cls: Any = tv_tensors.Image if kind in _IMAGES else tv_tensors.Mask
            each = [_planes(x, kind in _MASKS) for x in ([value] if kind in ("image", "mask") else value)]
            return cls(each[0] if kind in ("image", "mask") else torch.stack(each))
        if kind == "bboxes":
            sides = torch.tensor([canvas[1], canvas[0]] * 2, dtype=torch.float64, device="cpu")
            corners = torch.from_numpy(np.asarray(_table(value)[:, :4], dtype=np.float64)) * sides
            return tv_tensors.BoundingBoxes(corners, format="XYXY", canvas_size=canvas, clamping_mode=None)
        if kind == "keypoints":
            points = torch.from_numpy(np.asarray(_table(value)[:, :2], dtype=np.float64))
            return tv_tensors.KeyPoints(points, canvas_size=canvas)
        return None

    def _output(self, name: str, made: Any, before: Any) -> Any:
        """Return a result in the kind and form of the argument."""
        kind, plain = self.kind_of(name), subclass.plain(made)
        if kind in ("bboxes", "keypoints"):
            return made
        if isinstance(before, Tensor):
            return plain
        is_mask, is_list = kind in _MASKS, isinstance(before, (list, tuple))
        if self.last is not None:
            if is_mask and plain.ndim == (3 if kind == "mask" else 4) and not self.last.transpose_mask:
                plain = plain.movedim(-3, -1)
            return list(plain) if kind == "masks" and is_list else plain
        if kind in ("image", "mask"):
            return _array(plain, before.ndim, is_mask)
        each = [_array(x, before[0].ndim, is_mask) for x in plain]
        return each if is_list else np.stack(each)

    # -- boxes and keypoints ------------------------------------------------------------------------------

    def _preprocess(self, processors: dict[str, Any], data: dict[str, Any], size: tuple[int, int]) -> None:
        if not processors:
            return
        shown = {n: v for n, v in data.items() if self.kind_of(n) not in (*_IMAGES, *_MASKS)}
        shown["image"] = _blank(size)
        for processor in processors.values():
            processor.ensure_data_valid(shown)
        for processor in processors.values():
            processor.preprocess(shown)
        data.update({n: v for n, v in shown.items() if n in data and n != "image"})

    def _restore(
        self, result: dict[str, Any], data: dict[str, Any], out: dict[str, Any], processors: dict[str, Any]
    ) -> None:
        """Write boxes, keypoints and their labels as albumentations does."""
        if not processors:
            return
        image = next(subclass.plain(v) for n, v in out.items() if self.kind_of(n) in _IMAGES)
        size = image.shape[-2], image.shape[-1]
        shown = {"image": _blank(size)}
        for kind in processors.keys() & data.keys():
            if data[kind] is None:
                continue
            shown[kind] = data[kind]
            if kind not in out:
                continue
            rows, moved = out[ROWS[kind]].numpy(), subclass.plain(out[kind]).numpy()
            if kind == "keypoints":  # those that a transform lost are marked
                known = (moved > OUTSIDE / 2).all(1)
                rows, moved = rows[known], moved[known]
            else:
                moved = moved / np.array([size[1], size[0]] * 2)
            before = _table(data[kind])[rows].astype(np.float64)
            before[:, : moved.shape[1]] = moved
            shown[kind] = before
        for processor in processors.values():
            processor.postprocess(shown)
        del shown["image"]
        result.update(shown)


def _blank(size: tuple[int, int]) -> np.ndarray:
    """Return an image without memory for albumentations' processors, which read only its size."""
    return np.broadcast_to(np.uint8(0), (*size, 3))


def _may_be_image(value: Any) -> bool:
    """Return whether a value may be an image: an array or a tensor with several dimensions."""
    return isinstance(value, (np.ndarray, Tensor)) and value.ndim > 1


def _table(values: np.ndarray) -> np.ndarray:
    """Return rows of numbers, which albumentations leaves flat if there are none."""
    return values if len(values) else np.zeros((0, 4), dtype=np.float32)


def _planes(value: Any, is_mask: bool) -> Tensor:
    """Return an array as a tensor ``(C, H, W)`` in the memory of the array; a flat mask stays flat."""
    if isinstance(value, Tensor):
        return value
    plain = torch.from_numpy(np.ascontiguousarray(layout.readable(value)))
    if plain.ndim == 2 and is_mask:
        return plain
    return (plain[..., None] if plain.ndim == 2 else plain).permute(2, 0, 1)


def _array(plain: Tensor, ndim: int, is_mask: bool) -> np.ndarray:
    """Return a tensor as an array of as many dimensions as were given."""
    if is_mask and ndim == 2:
        return np.ascontiguousarray(plain.numpy())
    array = plain.permute(1, 2, 0).numpy()
    is_flat = not is_mask and ndim == 2 and array.shape[-1] == 1
    return np.ascontiguousarray(array[..., 0] if is_flat else array)
