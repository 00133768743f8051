"""All private names of PyTorch that imgops needs, in one place.

Checked on torch 2.11, 2.13, 2.14 and 2.15; ``tests/test_torch_private.py`` fails when one of them moves or
changes its meaning. No other module of imgops may use PyTorch's private names.
"""

from __future__ import annotations

import builtins
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial, wraps
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any, NoReturn, TypeVar

import torch
import torch.autograd.forward_ad as forward_ad
from torch import _C, Tensor
from torch._C._functorch import (
    TransformType,
    is_batchedtensor,
    is_legacy_batchedtensor,
    maybe_current_level,
)
from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters
from torch._functorch.utils import enable_single_level_autograd_function
from torch._library.custom_ops import CustomOpDef
from torch._library.utils import fill_defaults
from torch.autograd import profiler
from torch.autograd.function import _SingleLevelFunction
from torch.nn import Parameter
from torch.nn.modules import module as _modules
from torch.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode
from torch.utils._pytree import MappingKey, register_pytree_node
from torch.utils._pytree import tree_flatten as _tree_flatten
from torch.utils._pytree import tree_leaves as tree_leaves
from torch.utils._pytree import tree_map_only as tree_map_only
from torch.utils._pytree import tree_unflatten as tree_unflatten

_is_compiling = torch.compiler.is_compiling
# torch.compiler.disable imports dynamo, which takes seconds; this function imports it only when it is called.
disable_dynamo: Any = torch._disable_dynamo  # type: ignore[attr-defined]
grad_enabled = torch.is_grad_enabled
_function_modes = _C._len_torch_function_stack
_dispatch_modes = _C._len_torch_dispatch_stack
_tracing_state = _C._get_tracing_state
_functorch_level = maybe_current_level
_is_legacy_batched = is_legacy_batchedtensor


def can_bypass_dispatcher() -> bool:
    """Return whether no mode, transform, tracer or profiler would see an operator call.

    With plain CPU tensors that need no gradient, such a call may run the kernel directly and skip the
    dispatcher, which costs several times as much as the kernel of a small image.
    """
    return (
        is_eager()
        and not _dispatch_modes()
        and not _function_modes()
        and forward_ad._current_level < 0
        and _tracing_state() is None
        and not profiler._is_profiler_enabled
    )


def is_plain(x: Tensor | None) -> bool:
    """Return whether ``x`` is None or an ordinary CPU tensor for which no gradient is recorded."""
    return x is None or (is_ordinary(x) and not (x.requires_grad and grad_enabled()))


def is_ordinary(x: Tensor) -> bool:
    """Return whether ``x`` is an ordinary CPU tensor, whose memory a kernel can read directly."""
    return (
        (type(x) is Tensor or type(x) is Parameter)
        and x.is_cpu
        and not x.is_neg()
        and not x._is_zerotensor()  # a zero tensor has no memory
        and not x.is_conj()
        and not _is_legacy_batched(x)  # is_grads_batched passes batched cotangents in such tensors
    )


def raise_error(kind: type[Exception], text: str) -> NoReturn:
    """Raise an error that the user also sees where a compiler traces the call.

    For any other exception dynamo reports a missing handler, recommends filing a bug, and appends the text.
    Dynamo passes its own exceptions through, so the exception raised under dynamo belongs to both classes.
    """
    raise_in_graph(kind, text)
    raise kind(text)


def raise_in_graph(kind: type[Exception], text: str) -> None:
    """Raise an error, as ``raise_error`` does, if a compiler traces the call."""
    if _is_compiling():
        _refuse(kind.__name__, text)


_Function = TypeVar("_Function", bound=Callable[..., Any])


def constant_in_graphs(function: _Function) -> _Function:
    """Decorate a function that dynamo runs instead of tracing it; its result is a constant of the graph.

    ``torch.compiler.assume_constant_result`` sets the same mark, but imports dynamo, which takes a second.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


@constant_in_graphs
def _refuse(kind: str, text: str) -> NoReturn:
    raise _refusal(kind)(text)


@cache
def _refusal(kind: str) -> type[Exception]:
    from torch._dynamo.exc import Unsupported  # dynamo takes a second to import

    return type(f"{kind}InGraph", (Unsupported, getattr(builtins, kind)), {"__module__": "imgops"})


class _TypesWithoutHandler(tuple[type, ...]):
    """Some classes of tensors, and every class that does not override ``__torch_dispatch__``."""

    __slots__ = ()

    def __contains__(self, kind: Any) -> bool:
        return super().__contains__(kind) or kind.__torch_dispatch__ is _C._disabled_torch_dispatch_impl


@constant_in_graphs
def accept_subclasses() -> None:
    """Let the first call of a compiled graph take tensors of subclasses, such as tv_tensors.

    During this call torch 2.13 and 2.14 look for outputs that are aliases of inputs, and leave an operator
    that has a subclass among its inputs to the handler of the class, even if it has none: a TypeError
    (https://github.com/pytorch/pytorch/issues/193932).
    """
    import_module("torch._dynamo")  # the next module cannot be imported first
    runtime_wrappers: Any = import_module("torch._functorch._aot_autograd.runtime_wrappers")

    known = getattr(runtime_wrappers, "HANDLED_TYPES", None)
    if known is not None and not isinstance(known, _TypesWithoutHandler):
        runtime_wrappers.HANDLED_TYPES = _TypesWithoutHandler(known)


def is_exporting() -> bool:
    """Return whether ``torch.export`` traces this call. Before torch 2.13 it is unknown: return False."""
    return _TELLS_EXPORT and torch.compiler.is_exporting()


_TELLS_EXPORT = hasattr(torch.Tag, "inplace")


def real_inputs_of_export(flat: Sequence[Any]) -> dict[int, Tensor]:
    """Return, by position, the tensors for which ``torch.export(strict=False)`` passes plain fake ones."""
    found = {}
    if is_exporting() and not torch.compiler.is_dynamo_compiling():
        for i, x in enumerate(flat):
            if hasattr(x, "fake_mode"):
                converter = x.fake_mode.fake_tensor_converter.meta_converter
                for real, at in converter.describer.lookup_tensor.items():
                    if converter.tensor_memo.get(at) is x:
                        found[i] = real
    return found


def has_modes() -> bool:
    """Return whether a mode, of functions or of operators, or a transform of torch.func is active."""
    return bool(_function_modes() or _dispatch_modes()) or _functorch_level() is not None


def has_usual_call(cls: type) -> bool:
    """Return whether calls of a class of modules are those of ``torch.nn.Module``."""
    names = "__call__", "_call_impl", "_wrapped_call_impl"
    return all(getattr(cls, n, None) in (None, getattr(torch.nn.Module, n)) for n in names)


def is_called_as_module(cls: Any) -> bool:
    """Return whether ``__call__`` of a class is that of ``torch.nn.Module``, which a tracer may replace."""
    return cls.__call__ is torch.nn.Module.__call__


def has_global_hooks() -> bool:
    """Return whether hooks run around the forward of every module."""
    return bool(_modules._global_forward_hooks or _modules._global_forward_pre_hooks)


def is_eager() -> bool:
    """Return whether neither a compiler nor a transform of torch.func traces this call."""
    return not _is_compiling() and _functorch_level() is None


def sym_max(a: Any, b: Any) -> Any:
    """Return the larger of two numbers, which may be symbolic; PyTorch 2.11 refuses constants in a graph."""
    return max(a, b) if type(a) in (int, float) and type(b) in (int, float) else torch.sym_max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers, as ``sym_max`` does."""
    return min(a, b) if type(a) in (int, float) and type(b) in (int, float) else torch.sym_min(a, b)


def is_readable(x: Tensor) -> bool:
    """Return whether ``x`` has values on the CPU that a check may read.

    No compiler, mode or transform may see the read.
    """
    return (
        is_eager()
        and type(x) in (Tensor, torch.nn.Parameter)
        and x.is_cpu
        and not _dispatch_modes()
        and _tracing_state() is None
    )


# Dynamo enters the transforms of torch.func that it traces, but a traced question would not see them.
@constant_in_graphs
def in_vmap() -> bool:
    """Return whether a transform of torch.func is active, in a graph too."""
    return _functorch_level() is not None


def is_vmapped(x: Tensor) -> bool:
    """Return whether ``x`` may be a batch that vmap presents as one sample; in a graph, always True."""
    return _is_compiling() or is_batchedtensor(x)


class _OperatorDefinition(CustomOpDef):
    """A custom operator without PyTorch's Autograd kernel, which our kernel replaces.

    Making that kernel for every operator takes a third of the import of imgops. Before torch 2.15 PyTorch has
    no separate method that makes it, so the kernel is made.
    """

    def _register_autograd_dispatcher_impl(self) -> None:
        pass


def custom_op(name: str, kernel: Callable[..., Any], *, schema: str, tags: Sequence[Any] = ()) -> Any:
    """Define an operator as ``torch.library.custom_op`` does; its Autograd kernel is registered next."""
    namespace, _, short = name.partition("::")
    opdef = _OperatorDefinition(namespace, short, schema, kernel, list(tags))
    opdef.register_kernel(None)(kernel)
    if hasattr(opdef._opoverload, "_enable_pyobj_dispatch"):  # from torch 2.15 on; it makes calls cheaper
        opdef._opoverload._enable_pyobj_dispatch(True)
    return opdef


def register_gradient(
    opdef: Any,
    setup_context: Callable[..., None],
    backward: Callable[..., Any],
    jvp: Callable[..., Any] | None,
) -> Callable[[Callable[[Sequence[Any]], Any], tuple[Any, ...]], Any]:
    """Register a gradient like ``opdef.register_autograd``, but correctly for torch.func and forward mode.

    The stock Autograd kernel of a custom operator fails under ``torch.func.grad`` and gives a silent
    zero tangent in forward mode. This one records a single-level function at each functorch level,
    runs ``jvp``, and raises where it has no rule.

    Return a function ``(run, args)`` that records ``run(args)`` without the dispatcher, for a call that
    nothing but autograd would see.
    """
    backward = _with_dtensors(backward)
    opdef.register_autograd(backward, setup_context=setup_context)
    overload = opdef._opoverload
    schema = overload._schema
    below, arity = _below_autograd(overload), len(schema.arguments)

    def forward(ctx: Any, *args: Any) -> Any:
        *inputs, call = args
        if maybe_current_level() is None:
            out = call(inputs)
        else:  # inside torch.func the outer levels must still see a differentiable call
            with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
                out = call(inputs)
        whole = tuple(inputs) if len(inputs) == arity else fill_defaults(schema, inputs, {})[0]
        with _C._AutoDispatchBelowAutograd():
            setup_context(ctx=ctx, inputs=whole, output=out)
        return out

    def run_backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return (*backward(ctx, *grads), None)

    body: dict[str, Any] = {
        "forward": staticmethod(forward),
        "backward": staticmethod(run_backward),
        # Compiled autograd calls this method, which only the full Function class has.
        "_compiled_autograd_key": staticmethod(lambda ctx: (ctx._autograd_function_id,)),
    }
    if jvp is not None:
        body["jvp"] = staticmethod(lambda ctx, *tangents: jvp(ctx, *tangents[:-1]))
    function: Any = type(f"{opdef._namespace}_{opdef._name}", (_SingleLevelFunction,), body)

    def autograd_kernel(keyset: Any, *args: Any) -> Any:
        records = grad_enabled() and _C._any_requires_grad(*args)
        run_deferred()
        forward_mode = forward_ad._current_level >= 0
        if forward_mode and (jvp is None or _forward_levels() > 1) and _any_dual(args):
            must = f"forward-mode AD of this order must have a rule{'' if jvp else ' (the jvp of autograd=)'}"
            hint = "jacrev(grad(f)) is hessian(f) in reverse mode"
            raise NotImplementedError(f"{opdef._name}: {must}, got none; {hint}")
        if records or (forward_mode and jvp is not None):
            with enable_single_level_autograd_function():
                return function.apply(*args, partial(below, keyset))
        return below(keyset, args)

    def recorded(run: Callable[[Sequence[Any]], Any], args: tuple[Any, ...]) -> Any:
        def call(inputs: Sequence[Any]) -> Any:
            with _C._AutoDispatchBelowAutograd():
                return run(tuple(inputs))

        with enable_single_level_autograd_function():
            return function.apply(*args, call)

    _override_autograd(opdef, autograd_kernel)
    return recorded


_INCLUDED = _C._dispatch_tls_local_include_set()
_EXCLUDED = _C._dispatch_tls_local_exclude_set()


@contextmanager
def default_dispatch_state() -> Iterator[None]:
    """Reset the dispatcher to its state in a new thread: autograd records, and autocast is off.

    A kernel runs below autograd, perhaps inside a transform of torch.func or the handler of a mode; the
    kernel's own tensors belong to none of them.
    """
    with _C._ForceDispatchKeyGuard(_INCLUDED, _EXCLUDED):
        yield


def register_mutation(opdef: Any, check: Callable[..., Any], recorded: Callable[..., Any] | None) -> None:
    """Register the Autograd kernel of an operator that writes to its arguments.

    The stock kernel leaves the old ``grad_fn`` on a mutated tensor, so gradients are silently wrong, and it
    lets the operator write to a leaf. If a gradient is needed, this kernel calls ``recorded``, which makes
    the same change with differentiable operators.
    """
    overload = opdef._opoverload
    below = _below_autograd(overload)

    def autograd_kernel(keyset: Any, *args: Any) -> None:
        run_deferred()
        tracked = grad_enabled() and _C._any_requires_grad(*args)
        forward_mode = forward_ad._current_level >= 0 and _any_floating(args)
        if not (tracked or forward_mode):
            below(keyset, args)
            return
        if recorded is None:  # the message that PyTorch has for its own out= functions
            raise RuntimeError(
                f"{opdef._name}(): functions with out=... arguments don't support automatic differentiation, "
                "but one of the arguments requires grad."
            )
        check(args)
        recorded(*args)

    _override_autograd(opdef, autograd_kernel)


def _below_autograd(overload: Any) -> Callable[..., Any]:
    def below(keyset: Any, args: Any) -> Any:
        with _C._AutoDispatchBelowAutograd():
            return overload.redispatch(keyset & _C._after_autograd_keyset, *args)

    return below


def _any_dual(args: Iterable[Any]) -> bool:
    """Return whether any argument has a tangent. Tensors that a forward-mode rule creates have no tangent."""
    return any(_any_floating((a,)) and forward_ad.unpack_dual(a).tangent is not None for a in args)


def _any_floating(args: Iterable[Any]) -> bool:
    return any(isinstance(a, Tensor) and (a.is_floating_point() or a.is_complex()) for a in args)


def register_cpu_kernel(opdef: Any, kernel: Callable[..., Any]) -> None:
    """Register a CPU kernel in place of PyTorch's wrapper of it, which looks for aliases after every call.

    A compiled graph calls the dispatcher, and the wrapper costs more than many kernels. Dynamo traces neither
    the wrapper nor this kernel.
    """
    with warnings.catch_warnings():  # torch 2.11 warns about every override, even with allow_override
        warnings.simplefilter("ignore")
        opdef._lib.impl(opdef._name, disable_dynamo(kernel), "CPU", allow_override=True)


def _override_autograd(opdef: Any, kernel: Callable[..., Any]) -> None:
    with warnings.catch_warnings():  # torch 2.11 warns about every override, even with allow_override
        warnings.simplefilter("ignore")
        opdef._lib.impl(opdef._name, kernel, "Autograd", with_keyset=True, allow_override=True)


def register_autocast(opdef: Any, cast: Callable[..., Any], devices: Iterable[str]) -> None:
    """Register ``cast(device, args)`` to cast the arguments in an autocast region.

    The operator then runs outside of the region. PyTorch's own ``register_autocast`` can only cast every
    tensor to one dtype, and only once per operator.
    """
    overload = opdef._opoverload

    def register(device: str) -> None:
        key = "Autocast" + _C._dispatch_key_for_device(device)
        excluded = _C.DispatchKeySet(getattr(_C.DispatchKey, key))

        def kernel(keyset: Any, *args: Any) -> Any:
            with _C._ExcludeDispatchKeyGuard(excluded):
                return overload(*cast(device, args))

        opdef._lib.impl(opdef._name, kernel, key, with_keyset=True)

    for device in devices:
        register(device)


def is_distributed(x: Tensor) -> bool:
    """Return whether a tensor is a DTensor, whose module imgops does not import itself."""
    distributed = sys.modules.get("torch.distributed.tensor")
    return distributed is not None and isinstance(x, distributed.DTensor)


def _with_dtensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a backward ``(ctx, *grads)``, so that DTensor replicates the tensors that it creates."""

    @wraps(function)
    def run(ctx: Any, *grads: Tensor) -> Any:
        if not is_distributed(grads[0]):
            return function(ctx, *grads)
        from torch.distributed.tensor.experimental import implicit_replication

        with implicit_replication():
            return function(ctx, *grads)

    return run


_deferred: list[Callable[[], None]] = []


def when_distributed(action: Callable[[], None]) -> None:
    """Defer ``action`` until DTensor has been imported, which imgops does not do itself."""
    _deferred.append(action)


def run_deferred() -> None:
    """Run the deferred actions if DTensor has been imported.

    The Autograd kernel calls this function, because every DTensor call reaches that kernel first.
    """
    if _deferred and "torch.distributed.tensor" in sys.modules:
        while _deferred:
            _deferred.pop()()


def register_sharding(overload: Any, rule: Callable[..., Any], tensors: int) -> None:
    """Register a rule with DTensor's ``register_sharding``, but with a cache key of all arguments.

    The stock key begins at the first ``int``: a call that differs in an earlier argument would get the
    output shape of the first call.
    """
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor._op_schema import RuntimeSchemaInfo
    from torch.distributed.tensor.experimental import register_sharding

    register_sharding(overload)(rule)
    info = DTensor._op_dispatcher.sharding_propagator.op_to_schema_info
    info[overload] = RuntimeSchemaInfo(tensors, None, needs_pytree=True)


def _forward_levels() -> int:
    if maybe_current_level() is None:
        return 1
    return sum(i.key() == TransformType.Jvp for i in retrieve_all_functorch_interpreters())


def fake_tensors() -> Any:
    """Return the mode in which a compiler asks an operator for the metadata of its output."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode()


def overload_of(opdef: Any) -> Any:
    return opdef._opoverload


def has_kernel(name: str, dispatch_key: str) -> bool:
    return _C._dispatch_has_kernel_for_dispatch_key(name, dispatch_key)


def graph_breaks() -> int:
    """Return how often dynamo has broken a graph in this process."""
    from torch._dynamo.utils import counters  # dynamo takes a second to import

    return sum(counters["graph_break"].values())


def forward_of_its_own(module: torch.nn.Module) -> Callable[..., Any]:
    """Return a ``forward`` for one module, whose graphs dynamo counts separately from those of other modules.

    Dynamo limits the graphs (8 by default) of each code object, and all modules that inherit a method share
    its code object. The result looks up the method of the class at each call, because it may be replaced.
    """
    return MethodType(FunctionType(_forward_of_class.__code__.replace(), globals(), "forward"), module)


def is_forward_of_its_own(forward: Any) -> bool:
    code = getattr(getattr(forward, "__func__", None), "__code__", None)
    return bool(code == _forward_of_class.__code__)


def _forward_of_class(self: Any, *inputs: Any, **keywords: Any) -> Any:
    return type(self).forward(self, *inputs, **keywords)


class CountingBackend:
    """A compiler backend that counts the graphs it compiles."""

    def __init__(self, name: str) -> None:
        from torch._dynamo.backends.registry import lookup_backend

        self.compile = lookup_backend(name)
        self.count = 0

    def __call__(self, graph: Any, example_inputs: Any) -> Any:
        self.count += 1
        return self.compile(graph, example_inputs)


def tree_flatten(tree: Any, whole: Sequence[Any] = ()) -> tuple[list[Any], Any]:
    """Flatten a structure of inputs. Files and packed images, and the objects in ``whole``, stay whole."""
    if whole:
        return _tree_flatten(tree, is_leaf=lambda x: _is_registered(x) or any(x is one for one in whole))
    return _tree_flatten(tree, is_leaf=_is_registered)


def _is_registered(value: object) -> bool:
    return type(value) in _registered


#: The classes that ``register_pytree`` registered, whose modules stand above this one.
_registered: set[type] = set()


# -- CUDA graphs ------------------------------------------------------------------------------------


def has_cuda_graph_trees() -> bool:
    """Return whether ``torch.compile`` has made CUDA graphs, as with ``mode="reduce-overhead"``.

    While they warm up, all memory that their thread allocates belongs to their pool; afterwards they raise if
    any of it is still in use.
    """
    return "torch._inductor.cudagraph_trees" in sys.modules


# -- pytrees ----------------------------------------------------------------------------------------


def register_pytree(
    cls: type, flatten: Callable[[Any], Any], unflatten: Callable[[Any, Any], Any], names: Sequence[str]
) -> None:
    """Register a class as a pytree, so that export and functions of trees see its tensors.

    The public ``torch.export.register_dataclass`` is for dataclasses, whose every field must be a leaf.
    """
    _registered.add(cls)

    def flatten_for(value: Any) -> Any:
        _refuse_transforms_of_torchvision(value)
        return flatten(value)

    def with_keys(value: Any) -> Any:
        leaves, context = flatten_for(value)
        return list(zip(map(MappingKey, names), leaves, strict=True)), context

    register_pytree_node(
        cls,
        flatten_for,
        lambda leaves, context: unflatten(leaves, tuple(context)),
        serialized_type_name=f"{cls.__module__}.{cls.__qualname__}",
        to_dumpable_context=list,
        from_dumpable_context=tuple,
        flatten_with_keys_fn=with_keys,
    )


def _refuse_transforms_of_torchvision(value: Any) -> None:
    """Raise if a transform of torchvision flattens its inputs, which would take a buffer for an image.

    torchvision flattens all inputs, and takes the first tensor for the image. Only the stack shows that
    torchvision is the caller. Dynamo does not show the stack, so while it traces, every call raises.
    """
    kind = type(value).__name__
    if torch.compiler.is_dynamo_compiling():
        raise_error(TypeError, f"imgops: {kind} must not be flattened as a pytree in a graph")
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in (__name__, "torch.utils._pytree"):
        frame = frame.f_back
    if frame is not None and str(frame.f_globals.get("__name__")).startswith("torchvision.transforms"):
        name = type(frame.f_locals.get("self")).__name__
        must = "image must be a Tensor or a PIL image, as for each transform of torchvision's own"
        raise TypeError(f"{name}: {must}, got {kind}")
