"""Transforms of albumentations that its own code computes on the host, inside of an operator in a graph.

The parameters of a transform are sampled before it is applied, so the numbers of its counterpart are the
state from which it draws. They give the same parameters again for the image, its masks, boxes and keypoints.
"""

from __future__ import annotations

import random
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops._common.torch_private import raise_error
from imgops._operator import subclass
from imgops.integrations.albumentations import values
from imgops.integrations.albumentations.draws import Source, drawn_seed, sampled, seeded_by
from imgops.integrations.albumentations.rules import MIRRORS, OUTSIDE, bases_of
from imgops.transforms._core import operators
from imgops.transforms._core.base import RandomSizeTransform
from imgops.transforms._core.inputs import batch_of
from imgops.transforms._core.parameters import IS_APPLIED, Parameter, Params, Shape
from imgops.transforms._core.probabilistic import ProbabilisticTransform
from imgops.transforms._core.sampling import ParameterSampler, SamplingProgram
from imgops.transforms.functional import _dispatch

#: albumentations' names of the annotations that a transform may read.
ANNOTATIONS_READ = frozenset({"mask", "masks", "bboxes", "keypoints"})

_READ_BOXES = {"AtLeastOneBBoxRandomCrop", "BBoxSafeRandomCrop", "RandomSizedBBoxSafeCrop"}
_READ_MASKS = {"ConstrainedCoarseDropout", "CropNonEmptyMaskIfExists"}


def stand_in(height: int, width: int, channels: int) -> np.ndarray:
    """Return a black image that takes no memory."""
    return np.broadcast_to(np.uint8(0), (height, width, channels))


def data_of(given: Any, inputs: Sequence[Any], shape: Shape) -> dict[str, Any]:
    """Return an image of a shape, and the annotations among flat inputs that a transform may read."""
    _, channels, height, width = shape
    data: dict[str, Any] = {"image": stand_in(height, width, channels)}
    reads = reads_annotations(given)
    if not reads:
        return data
    masks = [subclass.plain(x) for x in inputs if isinstance(x, tv_tensors.Mask)]
    boxes = [x for x in inputs if isinstance(x, tv_tensors.BoundingBoxes)]
    if masks:
        planes = [array_of(m.reshape(-1, *m.shape[-2:])) for m in masks]
        data |= {"mask": planes[0][0], "masks": np.concatenate(planes)}
    if boxes:
        found = v2.functional.convert_bounding_box_format(boxes[0], new_format="XYXY")
        corners = subclass.plain(found)
        left = (corners[:, 2:] > corners[:, :2]).all(1)  # the others were dropped before
        data["bboxes"] = normalized(corners, (height, width))[left.numpy()]
    missing = reads - data.keys() - ({"mask", "masks"} if masks else set())
    if missing:
        must = f"{type(given).__name__}: inputs must have {' and '.join(sorted(missing))}"
        raise_error(ValueError, f"{must}, got none")
    return data


def reads_annotations(given: Any) -> frozenset[str]:
    """Return the annotations that a transform reads; some do so without declaring it."""
    names = set(bases_of(given))
    unsaid = {"bboxes"} if names & _READ_BOXES else {"mask"} if names & _READ_MASKS else set()
    return ANNOTATIONS_READ & unsaid.union(given.targets_as_params)


def array_of(mask: Tensor) -> np.ndarray:
    """Return labels in a dtype that OpenCV computes."""
    array = mask.detach().cpu().numpy()
    if array.dtype == bool:
        return array.astype(np.uint8)
    return array.astype(np.float64) if array.dtype.kind in "iu" and array.dtype.itemsize > 2 else array


def normalized(corners: Tensor, canvas: tuple[int, int]) -> np.ndarray:
    """Return boxes as shares of the sides, with the place of each box in a last column.

    An edge that a resize moved to a whole pixel, but for the error of its arithmetic, lies on the pixel:
    albumentations cuts fractions off.
    """
    whole = corners.round()
    corners = torch.where((corners - whole).abs() < 1e-9, whole, corners)
    sides = torch.tensor([canvas[1], canvas[0]] * 2, dtype=torch.float64, device="cpu")
    places = torch.arange(len(corners), dtype=torch.float64, device="cpu")[:, None]
    return torch.cat([corners.double() / sides, places], 1).numpy()


class Host(Source):
    """The draws of a transform that albumentations computes: a seed, or the state of its generators."""

    def __init__(self, given: Any, forced: bool = False) -> None:
        super().__init__(given, forced)
        #: Parameters by the numbers that they were drawn from: those of the latest images, which may be as
        #: large as these, and those that follow from annotations, which cannot be drawn again.
        self.recent: OrderedDict[tuple[float, ...], dict[str, Any]] = OrderedDict()
        self.from_annotations: OrderedDict[float, dict[str, Any]] = OrderedDict()
        self.drawn = 0

    @property
    def length(self) -> int:
        return 1 + _STATE if self.has_state else 1

    def numbers(self, transform: Any, shape: Shape, inputs: Sequence[Any] = ()) -> list[float] | None:
        if not self.chance():
            return None
        rest = [0.0] * (self.length - 1)
        if reads_annotations(self.given):
            with self.generators():
                params = sampled(self.given, data_of(self.given, inputs, shape))
                self.drawn += 1
                name = -1.0 - self.drawn
            _keep(self.from_annotations, name, params, 64)
            return [1.0, name, *rest]
        if not self.draws_on:
            return [1.0, float(drawn_seed()), *rest]
        with self.generators():
            state = _state_of(self.given)
            sampled(self.given, {"image": stand_in(shape[2], shape[3], shape[1])})
        return [1.0, -1.0, *state]

    def params(self, numbers: Sequence[float], data: dict[str, Any] | None, shape: Shape) -> dict[str, Any]:
        """Return the parameters for an image, or, without data, those of the image for its annotations."""
        if numbers[0] < -1:
            if numbers[0] not in self.from_annotations:
                must = f"{type(self.given).__name__}: params must be of one of the last 64 calls"
                raise KeyError(f"{must}, got older ones")
            return self.from_annotations[numbers[0]]
        known = self.recent.get(tuple(numbers)) if data is None else None
        if known is not None:
            return known
        state = seeded_by(self.given, int(numbers[0])) if numbers[0] >= 0 else _at(self.given, numbers[1:])
        with state:
            params = sampled(self.given, data or {"image": stand_in(shape[2], shape[3], shape[1])})
        if data is not None:
            _keep(self.recent, tuple(numbers), params, 4)
        return params


def _keep(known: OrderedDict[Any, dict[str, Any]], key: Any, params: dict[str, Any], most: int) -> None:
    known[key] = params
    while len(known) > most:
        known.popitem(last=False)


# -- the state of generators as numbers --------------------------------------------------------------------

_WORDS = 8  # of 32 bits in the two numbers of 128 bits that are PCG64's state
_STATE = _WORDS + 2 + 625 + 1


def _state_of(given: Any) -> list[float]:
    """Return the state of a transform's generators, NumPy's and Python's."""
    ours = given.random_generator.bit_generator.state
    if ours["bit_generator"] != "PCG64":
        must = f"{type(given).__name__}: the random generator must be NumPy's PCG64"
        raise NotImplementedError(f"{must}, got {ours['bit_generator']}")
    whole = b"".join(ours["state"][name].to_bytes(16, "little") for name in ("state", "inc"))
    _, python, gauss = given.py_random.getstate()
    numbers = *np.frombuffer(whole, "<u4"), ours["has_uint32"], ours["uinteger"], *python
    return [*map(float, numbers), float("inf") if gauss is None else gauss]


@contextmanager
def _at(given: Any, numbers: Sequence[float]) -> Iterator[None]:
    """Let a transform draw again from a state."""
    whole = np.array(numbers[:_WORDS], "<u4").tobytes()
    flag, rest, *of_python = map(int, numbers[_WORDS:-1])
    generator, python = np.random.Generator(np.random.PCG64(0)), random.Random(0)
    generator.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {n: int.from_bytes(b, "little") for n, b in (("state", whole[:16]), ("inc", whole[16:]))},
        "has_uint32": flag,
        "uinteger": rest,
    }
    gauss = None if numbers[-1] == float("inf") else numbers[-1]
    python.setstate((3, tuple(of_python), gauss))
    with seeded_by(given, 0):
        given.set_random_state(generator, python)
        yield


# -- transforms ----------------------------------------------------------------------------------------------


class BesideAnnotations:
    """A transform whose draws may depend on boxes or a mask, which one operator reads in a graph."""

    _source: Any
    per_sample: bool

    def _sample_params(self, inputs: list[Any], sampler: ParameterSampler) -> Params | None:
        reads, name = reads_annotations(self._source.given), type(self._source.given).__name__
        if reads and (sampler.count is not None or (self.per_sample and batch_of(inputs) is not None)):
            must = f"{name}: per_sample must be False, because it reads"
            raise_error(NotImplementedError, f"{must} {' and '.join(sorted(reads))}, got True")
        if not reads or sampler.draws_in_python:
            return super()._sample_params(inputs, sampler)  # type: ignore[misc]
        kind = tv_tensors.BoundingBoxes if "bboxes" in reads else tv_tensors.Mask
        found = [x for x in inputs if isinstance(x, kind)]
        if not found:
            must = f"{name}: inputs must have {' and '.join(sorted(reads))}"
            raise_error(ValueError, f"{must}, got none")
        _, channels, height, width = self._shape_of(inputs)  # type: ignore[attr-defined]
        count = self._count_numbers((1, channels, height, width))  # type: ignore[attr-defined]
        numbers = sampler.from_annotations(self, found[0], count, (height, width))
        return Params((height, width), numbers)

    def _neutral_from_annotations(self, count: int, height: int, width: int) -> list[float]:
        return self._neutral_numbers((1, 3, height, width))  # type: ignore[attr-defined]

    def _plan(self, shape: Shape, program: SamplingProgram) -> Shape | None:
        if reads_annotations(self._source.given):  # these are not known beforehand
            return None
        return super()._plan(shape, program)  # type: ignore[misc]


class _ByAlbumentations(BesideAnnotations, ProbabilisticTransform):
    """A transform of albumentations that keeps the size of the image.

    Its image is changed by imgops' operators where they have the same pixels (:mod:`.values`), else by
    albumentations on the host. Masks, boxes and keypoints are always changed by albumentations.
    """

    _random_parameters = (IS_APPLIED, Parameter("seed", lambda t, shape: t._source.length))
    _known = ("seed",)

    def __init__(self, p: float = 1.0) -> None:
        super().__init__(p, False, None)

    @classmethod
    def of(cls, source: Host) -> Any:
        made = cls(float(source.given.p))
        made._source = source
        made._describe()
        return made

    @property
    def _moves(self) -> bool:  # type: ignore[override]
        return hasattr(self.given, "apply_to_bboxes")

    @property
    def given(self) -> Any:
        return self._source.given

    def _get_name(self) -> str:
        return type(self.given).__name__

    def extra_repr(self) -> str:
        return f"p={self.p}"

    def _change_image(self, image: Tensor, seed: Sequence[float]) -> Tensor:
        frames = image.reshape(-1, *image.shape[-3:])
        params = self._source.params(seed, {"image": _view(frames[0])}, (1, *image.shape[-3:]))
        needs_gradient = torch.is_grad_enabled() and image.requires_grad
        tables = [values.OPERATORS]
        if needs_gradient or not image.is_cpu:
            tables.append(values.INEXACT)
        has_operators = image.dtype == torch.uint8 or image.is_floating_point()
        for table in tables if has_operators else ():
            own = table.get(self._source.name)
            out = None if own is None else own(image, self.given, params)
            if out is not None:
                return out
        if needs_gradient:
            must = f"{self._get_name()}: image must not require a gradient, as albumentations computes it"
            raise_error(NotImplementedError, f"{must}, got requires_grad=True")
        if image.ndim == 3:  # the result keeps albumentations' memory format
            return self._change_pixels(image, params)
        changed = [self._change_pixels(frame, params) for frame in frames]
        return torch.stack(changed).reshape(*image.shape[:-3], *changed[0].shape)

    def _change_pixels(self, frame: Tensor, params: dict[str, Any]) -> Tensor:
        array = self.given.apply_with_params(params, image=_interleaved(_view(frame)))["image"]
        if array.ndim < 2 or (array.ndim == 3 and array.shape[2] != len(frame)):
            must = f"{self._get_name()}: image must keep its {len(frame)} channels"
            raise_error(ValueError, f"{must}, got an array of shape {array.shape}")
        if array.ndim == 2:
            array = array[..., None]
        size = tuple(frame.shape[-2:])
        if tuple(array.shape[:2]) != size and not self._may_resize:
            must = f"{self._get_name()}: image must keep its size {size[0]} x {size[1]}"
            raise_error(ValueError, f"{must}, got {array.shape[0]} x {array.shape[1]}")
        changed = torch.from_numpy(np.ascontiguousarray(array)).permute(2, 0, 1)
        if frame.is_floating_point() and changed.is_floating_point():
            changed = changed.to(frame.dtype)
        if self._is_in_operator and changed.dtype != frame.dtype:
            must = f"{self._get_name()}: image must keep its dtype in a graph or with per_sample=True"
            raise_error(TypeError, f"{must}, got {changed.dtype} of {frame.dtype}")
        return changed.to(frame.device)

    @property
    def _is_in_operator(self) -> bool:
        """Whether an operator, which fixes size and dtype, made this transform from its description."""
        return isinstance(self._source, weakref.ProxyType)

    @property
    def _may_resize(self) -> bool:
        """Whether the result may have another size: other code than albumentations' own is asked for it."""
        return self._source.is_foreign and self._moves and not self._is_in_operator

    def _change_mask(self, mask: Tensor, seed: Sequence[float]) -> Tensor:
        shape = (1, 3, *mask.shape[-2:])
        params = self._source.params(seed, None, shape)

        def changed(array: np.ndarray) -> np.ndarray:
            return np.ascontiguousarray(self.given.apply_with_params(params, mask=array)["mask"])

        if mask.ndim == 3 and mask.shape[0] > 1 and mask.stride(0) == 1:
            # In one mask with channels, the warps of OpenCV may round otherwise than in several masks.
            whole = changed(array_of(mask.permute(1, 2, 0)))
            return torch.from_numpy(whole).permute(2, 0, 1).to(mask.device, mask.dtype)
        planes = [changed(p) for p in array_of(mask.reshape(-1, *mask.shape[-2:]))]
        if not planes:
            return mask
        moved = torch.from_numpy(np.stack(planes))
        return moved.to(mask.device, mask.dtype).reshape(*mask.shape[:-2], *moved.shape[1:])

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        out = super()._by_torchvision(inpt, values)
        if out is inpt or not self._may_resize or not hasattr(inpt, "canvas_size"):
            return out
        canvas = inpt.canvas_size
        size = self._size_after(self._source.params(values["seed"], None, (1, 3, *canvas)), canvas)
        return _dispatch.wrap_like(subclass.plain(out), inpt, size)

    def _move_boxes(self, boxes: Tensor, canvas: tuple[int, int], seed: Sequence[float]) -> Tensor:
        params = self._source.params(seed, None, (1, 3, *canvas))
        known = (boxes[:, 2:] > boxes[:, :2]).all(1)  # the others were dropped before
        moved = self._moved("bboxes", normalized(boxes, canvas)[known.numpy()], params)
        high, wide = self._size_after(params, canvas)
        out = torch.zeros_like(boxes)
        places = torch.from_numpy(np.asarray(moved[:, 4], dtype=np.int64))
        sides = torch.tensor([wide, high, wide, high], dtype=torch.float64, device="cpu")
        out[places] = torch.from_numpy(np.asarray(moved[:, :4], dtype=np.float64)) * sides
        return out

    def _move_points(self, points: Tensor, canvas: tuple[int, int], seed: Sequence[float]) -> Tensor:
        params = self._source.params(seed, None, (1, 3, *canvas))
        known = (points > OUTSIDE / 2).all(1)
        given = np.zeros((int(known.sum()), 6), dtype=np.float32)  # x, y, z, angle, scale, and the place
        given[:, :2], given[:, 5] = points[known].numpy(), known.nonzero()[:, 0].numpy()
        moved = self._moved("keypoints", given, params)
        out = torch.full_like(points, OUTSIDE)
        out[torch.from_numpy(np.asarray(moved[:, 5], dtype=np.int64))] = torch.from_numpy(
            np.asarray(moved[:, :2], dtype=np.float64)
        )
        return out

    def _moved(self, kind: str, rows: np.ndarray, params: dict[str, Any]) -> np.ndarray:
        """Return boxes or keypoints after the transform, which does not repeat them in a mirrored border."""
        if not len(rows):
            return rows
        if getattr(self.given, "border_mode", 0) not in MIRRORS:
            return self.given.apply_with_params(params, **{kind: rows})[kind]
        plain = copy(self.given)
        plain.border_mode = cv2.BORDER_CONSTANT
        return getattr(plain, f"apply_to_{kind}")(rows, **params)

    def _size_after(self, params: dict[str, Any], canvas: tuple[int, int]) -> tuple[int, int]:
        if not self._may_resize:
            return canvas
        blank = np.zeros(canvas, dtype=np.uint8)
        return self.given.apply_with_params(params, mask=blank)["mask"].shape[:2]


def _view(frame: Tensor) -> np.ndarray:
    """Return an image ``(C, H, W)`` as albumentations knows it, without a copy if it is on the host.

    Floats become float32, because albumentations has no other ones.
    """
    known = frame.float() if frame.is_floating_point() else frame
    return known.detach().cpu().numpy().transpose(1, 2, 0)


def _interleaved(array: np.ndarray) -> np.ndarray:
    """Return the pixels ``(H, W, C)`` in one piece; OpenCV joins planes many times faster than NumPy does."""
    if array.flags.c_contiguous:
        return array
    planes = array.transpose(2, 0, 1)
    if planes.flags.c_contiguous and 1 < len(planes) <= 4:
        return cv2.merge(list(planes))
    return np.ascontiguousarray(array)


class _ResizedByAlbumentations(RandomSizeTransform, _ByAlbumentations):
    """A transform of albumentations that changes the size of the image, and is always applied."""

    _may_resize = True

    def _sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        if not numbers[0]:
            return height, width
        return self._size_after(
            self._source.params(numbers[1:], None, (1, 3, height, width)), (height, width)
        )

    def _apply_change(self, image: Tensor, params: Params, kind: str) -> Tensor:
        if params.is_one_draw:
            return super()._apply_change(image, params, kind)
        sizes = self._sizes(params)
        return operators.apply_to_size(image, params.numbers, *sizes, self._description, kind)
