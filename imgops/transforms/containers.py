"""Compose, RandomApply, RandomChoice and RandomOrder.

In eager mode, if one draw is used for the whole call, a container calls only the transforms that it has
chosen. In a graph, and if each sample has its own parameters, all transforms run, and a *gate* says to which
samples each transform is applied. For samples with a closed gate, a transform runs with its neutral
parameters, which change nothing. If a transform joins samples (MixUp, Mosaic) or does not support gates, the
container selects its result for the samples with an open gate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import accumulate, takewhile
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import guard_or_false, has_static_value
from torchvision import tv_tensors
from torchvision.transforms import v2

import imgops
from imgops._common import check, layout
from imgops._common.torch_private import (
    constant_in_graphs,
    has_global_hooks,
    in_vmap,
    is_eager,
    is_exporting,
    raise_error,
    raise_in_graph,
    tree_flatten,
    tree_unflatten,
)
from imgops._operator import subclass
from imgops.kernels.cpu.program import Columns, ImageProgram, accepts, accepts_in_graph
from imgops.transforms._core import (
    annotation_kinds,
    draws,
    pil_images,
    plans,
    programs,
    seeding,
    unchanged,
    way_back,
)
from imgops.transforms._core.base import (
    SITES,
    THEIR_RANDOM_CLASSES,
    WHERE,
    OperatorTransform,
    RandomTransform,
)
from imgops.transforms._core.batches import PendingBatch, Windows
from imgops.transforms._core.inputs import batch_of, decode_all, has_batches, images_among, samples_of
from imgops.transforms._core.origin import has_hooks
from imgops.transforms._core.parameters import BATCHES, Key, Params, Shape
from imgops.transforms._core.pending import PendingImage, has_usual_path, run_pipeline
from imgops.transforms._core.sampling import ParameterSampler, SamplingProgram
from imgops.transforms._core.signatures import is_own
from imgops.transforms.conversion import (
    Normalize,
    ToDtype,
    _DivideBy255,
    _LevelsToFloat,
    _NormalizeByChannel,
)
from imgops.transforms.functional import _dispatch

__all__ = ["Compose", "RandomApply", "RandomChoice", "RandomOrder"]


_EMPTY: dict[str, Any] = {}


class _Container(RandomTransform):
    """A transform that contains others; the index of a transform is part of the key of its sampled values."""

    transforms: Sequence[Any]

    def _draw_numbers(self, inputs: Any) -> Any:
        """Sample the numbers that say which transforms are applied; unlike other transforms, never None."""
        return super()._draw_numbers(inputs)

    @property
    def _joins_samples(self) -> bool:
        return any(getattr(t, "_joins_samples", False) for t in self.transforms)

    def forward(self, *inputs: Any) -> Any:
        if len(inputs) == 1 and type(inputs[0]) is Tensor and is_eager():
            plan = self._plan_of(inputs[0])
            if plan is not None:
                return plan.run(self, inputs[0])
        elif len(inputs) == 1 and type(inputs[0]) is Tensor and type(self) in _WHOLE and not in_vmap():
            out = _in_graph(self, inputs[0])
            if out is not None:
                return out
        if inputs and type(inputs[0]) not in (Tensor, *BATCHES) and not self._decodes_regions:
            inputs = decode_all(inputs)
        out = unchanged.watch(self, self._run, inputs, ParameterSampler.of(inputs))
        return out.decode() if type(out) is imgops.EncodedImages else out  # nothing was applied to them

    def _plan_of(self, image: Tensor) -> plans.Plan | None:
        """Return the plan for an image; None at the first image of a shape, and if there is no plan."""
        if type(self) not in _WHOLE or not accepts(image) or has_global_hooks():
            return None
        known = self.__dict__.setdefault("_plans", {})
        key = image.shape, image.stride()
        found = known.get(key, _NEW)
        if found is _NEW:
            if len(known) >= plans.MOST:
                known.clear()
            known[key] = _MET_ONCE
            return None
        if found is _MET_ONCE or (found is not None and not found.is_valid()):
            found = known[key] = _make_plan(self, image)
        return found  # type: ignore[no-any-return]

    def _record(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> None:
        self._run(inputs, sampler)

    def extra_repr(self) -> str:
        return super(RandomTransform, self).extra_repr()  # type: ignore[misc]

    def _back_through(self, results: way_back.Results, path: Key) -> way_back.Results:
        """Return results before the transforms in order, the last first."""
        for at in reversed(range(len(self.transforms))):
            results = self._back_one(at, results, path)
        return results

    def _back_one(self, index: int, results: way_back.Results, path: Key) -> way_back.Results:
        transform = self.transforms[index]
        if not _is_own(transform):
            way_back.refuse(transform)
        return transform._back(results, (*path, index))

    def _count_samples(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> int | None:
        """Set the number of samples if this container draws for each of them; return the former number."""
        before = sampler.count
        if self.per_sample and before is None:
            sampler.count = batch_of(tree_flatten(inputs)[0])
        return before

    def _plan_through(self, shape: Shape, program: SamplingProgram) -> Shape | None:
        """Add the transforms' sampled values in order; return the output shape, or None if it is unknown."""
        path, known = program.path, shape
        for i, transform in enumerate(self.transforms):
            program.path = (*path, i)
            after = _shape_after(transform, known, program)
            if after is None:
                program.path = path
                return None
            known = after
        program.path = path
        return known

    def _through(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        """Apply the transforms in order; combine two or more if that gives the same result faster."""
        several, path, covered = len(inputs) > 1, sampler.path, sampler.covered
        transforms, at = self.transforms, 0
        out: Any = inputs if several else inputs[0]
        was_pending = type(out) in _PENDING
        collects = was_pending or (not several and sampler.may_collect() and not has_global_hooks())
        while at < len(transforms):
            if collects and type(out) not in (PendingImage, PendingBatch):
                out = _pending(out, transforms[at:], sampler)
                inputs = (out,)
            transform, table, count = transforms[at], None, 1
            sampler.path = (*path, at)
            if not covered and sampler.plans(transform) and sampler.path not in sampler.planned:
                rest = [((*path, i), transforms[i]) for i in range(at, len(transforms))]
                _sample_ahead(rest, inputs, sampler)
            sampler.covered = covered or sampler.path in sampler.planned
            if type(transform) in _TO_FLOAT and sampler.gate is None and not several:
                table, count = _table_of(transforms[at : at + 2], out)
            if table is not None:
                at += count
                out = out.result(table) if type(out) is PendingImage else imgops.lut(out, table)
            else:
                out, at = _apply(transform, inputs, sampler), at + 1
            inputs = out if several else (out,)
        sampler.path, sampler.covered = path, covered
        return out if was_pending or type(out) not in _PENDING else out.result()

    def _one(self, index: int, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        path = sampler.path
        sampler.path = (*path, index)
        out = _apply(self.transforms[index], inputs, sampler)
        sampler.path = path
        return out


def _sample_ahead(
    steps: Sequence[tuple[Key, Any]], inputs: tuple[Any, ...], sampler: ParameterSampler
) -> None:
    """Sample for as many transforms as possible at once, before any of them is applied."""
    flat = images_among([x.stand_in() if type(x) is PendingImage else x for x in tree_flatten(inputs)[0]])
    if not flat or not _dispatch.is_image(flat[0]):
        return
    sampler.look_at(flat)
    inside = sampler.count is not None
    program = SamplingProgram(sampler.count if inside else batch_of(flat), inside)
    shape: Shape = steps[0][1]._shape_of(flat)
    planned = []
    for key, transform in steps:
        before = program.state()
        program.path = key
        after = _shape_after(transform, shape, program)
        if after is None:
            program.forget(before)
            break
        shape = after
        planned.append(key)
    if len(program.steps) > 1:
        sampler.run(program)
        sampler.planned.update(planned)


def _pending(image: Any, transforms: Sequence[Any], sampler: ParameterSampler) -> Any:
    """Return an image as pending if this pays off for the next transforms; else return it as it is."""
    if pil_images.is_known(image):
        return PendingImage.of_pil(image) if _outweigh_pil(transforms, sampler) else image
    if type(image) is Windows:
        return PendingImage.of_windows(image)
    if type(image) in BATCHES:
        return PendingBatch(image) if len(transforms) > 1 else image
    return PendingImage.of(image) if len(transforms) > 1 else image


def _outweigh_pil(transforms: Sequence[Any], sampler: ParameterSampler) -> bool:
    """Return whether a conversion from PIL pays off for the first transforms, whose pixels are PIL's."""
    return sampler.draws_once() and any(t._outweighs_pil for t in takewhile(_is_pils, transforms))


def _is_own(transform: Any) -> bool:
    """Return whether a transform is imgops' own and no user has overridden its methods."""
    is_ours = isinstance(transform, OperatorTransform) and transform._runs_own_forward()
    return is_ours and bool(transform._description)


def _runs_own_code(transform: Any) -> bool:
    """Return whether a call of one of imgops' transforms runs no code of a user."""
    return bool(transform._has_own_methods and transform._runs_own_forward()) and not has_hooks(transform)


def _is_pils(transform: Any) -> bool:
    usual = _is_own(transform) and not has_hooks(transform) and not _is_per_sample(transform)
    return usual and transform._is_simple and transform._has_pils_pixels


def _is_per_sample(transform: Any) -> bool:
    # A module looks for an attribute that it does not have in many places.
    return bool(getattr(transform, "__dict__", _EMPTY).get("per_sample"))


def _shape_after(transform: Any, shape: Shape, program: SamplingProgram) -> Shape | None:
    """Add a transform's sampled values to a program; return the output shape, or None if it is unknown."""
    if (
        tuple(shape[2:]) == programs.OWN_SIZES
        and _is_own(transform)
        and not isinstance(transform, _Container)
    ):
        transform._require_packed()
    return transform._plan(shape, program) if _is_own(transform) and not has_hooks(transform) else None


def _table_of(transforms: Sequence[Any], image: Any, alone: bool = False) -> tuple[Tensor | None, int]:
    """Return the floats that the next transforms make of each level, and the number of these transforms.

    ToDtype and Normalize need one pass together. ToDtype ``alone`` counts as the last step of a program.
    """
    first = transforms[0]
    if type(image) is PendingImage:
        if image.kind is PIL.Image.Image:
            return None, 0
        image, alone = image.image, True
    if type(image) is not Tensor or image.dtype != torch.uint8 or type(first) not in _TO_FLOAT:
        return None, 0
    if first.dtype != torch.float32 or not first.scale or not _runs_own_code(first):
        return None, 0
    if is_eager() and has_global_hooks():
        return None, 0
    if image.ndim < 3 or not (image.is_cpu or image.is_cuda):
        return None, 0
    if len(transforms) > 1 and type(transforms[1]) in _NORMALIZE and _runs_own_code(transforms[1]):
        table = transforms[1]._levels_table(image.shape[-3], image.device, type(first) is not ToDtype)
        if table is not None:
            return table, 2
    return (first._levels_table(), 1) if alone else (None, 0)


_TO_FLOAT: tuple[type, ...] = (ToDtype, _DivideBy255, _LevelsToFloat)
_NORMALIZE: tuple[type, ...] = (Normalize, _NormalizeByChannel)


def _apply(transform: Any, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
    """Apply one transform to the samples whose gate is open."""
    if type(inputs[0]) is PendingImage:
        if not _is_per_sample(transform) or sampler.count is not None:
            if type(transform) in _COLLECTING and _is_own(transform) and not has_hooks(transform):
                return transform._run(inputs, sampler)
            out = inputs[0].take(transform, sampler)
            if out is not None:
                return out
        inputs = (inputs[0].result(),)
    elif type(inputs[0]) is PendingBatch and not (_is_own(transform) and not has_hooks(transform)):
        inputs = (inputs[0].result(),)
    if sampler.draws_once() and not _is_per_sample(transform):
        return transform(*inputs)
    if (
        isinstance(transform, OperatorTransform)
        and not isinstance(transform, _Container)
        and has_batches(inputs)
    ):
        transform._require_packed()
    if sampler.gate is not None and not sampler.selects_later:
        _require_shape(transform, inputs)
    usual = _is_own(transform) and not has_hooks(transform)
    knows_samplers = usual and isinstance(transform, RandomTransform)
    if knows_samplers and (sampler.gate is None or not getattr(transform, "_joins_samples", False)):
        return transform._run(inputs, sampler)
    if not knows_samplers:
        if usual:
            transform._record_size(tree_flatten(inputs if len(inputs) > 1 else inputs[0])[0], sampler)
        if sampler.count is not None and _draws_once(transform):
            cls = type(transform)
            must = (
                "transforms in a container with per_sample=True must be imgops' own, without hooks, if they"
            )
            got = f"{cls.__module__}.{cls.__qualname__}"
            raise_error(ValueError, f"{cls.__name__}: {must} draw, got {got}")
        out = transform(*inputs) if sampler.gate is None else _call_on_copies(transform, sampler.gate, inputs)
    else:
        later, sampler.selects_later = sampler.selects_later, True
        out = transform._run(inputs, sampler)
        sampler.selects_later = later
    if sampler.gate is None or sampler.selects_later:
        return out
    return _select(sampler.gate, out, inputs if len(inputs) > 1 else inputs[0], transform)


def _draws_once(transform: Any) -> bool:
    """Return whether a transform, or a transform inside it, is known to draw once for all samples.

    A class of torchvision is recognized by the class of imgops that replaces it, a user's class by its
    ``make_params``.
    """
    if getattr(transform, "per_sample", False):
        return False
    cls = type(transform)
    return (
        (isinstance(transform, RandomTransform) and not isinstance(transform, Compose))
        or any(c in THEIR_RANDOM_CLASSES for c in cls.__mro__)
        or not is_own(cls, "make_params")
        or any(map(_draws_once, seeding.parts_of(transform)))
    )


def _shapes_around(transform: Any, inputs: tuple[Any, ...]) -> tuple[Shape, Shape] | None:
    """Return the shapes of images before and after a transform, or None if they are unknown."""
    images = [x for x in images_among(tree_flatten(inputs)[0]) if _dispatch.is_image(x)]
    is_known = isinstance(transform, OperatorTransform) and not getattr(transform, "_joins_samples", False)
    if not images or not is_known:
        return None
    shape = RandomTransform._shape_of(transform, images)
    after = _shape_after(transform, shape, SamplingProgram(None, False))
    return None if after is None else (shape, after)


def _is_neutral(transform: Any, inputs: tuple[Any, ...]) -> bool:
    """Return whether a transform with neutral parameters is known to leave its inputs as they are."""
    if not _is_own(transform) or has_hooks(transform):
        return False
    if isinstance(transform, _Container):
        return all(_is_neutral(t, inputs) for t in transform.transforms)
    shapes = _shapes_around(transform, inputs)
    if has_batches(inputs):  # the results cannot be selected
        return shapes is None or _are_equal(*shapes)
    return isinstance(transform, RandomTransform) and shapes is not None and _are_equal(*shapes)


def _are_equal(one: Any, other: Any) -> bool:
    """Return whether two shapes are known to be equal; sizes that depend on data are not."""
    return len(one) == len(other) and all(guard_or_false(a == b) for a, b in zip(one, other, strict=True))


def _require_shape(transform: Any, inputs: tuple[Any, ...]) -> None:
    """Raise if a transform that may be left out changes the size of an image."""
    shapes = _shapes_around(transform, inputs)
    if shapes is None or _are_equal(*shapes):
        return
    before, after = (
        "their own sizes"
        if (height, width) == programs.OWN_SIZES
        else f"{check.number(height)} x {check.number(width)}"
        for *_, height, width in shapes
    )
    raise_error(ValueError, f"{_REFUSAL}, got {type(transform).__name__}: {before} to {after}")


_FORMS = "the structure, shapes and dtypes"
_REFUSAL = f"RandomApply: transforms that may be left out must keep {_FORMS} of their input {WHERE}"
_SAME_RESULTS = f"transforms must give results of {_FORMS} of the first {WHERE}"


def _select(gate: Tensor, opened: Any, closed: Any, transform: Any, must: str = _REFUSAL) -> Any:
    """Select one result where a gate is open, and the other where it is closed."""
    flat_opened, structure = tree_flatten(opened)
    flat_closed, other_structure = tree_flatten(closed)
    refusal = f"{must}, got {_name_of(transform)}"
    if structure != other_structure:
        before, after = len(flat_closed), len(flat_opened)
        change = f"{before} values to {after}" if before != after else f"{before} values in another structure"
        raise_error(ValueError, f"{refusal}: {change}")
    out: list[Any] = []
    for a, b, own_gate in zip(flat_opened, flat_closed, _gates_of(gate, closed), strict=True):
        if a is not b and type(b) in BATCHES:
            is_kept = type(a) is type(b) and a.sizes is b.sizes and a.dtype == b.dtype
            raise_error(
                ValueError, f"{refusal}: images of different sizes" + " whose values changed" * is_kept
            )
        if a is b or not (isinstance(a, Tensor) or isinstance(b, Tensor)):
            is_same = a is b or (isinstance(b, (int, float, str, bytes)) and a == b)
            out.append(b if is_same else _select_object(own_gate, a, b, refusal))
            continue
        out.append(_select_value(own_gate, a, b, refusal))
    return tree_unflatten(out, structure)


def _select_object(gate: Tensor, opened: Any, closed: Any, refusal: str) -> Any:
    """Select values that are not tensors, such as labels in a list with one label for each sample."""
    text = f"{refusal}: another {type(closed).__name__}, which is not a Tensor"
    raise_in_graph(ValueError, text)
    if gate.ndim:
        raise ValueError(text)
    return opened if gate else closed


def _call_on_copies(transform: Any, gate: Tensor, inputs: tuple[Any, ...]) -> Any:
    """Call foreign code with copies of the tensors and arrays, because it may write to them.

    Values that no gate can select must not change; the originals are returned in place of their copies.
    """
    flat, structure = tree_flatten(inputs)
    given: dict[int, tuple[Any, Any]] = {}
    for i, (x, own) in enumerate(zip(flat, _gates_of(gate, inputs), strict=True)):
        is_whole = (
            own.ndim > 0 if isinstance(x, np.ndarray) else not (isinstance(x, Tensor) and _is_of(own, x))
        )
        if isinstance(x, np.ndarray):
            flat[i] = x.copy()
        elif isinstance(x, Tensor) and not x.is_nested and (is_eager() or not is_whole):
            flat[i] = _dispatch.wrap_like(subclass.plain(x).clone(), x)
        if is_whole and flat[i] is not x:
            given[id(flat[i])] = x, flat[i]
    out = transform(*tree_unflatten(flat, structure))
    if not given:
        return out
    changed = [x for x, copy in given.values() if not _have_equal_bits(x, copy)]
    if changed:
        what = f"{type(changed[0]).__name__} of shape {check.written(changed[0].shape)} to other values"
        raise_error(ValueError, f"{_REFUSAL}, got {_name_of(transform)}: {what}")
    flat, structure = tree_flatten(out)
    return tree_unflatten([given[id(x)][0] if id(x) in given else x for x in flat], structure)


def _have_equal_bits(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return a.tobytes() == b.tobytes()
    a, b = subclass.plain(a), subclass.plain(b)
    return torch.allclose(a, b, rtol=0, atol=0, equal_nan=a.is_floating_point())


def _name_of(transform: Any) -> str:
    return str(getattr(transform, "__name__", type(transform).__name__))


def _is_of(gate: Tensor, value: Tensor) -> bool:
    """Return whether a gate has a row for each row of a value, or is one number."""
    if not gate.ndim:
        return True
    if not value.ndim or isinstance(value, tv_tensors.BoundingBoxes):  # whose rows are boxes, not samples
        return False
    return not check.violates(gate.shape[0] == subclass.plain(value).shape[0])


def _gates_of(gate: Tensor, inputs: Any) -> list[Tensor]:
    """Return the gate of each flat input, or one number if the input belongs to a single sample."""
    if not gate.ndim:
        return [gate] * len(tree_flatten(inputs)[0])
    owners = samples_of(inputs, gate.shape[0])
    return [gate if owner is None else gate[owner] for owner in owners]


def _select_value(gate: Tensor, opened: Tensor, closed: Tensor, refusal: str) -> Any:
    """Select one tensor where a gate is open, and the other where it is closed."""
    if type(opened) is not type(closed):
        raise_error(ValueError, f"{refusal}: {type(closed).__name__} to {type(opened).__name__}")
    for name in ("format", "clamping_mode", "canvas_size"):
        before, after = (getattr(x, name, None) for x in (closed, opened))
        if before != after:
            before, after = (annotation_kinds.shown(x) for x in (before, after))
            raise_error(ValueError, f"{refusal}: {type(closed).__name__} of {name} {before} to {after}")
    a, b = subclass.plain(opened), subclass.plain(closed)
    if a.is_nested and b.is_nested:  # the boxes of all samples
        return _select_nested(gate, opened, closed, refusal)
    if a.shape != b.shape or a.dtype != b.dtype:
        before, after = (f"{check.written(x.shape)} of {x.dtype}" for x in (b, a))
        raise_error(ValueError, f"{refusal}: {before} to {after}")
    if not _is_of(gate, opened):
        shape, count = check.written(a.shape), check.number(gate.shape[0])
        raise_error(ValueError, f"{refusal}: a value of {shape} for {count} samples")
    where = gate.to(a.device, non_blocking=True).reshape((*gate.shape, *(1,) * (a.ndim - gate.ndim)))
    return _dispatch.wrap_like(torch.where(where, a, b), opened)


def _select_nested(gate: Tensor, opened: Tensor, closed: Tensor, refusal: str) -> Any:
    """Select nested boxes, which have one component for each sample."""
    pairs = zip(subclass.plain(opened).unbind(), subclass.plain(closed).unbind(), strict=True)
    gates = [gate[i] if gate.ndim else gate for i in range(subclass.plain(closed).size(0))]
    each = [_select_value(g, a, b, refusal) for g, (a, b) in zip(gates, pairs, strict=True)]
    out: Any = torch.nested.as_nested_tensor(each).as_subclass(type(opened))
    out.__dict__.update(opened.__dict__)
    return out


class Compose(_Container, v2.Compose):
    """Apply transforms one after the other, as torchvision's Compose does.

    The transforms sample in torchvision's order, also in a graph. With ``per_sample=True``, each sample gets
    the parameters that a loop over the batch would give it, if all sizes are known in advance: a transform
    that is not imgops' own, GaussianNoise, or a transform whose output size depends on its parameters ends
    the part of the pipeline that can be sampled at once.

    Parameters
    ----------
    transforms : sequence of callable
        The transforms, or any functions of the inputs.
    per_sample : bool
        Whether every transform inside samples separately for each image of a batch, instead of once for all
        images.
    generator : torch.Generator, optional
        This argument changes nothing, because the transforms inside draw from their own generators.
    """

    @property
    def _decodes_regions(self) -> bool:  # type: ignore[override]
        """Whether the first transform decodes regions; later transforms never get an encoded image."""
        return len(self.transforms) > 0 and getattr(self.transforms[0], "_decodes_regions", False)

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        before = self._count_samples(inputs, sampler)
        out = self._through(inputs, sampler)
        sampler.count = before
        return out

    def _back(self, results: way_back.Results, path: Key) -> way_back.Results:
        return self._back_through(results, path)

    def _plan(self, shape: Shape, program: SamplingProgram) -> Shape | None:
        inside = program.inside
        program.inside = inside or self.per_sample
        known = self._plan_through(shape, program)
        program.inside = inside
        return known


class Branches(_Container):
    """The base class of transforms whose steps take the image, or the result of an earlier step."""

    #: The name of each step, and the number of the step whose result it takes; 0 is the image.
    _branches: list[tuple[str, int]]
    #: The step whose result comes first in the output.
    _first: int

    @property
    def transforms(self) -> list[Any]:  # type: ignore[override]
        """Return the steps in the order of their draws."""
        return [getattr(self, name) for name, _ in self._branches]

    def _back(self, results: way_back.Results, path: Key) -> way_back.Results:
        return way_back.refuse(self)  # there are several results

    def _results_of(
        self, inputs: tuple[Any, ...], sampler: ParameterSampler, changes: dict[str, Callable[[Any], Any]]
    ) -> list[Any]:
        """Return the image and the results of all steps; ``changes`` replaces the functions of some steps."""
        before, covered, path = self._count_samples(inputs, sampler), sampler.covered, sampler.path
        if not covered and sampler.plans(self):
            _sample_ahead([(path, self)], inputs, sampler)
            sampler.covered = path in sampler.planned
        results = [inputs[0]]
        for i, (name, source) in enumerate(self._branches):
            sampler.path = (*path, i)
            image, change = results[source], changes.get(name)
            results.append(change(image) if change else _apply(getattr(self, name), (image,), sampler))
        sampler.count, sampler.covered, sampler.path = before, covered, path
        return results

    def _plan(self, shape: Shape, program: SamplingProgram) -> Shape | None:
        """Add the values that the steps sample; return the shape of the first result."""
        inside, path, shapes = program.inside, program.path, [shape]
        program.inside = inside or self.per_sample
        for i, (name, source) in enumerate(self._branches):
            program.path = (*path, i)
            after = _shape_after(getattr(self, name), shapes[source], program)
            if after is None:
                break
            shapes.append(after)
        program.inside, program.path = inside, path
        return shapes[self._first] if len(shapes) > len(self._branches) else None


class _Choosing(_Container):
    """A container whose parameters choose transforms; only the chosen ones sample, after the container."""

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        before = self._count_samples(inputs, sampler)
        covered = sampler.covered
        if not covered and sampler.plans(self):
            _sample_ahead([(sampler.path, self)], inputs, sampler)
            sampler.covered = sampler.path in sampler.planned
        chosen = sampler.choice(self)
        if isinstance(chosen, list):
            out = self._known(inputs, chosen, sampler)
        else:
            out = self._run_chosen(inputs, chosen, sampler)
        sampler.count, sampler.covered = before, covered
        return out

    def _known(self, inputs: tuple[Any, ...], chosen: list[float], sampler: ParameterSampler) -> Any:
        """Apply only the transforms that were chosen, in eager mode."""
        raise NotImplementedError

    def _run_chosen(self, inputs: tuple[Any, ...], chosen: Tensor, sampler: ParameterSampler) -> Any:
        """Apply all transforms; a transform that was not chosen runs with its neutral parameters."""
        raise NotImplementedError

    def _plan(self, shape: Shape, program: SamplingProgram) -> Shape | None:
        inside, path, step = program.inside, program.path, len(program.steps)
        if not program.add(self, (1, len(self.transforms), 0, 0)):
            return None
        program.inside = inside or self.per_sample
        after = self._plan_steps(shape, program, step)
        program.inside, program.path = inside, path
        return after

    def _plan_steps(self, shape: Shape, program: SamplingProgram, step: int) -> Shape | None:
        """Add the sampled values of the transforms inside; return the output shape, or None if unknown."""
        raise NotImplementedError

    def _plan_one_of(self, shape: Shape, program: SamplingProgram, step: int, column: int) -> Shape | None:
        path, found = program.path, []
        for i, transform in enumerate(self.transforms):
            before, program.path = program.narrow_gate(step, column, i), (*path, i)
            found.append(_shape_after(transform, shape, program))
            program.gate, program.path = before, path
            if found[-1] is None or (i and not _are_equal(found[-1], found[0])):
                return None
        return found[0]

    def _back_from_one_of(
        self, results: way_back.Results, chosen: float | Tensor, path: Key
    ) -> way_back.Results:
        """Return results before the transform that was chosen, for each sample if they have own choices."""
        if not isinstance(chosen, Tensor):
            return self._back_one(int(chosen), results, path) if chosen >= 0 else results
        out = results
        for i in range(len(self.transforms)):
            back = self._back_one(i, results, path)
            # All transforms give one size. If it differs from that before them, one of them was chosen.
            is_first = not i and not back.has_sizes_of(results)
            out = back if is_first else back.selected(chosen == i, out, self._select_back)
        return out

    def _select_back(self, gate: Tensor, opened: Any, closed: Any) -> Any:
        if not isinstance(opened, Tensor):
            return _select_object(gate, opened, closed, f"{type(self).__name__}: {_SAME_RESULTS}")
        return _select_value(gate, opened, closed, f"{type(self).__name__}: {_SAME_RESULTS}")

    def _one_of(self, inputs: tuple[Any, ...], chosen: Tensor, sampler: ParameterSampler) -> Any:
        """Apply all transforms in order, each only to the samples for which it was chosen."""
        if type(inputs[0]) is PendingImage:
            inputs = (inputs[0].result(),)
        if not all(_is_neutral(t, inputs) for t in self.transforms):
            return self._one_of_results(inputs, chosen, sampler)
        several, out = len(inputs) > 1, None
        later, sampler.selects_later = sampler.selects_later, False
        for i in range(len(self.transforms)):
            before = sampler.narrow_gate(chosen == i)
            out = self._one(i, inputs, sampler)
            sampler.gate = before
            inputs = out if several else (out,)
        sampler.selects_later = later
        return out

    def _one_of_results(self, inputs: tuple[Any, ...], chosen: Tensor, sampler: ParameterSampler) -> Any:
        """Apply each transform to the same inputs, and select each sample's result."""
        out: Any = None
        later, sampler.selects_later = sampler.selects_later, True
        for i, transform in enumerate(self.transforms):
            before = sampler.narrow_gate(chosen == i)
            result = self._one(i, inputs, sampler)
            result = result.result() if type(result) in (PendingImage, Windows) else result
            sampler.gate = before
            must = f"{type(self).__name__}: {_SAME_RESULTS}"
            out = _select(chosen == i, result, out, transform, must) if i else result
        sampler.selects_later = later
        if sampler.gate is None or later:
            return out
        return _select(sampler.gate, out, inputs if len(inputs) > 1 else inputs[0], self)


class _Chance:
    """The sampled number of RandomApply: 1 if its transforms are applied, else 0."""

    p: float

    @classmethod
    def _from_config(cls, **config: Any) -> Any:
        made = cls.__new__(cls)
        made.__dict__.update(config)
        return made

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        return [draws.applied(self.p)]

    def _draw_row(self, shape: Shape) -> list[float]:
        return [0.0 if seeding.is_left_out(self.p) else 1.0]

    def _draw(self, inputs: Any) -> list[float]:
        return self._draw_row((1, len(self.transforms), 0, 0))  # type: ignore[attr-defined]

    def _neutral_numbers(self, shape: Shape) -> list[float]:
        return [0.0]

    def _count_numbers(self, shape: Shape) -> int:
        return 1


class _Choice(_Chance):
    """The sampled number of RandomChoice: the index of a transform."""

    p: Any

    def _draw_row(self, shape: Shape) -> list[float]:
        weights = torch.tensor(self.p, dtype=torch.get_default_dtype(), device="cpu")
        return [float(torch.multinomial(weights, 1))]

    def _neutral_numbers(self, shape: Shape) -> list[float]:
        return [-1.0]


class _Order(_Chance):
    """The sampled numbers of RandomOrder: a permutation of as many transforms as the shape has channels."""

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        return [draws.permutation(0, range(shape[1]))]

    def _draw_row(self, shape: Shape) -> list[float]:
        return torch.randperm(shape[1], device="cpu").double().tolist()

    def _neutral_numbers(self, shape: Shape) -> list[float]:
        return [-1.0] * shape[1]

    def _count_numbers(self, shape: Shape) -> int:
        return shape[1]


class RandomApply(_Chance, _Choosing, v2.RandomApply):
    """Apply a list of transforms with a probability, as torchvision's RandomApply does.

    It applies all of them, or returns its input unchanged.

    Parameters
    ----------
    transforms : sequence of callable or ModuleList
        The transforms, in their order.
    p : float
        The probability that the transforms are applied.
    per_sample : bool
        Whether each image of a batch has its own choice and draws, instead of one choice and draw for all.
    generator : torch.Generator, optional
        Draw the choice from this generator instead of PyTorch's global one; the transforms inside use their
        own generators.
    """

    _config = ("p",)
    _described = _Chance

    def _plan_steps(self, shape: Shape, program: SamplingProgram, step: int) -> Shape | None:
        if self.p <= 0:
            return shape
        if self.p >= 1:
            return self._plan_through(shape, program)
        before = program.narrow_gate(step, 0, -1)
        after = self._plan_through(shape, program)
        program.gate = before
        return after if after is not None and _are_equal(after, shape) else None

    def _back(self, results: way_back.Results, path: Key) -> way_back.Results:
        chosen = results.choice(self, path)
        if isinstance(chosen, list):
            return self._back_through(results, path) if chosen[0] else results
        if self.p <= 0:
            return results
        back = self._back_through(results, path)
        return back if self.p >= 1 else back.selected(chosen[..., 0] > 0, results, self._select_back)

    def _known(self, inputs: tuple[Any, ...], chosen: list[float], sampler: ParameterSampler) -> Any:
        if chosen[0]:
            return self._through(inputs, sampler)
        return inputs if len(inputs) > 1 else inputs[0]

    def _run_chosen(self, inputs: tuple[Any, ...], chosen: Tensor, sampler: ParameterSampler) -> Any:
        if self.p <= 0:
            return inputs if len(inputs) > 1 else inputs[0]
        if self.p >= 1:
            return self._through(inputs, sampler)
        before, later = sampler.narrow_gate(chosen[..., 0] > 0), sampler.selects_later
        sampler.selects_later = False  # an outer container does not know this gate
        out = self._through(inputs, sampler)
        sampler.gate, sampler.selects_later = before, later
        return out


class RandomChoice(_Choice, _Choosing, v2.RandomChoice):
    """Apply one transform of a list, chosen at random, as torchvision's RandomChoice does.

    Parameters
    ----------
    transforms : sequence of callable
        The transforms; one of them is applied.
    p : list of float, optional
        The weight of each transform; the weights are scaled to a sum of 1. By default all are equal.
    per_sample : bool
        Whether each image of a batch has its own choice and draws, instead of one choice and draw for all.
    generator : torch.Generator, optional
        Draw the choice from this generator instead of PyTorch's global one; the transforms inside use their
        own generators.
    """

    _config = ("p",)
    _described = _Choice

    def _plan_steps(self, shape: Shape, program: SamplingProgram, step: int) -> Shape | None:
        return self._plan_one_of(shape, program, step, 0)

    def _back(self, results: way_back.Results, path: Key) -> way_back.Results:
        chosen = results.choice(self, path)
        one = chosen[0] if isinstance(chosen, list) else chosen[..., 0]
        return self._back_from_one_of(results, one, path)

    def _known(self, inputs: tuple[Any, ...], chosen: list[float], sampler: ParameterSampler) -> Any:
        return self._one(int(chosen[0]), inputs, sampler)

    def _run_chosen(self, inputs: tuple[Any, ...], chosen: Tensor, sampler: ParameterSampler) -> Any:
        return self._one_of(inputs, chosen[..., 0], sampler)


class RandomOrder(_Order, _Choosing, v2.RandomOrder):
    """Apply a list of transforms in a random order, as torchvision's RandomOrder does.

    Parameters
    ----------
    transforms : sequence of callable
        The transforms, each of which is applied.
    per_sample : bool
        Whether each image of a batch has its own choice and draws, instead of one choice and draw for all.
    generator : torch.Generator, optional
        Draw the choice from this generator instead of PyTorch's global one; the transforms inside use their
        own generators.
    """

    _described = _Order

    @property
    def _turns(self) -> int:
        """The number of choices, each of one transform; -1 is none of them."""
        return len(self.transforms)

    def _plan_steps(self, shape: Shape, program: SamplingProgram, step: int) -> Shape | None:
        after: Shape | None = shape
        path = program.path
        for turn in range(self._turns):
            program.path = (*path, turn)
            after = None if after is None else self._plan_one_of(after, program, step, turn)
        program.path = path
        return after

    def _back(self, results: way_back.Results, path: Key) -> way_back.Results:
        chosen = results.choice(self, path)
        turns = chosen if isinstance(chosen, list) else chosen.unbind(-1)
        for turn in reversed(range(min(len(turns), self._turns))):
            results = self._back_from_one_of(results, turns[turn], (*path, turn))
        return results

    def _known(self, inputs: tuple[Any, ...], chosen: list[float], sampler: ParameterSampler) -> Any:
        several, path = len(inputs) > 1, sampler.path
        out: Any = inputs if several else inputs[0]
        for turn, index in enumerate(chosen):
            if index < 0:
                continue
            sampler.path = (*path, turn)
            out = self._one(int(index), inputs, sampler)
            inputs = out if several else (out,)
        sampler.path = path
        return out

    def _run_chosen(self, inputs: tuple[Any, ...], chosen: Tensor, sampler: ParameterSampler) -> Any:
        several, path, out = len(inputs) > 1, sampler.path, None
        for turn in range(self._turns):
            sampler.path = (*path, turn)
            out = self._one_of(inputs, chosen[..., turn], sampler)
            inputs = out if several else (out,)
        sampler.path = path
        return out


_PENDING = (PendingImage, PendingBatch, Windows)
#: The containers inside of which an image stays pending.
_COLLECTING = (Compose, RandomApply, RandomChoice, RandomOrder)
#: The containers that a plan can have.
_WHOLE = (Compose, RandomApply)
_NEW, _MET_ONCE = object(), object()


def _make_plan(container: Any, image: Tensor) -> plans.Plan | None:
    """Return the plan of a pipeline for images of a shape; None if native code does not have all of it."""
    try:
        found = _prepare(container, image)
        return None if found is None else plans.Plan(*found)
    except (TypeError, ValueError):  # arguments that the constructors refuse
        return None


def _prepare(container: Any, image: Tensor) -> tuple[Any, ...] | None:
    """Return what a pipeline draws for images of a shape, its program, tables and transforms.

    None means that native code does not have all of the pipeline.
    """
    sampling = SamplingProgram(image.shape[0] if image.ndim > 3 else None, False)
    if not container._description or container._plan(container._shape_of([image]), sampling) is None:
        return None
    if bool(sampling.is_per_sample) is not bool(container.per_sample and sampling.steps):
        return None
    ends = list(accumulate(sampling.sizes))
    starts = [end - size for end, size in zip(ends, sampling.sizes, strict=True)]
    columns = dict(zip(sampling.keys, map(Columns, starts, ends), strict=True))
    program, parts = ImageProgram(image), [container]
    copying: list[tuple[int, ...]] = []
    found = _add_all(container, program, columns, (), parts, copying, _chance_of(container, columns, ()))
    if found is None or not program.steps or program.columns:
        return None
    return sampling, program, found[0] if found else None, parts, copying


def _chance_of(container: Any, columns: dict[Key, Columns], path: Key) -> tuple[int, ...]:
    """Return the column that says whether a container applies its transforms, if it may skip them."""
    may_skip = type(container) is RandomApply and 0 < container.p < 1
    return (columns[path].start,) if may_skip else ()


def _add_all(
    container: Any,
    program: ImageProgram,
    columns: dict[Key, Columns],
    path: Key,
    parts: list[Any],
    copying: list[tuple[int, ...]],
    chances: tuple[int, ...],
) -> list[Tensor] | None:
    """Add the transforms of a container to a program, and to ``parts``; None if it cannot have one of them.

    The result has the table of floats that follows the steps, if there is one. ``chances`` are the columns
    that say whether a call skips the transforms: then each of them needs numbers that change nothing, and
    keeps the size. ``copying`` gets those of the transforms that give a new image in any case.
    """
    if type(container) is RandomApply and container.p <= 0:
        return []
    transforms, image = container.transforms, program.image
    for at, transform in enumerate(transforms):
        parts.append(transform)
        if type(transform) in _TO_FLOAT:
            table, count = _table_of(transforms[at : at + 2], image, alone=True)
            parts += transforms[at + 1 : at + count]
            is_end = not path and not chances and at + count == len(transforms)
            return [table] if table is not None and is_end else None
        if type(transform) in _WHOLE:
            if has_hooks(transform) or not _is_own(transform):
                return None
            inside = (*path, at)
            own = *chances, *_chance_of(transform, columns, inside)
            if _add_all(transform, program, columns, inside, parts, copying, own) != []:
                return None
            continue
        if not has_usual_path(transform) or transform._converts_to is not None:
            return None
        draws_numbers = isinstance(transform, RandomTransform)
        numbers: Any = columns.get((*path, at)) if draws_numbers else []
        if numbers is None or not transform._supports(image) or (chances and not draws_numbers):
            return None
        before, first = (program.height, program.width), len(program.steps)
        try:
            transform.check_inputs([image])
            added = transform._add_to(program, Params(before, numbers), Tensor)
        except (TypeError, ValueError):  # ``Columns`` can only be sliced, or the image is refused
            return None
        if not added or (chances and (program.height, program.width) != before):
            return None
        if program.copies_from(first):
            copying.append(chances)
    return []


# -- a pipeline as one operator of a graph -------------------------------------------------------------


def _in_graph(container: Any, image: Tensor) -> Tensor | None:
    """Return the result of one operator that draws and runs a pipeline; None if there is none.

    The graph is for one shape: a graph for any shape has an operator that draws and one that runs the steps.
    """
    if not accepts_in_graph(image) or not all(map(has_static_value, image.shape)):
        return None
    versions = _versions(container)
    if versions < 0:
        return None
    plan = _plan_in_graph(container._site, tuple(image.shape), layout.is_interleaved(image), versions)
    if not plan:
        return None
    transforms, table = container.transforms, None
    last = 2 if type(transforms[-1]) in _NORMALIZE else int(type(transforms[-1]) in _TO_FLOAT)
    if last:
        table, _ = _table_of(transforms[-last:], image, alone=True)
    # dynamo cannot guard a string that a constant function returns; it can guard a concatenation.
    return run_pipeline(image, table, container._site, plan + "\n")


def _versions(container: Any) -> int:
    """Return a number that is another one when a transform changes, so that a graph is made again.

    It is -1 if there is a hook. The numbers of Normalize are inputs of the graph.
    """
    total: int = container._version
    for transform in container.transforms:
        total = total * 31 % (1 << 50)  # another order is another number
        if not isinstance(transform, OperatorTransform) or not _runs_own_code(transform):
            return -1
        if type(transform) not in _NORMALIZE:
            total += transform._version
        if type(transform) in _WHOLE:
            inside = _versions(transform)
            if inside < 0:
                return -1
            total += inside
    return total


@constant_in_graphs
def _plan_in_graph(site: int, shape: tuple[int, ...], interleaved: bool, versions: int) -> str:
    """Return the plan of a pipeline, found by its site, as the operator takes it; "" if there is none."""
    container = SITES.get(site)
    image = torch.empty(shape, dtype=torch.uint8, device="cpu")
    found = None if container is None else _prepare(container, layout.in_format(image, interleaved))
    if found is None:
        return ""
    sampling, program, *_ = found
    if is_exporting() and any(sampling.generators):  # they are this process's, which raises
        return ""
    count = shape[0] if sampling.is_per_sample else 1
    return json.dumps([count, sampling.text, sampling.lists, program.steps])
