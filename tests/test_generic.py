"""The generic checks of imgops.extend.testing on every sample of every spec."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch

import imgops
from imgops._operator.record import Contract, operators
from imgops.extend.testing import _checks, _func
from imgops.extend.testing._call import leaves, several
from tests.checks import bits_equal, check_adjoint, check_format, check_vmap
from tests.groups import apart, compile_together, groups
from tests.specs import OPERATORS, SAMPLES, SPECS, Sample
from tests.specs._maker import BATCHES, DEVICES, FORMATS, Maker
from tests.specs._spec import EXACT
from tests.tiers import nightly, nightly_unless

INNER = [s for s in SAMPLES if not s.edge]
#: How many frames a file has is not known in a graph.
COMPILED = [s for s in INNER if s.op != "decode_frames"]
# Samples whose gradients have values; an image with 0 pixels has none.
DIFFERENTIABLE = [s for s in SAMPLES if s.differentiable]
FIRST = [spec.samples[0] for spec in OPERATORS.values()]
#: The first operator of each module of kernels.
OF_MODULES = [*{spec.operator.kernel.__module__: name for name, spec in reversed(OPERATORS.items())}.values()]
#: Those of which `make test` makes graphs with gradients. test_modes.py makes graphs of all public functions.
IN_GRAPHS = [s for s in FIRST if s.op in OF_MODULES[:5] or not OPERATORS[s.op].is_public]
FIRST_OF_INNER = [
    *groups((s for s in COMPILED if s in IN_GRAPHS), 20),
    *groups((s for s in COMPILED if s not in IN_GRAPHS), 12, marks=nightly),
]
FIRST_OF_DIFFERENTIABLE = [
    *groups([s for s in DIFFERENTIABLE if s in IN_GRAPHS][:6], 6),
    *groups([s for s in DIFFERENTIABLE if s in IN_GRAPHS][6:], 12, marks=nightly),
    *groups((s for s in DIFFERENTIABLE if s in FIRST and s not in IN_GRAPHS), 12, marks=nightly),
]
_DERIVED = [s for s in DIFFERENTIABLE if s in FIRST and OPERATORS[s.op].is_derived]
OF_RULES = [s for s in DIFFERENTIABLE if s in FIRST and not OPERATORS[s.op].is_derived] + _DERIVED[:3]
FUNCTIONAL = [s for s in FIRST if OPERATORS[s.op].operator.contract is Contract.FUNCTIONAL]


def first_of(samples: Iterable[Sample]) -> list[Any]:
    """Return samples as parameters, of which `make test` takes the first of each operator."""
    return nightly_unless(lambda sample: sample in FIRST, samples)


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


@pytest.mark.parametrize("sample", first_of(SAMPLES), ids=str)
def test_registration(sample: Sample, whole: bool) -> None:
    """Three variants of each sample; for the first sample of each operator, every format, batch and dtype, nightly.

    The others leave out what compiles, which test_compiled does for many samples at once.
    """
    grad = not mutates(sample)  # a leaf that requires a gradient cannot be written to
    makers = [Maker(grad=grad), Maker(format="interleaved", batch=(2,), grad=grad)]
    makers += [Maker(torch.uint8, "sliced")] if torch.uint8 in sample.dtypes else []
    makers += every_value(sample) if whole and sample in FIRST else []
    quick = ("test_schema", "test_autograd_registration", "test_faketensor")
    for maker in makers:
        _checks.registration(sample.checked(maker), "ALL" if whole and sample in FIRST else quick)


@pytest.mark.parametrize("sample", first_of(SAMPLES), ids=str)
def test_fake_memory_and_fast_path(sample: Sample, whole: bool) -> None:
    """`make test` combines formats, batches and dtypes; nightly, one of them varies at a time."""
    for maker in variants(sample) if whole else every_value(sample):
        call = sample.checked(maker)
        _checks.fake(call)
        if maker.device == "cpu":
            _checks.memory(call)
            _checks.fast_path(call)


@pytest.mark.parametrize(
    "sample",
    first_of(s for s in SAMPLES if (s.differentiable and s.gradcheck) or OPERATORS[s.op].straight_through),
    ids=str,
)
def test_gradients(sample: Sample) -> None:
    """First and second order, forward mode and batched gradients are exact to the accuracy of float64.

    Straight-through gradients are those of the identity.
    """
    straight = OPERATORS[sample.op].straight_through
    _checks.gradients(sample.checked(Maker(torch.float32 if straight else torch.float64)))


@pytest.mark.parametrize(
    ("sample", "format"),
    nightly_unless(
        lambda values: values[0] in FIRST and values[1] == "interleaved",
        product([s for s in FUNCTIONAL if s.differentiable], ["planar", "interleaved", "expanded", "sliced"]),
    ),
    ids=str,
)
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


@pytest.mark.parametrize(
    "sample", nightly_unless(lambda s: s in IN_GRAPHS[:8], [s for s in DIFFERENTIABLE if s in FIRST]), ids=str
)
def test_torch_func(sample: Sample) -> None:
    """grad, vjp, jacrev, jacfwd, jvp, hessian, vmap(grad) and forward_ad.

    A derived gradient may have no forward mode over its backward: this is an error, in the Hessian alone.
    """
    refused = _func.func(sample.checked(Maker()))
    assert refused == [] or (refused == ["torch.func.hessian"] and OPERATORS[sample.op].is_derived)


@pytest.mark.parametrize("samples", FIRST_OF_DIFFERENTIABLE)
def test_torch_func_in_a_graph(samples: list[Sample]) -> None:
    _func.func_in_a_graph(*(sample.checked(Maker()) for sample in samples))


@nightly
@pytest.mark.parametrize("samples", groups(OF_RULES, 6))
def test_jacobians_and_batched_gradients_in_a_graph(samples: list[Sample]) -> None:
    """Every gradient that is written by hand, and three of those that are derived, whose rule is one."""
    calls, inputs = {}, {}
    for sample in samples:
        call = sample.checked(Maker(torch.float64))
        if OPERATORS[sample.op].operator.contract is Contract.OUT or not call.differentiable:
            continue
        function, tensors = leaves(call, call.differentiable)
        given, every = tuple(t.detach() for t in tensors), tuple(range(len(tensors)))
        loss = lambda *x, f=function: sum(o.sin().sum() for o in several(f(*x)))
        calls |= {
            f"{sample}, jacrev": torch.func.jacrev(function, every),
            f"{sample}, vmap of grad": torch.vmap(torch.func.grad(loss, every)),
        }
        inputs[f"{sample}, jacrev"] = given
        inputs[f"{sample}, vmap of grad"] = tuple(torch.stack([t, t / 2]) for t in given)
    found, wanted = compile_together(calls, inputs="own")[0](inputs), apart(calls)(inputs)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("sample", first_of(s for s in DIFFERENTIABLE if s.linear), ids=str)
def test_adjoint_identity(sample: Sample) -> None:
    for format in ("planar", "interleaved"):
        call = sample.checked(Maker(torch.float64, format, (2,)))
        _checks.adjoint(call)
        check_adjoint(call.of(call.differentiable), *(call.bound.arguments[n] for n in call.differentiable))


@pytest.mark.parametrize("sample", first_of(INNER), ids=str)
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


def test_vmap_into_memory_is_refused() -> None:
    for spec in OPERATORS.values():
        if spec.operator.contract is Contract.OUT:
            call = spec.samples[0].checked(Maker())
            batched = torch.vmap(lambda *x, c=call: c.raw(**dict(zip(c.names, x, strict=True))))
            with pytest.raises((NotImplementedError, RuntimeError)):
                batched(*(torch.stack([t, t]) for t in call.tensors))


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
def test_compiled_in_several_variants(samples: list[Sample]) -> None:
    """In every third one, beginning with another one for each operator."""
    makers = [every_value(sample)[i % 3 :: 3] for i, sample in enumerate(samples)]
    for i in range(max(map(len, makers))):
        _checks.compilation(*(s.checked(each[i]) for s, each in zip(samples, makers) if i < len(each)))


@pytest.mark.parametrize(
    "operators",
    [
        *groups(OF_MODULES[:3], 3),
        *groups(
            (name for name in {s.op: 0 for s in COMPILED} if name not in OF_MODULES[:3]), 12, marks=nightly
        ),
    ],
)
def test_compiled_by_inductor(operators: list[str], whole: bool) -> None:
    """Inductor sees a call of an operator as opaque; `make test` compiles some.

    The last samples are in double precision: float32 sums of a large filter depend on the memory format.
    """
    for at, format in ((-1, "interleaved"), (0, "planar"))[: 2 if whole else 1]:
        samples = [[s for s in INNER if s.op == op][at] for op in operators]
        dtypes = [torch.float64 if at and torch.float64 in s.dtypes else torch.float32 for s in samples]
        makers = [Maker(dtype, batch=(2,), format=format) for dtype in dtypes]
        _checks.compilation(*map(Sample.checked, samples, makers), backend="inductor")


@pytest.mark.parametrize("sample", first_of(SAMPLES), ids=str)
def test_exported_and_decomposed(sample: Sample, whole: bool) -> None:
    """It is exported, saved, loaded and run as one opaque node; then in core ATen, in all of its dtypes.

    Where pixels move, and on uint8, it is bit-exact, except within a level where OpenCV rounds differently.
    `make test` exports operators that have no public function; test_modes.py exports the functions.
    """
    tolerance = OPERATORS[sample.op].decomposed if sample.decomposed is None else sample.decomposed

    def compare(found: torch.Tensor, wanted: torch.Tensor) -> None:
        tolerance.get(found.dtype, EXACT).check(found, wanted)

    call = sample.checked(Maker())
    if sample in FIRST and (whole or not OPERATORS[sample.op].is_public):
        _checks.export(call)
        _checks.core_aten(call, compare)
    else:
        _checks.decomposition(call, compare)
    makers = [Maker(format="interleaved", batch=(2,))]
    makers += [Maker(d) for d in (torch.uint8, torch.int64, torch.float64) if d in sample.dtypes]
    for maker in makers + (variants(sample) if whole and sample in FUNCTIONAL else []):
        _checks.decomposition(sample.checked(maker), compare)


@pytest.mark.parametrize("sample", first_of(INNER), ids=str)
def test_autocast(sample: Sample) -> None:
    _checks.autocast(sample.checked(Maker()))


def test_autocast_of_mixed_dtypes() -> None:
    """The widest dtype is that of the result; a gradient has the dtype of its leaf."""
    image, source, mask = torch.rand(3, 6, 7), torch.rand(3, 3, 4), torch.rand(1, 3, 4)
    for half in (torch.float16, torch.bfloat16):
        halves = [t.to(half).requires_grad_() for t in (source, mask)]
        with torch.autocast("cpu", half):
            mixed = imgops.paste(image, halves[0], (1, 2), halves[1])
        assert bits_equal(mixed, imgops.paste(image, halves[0].float(), (1, 2), halves[1].float()))
        assert all(g.dtype == half for g in torch.autograd.grad(mixed.sum(), halves))


@pytest.mark.parametrize("sample", FIRST, ids=str)
def test_torch_dispatch(sample: Sample) -> None:
    _checks.torch_dispatch(sample.checked(Maker()))


# -- functions that are made of operators ----------------------------------------------------------

#: The samples of functions that are made of several operators.
COMPOSED = [s for spec in SPECS.values() if not spec.is_operator for s in spec.samples if not s.edge]


@pytest.mark.parametrize(
    "sample",
    nightly_unless(
        lambda s: s is SPECS[s.op].samples[0] or s.op in ("affine", "polar_map"),
        [s for s in COMPOSED if torch.float64 in s.dtypes],
    ),
    ids=str,
)
def test_gradients_of_functions(sample: Sample) -> None:
    function, tensors = sample.of_tensors(Maker(torch.float64, grad=True))
    leaves = [t.detach().requires_grad_(t.requires_grad) for t in tensors]
    # The derivative of a Gaussian by its sigma has no forward mode.
    forward = sample.op != "elastic_map" or len(leaves) == 1
    assert torch.autograd.gradcheck(function, leaves, check_forward_ad=forward, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, leaves, fast_mode=True)


@pytest.mark.parametrize("sample", [s for s in COMPOSED if SPECS[s.op].cores[0] == 3], ids=str)
def test_formats_and_fakes_of_functions(sample: Sample) -> None:
    for maker in (
        *(Maker(sample.dtypes[0], f, (2,)) for f in FORMATS),
        *(Maker(batch=b) for b in BATCHES[:3]),
    ):
        function, tensors = sample.of_tensors(maker)
        out = function(*tensors)
        if sample.op not in ("invert", "flow_map", "flip", "rotate90"):  # they keep any strides
            check_format(out, tensors[0])
        assert out.untyped_storage().data_ptr() != tensors[0].untyped_storage().data_ptr()
        meta = function(*(t.to("meta") if i == 0 or t.ndim > 2 else t for i, t in enumerate(tensors)))
        assert (meta.shape, meta.dtype, meta.device.type) == (out.shape, out.dtype, "meta")


@pytest.mark.parametrize("sample", COMPOSED, ids=str)
def test_a_batch_of_a_function_is_a_loop(sample: Sample) -> None:
    """It is one with a parameter for each sample, too, and under vmap."""
    function, both = sample.of_tensors(Maker(sample.dtypes[-1], batch=(2,)))
    _, one = sample.of_tensors(Maker(sample.dtypes[-1]))
    dims = tuple(None if a.shape == b.shape else 0 for a, b in zip(both, one, strict=True))
    each = [[b if d is None else b[i] for b, d in zip(both, dims, strict=True)] for i in range(2)]
    wanted = torch.stack([function(*given) for given in each])
    for found in (function(*both), torch.vmap(function, dims)(*both)):
        tolerance = 1e-9 if found.dtype.is_floating_point else 0
        torch.testing.assert_close(found, wanted, rtol=0, atol=tolerance)


@nightly  # test_modes.py has all of them in a graph
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_functions_compiled(dtype: torch.dtype) -> None:
    """Other values are not compiled again. The strides of maps are not defined, and their last bits in a graph."""
    some = {str(s): s for s in COMPOSED if dtype in s.dtypes}
    calls = {name: s.of_tensors(Maker(dtype, "interleaved", (2,)))[0] for name, s in some.items()}
    graph, counting = compile_together(calls, inputs="own", dynamic=True)
    counts = []
    for seed in (0, 1):
        maker = Maker(dtype, "interleaved", (2,), seed=seed)
        inputs = {name: s.of_tensors(maker)[1] for name, s in some.items()}
        found, wanted = graph(inputs), apart(calls)(inputs)
        for name, value in wanted.items():
            if "map" in name:
                torch.testing.assert_close(found[name], value, rtol=0, atol=1e-5, msg=name)
            else:
                assert bits_equal(found[name], value) and found[name].stride() == value.stride(), name
        counts.append(counting.count)
    assert counts[0] == counts[1]


# -- the table of operators --------------------------------------------------------------------------


def test_every_operator_has_a_spec() -> None:
    assert set(OPERATORS) == set(operators())


def test_every_operator_has_its_facets() -> None:
    """A missing facet has a reason: an out= operator is not differentiable, a codec's size depends on data."""
    rows = operators()
    for name, spec in OPERATORS.items():
        row = rows[name]
        if row.contract is Contract.FUNCTIONAL:
            assert (
                row.adjoint in rows
                or spec.is_derived
                or spec.straight_through
                or row.no_gradient
                or (row.autograd.backward.__module__.startswith("imgops.autograd."))
            ), name
            assert (row.decomposition is None) == spec.straight_through, name
            assert row.autograd is not None and row.autograd.jvp is not None, name
            assert row.vmap is not None and row.sharding is not None, name
        elif row.contract in (Contract.INPLACE, Contract.BUFFERS):
            assert row.autograd is not None and row.vmap is not None and row.sharding is not None, name
        else:
            assert row.contract in (Contract.OUT, Contract.DYNAMIC), name
