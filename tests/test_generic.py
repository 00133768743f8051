"""What every operator owes PyTorch, from the one table of samples, by the checks of imgops.testing."""

from __future__ import annotations

import pytest
import torch
from checks import bits_equal, check_adjoint, check_vmap
from samples import (
    ADJOINTS,
    CODECS,
    COLORS,
    EVERY,
    FILTERS,
    MIXES,
    MUTATIONS,
    SAMPLES,
    Maker,
    Sample,
    dtypes_of,
    variants,
)

import imgops
from imgops._rows import operators
from imgops.testing import _checks

INNER = [s for s in EVERY if not s.edge]
# Shapes whose gradients have values; an image with 0 pixels has none.
DIFFERENTIABLE = [s for s in EVERY if (not s.edge or "one-" in s.id) and s not in CODECS]
#: Operators whose gradient is derived from their decomposition.
DERIVED = {s.op for s in COLORS + FILTERS + MIXES} | {"remap_grad_map"}
FIRST = [next(s for s in INNER if s.op == op) for op in operators()]


def id_of(sample: Sample) -> str:
    return str(sample)


@pytest.mark.parametrize("sample", EVERY, ids=id_of)
def test_registration(sample: Sample) -> None:
    """Three variants of each sample; every variant of the first sample of each operator."""
    grad = sample not in MUTATIONS  # a leaf that requires a gradient is not to be written to
    makers = [Maker(grad=grad), Maker(format="interleaved", batch=(2,), grad=grad)]
    makers += [Maker(torch.uint8, "sliced")] if torch.uint8 in dtypes_of(sample) else []
    makers += [m for m in variants(sample) if writable(sample, m)] if sample in FIRST else []
    for maker in makers:
        _checks.registration(sample.checked(maker))


def writable(sample: Sample, maker: Maker) -> bool:
    return sample not in MUTATIONS or maker.format != "expanded"


@pytest.mark.parametrize("sample", EVERY, ids=id_of)
def test_fake(sample: Sample) -> None:
    for maker in variants(sample):
        if writable(sample, maker):
            _checks.fake(sample.checked(maker))


@pytest.mark.parametrize("sample", EVERY, ids=id_of)
def test_memory_and_fast_path(sample: Sample) -> None:
    for maker in variants(sample):
        if writable(sample, maker) and maker.device == "cpu":
            _checks.memory(sample.checked(maker))
            _checks.fast_path(sample.checked(maker))


@pytest.mark.parametrize("sample", [s for s in DIFFERENTIABLE if s.id != "mask-float"], ids=id_of)
def test_gradients(sample: Sample) -> None:
    """First and second order, forward mode and batched gradients, in float64, exact to its accuracy."""
    _checks.gradients(sample.checked(Maker(torch.float64)))


@pytest.mark.parametrize("format", ["interleaved", "expanded", "sliced"])
def test_gradients_of_formats_and_batches(format: str) -> None:
    for sample in FIRST:
        if sample not in (*CODECS, *MUTATIONS):
            call = sample.checked(Maker(torch.float64, format, (2,)))
            tensors = tuple(t.detach() for t in call.tensors)
            if format == "expanded":  # perturbing one element perturbs all: ask of copies
                tensors = tuple(t.clone() for t in tensors)
            tensors = tuple(t.requires_grad_(t.is_floating_point()) for t in tensors)
            if format == "expanded" and ("hue" in sample.op or sample.op == "color_sequence"):
                continue  # where all channels are equal, hue has no derivative
            assert torch.autograd.gradcheck(call.of(call.names), tensors, fast_mode=False)


@pytest.mark.parametrize("sample", [s for s in DIFFERENTIABLE if not s.edge], ids=id_of)
def test_torch_func(sample: Sample) -> None:
    """grad, vjp, jacrev, jacfwd, jvp, hessian, vmap(grad), compiled grad and forward_ad."""
    _checks.func(sample.checked(Maker()))


@pytest.mark.parametrize("sample", [s for s in DIFFERENTIABLE if s.linear], ids=id_of)
def test_adjoint_identity(sample: Sample) -> None:
    for format in ("planar", "interleaved"):
        call = sample.checked(Maker(torch.float64, format, (2,)))
        _checks.adjoint(call)
        check_adjoint(call.of(call.differentiable), *(call.bound.arguments[n] for n in call.differentiable))


@pytest.mark.parametrize("sample", INNER, ids=id_of)
def test_vmap_is_a_loop(sample: Sample) -> None:
    _checks.vmap(sample.checked(Maker(torch.float64)))


def test_vmap_over_parameters() -> None:
    image = torch.rand(2, 3, 5, 6, dtype=torch.float64)
    fills = torch.rand(2, 3, dtype=torch.float64)
    check_vmap(lambda x, f: imgops.pad(x, 2, fill=f), (image, fills), (0, 0))
    check_vmap(lambda x, f: imgops.pad(x, 2, fill=f), (image[0], fills), (None, 0))
    check_vmap(lambda x, f: imgops.pad(x, 2, fill=f), (image, fills[:, 0]), (0, 0))
    boxes = torch.tensor([[0.0, 0, 4, 4], [1.5, 0.5, 6, 5]], dtype=torch.float64)
    check_vmap(lambda x, b: imgops.resize(x, (3, 4), box=b), (image, boxes), (0, 0))
    check_vmap(lambda x, b: imgops.resize(x, (3, 4), box=b), (image, boxes), (None, 0))
    check_vmap(lambda x, b: imgops.resize(x, (3, 4), box=b), (image[0], boxes), (None, 0))


@pytest.mark.parametrize("randomness", ["error", "same", "different"])
def test_vmap_randomness_does_not_concern_deterministic_operators(randomness: str) -> None:
    images = torch.rand(2, 3, 5, 6)
    out = torch.vmap(lambda x: imgops.resize(x, (3, 4)), randomness=randomness)(images)
    assert bits_equal(out, imgops.resize(images, (3, 4)))


@pytest.mark.parametrize("sample", INNER, ids=id_of)
def test_compiled(sample: Sample) -> None:
    _checks.compiled(sample.checked(Maker()))
    if sample in FIRST and sample not in CODECS:
        for maker in variants(sample):
            if writable(sample, maker):
                _checks.compiled(sample.checked(maker))


@pytest.mark.parametrize("op", list(operators()))
def test_compiled_by_inductor(op: str) -> None:
    samples = [s for s in INNER if s.op == op]
    for sample in (samples[0], samples[-1]):
        for format in ("planar", "interleaved"):
            _checks.compiled(sample.checked(Maker(batch=(2,), format=format)), "inductor")


@pytest.mark.parametrize("sample", EVERY, ids=id_of)
def test_exported(sample: Sample) -> None:
    """Export, save, load, run; every call stays one opaque node."""
    _checks.exported(sample.checked(Maker()))


@pytest.mark.parametrize("sample", EVERY, ids=id_of)
def test_decomposed(sample: Sample) -> None:
    """In core ATen: to the bit where pixels move and on uint8; OpenCV's bicubic and area within a level."""
    rounds = "plain" in sample.id and (
        sample.op != "resize" or sample.id.startswith(("plain-bicubic", "plain-area"))
    )
    levels = int(
        rounds
        or sample.op
        in ("color_matrix", "warp_affine", "warp_perspective", "remap", "gaussian_blur", "filter2d")
    )
    makers = [Maker(), Maker(format="interleaved", batch=(2,))]
    makers += [Maker(d) for d in (torch.uint8, torch.int64, torch.float64) if d in dtypes_of(sample)]
    for maker in makers:
        call = sample.checked(maker)
        moves = sample not in COLORS + FILTERS + MIXES[-3:] and (
            not call.row.autocast or "nearest" in sample.id
        )
        exact = {"rtol": 0, "atol": 0} if moves else {"rtol": 1e-5, "atol": 1e-5}
        _checks.decomposed(call, levels=levels, **exact)


@pytest.mark.parametrize("sample", [s for s in FIRST if s not in (*MUTATIONS, *CODECS)], ids=id_of)
def test_decomposition_of_every_variant(sample: Sample) -> None:
    for maker in variants(sample):
        call = sample.checked(maker)
        real, made = call.overload(*call.op_args), call.row.decomposition(*call.op_args)
        assert (real.shape, real.dtype) == (made.shape, made.dtype)
        level = (
            1
            if sample.op in ("color_matrix", "remap", "gaussian_blur", "filter2d")
            and real.dtype == torch.uint8
            else 1e-5
        )
        torch.testing.assert_close(made.double(), real.double(), rtol=1e-5, atol=level)


@pytest.mark.parametrize("sample", INNER, ids=id_of)
def test_autocast(sample: Sample) -> None:
    _checks.autocast(sample.checked(Maker()))


@pytest.mark.parametrize("sample", FIRST, ids=id_of)
def test_torch_dispatch(sample: Sample) -> None:
    _checks.torch_dispatch(sample.checked(Maker()))


def test_every_operator_has_samples() -> None:
    for table in (SAMPLES, ADJOINTS, MUTATIONS, CODECS):
        assert table
    assert {s.op for s in EVERY} == set(operators())


def test_every_operator_has_its_facets() -> None:
    """What is absent is absent for a reason: an out= call is not differentiable, a codec knows no size."""
    rows = operators()
    for row in rows.values():
        if row.contract.value.startswith("returns new memory:"):
            assert row.adjoint in rows or row.name in DERIVED
            assert row.decomposition is not None
            assert row.autograd is not None and row.autograd.jvp is not None
            assert row.vmap is not None and row.sharding is not None
        elif row.name in ("paste_", "accumulate"):
            assert row.autograd is not None and row.vmap is not None and row.sharding is not None
        else:
            assert row.name in ("paste_out", "resize_out", "encode_image", "decode_image")
