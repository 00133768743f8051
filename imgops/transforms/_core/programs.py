"""Programs that list what a pipeline samples, and the operators that run them in a graph.

torchvision's own ``make_params`` samples the parameters, so that equal seeds give equal parameters; or native
code, with the same draws, for the transforms that have a rule (:mod:`imgops.transforms._core.draws`).
A :class:`SamplingProgram` lists what a pipeline will sample, as far as it is known before any transform is
applied; :func:`run_program` samples it. In eager mode this is a Python call. A compiler can neither trace
this code nor keep its order, so in a graph it runs inside one operator, ``imgops_transforms::sample``.
"""

from __future__ import annotations

import json
import math
import os
import threading
import weakref
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from itertools import accumulate, groupby
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from imgops._operator.declare import operator
from imgops.transforms._core import annotation_kinds, draws, seeding
from imgops.transforms._core.parameters import Key, Shape

#: The height and width that stand in a shape for those of images of different sizes.
OWN_SIZES = (-1, -1)

#: handle -> another library's code that draws the parameters of a transform in the place of its own.
SOURCES: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


# -- a transform as text --------------------------------------------------------------------------


def description_of(transform: Any) -> str:
    """Return as JSON the class of a transform and the arguments that its parameters depend on."""
    config = {name: plain(getattr(transform, name)) for name in transform._config}
    source = getattr(transform, "_source", None)
    if getattr(transform, "_draws_itself", False):
        source = transform.__dict__["_own_draws"] = _OwnDraws(transform)
    found = [] if source is None else [source.handle]
    described = type(transform)._described
    return json.dumps([described.__module__, described.__qualname__, config, *found])


class _OwnDraws:
    """Draw in programs by a transform whose drawing code a user has overridden."""

    def __init__(self, transform: Any) -> None:
        self.transform, self.handle = weakref.proxy(transform), new_handle()
        SOURCES[self.handle] = self

    def numbers(self, _: Any, shape: Shape, inputs: Sequence[Any] = ()) -> Any:
        """Draw the numbers for an image of a shape."""
        return self.transform._draw_row(shape)


def plain(value: Any) -> Any:
    """Return an argument as JSON can have it; lists are copies."""
    if isinstance(value, (Tensor, np.ndarray)):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value.value if hasattr(value, "value") else value


@lru_cache(maxsize=1024)
def from_description(text: str) -> Any:
    module, name, config, *source = json.loads(text)
    if not module.startswith("imgops."):
        raise ValueError(f"sample: program must name classes of imgops, got {module}.{name}")
    cls = getattr(import_module(module), name)
    made = getattr(cls, "_from_config", cls)(**config)
    if source:  # a proxy, so that what this cache holds keeps no pipeline alive
        made.__dict__["_source"] = weakref.proxy(_find(SOURCES, source[0]))
    return made


def _find(known: Any, handle: int) -> Any:
    if handle not in known:
        got = "that of another process or of a deleted transform; export a program with generator=None"
        raise ValueError(f"sample: generator must be one of this process, got {got}")
    return known[handle]


# -- generators -----------------------------------------------------------------------------------

_generators: dict[int, torch.Generator] = {}
#: The finalizers that forget generators, by handle.
_ends: dict[int, weakref.finalize[..., Any]] = {}
#: The handles of generators that were made before this worker started, and that it has yet to reseed.
_brought: set[int] = set()
_parting_lock = threading.RLock()
seeding.hold_at_fork(_parting_lock)


def new_handle() -> int:
    """Return a number that names an object of this process, and none in a process that loads a program."""
    return int.from_bytes(os.urandom(7), "little") | 1


def handle_of(owner: Any, generator: torch.Generator | None, before: int) -> int:
    """Return the number by which the operators find a transform's generator; 0 for the global one.

    ``before`` is the number of the generator that the transform had.
    """
    if before and _generators.get(before) is generator:
        return before
    if generator is not None and (
        not isinstance(generator, torch.Generator) or generator.device.type != "cpu"
    ):
        got = f"one on {generator.device}" if isinstance(generator, torch.Generator) else repr(generator)
        raise TypeError(f"{type(owner).__name__}: generator must be a torch.Generator on the CPU, got {got}")
    if before:
        _ends.pop(before)()
    if generator is None or generator is torch.default_generator:
        return 0
    handle = new_handle()
    _generators[handle] = generator
    if get_worker_info() is None:
        _brought.add(handle)
    _ends[handle] = weakref.finalize(owner, _forget, handle)
    return handle


def _forget(handle: int) -> None:
    """Forget a generator whose transform is gone, or has another one now."""
    for known in (_generators, _ends):
        known.pop(handle, None)
    _brought.discard(handle)


def generator_of(handle: int) -> torch.Generator | None:
    """Return a transform's generator; None for the global one."""
    if not handle:
        return None
    worker = get_worker_info() if _brought else None
    if worker is not None:
        _part_ways(worker.seed)
    return _find(_generators, handle)


def _reduce_generator(generator: torch.Generator) -> tuple[Any, ...]:
    """Pickle a generator for a spawned process, with its state as bytes.

    PyTorch itself would use a tensor in shared memory, which is gone before the process has started.
    """
    return _restore_generator, (str(generator.device), generator.get_state().numpy().tobytes())


def _restore_generator(device: str, state: bytes) -> torch.Generator:
    generator = torch.Generator(device)
    generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
    return generator


ForkingPickler.register(torch.Generator, _reduce_generator)


def _part_ways(seed: int) -> None:
    """Reseed the generators that a DataLoader worker got with its transforms, so that its draws differ.

    Every worker gets a copy of a generator in the same state, in every epoch that starts workers. The seed of
    the worker, which the DataLoader drew, is different each time.
    """
    with _parting_lock:
        found = [_generators.get(handle) for handle in tuple(_brought)]
        for generator in {id(g): g for g in found if g is not None}.values():
            state = generator.get_state().numpy().tobytes()
            generator.manual_seed(seeding.seed_of((state, seed)))
        _brought.clear()


# -- programs -------------------------------------------------------------------------------------


class SamplingProgram:
    """A list of what several transforms will sample, made before any of them is applied.

    ``add`` is called in the order in which the transforms will ask for their parameters, each under its key:
    the indices of the transform in its containers, from the outermost one inwards. ``gate`` holds the
    conditions under which a step is sampled: columns of earlier steps, ``(step, column, value)``, with -1 for
    any value above 0. In one program either each sample has parameters of its own, or all share them.
    """

    def __init__(self, batch: int | None, inside: bool) -> None:
        self.batch = batch
        self.inside = inside  # whether this is inside of a container with parameters for each sample
        self.is_per_sample: bool | None = None
        self.path: Key = ()
        self.site = -1  # that of the first transform, so that equal calls of two pipelines are not merged
        self.gate: tuple[int, ...] = ()
        self.steps: list[tuple[Key, Any, int, int]] = []  # with the height and width of their images
        self.descriptions: list[str] = []
        self.sizes: list[int] = []
        self.shapes: list[int] = []
        self.generators: list[int] = []
        self.conditions: list[int] = []
        #: The descriptions of the transforms that have changed the sizes of images of different sizes.
        self.resizes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The descriptions of the transforms, one in each line, with those in ``resizes`` after tabs."""
        return "\n".join(self.descriptions)

    @property
    def lists(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """The numbers of columns, the shapes, the generators and the conditions of the steps."""
        return self.sizes, self.shapes, self.generators, self.conditions

    @property
    def keys(self) -> list[Key]:
        return [step[0] for step in self.steps]

    def add(self, transform: Any, shape: Shape) -> bool:
        """Add a transform; return False if this program cannot sample its parameters."""
        each = self.batch is not None and (self.inside or transform.per_sample)
        if not transform._description or (self.is_per_sample is not None and self.is_per_sample != each):
            return False
        self.is_per_sample = each
        self.site = self.site if self.steps else transform._site
        self.steps.append((self.path, transform, shape[2], shape[3]))
        resizes = self.resizes if tuple(shape[2:]) == OWN_SIZES else ()
        self.descriptions.append("\t".join((transform._description, *resizes)))
        shape = (1, *shape[1:]) if each else tuple(shape)
        self.sizes.append(transform._count_numbers(shape))
        self.shapes.extend(shape)
        self.generators.append(transform._generator_handle)
        self.conditions.extend((len(self.gate) // 3, *self.gate))
        return True

    def resize(self, transform: Any) -> bool:
        """Note that a transform gives each image another size; return False if only some samples get one."""
        self.resizes = (*self.resizes, transform._description)
        return not self.gate

    def narrow_gate(self, step: int, column: int, value: int) -> tuple[int, ...]:
        """Add a condition on a column to the gate of the next steps; return the former gate."""
        before = self.gate
        self.gate = (*before, step, column, value)
        return before

    def state(self) -> tuple[int, int, tuple[str, ...]]:
        return len(self.steps), len(self.conditions), self.resizes

    def forget(self, state: tuple[int, int, tuple[str, ...]]) -> None:
        """Remove the steps that were added after an earlier ``state()``."""
        steps, conditions, self.resizes = state
        del self.steps[steps:], self.descriptions[steps:], self.sizes[steps:], self.generators[steps:]
        del self.shapes[4 * steps :], self.conditions[conditions:]


class _Step:
    """A transform of a running program: how it draws its numbers, and where they start in a row."""

    def __init__(
        self,
        description: str,
        shape: Shape,
        generator: int,
        start: int,
        conditions: Sequence[tuple[int, int]],
    ) -> None:
        transform, *resizes = map(from_description, description.split("\t"))
        self.resizes = tuple(resizes)
        self.transform, self.start, self.conditions, self.generator = transform, start, conditions, generator
        source = getattr(transform, "_source", None)
        self._draw_row = (
            transform._draw_row if source is None else lambda shape: source.numbers(transform, shape)
        )
        self.shape, self.has_own_sizes = shape, tuple(shape[2:]) == OWN_SIZES
        known: Any = (*shape[:2], *draws.ANY_SIZE) if self.has_own_sizes else shape
        code = draws.code_of(transform, known, start)
        self.code = None if code is None else draws.under(conditions, code)
        self._finish = getattr(transform, "_numbers_of_draw", None)
        neutral = self.neutral((1, 1))
        self.stop = start + len(neutral)
        #: Whether the first number is NaN before the native code draws, to mark what is not drawn.
        self.is_marked = self._finish is not None or neutral != self.neutral((1 << 20, 1 << 21))
        self.native_neutral = [math.nan, *neutral[1:]] if self.is_marked else neutral

    def shape_of(self, size: Sequence[int]) -> Shape:
        """Return the shape for one sample of a batch whose images may differ in size."""
        return (*self.shape[:2], *size) if self.has_own_sizes else self.shape

    def neutral(self, size: Sequence[int]) -> list[float]:
        return self.transform._neutral_numbers(self.shape_of(size))  # type: ignore[no-any-return]

    def is_open(self, row: np.ndarray) -> bool:
        """Return whether the numbers of earlier steps of a sample meet the conditions of this one."""
        for column, value in self.conditions:
            if not (row[column] > 0 if value < 0 else row[column] == value):
                return False
        return True

    def draw(self, row: np.ndarray, is_open: bool, size: Sequence[int]) -> None:
        """Draw the numbers of one sample by torchvision's code."""
        numbers: Any = None
        if is_open and (not self.conditions or self.is_open(row)):
            shape = self.shape_of(size)
            if not self.generator:
                numbers = self._draw_row(shape)
            else:
                with seeding.exchange_generator(generator_of(self.generator)):
                    numbers = self._draw_row(shape)
        if isinstance(numbers, Tensor):
            numbers = numbers.cpu()
        row[self.start : self.stop] = self.neutral(size) if numbers is None else numbers

    def finish(self, rows: np.ndarray, sizes: Sequence[Sequence[int]]) -> None:
        """Compute the numbers of samples from what the native code has drawn for them."""
        if not self.is_marked:
            return
        columns = rows[:, self.start : self.stop]
        if self._finish is None:
            for n in np.flatnonzero(np.isnan(columns[:, 0])).tolist():
                columns[n] = self.neutral(sizes[n])
            return
        columns[:] = [
            self.neutral(size) if math.isnan(drawn[0]) else self._finish(drawn, self.shape_of(size))
            for drawn, size in zip(columns.tolist(), sizes, strict=True)
        ]


class _Part:
    """Steps of a program that follow each other, and that either native code or torchvision's draws.

    They are for images of the same sizes.
    """

    def __init__(self, steps: Sequence[_Step], is_native: bool) -> None:
        self.steps, self.code, self.resizes = steps, None, steps[0].resizes
        if is_native:
            numbers = [n for step in steps for n in step.code.numbers]  # type: ignore[union-attr]
            self.code = np.array(numbers, dtype=np.float64)
        self.neutral = np.array([n for step in steps for n in step.native_neutral], dtype=np.float64)

    def size_of(self, size: Sequence[int]) -> Sequence[int]:
        """Return the size that an image has when the steps get it."""
        for transform in self.resizes:
            size = transform._out_size(*size)
        return size

    def draw(self, row: np.ndarray, generator: torch.Generator, size: Sequence[int]) -> None:
        """Draw the numbers of one sample, whose gate is open."""
        size = self.size_of(size)
        if self.code is not None:
            row[self.steps[0].start : self.steps[-1].stop] = self.neutral
            if draws.draw_row(generator, self.code, np.array(size, dtype=np.float64), row):
                for step in self.steps:
                    step.finish(row[None], [size])
                return
        for step in self.steps:
            step.draw(row, True, size)


def _parts_of(steps: Sequence[_Step], is_native: bool) -> list[_Part]:
    """Divide steps into parts; only a program without other steps has parts of few native draws."""
    all_coded = all(step.code is not None for step in steps)
    parts = []
    for (is_coded, _), found in groupby(steps, lambda s: (is_native and s.code is not None, s.resizes)):
        group = list(found)
        calls = sum(step.code.calls for step in group if step.code is not None)
        parts.append(_Part(group, is_coded and (all_coded or calls >= draws.FEWEST_CALLS)))
    return parts


class _Program:
    """The steps of a program, and the parts in which they are drawn."""

    def __init__(self, steps: list[_Step]) -> None:
        self.steps = steps
        self.varies = any(step.has_own_sizes for step in steps)
        self.parts, self.in_python = _parts_of(steps, True), _parts_of(steps, False)
        self.handles = {step.generator for step in steps}

    def generator(self) -> torch.Generator | None:
        """Return the generator of all steps, None if they have several or if their code must be called."""
        if not draws.can_draw():
            return None
        first, *others = [generator_of(handle) or torch.default_generator for handle in self.handles]
        return first if all(other is first for other in others) else None


@lru_cache(maxsize=256)
def _program(
    program: str,
    sizes: Sequence[int],
    shapes: Sequence[int],
    generators: Sequence[int],
    conditions: Sequence[int],
) -> _Program:
    steps, at = [], 0
    starts = [0, *accumulate(sizes)]
    for i, text in enumerate(program.splitlines()):
        gate = conditions[at + 1 : at + 1 + 3 * conditions[at]]
        at += 1 + 3 * conditions[at]
        gates = [(starts[s] + c, v) for s, c, v in zip(gate[::3], gate[1::3], gate[2::3], strict=True)]
        steps.append(_Step(text, tuple(shapes[4 * i : 4 * i + 4]), generators[i], starts[i], gates))
    return _Program(steps)


def run_program(
    out: Tensor,
    gate: Tensor,
    image_sizes: Tensor | None,
    sizes: Sequence[int],
    shapes: Sequence[int],
    generators: Sequence[int],
    conditions: Sequence[int],
    program: str,
) -> None:
    """Sample all parameters: for each sample in turn, as a loop over a batch would, step by step.

    ``image_sizes`` are the heights and widths of packed images.
    """
    found = prepared(program, sizes, shapes, generators, conditions)
    rows = np.empty((len(out), sum(sizes)))
    each_size = image_sizes.tolist() if found.varies and image_sizes is not None else None
    sample_rows(found, rows, gate.expand(len(out)).numpy().astype(np.uint8), each_size)
    out.copy_(torch.from_numpy(rows))


def prepared(
    program: str,
    sizes: Sequence[int],
    shapes: Sequence[int],
    generators: Sequence[int],
    conditions: Sequence[int],
) -> Any:
    """Return a program in the form that ``sample_rows`` takes."""
    return _program(program, tuple(sizes), tuple(shapes), tuple(generators), tuple(conditions))


def sample_rows(
    found: _Program,
    rows: np.ndarray,
    is_open: np.ndarray | None = None,
    each_size: Sequence[Sequence[int]] | None = None,
) -> None:
    """Sample a row of numbers for each sample; those whose gate is not open are neutral."""
    is_open = np.ones(len(rows), np.uint8) if is_open is None else is_open
    each_size = [(1, 1)] * len(rows) if each_size is None else each_size
    keyed = seeding.sample_generators(len(rows))
    generator = found.generator()
    parts = found.in_python if generator is None else found.parts
    if keyed is None and generator is not None and len(parts) == 1 and parts[0].code is not None:
        _draw_batch(parts[0], rows, is_open, each_size, generator)
        return
    for n in range(len(rows)):
        key = None if keyed is None else keyed[n]
        _draw_sample(parts, rows[n], bool(is_open[n]), each_size[n], generator, key)


def _draw_batch(
    part: _Part,
    rows: np.ndarray,
    is_open: np.ndarray,
    each_size: Sequence[Sequence[int]],
    generator: torch.Generator,
) -> None:
    """Draw all samples by native code, except for those that torchvision's code must draw."""
    has_own_sizes = any(step.has_own_sizes for step in part.steps)
    each_size, first = [part.size_of(size) for size in each_size] if part.resizes else each_size, 0
    sizes = np.array(each_size, dtype=np.float64) if has_own_sizes else draws.NO_SIZE
    while first < len(rows):
        code: Any = part.code
        done = draws.draw(generator, code, part.neutral, is_open, sizes, rows, first)
        for step in part.steps:
            step.finish(rows[first:done], each_size[first:done])
            if done < len(rows):
                step.draw(rows[done], True, each_size[done])
        first = done + 1


def _draw_sample(
    parts: Sequence[_Part],
    row: np.ndarray,
    is_open: bool,
    size: Sequence[int],
    generator: torch.Generator | None,
    key: torch.Generator | None,
) -> None:
    """Draw the numbers of one sample, from the generator of its key if it has one."""
    if not is_open:
        for part in parts:
            for step in part.steps:
                row[step.start : step.stop] = step.neutral(part.size_of(size))
        return
    drawn_from = torch.default_generator if generator is None else generator
    if key is None:
        for part in parts:
            part.draw(row, drawn_from, size)
        return
    with seeding.exchange_generator(key):
        for part in parts:
            part.draw(row, drawn_from, size)


def _sample_fake(gate: Tensor, _previous: Tensor, _own: Any, count: int, sizes: Any, *_: Any) -> Tensor:
    return torch.empty((count, sum(sizes)), dtype=torch.float64, device=gate.device)


def _sample_kernel(
    out: Tensor,
    gate: Tensor,
    previous: Tensor,
    image_sizes: Tensor | None,
    count: int,
    sizes: Sequence[int],
    shapes: Sequence[int],
    generators: Sequence[int],
    conditions: Sequence[int],
    site: int,
    program: str,
) -> None:
    run_program(out, gate, image_sizes, sizes, shapes, generators, conditions, program)


def _sample_rule(op: Any, info: Any, in_dims: Any, gate: Tensor, previous: Tensor, *rest: Any) -> Any:
    """Sample parameters for each sample of vmap, as with ``per_sample``."""
    image_sizes, count, *options = rest
    if count != 1:
        must = "per_sample must be False under vmap, whose samples have parameters of their own"
        raise NotImplementedError(f"sample: {must}, got True")
    gate = gate.movedim(in_dims[0], 0) if in_dims[0] is not None else gate
    before = previous if in_dims[1] is None else previous.select(in_dims[1], 0)
    each = op(gate.expand(info.batch_size), before, image_sizes, info.batch_size, *options)
    return each.unsqueeze(1), 0


_sample_rule.is_draw_alone = True  # type: ignore[attr-defined]


@operator(
    "imgops_transforms::sample", kernel=_sample_kernel, fake=_sample_fake, vmap=_sample_rule, random=True
)
def sample(
    gate: Tensor,
    previous: Tensor,
    image_sizes: Tensor | None,
    count: int,
    sizes: Sequence[int],
    shapes: Sequence[int],
    generators: Sequence[int],
    conditions: Sequence[int],
    site: int,
    program: str,
) -> Tensor: ...


def _annotations_fake(annotations: Tensor, _gate: Tensor, _previous: Tensor, count: int, *_: Any) -> Tensor:
    return torch.empty((count,), dtype=torch.float64, device=annotations.device)


def _annotations_kernel(
    out: Tensor,
    annotations: Tensor,
    gate: Tensor,
    previous: Tensor,
    count: int,
    height: int,
    width: int,
    generator: int,
    site: int,
    description: str,
    kind: str,
) -> None:
    transform = from_description(description)
    image = torch.empty((3, height, width), device="meta", dtype=torch.float32)
    numbers = None
    if gate.item():
        inputs = [image, annotation_kinds.tv_tensor(annotations.detach(), kind, (height, width))]
        with seeding.exchange_generator(generator_of(generator)):
            numbers = transform._draw_numbers(inputs)
    if numbers is None:
        numbers = transform._neutral_from_annotations(count, height, width)
    out.copy_(torch.tensor(numbers, dtype=torch.float64, device="cpu"))


@operator(
    "imgops_transforms::sample_from_annotations",
    kernel=_annotations_kernel,
    fake=_annotations_fake,
    random=True,
)
def sample_from_annotations(
    annotations: Tensor,
    gate: Tensor,
    previous: Tensor,
    count: int,
    height: int,
    width: int,
    generator: int,
    site: int,
    description: str,
    kind: str,
) -> Tensor: ...


def normal_fake(image: Tensor, gate: Tensor, previous: Tensor, generator: int, site: int) -> Tensor:
    return torch.empty_like(image, dtype=image.dtype if image.dtype.is_floating_point else torch.float32)


def normal_kernel(
    out: Tensor, image: Tensor, gate: Tensor, previous: Tensor, generator: int, site: int
) -> None:
    with seeding.exchange_generator(generator_of(generator)):
        if gate.ndim == 0:
            seeding.noise(out) if gate.item() else out.zero_()
            return
        key_generators = seeding.sample_generators(len(out))
        for n, (sample, is_open) in enumerate(zip(out, gate.tolist(), strict=True)):
            with seeding.exchange_generator(key_generators[n] if key_generators else None):
                seeding.noise(sample) if is_open else sample.zero_()


def _normal_rule(op: Any, info: Any, in_dims: Any, *args: Any) -> Any:
    image, gate, previous, *options = args
    size = info.batch_size
    image = image.expand(size, *image.shape) if in_dims[0] is None else image.movedim(in_dims[0], 0)
    gate = gate.expand(size) if in_dims[1] is None else gate.movedim(in_dims[1], 0)
    before = previous if in_dims[2] is None else previous.select(in_dims[2], 0)
    return op(image, gate, before, *options), 0


_normal_rule.is_draw_alone = True  # type: ignore[attr-defined]


@operator(
    "imgops_transforms::normal",
    kernel=normal_kernel,
    vmap=_normal_rule,
    cuda=normal_kernel,
    fake=normal_fake,
    random=True,
)
def normal(image: Tensor, gate: Tensor, previous: Tensor, generator: int, site: int) -> Tensor: ...
