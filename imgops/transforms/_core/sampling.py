"""Sampling of parameters, in eager mode, in compiled graphs and for samples with parameters of their own.

torchvision's code draws the parameters (:mod:`imgops.transforms._core.programs`). Eager mode and graphs
differ in one place, :attr:`ParameterSampler.draws_in_python`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

from imgops._common.torch_private import in_vmap, is_exporting, is_vmapped, raise_error, tree_leaves
from imgops._operator import subclass
from imgops.transforms._core import annotation_kinds, programs
from imgops.transforms._core.parameters import (
    BATCHES,
    Key,
    Params,
    Shape,
    Table,
    own_choice,
    own_params,
)
from imgops.transforms._core.programs import SamplingProgram


class ParameterSampler:
    """The parameters of one call of a pipeline.

    Each operator call that samples takes the result of the one before it, so that a compiler can neither
    reorder nor merge them. ``path`` is the key of the transform that is applied; ``gate`` says for which
    samples parameters are drawn: a transform inside of RandomApply samples only where it was chosen.
    ``count`` is the number of samples that have parameters of their own, None if all share them. ``ready``
    holds the parameters that were sampled ahead, by key; ``record``, if a caller asks for it, the parameters
    that were used.
    """

    __slots__ = (
        "collects",
        "count",
        "covered",
        "draws_in_python",
        "gate",
        "image_sizes",
        "last",
        "open",
        "path",
        "planned",
        "ready",
        "record",
        "replays",
        "selects_later",
        "table",
    )

    def __init__(self, record: dict[Key, Any] | None = None, replay: dict[Key, Any] | None = None) -> None:
        #: Under vmap, a batched True, so that parameters are drawn for each of the samples of vmap.
        self.open: Tensor | None = None
        #: Whether PyTorch's generator can be used here; only this separates eager mode from graphs.
        self.draws_in_python = not is_compiling()
        self.gate: Tensor | None = None
        self.count: int | None = None
        self.last: Tensor | None = None
        self.path: Key = ()
        self.ready: dict[Key, Tensor] = {}
        self.table: Table | None = None
        self.planned: set[Key] = set()
        self.covered = False
        #: Whether an image may stay pending while its transforms are collected.
        self.collects = True
        #: Whether a container selects between whole results, so that a gate only decides what is sampled.
        self.selects_later = False
        self.record = record
        self.replays = replay
        #: The heights and widths of packed images.
        self.image_sizes: Tensor | None = None

    @classmethod
    def of(cls, inputs: tuple[Any, ...]) -> ParameterSampler:
        """Return the sampler for a call with these inputs."""
        sampler = cls()
        if in_vmap():
            for x in tree_leaves(inputs):
                if isinstance(x, Tensor) and is_vmapped(x):  # True for each of the samples, if x has them
                    one = x.new_ones((), dtype=torch.bool, device="cpu")
                    sampler.open = one if sampler.open is None else sampler.open & one
                    sampler.draws_in_python = False
        return sampler

    def look_at(self, flat: list[Any]) -> None:
        """Note the sizes of images among flat inputs that differ in size."""
        for x in flat:
            if type(x) in BATCHES:
                self.image_sizes = x.sizes
                return

    def _open_samples(self) -> Tensor:
        """Return the boolean mask of the samples for which parameters are drawn."""
        whole = torch.ones((), dtype=torch.bool, device="cpu") if self.open is None else self.open
        return whole if self.gate is None else whole & self.gate

    def params(self, transform: Any, inputs: list[Any]) -> Params | None:
        """Return a transform's parameters, or None if it is skipped, which only eager mode can know."""
        if self.replays is not None:
            before = own_params("apply", transform, self.replays, self.path)
            if before is None:
                return None
            _, _, height, width = transform._shape_of(inputs)
            again = Params((height, width), before.numbers, before.table, before.key)
            again.noise = list(before.noise)
            return again
        numbers = self.ready.get(self.path) if self.ready else None
        shape = transform._shape_of(inputs)
        canvas = (shape[2], shape[3])
        if numbers is None and self.count is None and self.gate is None and self.draws_in_python:
            drawn = transform._draw_numbers(inputs)
            found = None if drawn is None else Params(canvas, drawn)
        else:
            table = None if numbers is None else self.table
            if numbers is None:
                numbers = self._single(transform, shape)
            found = Params(canvas, numbers, table, self.path)
        if self.record is not None:
            self.record[self.path] = found
        return found

    def draws_once(self) -> bool:
        """Return whether this is a plain call in eager mode: each transform samples when it is applied."""
        unusual = self.count is not None or self.gate is not None or self.ready
        return not (unusual or self.replays is not None or self.record is not None) and self.draws_in_python

    def may_collect(self) -> bool:
        """Return whether an image may stay pending: if nobody asks for the parameters, and not under vmap."""
        unusual = self.record is not None or self.replays is not None
        return self.collects and not unusual and self.gate is None and self.open is None

    def plans(self, transform: Any) -> bool:
        """Return whether to sample ahead: in a graph by one operator, for a batch sample by sample."""
        if self.replays is not None or not hasattr(transform, "per_sample"):
            return False
        return self.count is not None or transform.per_sample or not self.draws_in_python

    def choice(self, container: Any) -> list[float] | Tensor:
        """Return what a container samples: in eager mode a list, else a tensor ``(n,)`` or ``(N, n)``."""
        if self.replays is not None:
            return own_choice("apply", container, self.replays, self.path)  # type: ignore[no-any-return]
        numbers: Any = self.ready.get(self.path) if self.ready else None
        if numbers is None and self.count is None and self.gate is None and self.draws_in_python:
            numbers = container._draw_numbers([])
        elif numbers is None:
            numbers = self._single(container, (1, len(container.transforms), 0, 0))
        if self.record is not None:
            self.record[self.path] = numbers
        return numbers

    def noise(self, transform: Any, image: Tensor) -> Tensor:
        """Draw standard normal noise of the shape of an image, in order with the other draws."""
        gate = self._open_samples()
        _refuse_in_programs(transform)
        if self.count is not None:
            gate = gate.expand(self.count)
        # The noise depends on the shape of the image alone, so that no gradient goes through it.
        options = transform._generator_handle, transform._site
        arguments = (image.detach(), gate, self._previous(), *options)
        if self.draws_in_python:
            noise = programs.normal_fake(*arguments)
            programs.normal_kernel(noise, *arguments)
            return noise
        noise = programs.normal(*arguments)
        self.last = noise.detach().flatten()[:1].to("cpu", torch.float64)
        return noise

    def from_annotations(self, transform: Any, inpt: Any, count: int, canvas: tuple[int, int]) -> Tensor:
        """Sample the ``count`` parameters of a transform that depend on boxes or on a mask."""
        _refuse_in_programs(transform)
        gate, kind = self._open_samples(), annotation_kinds.kind_of(inpt)
        options = (transform._generator_handle, transform._site, transform._description, kind)
        plain = subclass.plain(inpt)
        self.last = programs.sample_from_annotations(plain, gate, self._previous(), count, *canvas, *options)
        return self.last.to("cpu")

    def run(self, program: SamplingProgram) -> None:
        """Sample a program, and store the numbers in ``ready`` under its keys."""
        numbers = self._program(program, program.batch if program.is_per_sample else None)
        each = numbers.split(list(program.sizes), -1)
        self.ready.update(zip(program.keys, each, strict=True))
        self.table = Table(program.steps, each) if program.is_per_sample else None

    def narrow_gate(self, gate: Tensor) -> Tensor | None:
        """Restrict the current gate by ``gate``; return the previous gate, to be restored later."""
        before = self.gate
        self.gate = gate if before is None else before & gate
        return before

    def gate_of_result(self, sample: int | None = None) -> Tensor | None:
        """Return the gate, or that of one sample, that selects the result; None if nothing is left out.

        A container that selects between whole results decides by itself.
        """
        if self.gate is None or self.selects_later:
            return None
        return self.gate if sample is None or not self.gate.ndim else self.gate[sample]

    def _single(self, transform: Any, shape: Shape) -> Tensor:
        if not transform._description:
            must = "make_params and transform must be imgops' own in a graph and with per_sample=True"
            raise_error(NotImplementedError, f"{type(transform).__name__}: {must}, got a subclass's")
        program = SamplingProgram(self.count, True)
        program.add(transform, shape)
        return self._program(program, self.count)

    def _program(self, program: SamplingProgram, count: int | None) -> Tensor:
        gate = self._open_samples()
        rows = 1 if count is None else count
        text, options = program.text, program.lists
        if self.draws_in_python:
            numbers = torch.empty((rows, sum(program.sizes)), dtype=torch.float64, device="cpu")
            programs.run_program(numbers, gate, self.image_sizes, *options, text)
        else:
            for _, transform, _, _ in program.steps:
                _refuse_in_programs(transform)
            given = gate, self._previous(), self.image_sizes
            numbers = self.last = programs.sample(*given, rows, *options, program.site, text)
        return numbers[0] if count is None else numbers

    def _previous(self) -> Tensor:
        return torch.zeros((), dtype=torch.float64, device="cpu") if self.last is None else self.last


def _refuse_in_programs(transform: Any) -> None:
    """Raise if an exported program would draw from an object of this process, which no other process has."""
    own = "those of another library" if transform._source is not None else ""
    own = "those of a subclass" if getattr(transform, "_draws_itself", False) else own
    got = "one of its own" if transform._generator_handle else own
    if not (is_exporting() and got):
        return
    must = "generator must be PyTorch's in an exported program"
    raise_error(NotImplementedError, f"{type(transform).__name__}: {must}, got {got}")
