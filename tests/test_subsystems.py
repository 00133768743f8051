"""Every subsystem of PyTorch on every operator, against the same computation in plain PyTorch."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from groups import apart, compile_together, groups
from torch import Tensor

import imgops
from imgops._common.torch_private import tree_leaves
from imgops._operator.record import Contract
from tests.specs import OPERATORS
from tests.specs import _plain as plain
from tests.specs._plain import rand
from tests.tiers import every_night, nightly, nightly_unless

#: Name -> (imgops' call, the same in plain PyTorch, its tensors); the calls are functions of tensors only.
EVERY = {
    name: (spec.plain.ours, spec.plain.theirs, spec.plain.tensors)
    for name, spec in OPERATORS.items()
    if spec.plain is not None
}
OUT = {n for n in EVERY if OPERATORS[n].operator.contract is Contract.OUT}
CALLS = {n: call for n, call in EVERY.items() if n not in OUT}
#: Mutating operators, which torch 2.13 and later export as functional ones.
MUTATES = {n for n in EVERY if OPERATORS[n].operator.contract.mutates}
#: Derived gradients share one path through torch.func: one of them stands for all.
DERIVED = [n for n in CALLS if OPERATORS[n].is_derived]


def same(found: Any, wanted: Any, name: str = "") -> None:
    for a, b in zip(tree_leaves(found), tree_leaves(wanted), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6, msg=lambda m: f"{name}: {m}")


def flat(function: Callable[..., Any]) -> Callable[..., Tensor]:
    return lambda *tensors: torch.cat([o.reshape(-1) for o in tree_leaves(function(*tensors))])


def loss(function: Callable[..., Any]) -> Callable[..., Tensor]:
    return lambda *tensors: flat(function)(*tensors).sin().sum()


def test_the_program_is_complete() -> None:
    missing = {n for n in OPERATORS if n not in EVERY}
    without = {
        name
        for name, spec in OPERATORS.items()
        if spec.operator.contract is Contract.DYNAMIC or spec.straight_through or spec.operator.no_gradient
    }
    assert missing == without


@pytest.mark.parametrize("name", list(EVERY))
def test_values(name: str) -> None:
    ours, theirs, tensors = EVERY[name]
    same(ours(*tensors), theirs(*tensors))


@pytest.mark.parametrize("name", list(CALLS))
def test_gradients_of_first_and_second_order(name: str) -> None:
    results = []
    for function in CALLS[name][:2]:
        tensors = tuple(t.clone().requires_grad_() for t in CALLS[name][2])
        first = torch.autograd.grad(loss(function)(*tensors), tensors, create_graph=True)
        squares = sum(g.square().sum() for g in first)
        second = tuple(torch.zeros_like(t) for t in tensors)
        if squares.requires_grad:
            second = torch.autograd.grad(squares, tensors, allow_unused=True, materialize_grads=True)
        results.append((first, second))
    same(*results)


WHOLE = ("jacrev", "jacfwd", "hessian")  # with a row for each pixel


@pytest.mark.parametrize(
    ("name", "transform"),
    nightly_unless(
        lambda values: values[0] not in DERIVED[1:] or values[1] not in WHOLE,
        [(name, transform) for name in CALLS for transform in ("grad", "vjp", *WHOLE, "jvp", "vmap_grad")],
    ),
)
def test_torch_func(name: str, transform: str) -> None:
    ours, theirs, tensors = CALLS[name]
    every = tuple(range(len(tensors)))
    tangents = tuple(torch.cos(t) for t in tensors)

    def apply(function: Callable[..., Any]) -> Any:
        if transform == "vjp":
            out, pull = torch.func.vjp(flat(function), *tensors)
            return pull(out.cos())
        if transform == "jvp":
            return torch.func.jvp(flat(function), tensors, tangents)
        if transform == "vmap_grad":
            stacked = tuple(torch.stack([t, t / 2, t / 3]) for t in tensors)
            return torch.vmap(torch.func.grad(loss(function), every))(*stacked)
        if transform in ("grad", "hessian"):
            return getattr(torch.func, transform)(loss(function), every)(*tensors)
        return getattr(torch.func, transform)(flat(function), every)(*tensors)

    if transform == "hessian" and OPERATORS[name].is_derived:
        with pytest.raises(NotImplementedError, match="forward-mode AD of this order must have a rule"):
            apply(ours)
        return
    same(apply(ours), apply(theirs))


@pytest.mark.parametrize("name", list(CALLS))
def test_forward_ad(name: str) -> None:
    results = []
    for function in CALLS[name][:2]:
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(t, torch.cos(t)) for t in CALLS[name][2]]
            results.append(forward_ad.unpack_dual(flat(function)(*duals)).tangent)
    same(*results)


# test_generic.py compiles and exports the first sample of each operator, too.
FEW = [
    *groups(n for n in EVERY if n not in DERIVED[1:]),
    *groups((n for n in EVERY if n in DERIVED[1:]), marks=nightly),
]


@pytest.mark.parametrize("backend", ["aot_eager", *every_night("inductor")])
@pytest.mark.parametrize("names", FEW)
@torch._functorch.config.patch(donated_buffer=False)  # the graph of the gradients is kept
def test_compiled(names: list[str], backend: str) -> None:
    graph, _ = compile_together({n: EVERY[n][0] for n in names}, backend, inputs="own")
    found = graph({n: EVERY[n][2] for n in names})
    for name in names:
        same(found[name], EVERY[name][1](*EVERY[name][2]), name)
    known = [n for n in names if n in CALLS]
    leaves = {n: tuple(t.clone().requires_grad_() for t in CALLS[n][2]) for n in known}
    graph, _ = compile_together({n: CALLS[n][0] for n in known}, backend, inputs="own")
    found, theirs = graph(leaves), apart({n: CALLS[n][1] for n in known})(leaves)
    for name, tensors in leaves.items():
        gradients = (
            torch.autograd.grad(loss(lambda *_, out=out: out)(), tensors, retain_graph=True)
            for out in (found[name], theirs[name])
        )
        same(*gradients)


@nightly  # test_generic.py has the transforms of torch.func in a graph for the first sample of each operator
@pytest.mark.parametrize("names", FEW)
def test_compiled_transforms(names: list[str]) -> None:
    found: dict[str, Any] = {}
    wanted: dict[str, Any] = {}
    inputs = {}
    for name in names:
        if name in OUT:
            continue
        ours, theirs, tensors = CALLS[name]
        every = tuple(range(len(tensors)))
        for kind, transform, given in (
            ("grad", lambda f, every=every: torch.func.grad(loss(f), every), tensors),
            ("jacrev", lambda f, every=every: torch.func.jacrev(flat(f), every), tensors),
            (
                "vmap of grad",
                lambda f, every=every: torch.vmap(torch.func.grad(loss(f), every)),
                tuple(torch.stack([t, t / 2]) for t in tensors),
            ),
        ):
            key = f"{name}, {kind}"
            found[key], wanted[key], inputs[key] = transform(ours), transform(theirs), given
    same(compile_together(found, inputs="own")[0](inputs), apart(wanted)(inputs))


@pytest.mark.parametrize("name", list(EVERY))
def test_vmap(name: str) -> None:
    ours, theirs, tensors = EVERY[name]
    if name in OUT:
        with pytest.raises((NotImplementedError, RuntimeError)):
            torch.vmap(ours)(*(torch.stack([t, t]) for t in tensors))
        return
    dims = tuple(min(t.ndim, 1) for t in tensors)
    stacked = tuple(torch.stack([t, t / 2, t / 3], dim) for t, dim in zip(tensors, dims, strict=True))
    found = torch.vmap(ours, in_dims=dims)(*stacked)
    samples = [[s.select(d, i) for s, d in zip(stacked, dims, strict=True)] for i in range(3)]
    wanted = [theirs(*s) for s in samples]
    same(found, [torch.stack(w) for w in zip(*map(tree_leaves, wanted), strict=True)])


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["crop", "paste", "pad", "resize", "pad_adjoint", "resize_adjoint"])
def test_autocast_gives_the_float32_result(name: str, half: torch.dtype) -> None:
    ours, theirs, tensors = CALLS[name]
    halves = tuple(t.to(half) for t in tensors)
    with torch.autocast("cpu", half):
        found = ours(*halves)
    wanted = theirs(*(h.float() for h in halves))
    moves = name in ("crop", "paste", "pad")  # these keep the dtype, or take the widest one
    assert found.dtype == (half if moves else torch.float32)
    same(found, wanted.to(found.dtype))
    if name == "paste":
        with torch.autocast("cpu", half):
            mixed = ours(tensors[0].float(), *halves[1:])
        same(mixed, theirs(tensors[0].float(), *(h.float() for h in halves[1:])))
    leaf = halves[0].clone().requires_grad_()
    with torch.autocast("cpu", half):
        ours(leaf, *halves[1:]).float().sum().backward()
    assert leaf.grad is not None and leaf.grad.dtype == half


class Module(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> Any:
        return self.function(*tensors)


@pytest.mark.parametrize("decompose", [pytest.param(False, marks=nightly), True])
@pytest.mark.parametrize("name", nightly_unless(lambda n: n not in DERIVED[1:], EVERY))
def test_export(name: str, decompose: bool) -> None:
    ours, theirs, tensors = EVERY[name]
    program = torch.export.export(Module(ours), tensors)
    if decompose and (hasattr(torch.Tag, "inplace") or name not in MUTATES):
        program = program.run_decompositions(torch.export.default_decompositions() | imgops.decompositions())
        assert "imgops" not in str(program.graph)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    same(torch.export.load(buffer).module()(*tensors), theirs(*tensors))


@pytest.mark.parametrize("name", ["crop", "pad", "resize", "paste"])
def test_exported_with_dynamic_sizes_and_decomposed(name: str) -> None:
    """A program that was exported for one size serves other sizes, also decomposed.

    This holds as long as a paste is clipped on the same sides: the clipping determines sizes in the graph, and the
    exported program raises an error if they change.
    """
    ours, theirs, tensors = CALLS[name]
    if name == "paste":
        ours = lambda x, s, m: imgops.paste(x, s, (-2, 1), m)
        theirs = lambda x, s, m: plain.paste(x, s, (-2, 1), m)
    batch = tuple(torch.stack([t] * 3) for t in tensors)
    # An image has any size where a paste has a fixed position; the patch has its own sizes.
    sizes = {0: torch.export.Dim.DYNAMIC, 2: torch.export.Dim.DYNAMIC, 3: torch.export.Dim.DYNAMIC}
    shapes = tuple(sizes if i == 0 else {0: torch.export.Dim.DYNAMIC} for i in range(len(batch)))
    program = torch.export.export(Module(ours), batch, dynamic_shapes=(shapes,))
    program = program.run_decompositions(torch.export.default_decompositions() | imgops.decompositions())
    assert "imgops" not in str(program.graph)
    for count, height, width in ((3, 7, 9), (2, 12, 8), (5, 9, 20)):
        inputs = (rand(count, 3, height, width), *(torch.stack([t] * count) for t in tensors[1:]))
        same(program.module()(*inputs), theirs(*inputs))
