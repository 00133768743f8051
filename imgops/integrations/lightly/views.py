"""Several views of an image, as lightly's transforms return them: with masks, with grids, and as jigsaws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

from imgops._common.torch_private import raise_error
from imgops._operator import subclass
from imgops.integrations._counterparts import Counterpart, RandomCounterpart
from imgops.integrations._reader import Reader, Unmapped
from imgops.integrations.torchvision.rules import resampling
from imgops.transforms import containers
from imgops.transforms._core import seeding, steps
from imgops.transforms._core.inputs import meta_image
from imgops.transforms._core.parameters import Parameter, Params, Shape, as_integers, each_number, spread
from imgops.transforms._core.sampling import ParameterSampler, SamplingProgram
from imgops.transforms.functional import _dispatch, _geometry


class MultiViewTransform(containers._Container, v2.Transform):
    """Return a list of views: each transform is applied to the image itself."""

    def __init__(self, transforms: list[Any]) -> None:
        v2.Transform.__init__(self)
        self.transforms = list(transforms)
        self._start(False, None)

    def _views(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        return [self._one(i, inputs, sampler) for i in range(len(self.transforms))]

    def _input_of(self, index: int) -> int | None:
        """Return which transform makes the input of another one; None for the input of all."""
        return None

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        before, covered = self._count_samples(inputs, sampler), sampler.covered
        if not covered and sampler.plans(self):
            containers._sample_ahead([(sampler.path, self)], inputs, sampler)
            sampler.covered = sampler.path in sampler.planned
        out = self._views(inputs, sampler)
        sampler.count, sampler.covered = before, covered
        return out

    def _plan(self, shape: Shape, program: SamplingProgram) -> Shape | None:
        path, inside = program.path, program.inside
        program.inside = inside or self.per_sample
        shapes: dict[int | None, Shape] = {None: shape}
        after: Shape | None = None
        for i, transform in enumerate(self.transforms):
            program.path = (*path, i)
            after = containers._shape_after(transform, shapes[self._input_of(i)], program)
            if after is None:
                break
            shapes[i] = after
        program.path, program.inside = path, inside
        return after


class DetConSTransform(MultiViewTransform):
    """Return views of an image and of a mask of segments, which a user's function makes of the image."""

    def __init__(self, transforms: list[Any], mask_fn: Callable[[Any], Any]) -> None:
        super().__init__(transforms)
        self.mask_fn = mask_fn

    def _views(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        segments = self.mask_fn(inputs[0])
        if not isinstance(segments, Tensor):
            segments = tv_tensors.Mask(segments)
        segments = subclass.plain(segments)
        mask = (segments[None] if segments.ndim == 2 else segments).as_subclass(tv_tensors.Mask)
        return super()._views((inputs[0], mask), sampler)


class AddGridTransform(Counterpart):
    """Replace masks and boxes by a regular grid, which depends on their size alone."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if isinstance(inpt, tv_tensors.Mask):
            # The number of the cell of each pixel: cells are whole pixels, and the outer ones are cut.
            mask = subclass.plain(inpt)
            if mask.ndim < 2:
                must = "AddGridTransform: mask must have at least 2 dimensions"
                raise_error(ValueError, f"{must}, got {mask.ndim}")
            cells = []
            for size, count in zip(mask.shape[-2:], (self.num_rows, self.num_cols), strict=True):
                side = (size + count - 1) // count
                start = _geometry.center_offset(count * side, size)
                cells.append((torch.arange(size, device=mask.device, dtype=torch.int64) + start) // side)
            grid = (cells[0][:, None] * self.num_cols + cells[1]).to(mask.dtype)
            return _dispatch.wrap_like(grid.expand(*mask.shape[:-3], 1, -1, -1), inpt)
        if isinstance(inpt, tv_tensors.BoundingBoxes):
            return self._boxes(inpt)
        return inpt

    def _boxes(self, inpt: Any) -> Any:
        height, width = inpt.canvas_size
        plain = subclass.plain(inpt)
        columns, rows = (
            torch.linspace(0, size, count + 1, dtype=torch.float32, device="cpu")
            for size, count in ((width, self.num_cols), (height, self.num_rows))
        )
        left, top = torch.meshgrid(columns[:-1], rows[:-1], indexing="ij")
        right, bottom = torch.meshgrid(columns[1:], rows[1:], indexing="ij")
        boxes = torch.stack([left, top, right, bottom], -1).view(-1, 4).to(plain)
        boxes = v2.functional.convert_bounding_box_format(boxes, "XYXY", inpt.format)
        return _dispatch.wrap_like(boxes, inpt)


# -- views with grids ------------------------------------------------------------------------------------


class RandomResizedCropAndFlip(RandomCounterpart):
    """A resized crop that may be mirrored, and a grid of the places in the image that its cells show.

    The grid ``(n, n, 2)`` is sampled with the crop: lightly's code makes it of the crop's numbers.
    """

    _random_parameters = (
        *(Parameter(name, kind=int) for name in ("top", "left", "height", "width")),
        *(Parameter("horizontal"), Parameter("vertical")),
        Parameter("grid", lambda t, _: 2 * t.grid_size**2),
    )
    _moves = True

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._is_pure = False  # a call returns the grid, too, which ``_image`` does not

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        from lightly.transforms import random_crop_and_flip_with_grid as lightly

        _, _, height, width = self._shape_of(flat_inputs)
        get_params = lightly.RandomResizedCropWithLocation.get_params
        where = get_params(meta_image(1, 1, height, width), self.scale, self.ratio)
        flips = (
            bool(seeding.share() < self.hf_prob),
            bool(seeding.share() < self.vf_prob),
        )
        location = lightly.Location(*where, height, width, *flips)
        grid = lightly.RandomResizedCropAndFlip.location_to_NxN_grid(self, location)
        values = (*where, *map(float, flips), grid.flatten())
        return {p.name: value for p, value in zip(self._random_parameters, values, strict=True)}

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        high, wide = self.size
        return high, wide

    def _transform_input(self, inpt: Any, params: Params, sampler: ParameterSampler) -> Any:
        grid = params.tensor()[..., 6:].to(torch.float32)
        return super()._transform_input(inpt, params, sampler), grid.unflatten(-1, (self.grid_size, -1, 2))

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        top, left, high, wide, *flips = each_number(params.numbers)[:6]
        box = steps.join(left, top, left + wide, top + high)
        how = _geometry.resize_interpolation(self.interpolation, True)
        listed: list[steps.Step] = [steps.ResizedCrop(box, self.size, *how)]
        for flip, dim in zip(flips, (-1, -2), strict=True):
            if isinstance(flip, Tensor) or flip:
                listed.append(steps.Flip(steps.join(flip), dim))
        return listed

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        where = (values[name] for name in ("top", "left", "height", "width"))
        mode = InterpolationMode(self.interpolation)
        view = v2.functional.resized_crop(inpt, *where, list(self.size), mode, antialias=True)
        view = v2.functional.hflip(view) if values["horizontal"] else view
        return v2.functional.vflip(view) if values["vertical"] else view


class ImageGridTransform(MultiViewTransform):
    """Return the views, then the grids, of crops, after each of which another transform is applied."""

    def _input_of(self, index: int) -> int | None:
        return index - 1 if index % 2 else None

    def _views(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        views, grids = [], []
        for i in range(0, len(self.transforms), 2):
            view, grid = self._one(i, inputs, sampler)
            views.append(self._one(i + 1, (view,), sampler))
            grids.append(grid)
        return views + grids


# -- jigsaws ---------------------------------------------------------------------------------------------


class _Pieces(RandomCounterpart):
    """Cut a piece out of each cell of a grid, at a place that is drawn: a list of crops of one size."""

    _random_parameters = (Parameter("corners", lambda t, _: 2 * len(t.rows), kind=int),)

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        _, _, height, width = self._shape_of(flat_inputs)
        least = max(self.rows) + self.side + self.crop_size
        if height < least or width < least:
            raise_error(
                ValueError, f"Jigsaw: sides of the image must be at least {least}, got {height, width}"
            )

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        with seeding.own_generators():
            down, right = (np.random.randint(0, self.side + 1, len(self.rows)) for _ in range(2))
        corners = np.stack([self.rows + down, self.columns + right], 1)
        return {"corners": corners.flatten().astype(float).tolist()}

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return self.crop_size, self.crop_size

    def _transform_input(self, inpt: Any, params: Params, sampler: ParameterSampler) -> Any:
        side = self.crop_size
        if isinstance(inpt, PIL.Image.Image):
            corners = params.tensor().long().view(-1, 2).tolist()
            return [inpt.crop((left, top, left + side, top + side)) for top, left in corners]
        image, corners = subclass.plain(inpt), as_integers(params.numbers)
        if params.is_one_draw:
            places = zip(corners[::2], corners[1::2], strict=True)
            return [_geometry.crop(image, top, left, side, side) for top, left in places]
        top, left = spread(corners, image).unflatten(-1, (-1, 2)).unbind(-1)
        boxes = torch.stack([left, top, left + side, top + side], -1).unbind(-2)
        return [_geometry.resize_boxes(image, box, (side, side), "nearest", True) for box in boxes]


class _Shuffle(RandomCounterpart):
    """Put the pieces of a jigsaw, ``(..., n, C, h, w)``, into an order that is drawn."""

    _random_parameters = (Parameter("order", lambda t, _: t.count, kind=int),)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        with seeding.own_generators():
            return {"order": np.random.permutation(self.count).astype(float).tolist()}

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        order = params.tensor().long().to(image.device)
        if order.ndim == 1:
            return image.index_select(-4, order)
        return torch.stack([each.index_select(-4, row) for each, row in zip(image, order, strict=True)])


class Jigsaw(MultiViewTransform):
    """Return shuffled pieces of an image, after a transform of each piece."""

    def extra_repr(self) -> str:
        return f"pieces={len(self.transforms) - 2}, transform={self.transforms[1]}"

    def _input_of(self, index: int) -> int | None:
        return 0 if index else None

    def _views(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        pieces = enumerate(self._one(0, inputs, sampler), 1)
        changed = [subclass.plain(self._one(i, (piece,), sampler)) for i, piece in pieces]
        return self._one(len(self.transforms) - 1, (torch.stack(changed, -4),), sampler)


# -- makers ----------------------------------------------------------------------------------------------


def _segmented_views(given: Any, reader: Reader) -> Any:
    each = [reader.read_one(transform) for transform in given.transforms]
    return MultiViewTransform(each) if given.mask_fn is None else DetConSTransform(each, given.mask_fn)


def _crop_and_flip(given: Any, reader: Reader) -> Any:
    crop = given.resized_crop
    return RandomResizedCropAndFlip(
        size=tuple(crop.size),
        scale=tuple(crop.scale),
        ratio=tuple(crop.ratio),
        interpolation=resampling(crop.interpolation).value,
        hf_prob=given.horizontal_flip.p,
        vf_prob=given.vertical_flip.p,
        grid_size=given.grid_size,
    )


def _jigsaw(given: Any, reader: Reader) -> Any:
    known = {"rows": given.xx.tolist(), "columns": given.yy.tolist(), "side": given.side}
    count = len(given.xx)
    each = [reader.read_one(given.transform)] * count
    return Jigsaw([_Pieces(crop_size=given.crop_size, **known), *each, _Shuffle(count=count)])


def _has_location(given: Any, reader: Reader) -> Any:
    raise Unmapped("what it passes on is a Location, which only RandomResizedCropAndFlip makes a tensor of")


_LOCATIONS = (
    "RandomHorizontalFlipWithLocation",
    "RandomResizedCropWithLocation",
    "RandomVerticalFlipWithLocation",
)
VIEWS: dict[str, Any] = {
    **dict.fromkeys(
        ("image_grid_transform.ImageGridTransform", "vicregl_transform.VICRegLTransform"),
        lambda t, r: ImageGridTransform([r.read_one(x) for pair in t.transforms for x in pair]),
    ),
    **{f"random_crop_and_flip_with_grid.{name}": _has_location for name in _LOCATIONS},
    "add_grid_transform.AddGridTransform": lambda t, _: AddGridTransform(
        num_rows=t.num_rows, num_cols=t.num_cols
    ),
    "detcon_transform.DetConSTransform": _segmented_views,
    "detcon_transform.DetConSViewTransform": lambda t, r: r.read(t.tr),
    "jigsaw.Jigsaw": _jigsaw,
    "random_crop_and_flip_with_grid.RandomResizedCropAndFlip": _crop_and_flip,
}
