"""Sampling parameters: once for eager mode, for compiled graphs and for samples that have their own.

What is sampled is torchvision's (:mod:`imgops.transforms._program`). Eager mode and a graph part in one
place, :meth:`ParameterSampler.draws_in_python`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from imgops._torch_private import in_vmap, is_vmapped, tree_leaves
from imgops.kernels import transfer
from imgops.transforms import _program
from imgops.transforms._program import Key, SamplingProgram, Shape, drawing_from


class Table:
    """What a program sampled for each image of a batch, as operators take it: in one copy on the device.

    The arithmetic between (angles become matrices) is done on the CPU, where small operations cost less.
    """

    def __init__(self, program: SamplingProgram, each: Sequence[Tensor]) -> None:
        self.program, self.each = program, each
        self.device: torch.device | None = None
        self.parts: dict[Key, Tensor] = {}

    def on(self, device: torch.device, key: Key) -> Tensor:
        """The numbers of one transform."""
        if self.device != device:
            known = zip(self.program.transforms, self.each, strict=True)
            ready = [t.prepared(numbers, height, width) for (t, height, width), numbers in known]
            (moved,) = moved_to(device, [torch.cat(ready, -1)])
            parts = moved.split([r.shape[-1] for r in ready], -1)
            self.parts, self.device = dict(zip(self.program.keys, parts, strict=True)), device
        return self.parts[key]


def is_on_host(image: Tensor) -> bool:
    return image.is_cpu


def moved_to(device: torch.device, tensors: list[Tensor]) -> list[Tensor]:
    """On a device, without waiting for it; from pinned memory where this is no graph."""
    if torch.compiler.is_compiling() or device.type != "cuda":
        return [x.to(device, non_blocking=device.type == "cuda") for x in tensors]
    return transfer.move_together(device, tensors)


class Params:
    """The parameters of one transform in one call.

    ``values`` are torchvision's, where one draw in eager mode gave them; ``numbers`` the same as a tensor,
    ``(n,)`` or ``(N, n)``, packed when first asked for. ``canvas`` is the size of the image they are for.
    """

    __slots__ = ("_key", "_numbers", "_table", "_transform", "canvas", "noise", "sizes", "values")

    def __init__(
        self,
        canvas: tuple[int, int],
        values: dict[str, Any] | None = None,
        numbers: Tensor | None = None,
        transform: Any = None,
        table: Table | None = None,
        key: Key = (),
    ) -> None:
        self.canvas, self.values, self._numbers, self._transform = canvas, values, numbers, transform
        self._table, self._key = table, key
        self.noise: list[Tensor] = []
        self.sizes: tuple[int, ...] | None = None

    @property
    def numbers(self) -> Tensor:
        if self._numbers is None:
            packed = self._transform.pack_params(self.values, *self.canvas)
            if not isinstance(packed, Tensor):
                packed = torch.tensor(packed, dtype=torch.float64, device="cpu")
            self._numbers = packed
        return self._numbers

    @property
    def each(self) -> bool:
        """Whether each sample has parameters of its own."""
        return self._numbers is not None and self._numbers.ndim == 2

    def beside(self, image: Tensor) -> Tensor:
        """What operators take, with dimensions for what else an image has before its channels.

        On the CPU, but where each image of a batch on a device has parameters of its own: beside it.
        """
        height, width = image.shape[-2:]
        if self._table is not None and not is_on_host(image) and (height, width) == self.canvas:
            numbers = self._table.on(image.device, self._key)
        elif self._transform is not None:
            numbers = self._transform.prepared(self.numbers, height, width)
        else:
            numbers = self.numbers
        if numbers.ndim == 1 or image.ndim == 4:
            return numbers
        return numbers.reshape(numbers.shape[0], *(1,) * (image.ndim - 4), numbers.shape[-1])


class ParameterSampler:
    """The parameters of one call of a pipeline.

    Each operator call that samples knows the one before it, so that none can be moved or merged with another.
    ``path`` is the key of the transform that is applied; ``gate`` says which samples are open at all: a
    transform inside of RandomApply samples only where it was chosen. ``count`` is the number of samples that
    have parameters of their own, None where all share them. ``ready`` holds the parameters that were sampled
    ahead, by key; ``record``, where a caller wants them, those that were used.
    """

    __slots__ = (
        *(
            "count",
            "covered",
            "gate",
            "last",
            "open",
            "path",
            "planned",
            "ready",
            "record",
            "replays",
            "table",
        ),
    )

    def __init__(self, record: dict[Key, Any] | None = None, replay: dict[Key, Any] | None = None) -> None:
        #: Under vmap, true for each of its samples: what is sampled beside it is sampled for each.
        self.open: Tensor | None = None
        self.gate: Tensor | None = None
        self.count: int | None = None
        self.last: Tensor | None = None
        self.path: Key = ()
        self.ready: dict[Key, Tensor] = {}
        self.table: Table | None = None
        self.planned: set[Key] = set()
        self.covered = False
        self.record = record
        self.replays = replay

    @classmethod
    def of(cls, inputs: tuple[Any, ...]) -> ParameterSampler:
        """For a call with these inputs."""
        sampler = cls()
        if in_vmap():
            images = [x for x in tree_leaves(inputs) if isinstance(x, Tensor) and is_vmapped(x)]
            sampler.open = images[0].new_ones((), dtype=torch.bool, device="cpu") if images else None
        return sampler

    def draws_in_python(self) -> bool:
        """The one place where eager mode and a graph part: whether PyTorch's generator can be used here."""
        return self.open is None and not torch.compiler.is_compiling()

    def _opened(self) -> Tensor:
        """Where parameters are sampled at all."""
        whole = torch.ones((), dtype=torch.bool, device="cpu") if self.open is None else self.open
        return whole if self.gate is None else whole & self.gate

    def params(self, transform: Any, inputs: list[Any]) -> Params | None:
        """What the transform is to do; None where that is nothing, which only eager mode can know."""
        if self.replays is not None:
            return self._again(transform, inputs)
        numbers = self.ready.get(self.path) if self.ready else None
        if numbers is None and self.count is None and self.gate is None and self.draws_in_python():
            found = _sampled(transform, inputs)
        else:
            shape = transform.shape_of(inputs)
            table = None if numbers is None else self.table
            if numbers is None:
                numbers = self._single(transform, shape)
            found = Params((shape[2], shape[3]), None, numbers, transform, table, self.path)
        if self.record is not None:
            self.record[self.path] = found
        return found

    def draws_once(self) -> bool:
        """Whether this is a plain call in eager mode: each transform samples once, when it is applied."""
        unusual = self.count is not None or self.gate is not None or self.ready
        return not (unusual or self.replays is not None or self.record is not None) and self.draws_in_python()

    def plans(self, transform: Any) -> bool:
        """Whether to sample ahead: in a graph in one operator, of a batch sample by sample."""
        if self.replays is not None or not hasattr(transform, "per_sample"):
            return False
        return self.count is not None or transform.per_sample or not self.draws_in_python()

    def choice(self, container: Any) -> list[float] | Tensor:
        """What a container samples: in eager mode a list, else numbers, ``(n,)`` or ``(N, n)``."""
        if self.replays is not None:
            return self.replays[self.path]
        numbers: Any = self.ready.get(self.path) if self.ready else None
        length = container._count(1, 0, 0, 0)
        if numbers is None and self.count is None and self.gate is None and self.draws_in_python():
            with drawing_from(container._generator_handle):
                numbers = container._numbers(1, length, 0, 0)
        elif numbers is None:
            numbers = self._single(container, (1, length, 0, 0))
        if self.record is not None:
            self.record[self.path] = numbers
        return numbers

    def noise(self, transform: Any, image: Tensor) -> Tensor:
        """Standard normal noise of the shape of an image, drawn in its turn."""
        gate = self._opened()
        if self.count is not None:
            gate = gate.expand(self.count)
        arguments = (image, gate, self._previous(), transform._generator_handle, transform._site)
        if self.draws_in_python():
            noise = _program.normal_fake(*arguments)
            _program.normal_kernel(noise, *arguments)
            return noise
        noise = _program.normal(*arguments)
        self.last = noise.detach().flatten()[:1].to("cpu", torch.float64)
        return noise

    def beside_boxes(self, transform: Any, boxes: Tensor, kind: str, canvas: tuple[int, int]) -> Tensor:
        """What a transform samples that has to see the boxes."""
        gate = self._opened()
        options = (transform._generator_handle, transform._site, transform._spec, kind)
        self.last = _program.sample_beside_boxes(boxes, gate, self._previous(), *canvas, *options)
        return self.last.to("cpu")

    def run(self, program: SamplingProgram) -> None:
        """Sample a program; the numbers are ready under its keys."""
        numbers = self._program(program, program.batch if program.each else None)
        each = numbers.split(list(program.sizes), -1)
        self.ready.update(zip(program.keys, each, strict=True))
        self.table = Table(program, each) if program.each else None

    def narrowed(self, gate: Tensor) -> Tensor | None:
        """Open ``gate`` only where this sampler is open; returns the gate to go back to."""
        before = self.gate
        self.gate = gate if before is None else before & gate
        return before

    def _single(self, transform: Any, shape: Shape) -> Tensor:
        if not transform._spec:
            must = "make_params and transform must be imgops' own in a graph and with per_sample=True"
            raise NotImplementedError(f"{type(transform).__name__}: {must}, got a subclass's")
        program = SamplingProgram(self.count, True)
        program.add(transform, shape)
        return self._program(program, self.count)

    def _program(self, program: SamplingProgram, count: int | None) -> Tensor:
        gate = self._opened()
        rows = 1 if count is None else count
        text = "\n".join(program.specs)
        options = (program.sizes, program.shapes, program.generators, program.conditions)
        if self.draws_in_python():
            numbers = torch.empty((rows, sum(program.sizes)), dtype=torch.float64, device="cpu")
            _program.run_program(numbers, gate, *options, text)
        else:
            numbers = self.last = _program.sample(gate, self._previous(), rows, *options, program.site, text)
        return numbers[0] if count is None else numbers

    def _previous(self) -> Tensor:
        return torch.zeros((), dtype=torch.float64, device="cpu") if self.last is None else self.last

    def _again(self, transform: Any, inputs: list[Any]) -> Params | None:
        assert self.replays is not None
        if self.path not in self.replays:
            raise KeyError(f"apply: params must be those of this transform, got none for step {self.path}")
        before = self.replays[self.path]
        if before is None:
            return None
        _, _, height, width = transform.shape_of(inputs)
        again = Params((height, width), before.values, before._numbers, transform, before._table, before._key)
        again.noise = list(before.noise)
        return again


def _sampled(transform: Any, inputs: list[Any]) -> Params | None:
    """One draw in Python, for inputs that share it."""
    handle = transform._generator_handle
    if handle:
        with drawing_from(handle):
            values = transform.sample_params(inputs)
    else:
        values = transform.sample_params(inputs)
    if values is None:
        return None
    _, _, height, width = transform.shape_of(inputs)
    return Params((height, width), values, None, transform)
