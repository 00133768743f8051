"""The checks: each takes a Call, and raises an AssertionError whose first line names the fault."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from imgops._common import torch_private
from imgops._common.torch_private import tree_leaves, tree_map_only
from imgops._operator.record import Contract
from imgops.extend.testing._call import Call, bits_equal, capture, leaves, several, through_dispatcher


def registration(call: Call, utilities: Sequence[str] | str = "ALL") -> None:
    """Check that PyTorch's ``opcheck`` passes, with all or some of its utilities."""
    keywords: Any = {} if utilities == "ALL" else {"test_utils": utilities}
    torch.library.opcheck(call.overload, call.op_args, call.op_keywords, **keywords)


def fast_path(call: Call) -> None:
    """Check that the fast path and a call through the dispatcher agree in all bits and strides."""
    straight, dispatched = call.outputs(), through_dispatcher(call.outputs)
    for a, b in zip(straight, dispatched, strict=True):
        assert bits_equal(a, b), "the fast path gives other values"
        same_metadata(a, b)


def same_metadata(real: Tensor, fake: Tensor) -> None:
    """Check that shape, dtype and strides agree; opcheck compares strides only from torch 2.13 on."""
    assert real.shape == fake.shape, f"shape {tuple(real.shape)} but the fake has {tuple(fake.shape)}"
    assert real.dtype == fake.dtype, f"{real.dtype} but the fake has {fake.dtype}"
    assert real.stride() == fake.stride(), f"strides {real.stride()} but the fake has {fake.stride()}"
    assert real.storage_offset() == fake.storage_offset()


def fake(call: Call) -> None:
    """Check that fake and meta outputs have the shape, dtype and strides of real ones."""
    if call.operator.contract is not Contract.FUNCTIONAL:
        return  # a mutating operator returns its argument; a dynamic size is unknown
    real = call.overload(*call.op_args)
    with torch_private.fake_tensors() as mode:
        same_metadata(real, call.overload(*tree_map_only(Tensor, mode.from_tensor, call.op_args)))
    args = tree_map_only(Tensor, lambda t: t.to("meta"), call.op_args)
    meta = call.overload(*args)
    assert meta.device.type == "meta", f"meta tensors in, {meta.device} out"
    assert (real.shape, real.dtype) == (meta.shape, meta.dtype), "a meta tensor of another shape or dtype"
    pairs = zip(tree_leaves(args), tree_leaves(call.op_args), strict=True)
    if all(m.stride() == t.stride() for m, t in pairs if isinstance(t, Tensor)):  # the copies kept them
        assert meta.stride() == real.stride(), f"strides {meta.stride()} of a meta tensor, {real.stride()}"


def memory(call: Call) -> None:
    """Check that only the tensors that the schema names are written to, and that outputs are new memory.

    An in-place or out= operator must return the tensor that it wrote to.
    """
    tensors = dict(zip(call.names, call.tensors, strict=True))
    given = {n: t.detach().clone() if n in call.mutated else t for n, t in tensors.items()}
    before = {n: t.detach().clone() for n, t in given.items()}
    versions = {n: t._version for n, t in given.items() if not t.is_inference()}
    result = call.raw(**given)
    for name, tensor in given.items():
        if name not in call.mutated:
            assert bits_equal(tensor, before[name]), f"{name} was written to"
        elif name in versions and tensor.numel():
            assert tensor._version > versions[name], f"{name} was written to, its version stays"
    if call.operator.contract in (Contract.INPLACE, Contract.OUT):
        assert result is given[call.mutated[0]], "another tensor came back than the one written to"
    elif call.operator.contract is Contract.BUFFERS:
        assert result is None, "a buffer-writer returned something"
    elif result.numel():
        storage = result.untyped_storage().data_ptr()
        shared = [n for n, t in tensors.items() if t.numel() and t.untyped_storage().data_ptr() == storage]
        assert not shared, f"the output shares memory with {shared}"


def gradients(call: Call) -> None:
    """Check first and second order, forward mode and batched gradients in double precision.

    If an operator does not take float64, its gradients are compared with those of its decomposition.
    """
    if getattr(call.operator.autograd, "straight_through", False):
        _gradient_of_identity(call)
        return
    double = call.double()
    if double is None or not double.differentiable:
        _gradient_of_decomposition(call)
        return
    function, tensors = leaves(double, double.differentiable)
    if call.operator.contract is Contract.OUT:
        try:
            function(*tensors)
        except RuntimeError as error:
            if "out=... arguments don't support automatic differentiation" in str(error):
                return
            raise
        raise AssertionError("an out= call was recorded")
    forward = call.operator.contract.mutates or getattr(call.operator.autograd, "jvp", None) is not None
    options = {
        "fast_mode": True,
        "check_forward_ad": forward,
        "check_batched_grad": call.operator.vmap is not None,
    }
    assert torch.autograd.gradcheck(function, tensors, **options)
    assert torch.autograd.gradgradcheck(function, tensors, fast_mode=True)
    if call.operator.contract is Contract.INPLACE:
        leaf = tensors[0].detach().clone().requires_grad_()
        try:
            double.raw(**{double.mutated[0]: leaf})
        except RuntimeError as error:
            if "leaf Variable that requires grad" not in str(error):
                raise
        else:
            raise AssertionError("a leaf that requires a gradient was written to")


def _gradient_of_identity(call: Call) -> None:
    """Check in reverse and forward mode that a gradient declared as straight-through is the identity's."""
    at = next(i for i, a in enumerate(call.op_args) if isinstance(a, Tensor))
    given = call.op_args[at]
    if not given.is_floating_point():
        return
    image, args = given.detach().clone().requires_grad_(), list(call.op_args)

    def function(x: Tensor) -> Tensor:
        return call.overload(*args[:at], x, *args[at + 1 :])

    out = function(image)
    weight = torch.rand_like(out).requires_grad_()
    (grad,) = torch.autograd.grad(out, image, weight, create_graph=True)
    assert bits_equal(grad.detach(), weight.detach()), "a straight-through gradient is not the identity's"
    (second,) = torch.autograd.grad((grad * grad).sum(), weight)
    assert bits_equal(second, 2 * weight.detach()), "a straight-through gradient has another second order"
    tangent = torch.rand_like(given)
    found = torch.func.jvp(function, (given.detach(),), (tangent,))[1]
    assert bits_equal(found, tangent), "a straight-through tangent is not that of the identity"


def _gradient_of_decomposition(call: Call) -> None:
    tensors = [a for a in call.op_args if isinstance(a, Tensor)]
    at = [i for i, a in enumerate(call.op_args) if isinstance(a, Tensor) and a.is_floating_point()]
    if call.operator.decomposition is None or not call.differentiable or len(at) < len(tensors):
        return
    results = []
    for function in (call.overload, call.operator.decomposition):
        leaves = [call.op_args[i].detach().clone().requires_grad_() for i in at]
        args = list(call.op_args)
        for i, leaf in zip(at, leaves, strict=True):
            args[i] = leaf
        results.append(torch.autograd.grad(function(*args).sin().sum(), leaves))
    for found, wanted in zip(*results, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def vmap(call: Call) -> None:
    """Check that a vmapped call equals a loop, whichever tensors are batched and wherever the batch lies."""
    if call.operator.vmap is None or (call.operator.contract is Contract.OUT):
        return
    names = [n for n in call.names if call.bound.arguments[n].ndim > 0]
    function = call.of(names)
    tensors = [call.bound.arguments[n].detach() for n in names]
    pairs = [torch.stack([_other_value(function, tensors, i), x]) for i, x in enumerate(tensors)]
    for dim in (0, 1, -1):
        moved = tuple(x.movedim(0, dim).contiguous() for x in pairs)
        check_vmap(function, moved, (dim,) * len(names), out_dims=1)
    if len(names) > 1 and not call.operator.contract.mutates:  # batch one tensor at a time
        for i in range(len(names)):
            some = [pairs[i] if j == i else x for j, x in enumerate(tensors)]
            check_vmap(function, tuple(some), tuple(0 if j == i else None for j in range(len(names))))
    nested = [torch.stack([x, x]) for x in pairs]
    twice = several(torch.vmap(torch.vmap(function))(*nested))
    once = several(torch.vmap(function)(*pairs))
    for a, b in zip(twice, once, strict=True):
        assert bits_equal(a[1, 1], b[1]), "a nested vmap gives other values"
    none = several(torch.vmap(function)(*(x[:0] for x in pairs)))
    assert all(len(n) == 0 for n in none), "a vmap over nothing gives something"


def _other_value(function: Callable[..., Any], tensors: Sequence[Tensor], at: int) -> Tensor:
    """Return half of a tensor, or the tensor itself if it is bool or the operator refuses its half."""
    x = tensors[at]
    half = x if x.dtype == torch.bool else (x * 0.5).to(x.dtype)
    try:
        function(*(half.clone() if i == at else y.clone() for i, y in enumerate(tensors)))
    except ValueError:
        return x
    return half


def check_vmap(
    function: Callable[..., Any], args: tuple[Any, ...], in_dims: tuple[Any, ...], out_dims: int = 0
) -> None:
    """Check vmap against a loop over the samples."""
    batched = several(torch.vmap(function, in_dims, out_dims)(*args))
    size = next(a.shape[d] for a, d in zip(args, in_dims, strict=True) if d is not None)
    rows = []
    for i in range(size):
        sample = [a if d is None else a.select(d, i) for a, d in zip(args, in_dims, strict=True)]
        rows.append(several(function(*sample)))
    for found, each in zip(batched, zip(*rows, strict=True), strict=True):
        looped = torch.stack(each, out_dims)
        tolerance = 1e-12 if looped.dtype == torch.float64 else 1e-6
        torch.testing.assert_close(found, looped, rtol=0, atol=tolerance)


def compilation(*calls: Call, backend: str = "aot_eager") -> None:
    """Check that one graph of the calls has the values, strides and gradients of eager mode."""
    # Dynamo supports out= tensors that are contiguous.
    known = [
        c
        for c in calls
        if c.operator.contract is not Contract.OUT
        or all(c.bound.arguments[name].is_contiguous() for name in c.mutated)
    ]
    if not known:
        return
    pairs = [leaves(c, [] if c.operator.contract is Contract.OUT else c.differentiable) for c in known]
    inputs = [tensors for _, tensors in pairs]

    def run(inputs: Sequence[Sequence[Tensor]]) -> list[tuple[Tensor, ...]]:
        return [several(function(*tensors)) for (function, _), tensors in zip(pairs, inputs, strict=True)]

    torch.compiler.reset()
    graph = torch.compile(run, fullgraph=True, dynamic=True, backend=backend)
    try:
        results = graph(inputs)
    except Exception as error:
        for call in known if len(known) > 1 else ():  # so that the error is that of one call
            compilation(call, backend=backend)
        raise AssertionError(f"{known[0]} cannot be compiled by {backend}") from error
    eager = run(inputs)
    for call, out, wanted in zip(known, results, eager, strict=True):
        for a, b in zip(out, wanted, strict=True):
            assert bits_equal(a, b), f"{call} compiled by {backend}: the values differ"
            assert a.stride() == b.stride(), (
                f"{call} compiled by {backend}: strides {a.stride()}, {b.stride()}"
            )
    everything = [t for tensors in inputs for t in tensors]
    for a, b in zip(*(_sine_gradients(made, everything) for made in (results, eager)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


def _sine_gradients(made: list[tuple[Tensor, ...]], inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the gradients of all inputs in one backward, because a graph has one and runs it once."""
    outs = [o for out in made for o in out if o.requires_grad]
    if not outs:
        return ()
    cotangents = [torch.arange(o.numel(), dtype=o.dtype, device="cpu").sin().reshape(o.shape) for o in outs]
    return torch.autograd.grad(outs, inputs, cotangents, materialize_grads=True)


def export(call: Call) -> None:
    """Check that the call can be exported, saved, loaded and run, and stays one opaque node."""
    program, tensors = call.program
    if not call.operator.contract.mutates:
        assert _nodes(program, call) == 1, "the operator is not one node of the exported program"
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    loaded = torch.export.load(buffer).module()
    for a, b in zip(several(loaded(*tensors)), call.outputs(), strict=True):
        if call.operator.contract.mutates:  # exported as functional operators, which may round differently
            torch.testing.assert_close(a, b, msg=lambda m: f"the loaded program: {m}")
        else:
            assert bits_equal(a, b), "the loaded program gives other values"


def _nodes(program: Any, call: Call) -> int:
    prefix = f"{call.operator.namespace}."
    return sum(str(n.target).startswith(prefix) for n in program.graph.nodes if n.op == "call_function")


def core_aten(call: Call, compare: Callable[[Tensor, Tensor], None] | None = None) -> None:
    """Check that an exported program in core ATen agrees with the decomposition; check the decomposition."""
    if call.operator.decomposition is None:
        return
    program, tensors = call.program
    table = torch.export.default_decompositions() | {call.operator.overload: call.operator.decomposition}
    program = program.run_decompositions(table)
    assert _nodes(program, call) == 0, "a call of the operator is left"
    for node in program.graph.nodes:
        core = node.op != "call_function" or getattr(node.target, "namespace", "aten") == "aten"
        assert core, f"{node.target} is not of ATen"
    (found,) = several(program.module()(*tensors))
    with torch.no_grad():
        torch.testing.assert_close(found, call.operator.decomposition(*call.op_args), rtol=1e-5, atol=1e-5)
    decomposition(call, compare)


def decomposition(call: Call, compare: Callable[[Tensor, Tensor], None] | None = None) -> None:
    """Check the decomposition against the kernel: by default floats to 1e-5, integers exactly."""
    if call.operator.decomposition is None:
        return
    with torch.no_grad():
        found, wanted = call.operator.decomposition(*call.op_args), call.overload(*call.op_args)
    shapes = f"{found.dtype}{list(found.shape)} for {wanted.dtype}{list(wanted.shape)}"
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), shapes
    if found.numel() and 1 not in found.shape:
        assert found.stride() == wanted.stride(), f"strides {found.stride()} for {wanted.stride()}"
    if compare is not None:
        compare(found, wanted)
    elif wanted.dtype.is_floating_point:
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    else:
        assert bits_equal(found, wanted), "the decomposition gives other integers"


def autocast(call: Call) -> None:
    """Check that the result in an autocast region is that of arguments cast by the operator's policy."""
    for half in (torch.float16, torch.bfloat16):
        args = tree_map_only(Tensor, lambda t: t.to(half) if t.dtype == torch.float32 else t, call.op_args)  # noqa: B023
        if call.operator.contract is not Contract.FUNCTIONAL:
            continue
        policy = call.operator.autocast
        try:
            wanted = call.overload(*(policy("cpu", args) if policy else args))
        except TypeError:
            continue  # the operator does not take this dtype
        with torch.autocast("cpu", half):
            found = call.overload(*args)
        assert found.dtype == wanted.dtype, f"{found.dtype} in an autocast region, for {wanted.dtype}"
        assert bits_equal(found, wanted), "an autocast region gives other values"


def torch_dispatch(call: Call) -> None:
    """Check that a wrapper class with a rule for the operator sees the call and keeps its label."""
    if call.operator.contract is not Contract.FUNCTIONAL:
        return

    class Wrapped(Tensor):
        """A wrapper of a tensor and a label, the kind of class that ``register_torch_dispatch`` is for."""

        @staticmethod
        def __new__(cls, content: Tensor, label: str) -> Wrapped:
            like: Any = {"strides": content.stride(), "dtype": content.dtype, "device": content.device}
            return Tensor._make_wrapper_subclass(cls, content.shape, **like)

        def __init__(self, content: Tensor, label: str) -> None:
            self.content, self.label = content, label

        @classmethod
        def __torch_dispatch__(  # type: ignore[override]
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise NotImplementedError(f"{func} of a Wrapped tensor")

    def rule(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plain = tree_map_only(Wrapped, lambda w: w.content, args)
        return Wrapped(func(*plain, **(kwargs or {})), args[0].label)

    library = torch.library.Library(call.operator.namespace, "FRAGMENT")  # the rule is deleted with it
    torch.library.register_torch_dispatch(call.operator.qualified, Wrapped, rule, lib=library)
    first = call.names[0]
    found = call.raw(**{first: Wrapped(call.bound.arguments[first].detach(), "label")})
    assert isinstance(found, Wrapped), f"a {type(found).__name__} came out of a wrapped call"
    assert found.label == "label", "the label is lost"
    assert bits_equal(found.content, call.outputs()[0]), "a wrapped call gives other values"


def adjoint(call: Call) -> None:
    """Check <A x, y> = <x, A^T y> for an operator that names its adjoint, and that the backward calls it."""
    double = call.double()
    if call.operator.adjoint is None or double is None:
        return
    function, tensors = leaves(double, double.differentiable)
    out = function(*tensors)
    twice = function(*(2 * t.detach() for t in tensors))
    if not torch.allclose(twice, 2 * out.detach(), rtol=1e-9):
        return  # the call is not linear in all of its tensors together
    calls = [
        op.name() for op, _, _ in capture(lambda: torch.autograd.grad(out, tensors, torch.ones_like(out)))
    ]
    assert f"{call.operator.namespace}::{call.operator.adjoint}" in calls, f"the backward calls {calls}"
    check_adjoint(function, *tensors)


def check_adjoint(forward: Callable[..., Tensor], *inputs: Tensor) -> None:
    """Check <A x, y> = <x, A^T y>, with A^T y from the backward; x may be several tensors."""
    inputs = tuple(x.detach().clone().requires_grad_() for x in inputs)
    out = forward(*inputs)
    y = torch.randn(out.shape, generator=torch.Generator().manual_seed(7), dtype=out.dtype, device="cpu").to(
        out.device
    )
    back = torch.autograd.grad(out, inputs, y)
    left = (out.detach() * y).sum()
    right = sum((x.detach() * b).sum() for x, b in zip(inputs, back, strict=True))
    size = (out.detach() * y).abs().sum() + 1e-300
    assert abs(left - right) <= 1e-12 * size, f"<Ax, y> = {left} but <x, A'y> = {right}"
