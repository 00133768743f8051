"""What every operator owes PyTorch, from the one table of samples."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from checks import bits_equal, captured, check_adjoint, check_fake, check_vmap
from samples import ADJOINTS, EVERY, SAMPLES, Maker, Sample, dtypes_of, variants

from imgops._registry import operators

INNER = [s for s in EVERY if not s.edge]
# Shapes whose gradients have values; an image with 0 pixels has none.
DIFFERENTIABLE = [s for s in EVERY if not s.edge or "one-" in s.id]


@pytest.mark.parametrize("sample", EVERY, ids=str)
def test_opcheck(sample: Sample) -> None:
    """Three variants of each sample; every variant of the first sample of each operator."""
    first = next(s for s in EVERY if s.op == sample.op)
    makers = [Maker(grad=True), Maker(format="interleaved", batch=(2,), grad=True)]
    makers += [Maker(torch.uint8, "sliced")] if torch.uint8 in dtypes_of(sample) else []
    makers += variants(sample) if sample is first else []
    for maker in makers:
        function, args, keywords = sample.call(maker)
        op, op_args = captured(function, *args, **keywords)
        torch.library.opcheck(op, op_args)


@pytest.mark.parametrize("sample", EVERY, ids=str)
def test_fake_has_the_strides_of_the_output(sample: Sample) -> None:
    """opcheck compares strides only from torch 2.13 on."""
    for maker in variants(sample):
        function, args, keywords = sample.call(maker)
        check_fake(*captured(function, *args, **keywords))


@pytest.mark.parametrize("sample", EVERY, ids=str)
def test_meta(sample: Sample) -> None:
    for format in ("planar", "interleaved"):
        function, args, keywords = sample.call(Maker(format=format, batch=(2,)))
        op, op_args = captured(function, *args, **keywords)
        real = op(*op_args)
        meta = op(*(a.to("meta") if isinstance(a, torch.Tensor) else a for a in op_args))
        assert meta.device.type == "meta"
        assert (meta.shape, meta.dtype, meta.stride()) == (real.shape, real.dtype, real.stride())


def float_inputs(sample: Sample, maker: Maker) -> tuple[Any, tuple[torch.Tensor, ...]]:
    """The call as a function of its differentiable tensors."""
    function, args, keywords = sample.call(maker)
    at = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.requires_grad]

    def call(*tensors: torch.Tensor) -> torch.Tensor:
        filled = list(args)
        for i, tensor in zip(at, tensors, strict=True):
            filled[i] = tensor
        return function(*filled, **keywords)

    return call, tuple(args[i] for i in at)


@pytest.mark.parametrize("sample", [s for s in DIFFERENTIABLE if s.id != "mask-float"], ids=str)
def test_gradcheck(sample: Sample) -> None:
    """First and second order, forward mode and batched gradients, in float64, exact to its accuracy."""
    call, tensors = float_inputs(sample, Maker(torch.float64, grad=True))
    assert torch.autograd.gradcheck(
        call, tensors, check_forward_ad=True, check_batched_grad=True, fast_mode=True
    )
    assert torch.autograd.gradgradcheck(call, tensors, fast_mode=True)


@pytest.mark.parametrize("format", ["interleaved", "expanded", "sliced"])
def test_gradcheck_of_formats_and_batches(format: str) -> None:
    for op in operators():
        sample = next(s for s in EVERY if s.op == op)
        call, tensors = float_inputs(sample, Maker(torch.float64, format, (2,), grad=True))
        if format == "expanded":  # perturbing one element perturbs all: ask of copies
            tensors = tuple(t.detach().clone().requires_grad_() for t in tensors)
        assert torch.autograd.gradcheck(call, tensors, fast_mode=False)


@pytest.mark.parametrize("sample", [s for s in DIFFERENTIABLE if s.linear], ids=str)
def test_adjoint_identity(sample: Sample) -> None:
    for format in ("planar", "interleaved"):
        call, tensors = float_inputs(sample, Maker(torch.float64, format, (2,), grad=True))
        check_adjoint(call, *tensors)


@pytest.mark.parametrize("sample", INNER, ids=str)
def test_vmap_is_a_loop(sample: Sample) -> None:
    function, args, keywords = sample.call(Maker(torch.float64))
    at = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.ndim > 1]

    def call(*tensors: torch.Tensor) -> torch.Tensor:
        filled = list(args)
        for i, tensor in zip(at, tensors, strict=True):
            filled[i] = tensor
        return function(*filled, **keywords)

    tensors = [args[i] for i in at]
    scales = torch.linspace(0.5, 1, 2, dtype=torch.float64)

    def stacked(x: torch.Tensor, dim: int) -> torch.Tensor:
        rows = [x if x.dtype == torch.bool else (x * s).to(x.dtype) for s in scales]
        return torch.stack(rows, dim)

    for dim in (0, 1, -1):
        check_vmap(call, tuple(stacked(x, dim) for x in tensors), (dim,) * len(at), out_dims=1)
    if len(at) > 1:  # only one of them batched, each in its turn
        for i in range(len(at)):
            some = [stacked(x, 0) if j == i else x for j, x in enumerate(tensors)]
            check_vmap(call, tuple(some), tuple(0 if j == i else None for j in range(len(at))))

    nested = [torch.stack([stacked(x, 0), stacked(x, 0)]) for x in tensors]
    twice = torch.vmap(torch.vmap(call))(*nested)
    assert bits_equal(twice[1, 1], torch.vmap(call)(*(n[1] for n in nested))[1])

    none = torch.vmap(call)(*(stacked(x, 0)[:0] for x in tensors))
    assert none.shape == (0, *call(*tensors).shape)


def test_vmap_over_parameters() -> None:
    import imgops

    image = torch.rand(2, 3, 5, 6, dtype=torch.float64)
    fills = torch.rand(2, 3, dtype=torch.float64)
    check_vmap(lambda x, f: imgops.pad(x, 2, fill=f), (image, fills), (0, 0))
    check_vmap(lambda x, f: imgops.pad(x, 2, fill=f), (image[0], fills), (None, 0))
    check_vmap(lambda x, f: imgops.pad(x, 2, fill=f), (image, fills[:, 0]), (0, 0))
    boxes = torch.tensor([[0.0, 0, 4, 4], [1.5, 0.5, 6, 5]], dtype=torch.float64)
    check_vmap(lambda x, b: imgops.resize(x, (3, 4), box=b), (image, boxes), (0, 0))
    check_vmap(lambda x, b: imgops.resize(x, (3, 4), box=b), (image, boxes), (None, 0))


def compiled_equals_eager(sample: Sample, maker: Maker, backend: str) -> None:
    torch._dynamo.reset()
    call, tensors = float_inputs(sample, maker)
    if not tensors:
        function, args, keywords = sample.call(maker)
        eager = function(*args, **keywords)
        compiled = torch.compile(function, fullgraph=True, dynamic=True, backend=backend)
        out = compiled(*args, **keywords)
        assert bits_equal(out, eager) and out.stride() == eager.stride()
        return
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend=backend)
    eager, out = call(*tensors), compiled(*tensors)
    assert bits_equal(out, eager) and out.stride() == eager.stride()
    cotangent = torch.randn(eager.shape, generator=torch.Generator().manual_seed(3)).to(eager)
    wanted = torch.autograd.grad(eager, tensors, cotangent)
    got = torch.autograd.grad(out, tensors, cotangent)
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("sample", INNER, ids=str)
def test_compiled(sample: Sample) -> None:
    compiled_equals_eager(sample, Maker(grad=True), "aot_eager")
    if sample is next(s for s in INNER if s.op == sample.op):
        for maker in variants(sample):
            compiled_equals_eager(sample, maker, "aot_eager")


@pytest.mark.parametrize("op", list(operators()))
def test_compiled_by_inductor(op: str) -> None:
    samples = [s for s in INNER if s.op == op]
    for sample in (samples[0], samples[-1]):
        for format in ("planar", "interleaved"):
            compiled_equals_eager(sample, Maker(batch=(2,), format=format, grad=True), "inductor")


class Wrapped(torch.nn.Module):
    def __init__(self, call: Any) -> None:
        super().__init__()
        self.call = call

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        return self.call(*tensors)


@pytest.mark.parametrize("sample", EVERY, ids=str)
def test_export_round_trip(sample: Sample) -> None:
    """Export, save, load, run; every call stays one opaque node."""
    call, tensors = float_inputs(sample, Maker(grad=True))
    tensors = tuple(t.detach() for t in tensors)
    program = torch.export.export(Wrapped(call), tensors)
    targets = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    assert sum(t.startswith("imgops.") for t in targets) == 1
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    loaded = torch.export.load(buffer).module()
    assert bits_equal(loaded(*tensors), call(*tensors))


def test_every_operator_has_samples() -> None:
    assert {s.op for s in SAMPLES} | {s.op for s in ADJOINTS} == set(operators())


def test_linear_operators_name_their_adjoint() -> None:
    rows = operators()
    for row in rows.values():
        assert row.adjoint in rows
        assert row.autograd is not None and row.autograd.jvp is not None and row.vmap is not None
