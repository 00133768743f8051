"""The registration of operators: the only module that uses torch.library.

An operator is declared by a typed signature, which becomes its schema, and by its facets::

    @operator("imgops::crop", kernel=cpu.movement.crop, fake=fake.movement.crop, ...)
    def _crop(image: Tensor, left: int, top: int, right: int, bottom: int) -> Tensor: ...

A fake validates and allocates the output; a kernel fills it: ``kernel(out, *args)``. The signature and
``mutates`` determine the contract of an operator that uses memory in another way: see ``record.Contract``.
"""

from __future__ import annotations

import inspect
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial, wraps
from typing import Any, cast

import torch

from imgops._common import torch_private
from imgops._common import values as value_checks
from imgops._operator import call, record
from imgops._operator.record import Contract, Function, Gradient, Operator, Packed
from imgops.autograd import derived
from imgops.kernels import devices
from imgops.kernels.cpu import _threads
from imgops.rules import sharding
from imgops.rules import vmap as vmap_rules
from imgops.rules.autocast import DEVICES


def operator(
    name: str,
    *,
    kernel: Function | None = None,
    fake: Function | None = None,
    mutates: Sequence[str] = (),
    dynamic: bool = False,
    random: bool = False,
    cuda: Function | None = None,
    autograd: Gradient | Function | None = None,
    backward: Function | None = None,
    linear: bool = False,
    vmap: Function | None = None,
    sharding: Function | None = None,
    autocast: Function | None = None,
    decomposition: Function | None = None,
    adjoint: str | None = None,
    values: Function | Mapping[str, Function] | None = None,
    no_gradient: str = "",
    host: str = "",
    cache_key: Function | None = None,
    packed: Packed | None = None,
) -> Callable[[Function], Function]:
    """Register a kernel as a PyTorch operator by decorating its typed signature.

    The decorated name becomes the function that calls the operator: the CPU kernel directly if the
    dispatcher would do nothing else, otherwise the dispatcher. A use whose facet is missing raises
    ``NotImplementedError`` and names the facet.

    Parameters
    ----------
    name : str
        ``"namespace::name"``, not yet taken.
    kernel : callable
        ``kernel(out, *args)`` fills ``out`` on the CPU; it is ``kernel(*args)`` if the operator mutates or
        the size of its output is dynamic.
    fake : callable
        ``fake(*args)`` validates shapes and dtypes, never data, and returns an uninitialized output. It runs
        before the kernel; on the CPU, calls that agree in shapes, strides, dtypes and the other arguments
        share one run. If the operator mutates, it only validates. With ``dynamic`` it is
        ``fake(new_size, *args)``: each ``new_size(min=..., max=...)`` returns a size that is not known yet.
    mutates : sequence of str
        The arguments that the operator writes to. A first argument that is also returned makes the operator
        in place; a keyword-only ``out`` that is returned makes it an out= operator; a signature that
        returns None leaves its buffers to the caller.
    dynamic : bool
        Whether the data decide the output's size.
    random : bool
        Whether the operator draws from PyTorch's global generator.
    cuda : callable, optional
        A native CUDA kernel of the same form. If there is no such kernel, if it returns ``NotImplemented``,
        and on every other device, the ``decomposition`` runs on the device. Without a decomposition, the CPU
        kernel runs between a copy to the host and a copy back.
    autograd : imgops.extend.Gradient or callable, optional
        The gradient. A mutating operator takes a function that makes the same change with functional
        operators: autograd records those, and an exported program holds them. If it is None and there is a
        ``decomposition``, the gradient is derived from the decomposition, in opaque operators
        ``name_backward`` and ``name_forward``.
    backward : callable, optional
        ``backward(grads, grad, *args)``: a CPU kernel of a derived gradient. It fills the contiguous tensors
        of ``grads``, one for each tensor among the arguments, or None where none is wanted. If it returns
        ``NotImplemented``, and on every other device, the decomposition is differentiated.
    linear : bool
        Whether the result is linear in the first tensor, whose values then are saved only for the gradients
        of other tensors.
    vmap : callable, optional
        ``vmap(op, info, in_dims, *args)``: the rule of :func:`torch.library.register_vmap`, with the operator
        as its first argument. ``imgops.extend.vmap.leading`` serves operators over ``(..., C, H, W)``.
    sharding : callable, optional
        DTensor's rule, as :func:`torch.distributed.tensor.experimental.register_sharding` takes it;
        ``imgops.extend.sharding.leading`` serves operators over ``(..., C, H, W)``.
    autocast : callable, optional
        ``autocast(device, args)`` returns the arguments that the operator gets in an autocast region:
        ``imgops.extend.autocast.float32`` or ``promote``. None leaves them as they are.
    decomposition : callable, optional
        ``decomposition(*args)`` computes the same result with core ATen operators.
    adjoint : str, optional
        The name of the operator that is the transpose of this one, if this one is linear in its image.
    values : callable or mapping, optional
        ``values(*args)`` reads parameters that are on the CPU and raises if one is invalid. It runs after
        ``fake`` and before any kernel, on every device. A mapping has ``check(op, name, value)`` for each
        parameter that is checked alone.
    no_gradient : str, optional
        Why the operator has no useful gradient, although it has a decomposition: asking for one raises
        ``NotImplementedError`` with this text.
    host : str, optional
        Why the operator goes through the host on devices other than the CPU, for :func:`imgops.show_config`.
    cache_key : callable, optional
        ``cache_key(*args)`` returns the cache key of a call, in addition to the metadata of its tensor: the
        values on which its validity and its output's size depend. By default these are all arguments. Calls
        with equal keys share one run of the fake.
    packed : imgops.extend.packed.Packed, optional
        How the operator takes :class:`imgops.PackedImages`; None refuses them.

    Returns
    -------
    callable
        A decorator for a function without a body. The annotations of the function are the schema: tensors
        first, then ints, then the rest, all positional.

    Raises
    ------
    TypeError
        If ``kernel`` or ``fake`` is missing, ``kernel`` has other parameters, or ``autograd`` is not of the
        operator's kind.
    ValueError
        If ``name`` has no namespace or is taken, ``mutates`` does not fit the signature, or a rule of
        ``leading`` has the dimensions of another number of tensors.

    Examples
    --------
    >>> import torch, imgops
    >>> def fake(image: torch.Tensor) -> torch.Tensor:
    ...     return torch.empty_like(image)
    >>> def kernel(out: torch.Tensor, image: torch.Tensor) -> None:
    ...     out.copy_(image).neg_()
    >>> @imgops.extend.operator("example::negative", kernel=kernel, fake=fake, decomposition=torch.neg)
    ... def negative(image: torch.Tensor) -> torch.Tensor: ...
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.autograd.grad(negative(x).sum(), x)
    (tensor([-1., -1.]),)
    """
    namespace, _, short = name.partition("::")
    if not (namespace and short):
        raise ValueError(f"operator: name must be 'namespace::name', got {name!r}")
    record.require(name, "kernel", kernel)
    record.require(name, "fake", fake)
    facets = {"kernel": kernel, "fake": fake, "cuda": cuda, "vmap": vmap, "sharding": sharding}
    facets |= {"autocast": autocast, "decomposition": decomposition, "cache_key": cache_key}
    if not isinstance(values, Mapping):
        facets["values"] = values
    record.require_functions(name, facets)
    if isinstance(mutates, str):
        raise TypeError(f"operator: {name}: mutates must be a list of names, got {mutates!r}")

    def register(declared: Function) -> Function:
        if name in record.table:
            raise ValueError(f"operator: name must be new, got {name!r} a second time")
        signature = inspect.signature(declared)
        _require_single_tensors(name, signature)
        contract = _contract(name, signature, mutates, dynamic)
        record.require_kernel(name, cast("Function", kernel), signature, not contract.mutates and not dynamic)
        record.require_gradient(name, contract.mutates, autograd)
        operator = Operator(
            name=short,
            namespace=namespace,
            contract=contract,
            signature=signature,
            kernel=cast("Function", kernel),
            fake=cast("Function", fake),
            mutates=tuple(mutates),
            random=random,
            cuda=cuda,
            autograd=record.refused_gradient(short, no_gradient) if no_gradient else autograd,
            vmap=vmap,
            sharding=sharding,
            autocast=autocast,
            decomposition=decomposition,
            adjoint=adjoint,
            values=value_checks.by_name(short, list(signature.parameters), values)
            if isinstance(values, Mapping)
            else values,
            no_gradient=no_gradient,
            host=host,
            cache_key=cache_key,
            packed=packed,
        )
        for facet, rule in (("vmap", vmap), ("sharding", sharding)):
            core = getattr(rule, "core", None)
            if core is not None and len(core) != operator.tensors:
                must = f"{facet} must have the dimensions of {operator.tensors} tensors"
                raise ValueError(f"operator: {name}: {must}, got leading({', '.join(map(str, core))})")
        if decomposition is not None and contract is Contract.FUNCTIONAL:
            operator = replace(
                operator, autograd=_complete_gradient(operator, declared, decomposition, backward, linear)
            )
        # If the batching rule says that samples do not depend on each other, threads may divide them.
        run_on_threads = partial(_threads.run, operator.kernel, () if random else getattr(vmap, "core", ()))
        run = call.prepare_then_kernel(operator, operator.kernel, call.prepare_once(operator), run_on_threads)
        overload, recorded = _define(operator, declared, run)
        operator = replace(operator, overload=overload)
        record.table[name] = operator
        if packed is not None:
            for observe in record.packed_observers:
                observe(operator)
        public = wraps(declared)(call.function(operator, run, recorded))
        public.operator = operator  # type: ignore[attr-defined]
        if namespace == "imgops":
            setattr(record.calls, short, public)
        return public

    return register


def _require_single_tensors(name: str, signature: inspect.Signature) -> None:
    """Check that no argument is a list of tensors, and that no more than one tensor is returned."""
    for parameter in signature.parameters.values():
        kind = str(parameter.annotation)
        if "Tensor" in kind and "[" in kind.replace("Optional[", ""):
            must = f"{parameter.name} must be a Tensor or None, not several: stack them"
            raise TypeError(f"operator: {name}: {must}, got {kind}")
    returned = str(signature.return_annotation)
    if "Tensor" in returned and "[" in returned:
        raise TypeError(f"operator: {name}: one Tensor or nothing must be returned, got {returned}")


def _contract(name: str, signature: inspect.Signature, mutates: Sequence[str], dynamic: bool) -> Contract:
    if not mutates:
        return Contract.DYNAMIC if dynamic else Contract.FUNCTIONAL
    parameters = list(signature.parameters.values())
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    returns = signature.return_annotation not in (None, "None")
    if keywords == list(mutates) == ["out"] and returns:
        return Contract.OUT
    if not keywords and set(mutates) <= set(signature.parameters):
        if not returns:
            return Contract.BUFFERS
        if list(mutates) == [parameters[0].name]:
            return Contract.INPLACE
    must = (
        "mutates must name the first argument, a keyword-only out, or what a function returning None writes"
    )
    raise ValueError(f"operator: {name}: {must}, got {tuple(mutates)}")


def _define(operator: Operator, declared: Function, run: Callable[[Sequence[Any]], Any]) -> tuple[Any, Any]:
    """Register the facets with torch.library; ``run`` is the operator on the CPU.

    Return the overload, and what records ``run`` for autograd, None if the operator mutates.
    """
    elsewhere = _as_kernel(
        call.prepare_then_kernel(operator, devices.kernel_of(operator), call.prepare_always(operator))
    )
    # A copy to the host cannot be captured into a CUDA graph; inductor splits the graph around it.
    tags = [] if devices.stays_on_device(operator) else [torch.Tag.cudagraph_unsafe]
    if operator.random:
        tags.append(torch.Tag.nondeterministic_seeded)
    if operator.contract is Contract.DYNAMIC:
        tags.append(torch.Tag.dynamic_output_shape)
    schema = _schema(declared, operator.mutates)
    if operator.contract.mutates:
        # The operator returns nothing to PyTorch, and its Python function returns the buffer: inductor (of
        # torch 2.14) reuses memory that an operator with the tag ``inplace`` or ``out`` has returned.
        schema = schema.replace(" *,", "").rpartition("->")[0] + "-> ()"
    opdef = torch_private.custom_op(operator.qualified, elsewhere, schema=schema, tags=tags)
    # Register one device per call, because a shared registration cannot be replaced for one device alone.
    opdef.register_kernel("cpu", _as_kernel(run))
    torch_private.register_cpu_kernel(opdef, _as_kernel(run))
    opdef.register_kernel("cuda", elsewhere)
    with warnings.catch_warnings():
        # The fake that PyTorch makes for in-place and out= operators would accept invalid arguments.
        warnings.filterwarnings("ignore", "The fake registration for", UserWarning)
        opdef.register_fake(_registered_fake(operator))
    recorded: Any = None
    if operator.contract.mutates:
        functional: Any = operator.autograd or record.missing_facet(operator, "autograd")
        if operator.contract is Contract.OUT:
            functional = None  # PyTorch has no gradients for out= operators
        torch_private.register_mutation(opdef, call.prepare_always(operator), functional)
    else:
        gradient = cast("Gradient | None", operator.autograd) or record.missing_gradient(operator)
        recorded = torch_private.register_gradient(
            opdef, gradient.setup_context, gradient.backward, gradient.jvp
        )
    batched = operator.vmap or record.missing_facet(operator, "vmap")
    if operator.random:
        batched = vmap_rules.with_randomness(batched)
    opdef.register_vmap(partial(batched, torch_private.overload_of(opdef)))
    if operator.autocast is not None:
        torch_private.register_autocast(opdef, operator.autocast, DEVICES)
    overload = torch_private.overload_of(opdef)
    rule = operator.sharding or record.missing_facet(operator, "sharding")
    if operator.contract is Contract.INPLACE:
        rule = _without_outputs(rule)
    torch_private.when_distributed(partial(torch_private.register_sharding, overload, rule, operator.tensors))
    return overload, recorded


def _without_outputs(rule: Function) -> Function:
    """Remove the outputs from a sharding rule, for an operator that returns nothing to PyTorch."""

    def inputs_only(*specs: Any) -> list[tuple[list[Any], list[Any]]]:
        return [([], inputs) for _, inputs in rule(*specs)]

    return inputs_only


@cache
def _schema(declared: Function, mutates: tuple[str, ...]) -> str:
    """Return the schema of a signature without its defaults.

    PyTorch leaves out arguments that equal their defaults, also where it calls a facet.
    """
    signature = inspect.signature(declared)
    bare: Any = types.FunctionType(declared.__code__, declared.__globals__, declared.__name__)
    bare.__signature__ = signature.replace(
        parameters=[p.replace(default=p.empty) for p in signature.parameters.values()]
    )
    return torch.library.infer_schema(bare, mutates_args=mutates)


def _as_kernel(run: Callable[[Sequence[Any]], Any]) -> Function:
    """Adapt ``run`` to the calls of torch.library."""

    def kernel(*args: Any) -> Any:
        return run(args)

    return kernel


def _registered_fake(operator: Operator) -> Function:
    if operator.contract is Contract.DYNAMIC:

        def dynamic(*args: Any) -> Any:
            if args[0].device.type == "meta":
                name = next(iter(operator.signature.parameters))
                must = f"{operator.name}: {name} must have data, which decide the size of the result"
                raise NotImplementedError(f"{must}, got a meta tensor")
            return operator.fake(torch.library.get_ctx().new_dynamic_size, *args)

        return dynamic
    return _as_kernel(call.prepare_always(operator)) if operator.contract.mutates else operator.fake


def _complete_gradient(
    operator: Operator, declared: Function, decomposition: Function, kernel: Function | None, linear: bool
) -> Gradient:
    """Derive the parts that an operator's gradient lacks from its decomposition.

    Each derived part is a separate operator, which is opaque to a compiler.
    """
    given = cast("Gradient | None", operator.autograd)
    if given is not None and given.jvp is not None:
        return given
    schema = _schema(declared, ())
    arguments = schema[1:].rpartition("->")[0].rstrip()[:-1]
    rule = derived.DerivedGradient(decomposition, operator.fake, operator.tensors, kernel, linear)

    def product(suffix: str, vector: str, kernel: Function, fake: Function, opened: Function) -> Any:
        opdef = torch_private.custom_op(
            f"{operator.qualified}_{suffix}",
            kernel,
            schema=f"(Tensor {vector}, {arguments}, int[] wanted) -> Tensor",
        )
        opdef.register_fake(fake)
        backward = partial(rule.open, opened)
        torch_private.register_gradient(opdef, rule.product_setup_context, backward, None)
        overload = torch_private.overload_of(opdef)
        opdef.register_vmap(partial(rule.product_vmap, overload))
        shards = partial(torch_private.register_sharding, overload, sharding.whole, operator.tensors + 1)
        torch_private.when_distributed(shards)
        return overload

    rule.forward_operator = product("forward", "tangent", rule.forward_kernel, rule.forward_fake, rule.push)
    if given is not None:
        return Gradient(rule.setup_with(given.setup_context), given.backward, rule.jvp)
    rule.backward_operator = product(
        "backward", "cotangent", rule.backward_kernel, rule.backward_fake, rule.pull
    )
    return Gradient(rule.setup_context, rule.backward, rule.jvp)
