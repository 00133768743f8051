"""The generic checks of imgops.extend.testing on every sample of every spec."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from checks import bits_equal, check_adjoint, check_vmap
from groups import groups

import imgops
from imgops._operator.record import Contract, operators
from imgops.extend.testing import _checks, _func
from tests.specs import OPERATORS, SAMPLES, Sample
from tests.specs._maker import BATCHES, DEVICES, FORMATS, Maker
from tests.specs._spec import EXACT
from tests.tiers import nightly, nightly_unless

INNER = [s for s in SAMPLES if not s.edge]
# Samples whose gradients have values; an image with 0 pixels has none.
DIFFERENTIABLE = [s for s in SAMPLES if s.differentiable]
FIRST = [spec.samples[0] for spec in OPERATORS.values()]
#: The first sample of each operator where a sample costs a graph; the others nightly.
FIRST_OF_INNER = [
    *groups((s for s in INNER if s in FIRST), 12),
    *groups((s for s in INNER if s not in FIRST), 12, marks=nightly),
]
FUNCTIONAL = [s for s in FIRST if OPERATORS[s.op].operator.contract is Contract.FUNCTIONAL]


def mutates(sample: Sample) -> bool:
    return OPERATORS[sample.op].operator.contract.mutates


def variants(sample: Sample, dtype: torch.dtype = torch.float32) -> list[Maker]:
    """Vary one axis at a time: formats, batches and dtypes around a plain float image, on each device."""
    makers = [Maker(dtype=dtype, format=f) for f in FORMATS]
    makers += [Maker(dtype=dtype, batch=b) for b in BATCHES[1:]]
    makers += [Maker(dtype=dtype, batch=(2,), format="interleaved")]
    unsigned = (torch.uint32, torch.uint64)
    makers += [Maker(dtype=d) for d in sample.dtypes if d not in (dtype, *unsigned)]
    makers = [replace(m, device=d, count=[0]) for d in DEVICES for m in makers]
    # A tensor that is written to has memory for each element.
    return [m for m in makers if not (mutates(sample) and m.format == "expanded")]


def every_value(sample: Sample) -> list[Maker]:
    """Combine the formats, batches and dtypes in few makers, because compilation and opcheck are slow."""
    unsigned = (torch.uint32, torch.uint64)
    batches = [b for b in BATCHES if 0 not in b]
    axes = [d for d in sample.dtypes if d not in unsigned], FORMATS, batches
    several = [[axis[i % len(axis)] for axis in axes] for i in range(max(map(len, axes)))]
    several.append([sample.dtypes[0], "planar", (0,)])  # opcheck cannot copy an empty tensor in other formats
    makers = [Maker(*values, device) for device in DEVICES for values in several]
    return [m for m in makers if not (mutates(sample) and m.format == "expanded")]


def varied(sample: Sample, whole: bool) -> list[Maker]:
    """Vary one axis at a time for the first sample of each operator; `make test` combines them for the others."""
    apart = whole or sample in FIRST or len(sample.dtypes) == 1
    return variants(sample) if apart else every_value(sample)


@pytest.mark.parametrize("sample", nightly_unless(lambda s: s in FIRST, SAMPLES), ids=str)
def test_registration(sample: Sample, whole: bool) -> None:
    """Three variants of each sample; for the first sample of each operator, every format, batch and dtype.

    `make test` takes the first sample; it checks the schema and the fake of each variant, and runs all of opcheck,
    which compiles, on the first variant. The fakes of all samples are those of test_fake.
    """
    grad = not mutates(sample)  # a leaf that requires a gradient cannot be written to
    makers = [Maker(grad=grad), Maker(format="interleaved", batch=(2,), grad=grad)]
    makers += [Maker(torch.uint8, "sliced")] if torch.uint8 in sample.dtypes else []
    makers += every_value(sample) if sample in FIRST else []
    for i, maker in enumerate(makers):
        everything = whole or (sample in FIRST and i == 0)
        _checks.registration(
            sample.checked(maker), "ALL" if everything else ("test_schema", "test_faketensor")
        )


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_fake(sample: Sample, whole: bool) -> None:
    for maker in varied(sample, whole):
        _checks.fake(sample.checked(maker))


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_memory_and_fast_path(sample: Sample, whole: bool) -> None:
    for maker in varied(sample, whole):
        if maker.device == "cpu":
            _checks.memory(sample.checked(maker))
            _checks.fast_path(sample.checked(maker))


@pytest.mark.parametrize("sample", [s for s in DIFFERENTIABLE if s.gradcheck], ids=str)
def test_gradients(sample: Sample) -> None:
    """First and second order, forward mode and batched gradients are exact to the accuracy of float64."""
    _checks.gradients(sample.checked(Maker(torch.float64)))


@pytest.mark.parametrize(
    "format",
    nightly_unless(lambda format: format != "planar", ["planar", "interleaved", "expanded", "sliced"]),
)
@pytest.mark.parametrize("sample", [s for s in FUNCTIONAL if s.differentiable], ids=str)
def test_gradients_of_formats_and_batches(sample: Sample, format: str) -> None:
    """Every element of a planar image is checked, nightly; a batch in another format, by a random projection.

    test_gradients checks a planar image by a projection.
    """
    if (format == "expanded" and not OPERATORS[sample.op].smooth_on_gray) or OPERATORS[
        sample.op
    ].straight_through:
        return
    whole = format == "planar"
    call = sample.checked(Maker(torch.float64, format, () if whole else (2,)))
    tensors = tuple(t.detach() for t in call.tensors)
    if format == "expanded":  # perturbing one element perturbs all, so use copies
        tensors = tuple(t.clone() for t in tensors)
    tensors = tuple(t.requires_grad_(t.is_floating_point()) for t in tensors)
    assert torch.autograd.gradcheck(call.of(call.names), tensors, fast_mode=not whole)


@pytest.mark.parametrize("sample", [s for s in FUNCTIONAL if OPERATORS[s.op].straight_through], ids=str)
def test_straight_through_gradients(sample: Sample) -> None:
    """They are those of the identity, in reverse, forward and second order; parameters have none."""
    call = sample.checked(Maker(torch.float32, "interleaved", (2,)))
    image, *rest = call.bound.args
    image = image.detach().requires_grad_()
    out = sample.function()(image, *rest)
    weight = torch.rand_like(out).requires_grad_()
    (grad,) = torch.autograd.grad(out, image, weight, create_graph=True)
    assert bits_equal(grad, weight)
    (second,) = torch.autograd.grad(grad.square().sum(), weight)
    assert bits_equal(second, 2 * weight)
    tangent = torch.rand_like(image)
    found = torch.func.jvp(lambda x: sample.function()(x, *rest), (image.detach(),), (tangent,))[1]
    assert bits_equal(found, tangent)


@pytest.mark.parametrize(
    "sample", nightly_unless(lambda s: s in FIRST, [s for s in DIFFERENTIABLE if not s.edge]), ids=str
)
def test_torch_func(sample: Sample) -> None:
    """grad, vjp, jacrev, jacfwd, jvp, hessian, vmap(grad) and forward_ad."""
    _func.func(sample.checked(Maker()))


@pytest.mark.parametrize("samples", groups((s for s in DIFFERENTIABLE if s in FIRST), 12))
def test_torch_func_in_a_graph(samples: list[Sample]) -> None:
    _func.func_in_a_graph(*(sample.checked(Maker()) for sample in samples))


@pytest.mark.parametrize("sample", [s for s in DIFFERENTIABLE if s.linear], ids=str)
def test_adjoint_identity(sample: Sample) -> None:
    for format in ("planar", "interleaved"):
        call = sample.checked(Maker(torch.float64, format, (2,)))
        _checks.adjoint(call)
        check_adjoint(call.of(call.differentiable), *(call.bound.arguments[n] for n in call.differentiable))


@pytest.mark.parametrize("sample", INNER, ids=str)
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


@pytest.mark.parametrize("samples", FIRST_OF_INNER)
def test_compiled(samples: list[Sample]) -> None:
    """Every second operator gets planar images; the others get images of another format."""
    makers = [Maker() if i % 2 else every_value(sample)[1] for i, sample in enumerate(samples)]
    _checks.compilation(*(s.checked(maker) for s, maker in zip(samples, makers, strict=True)))


@nightly
@pytest.mark.parametrize(
    "samples", groups((s for s in FIRST if OPERATORS[s.op].operator.contract is not Contract.DYNAMIC), 12)
)
def test_compiled_in_every_variant(samples: list[Sample]) -> None:
    makers = [every_value(sample) for sample in samples]
    for i in range(max(map(len, makers))):
        _checks.compilation(*(s.checked(each[i]) for s, each in zip(samples, makers) if i < len(each)))


#: The first operator of each module of kernels.
OF_MODULES = {spec.operator.kernel.__module__: name for name, spec in reversed(OPERATORS.items())}.values()


@pytest.mark.parametrize(
    "operators",
    [
        *groups(OF_MODULES, 10),
        *groups((name for name in OPERATORS if name not in OF_MODULES), 12, marks=nightly),
    ],
)
def test_compiled_by_inductor(operators: list[str], whole: bool) -> None:
    """Inductor sees a call of an operator as opaque; `make test` compiles one operator of each module of kernels."""
    for at, format in ((-1, "interleaved"), (0, "planar"))[: 2 if whole else 1]:
        samples = [[s for s in INNER if s.op == op][at] for op in operators]
        calls = [sample.checked(Maker(batch=(2,), format=format)) for sample in samples]
        _checks.compilation(*calls, backend="inductor")


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_exported_and_decomposed(sample: Sample, whole: bool) -> None:
    """It is exported, saved, loaded and run as one opaque node; then in core ATen, in all of its dtypes.

    Where pixels move, and on uint8, it is bit-exact, except within a level where OpenCV rounds differently.
    `make test` exports one sample of each operator.
    """
    tolerance = OPERATORS[sample.op].decomposed if sample.decomposed is None else sample.decomposed

    def compare(found: torch.Tensor, wanted: torch.Tensor) -> None:
        tolerance.get(found.dtype, EXACT).check(found, wanted)

    call = sample.checked(Maker())
    if whole or sample in FIRST:
        _checks.export(call)
        _checks.core_aten(call, compare)
    else:
        _checks.decomposition(call, compare)
    makers = [Maker(format="interleaved", batch=(2,))]
    makers += [Maker(d) for d in (torch.uint8, torch.int64, torch.float64) if d in sample.dtypes]
    for maker in makers + (variants(sample) if sample in FUNCTIONAL else []):
        _checks.decomposition(sample.checked(maker), compare)


@pytest.mark.parametrize("sample", INNER, ids=str)
def test_autocast(sample: Sample) -> None:
    _checks.autocast(sample.checked(Maker()))


@pytest.mark.parametrize("sample", FIRST, ids=str)
def test_torch_dispatch(sample: Sample) -> None:
    _checks.torch_dispatch(sample.checked(Maker()))


def test_every_operator_has_a_spec() -> None:
    assert set(OPERATORS) == set(operators())


def test_every_operator_has_its_facets() -> None:
    """A missing facet has a reason: an out= operator is not differentiable, a codec's size depends on data."""
    rows = operators()
    for name, spec in OPERATORS.items():
        row = rows[name]
        if row.contract is Contract.FUNCTIONAL:
            assert row.adjoint in rows or spec.is_derived or spec.straight_through or row.no_gradient, name
            assert (row.decomposition is None) == spec.straight_through, name
            assert row.autograd is not None and row.autograd.jvp is not None, name
            assert row.vmap is not None and row.sharding is not None, name
        elif row.contract in (Contract.INPLACE, Contract.BUFFERS):
            assert row.autograd is not None and row.vmap is not None and row.sharding is not None, name
        else:
            assert row.contract in (Contract.OUT, Contract.DYNAMIC), name
