"""The call of an operator: the fake validates and allocates, then a kernel computes.

On the CPU, the Python function of an operator runs both directly if the dispatcher would do nothing else,
because a call through the dispatcher costs several times as much as the kernel of a small image (see
``benchmarks/calls.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from imgops._common import check, memory, torch_private
from imgops._operator import subclass
from imgops._operator.record import Contract, Function, Operator
from imgops.kernels.cpu._threads import ATEN_DIVIDES

_autocasts = torch.is_autocast_enabled
_increment_version = torch.autograd.graph.increment_version

#: The number of distinct calls of one operator that are remembered before all are forgotten at once.
_REMEMBERED = 512

#: For each annotation, the types that the dispatcher takes without a conversion, and their name in an error.
KINDS: dict[Any, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("int", int), ((int, torch.SymInt), "an int")),
    **dict.fromkeys(("bool", bool), ((bool, torch.SymBool), "a bool")),
    **dict.fromkeys(("str", str), ((str,), "a str")),
}


def named(function: Function, name: str) -> Function:
    """Give a function of an operator a name, which tracebacks and profiles show."""
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = name
    return function


#: ``prepare(args)`` validates, and returns the output if the operator returns new memory of a known size.
Prepare = Callable[[Sequence[Any]], Any]


def prepare_then_kernel(
    operator: Operator, kernel: Function, prepare: Prepare, run_on_threads: Callable[..., None] | None = None
) -> Callable[[Sequence[Any]], Any]:
    """Return a function that validates, allocates, checks the values and runs the kernel.

    The returned function is the same on every device, whether the dispatcher calls it or is bypassed.
    ``run_on_threads(out, args)`` runs the kernel of a large image or of a batch.
    """
    values = operator.values
    if operator.contract is Contract.FUNCTIONAL:

        def run(args: Sequence[Any]) -> Any:
            out = prepare(args)
            if values is not None:
                values(*args)
            if run_on_threads is None or (out.numel() < ATEN_DIVIDES and args[0].numel() < ATEN_DIVIDES):
                kernel(out, *args)
            else:
                run_on_threads(out, args)
            return out

        return named(run, f"{operator.name}.run")

    def run_and_return(args: Sequence[Any]) -> Any:
        prepare(args)
        if values is not None:
            values(*args)
        made = kernel(*args)
        return None if operator.contract.mutates else made

    return named(run_and_return, f"{operator.name}.run")


def _check_types_first(operator: Operator) -> Function:
    """Check the types of ints and bools before the fake, because the dispatcher's errors are different.

    The fake checks strings.
    """
    fake, op, parameters = operator.fake, operator.name, operator.signature.parameters.values()
    kinds = [(i, p.name, KINDS[p.annotation]) for i, p in enumerate(parameters) if p.annotation in KINDS]
    typed = [(i, name, *kind) for i, name, kind in kinds if kind[0] != (str,)]
    before = 1 if operator.contract is Contract.DYNAMIC else 0  # ``new_size`` comes first

    def check_and_fake(*args: Any, **keywords: Any) -> Any:
        for i, name, types, what in typed:
            value = args[before + i]
            number = int in types and hasattr(value, "__index__") and getattr(value, "shape", ()) == ()
            if not isinstance(value, types) and not number:
                check.fail(TypeError, op, f"{name} must be {what}", check.shown(value))
            if not check.is_64_bit(value):
                check.fail(ValueError, op, f"{name} must be a signed 64-bit integer", value)
        return fake(*args, **keywords)

    return check_and_fake if typed else fake


def prepare_always(operator: Operator) -> Prepare:
    """Return a function that runs the fake for every call."""
    fake = _check_types_first(operator)
    if operator.contract is Contract.FUNCTIONAL:
        return lambda args: fake(*args)
    if operator.contract is Contract.DYNAMIC:
        return lambda args: fake(placeholder_size, *args)
    no_overlap = _no_overlap(operator)

    def validate(args: Sequence[Any]) -> None:
        fake(*args)
        no_overlap(args)

    return named(validate, f"{operator.name}.validate")


def key_of(args: Sequence[Any], tensors: int) -> tuple[Any, ...]:
    """Return everything that a fake depends on: tensor sizes, strides, dtypes, and the other arguments."""
    x = args[0]
    if tensors == 1:
        return x.shape, x.stride(), x.dtype, args[1:]
    if tensors == 2 and args[1] is not None:
        y = args[1]
        return x.shape, x.stride(), x.dtype, args[2:], y.shape, y.stride(), y.dtype
    key: tuple[Any, ...] = (x.shape, x.stride(), x.dtype, args[tensors:])
    for x in args[1:tensors]:
        key = (*key, None) if x is None else (*key, x.shape, x.stride(), x.dtype)
    return key


def prepare_once(operator: Operator) -> Prepare:
    """Return a function that runs the fake once for each distinct call on the CPU.

    For a repeated call, the output is allocated or the arguments are known to be valid without the fake.
    Errors are not remembered.
    """
    if operator.contract is Contract.DYNAMIC:
        return prepare_always(operator)
    fake = _check_types_first(operator)
    tensors = operator.tensors
    cache_key = operator.cache_key
    # 2, 2.0 and True are equal. imgops' own functions convert their arguments; an author's may not.
    has_types = not operator.qualified.startswith("imgops")
    known: dict[Any, Any] = {}
    names = list(operator.signature.parameters)[:tensors]

    def remember(key: Any, value: Any) -> None:
        if len(known) >= _REMEMBERED:
            known.clear()
        known[key] = value

    def make(args: Sequence[Any]) -> Any:
        # A kernel must not write into the caller's tensors; PyTorch's own check comes after the kernel.
        out = fake(*args)
        if not isinstance(out, torch.Tensor):
            check.fail(TypeError, operator.name, "fake must return a Tensor", type(out).__name__)
        for name, x in zip(names, args, strict=False):
            if x is not None and check.overlap(x, out):
                check.fail(RuntimeError, operator.name, "fake must return a tensor of its own", name)
        return out

    def allocate(args: Sequence[Any]) -> Any:
        if tensors == 1:
            x = args[0]
            key: Any = x.shape, x.stride(), x.dtype, args[1:] if cache_key is None else cache_key(*args)
        else:
            key = key_of(args, tensors)
        if has_types:
            key = (*key, *map(type, args[tensors:]))
        try:
            found = known.get(key)
        except TypeError:  # a list among the arguments has no hash
            return make(args)
        if found is None:
            out = make(args)
            empty = torch.empty_strided if out.nbytes < memory.LEAST else memory.empty_strided
            remember(key, (empty, out.shape, out.stride(), out.dtype))
            return out
        empty, size, stride, dtype = found
        return empty(size, stride, dtype=dtype)

    if operator.contract is Contract.FUNCTIONAL:
        return named(allocate, f"{operator.name}.allocate")
    no_overlap, is_out = _no_overlap(operator), operator.contract is Contract.OUT

    def validate(args: Sequence[Any]) -> None:
        key = key_of(args[:-1] if is_out else args, tensors)
        if is_out:
            out = args[-1]
            key = (*key, out.shape, out.stride(), out.dtype)
        try:
            is_known: bool | None = key in known
        except TypeError:  # a list among the arguments has no hash
            is_known = None
        if not is_known:
            fake(*args)
            if is_known is not None:
                remember(key, True)
        no_overlap(args)

    return named(validate, f"{operator.name}.validate")


def placeholder_size(*, min: int = 0, max: int | None = None) -> int:
    """Return a placeholder for a size that only the kernel knows, where the fake only validates."""
    return min


def _no_overlap(operator: Operator) -> Callable[[Sequence[Any]], None]:
    """Return a check that the tensors a mutating operator writes to share no memory with other arguments."""
    names = list(operator.signature.parameters)
    mutated = list(zip(operator.mutated_indices, operator.mutates, strict=True))

    def validate(args: Sequence[Any]) -> None:
        for i, name in mutated:
            others = [(n, x) for n, x in zip(names, args, strict=True) if n != name and isinstance(x, Tensor)]
            check.no_overlap(operator.name, name, args[i], others)

    return named(validate, f"{operator.name}.validate")


def function(
    operator: Operator, run: Callable[[Sequence[Any]], Any], recorded: Callable[..., Any]
) -> Function:
    """Make the Python function of an operator.

    It calls ``run`` on the CPU where the dispatcher would do nothing else, and the dispatcher otherwise;
    ``recorded`` runs it where autograd would record the call, unless the operator mutates.
    """
    if not operator.contract.mutates:
        return _functional(operator, run, recorded)
    call = _mutating_call(operator, run)
    arity = len(operator.signature.parameters)

    def bound(*args: Any, **keywords: Any) -> Any:
        if keywords or len(args) != arity:
            args = _all_arguments(operator, args, keywords)
        return call(args)

    return named(bound, operator.name)


def _all_arguments(operator: Operator, args: tuple[Any, ...], keywords: Any) -> tuple[Any, ...]:
    check.keywords(operator.name, list(operator.signature.parameters), args, keywords)
    whole = operator.signature.bind(*args, **keywords)
    whole.apply_defaults()
    return tuple(whole.arguments.values())


def _functional(
    operator: Operator, run: Callable[[Sequence[Any]], Any], recorded: Callable[..., Any]
) -> Function:
    can_bypass_dispatcher, is_ordinary = torch_private.can_bypass_dispatcher, torch_private.is_ordinary
    grad_enabled = torch_private.grad_enabled
    dispatch, casts = _through_dispatcher(operator), operator.autocast is not None
    arity, tensors = len(operator.signature.parameters), operator.tensors

    cores = [(i, core) for i, core in enumerate(getattr(operator.vmap, "core", ())) if core < 3]

    def bound(*args: Any, **keywords: Any) -> Any:
        if keywords or len(args) != arity:
            args = _all_arguments(operator, args, keywords)
        for i, core in cores:
            if isinstance(args[i], Tensor) and args[i].ndim > core and isinstance(args[0], Tensor):
                args = (*args[:i], check.of_one_image(args[i], args[0], core), *args[i + 1 :])
        if not can_bypass_dispatcher() or (casts and _autocasts("cpu")):
            return dispatch(args)
        records = False
        for x in args[:tensors]:
            if x is not None:
                if not is_ordinary(x):
                    return dispatch(args)
                records = records or x.requires_grad
        if records and grad_enabled():
            return recorded(run, args)
        return run(args)

    return named(bound, operator.name)


def _mutating_call(
    operator: Operator, run: Callable[[Sequence[Any]], Any]
) -> Callable[[tuple[Any, ...]], Any]:
    can_bypass_dispatcher, is_plain = torch_private.can_bypass_dispatcher, torch_private.is_plain
    dispatch, fake = _through_dispatcher(operator), operator.fake
    mutated, returns_nothing = operator.mutated_indices, operator.contract is Contract.BUFFERS
    inputs = [*range(operator.tensors), *(mutated if operator.contract is Contract.OUT else ())]
    # An exported program holds functional operators, which have decompositions.
    exporting, functional = torch_private.is_exporting, cast("Function | None", operator.autograd)

    def call(args: tuple[Any, ...]) -> Any:
        if (
            can_bypass_dispatcher()
            and all(is_plain(args[i]) for i in inputs)
            and not any(args[i].is_inference() for i in mutated)
        ):
            run(args)
            for i in mutated:
                _increment_version(args[i])
        elif functional is not None and exporting():
            fake(*args)
            functional(*args)
        else:
            dispatch(args)
        return None if returns_nothing else args[mutated[0]]

    return call


def _through_dispatcher(operator: Operator) -> Callable[[tuple[Any, ...]], Any]:
    overload, prepare = operator.overload, prepare_always(operator)
    parameters = operator.signature.parameters.values()
    known = [(i, KINDS[p.annotation][0]) for i, p in enumerate(parameters) if p.annotation in KINDS]

    def call(args: tuple[Any, ...]) -> Any:
        for i, kind in known:
            if not isinstance(args[i], kind) or not check.is_64_bit(args[i]):
                prepare(args)  # the dispatcher would raise its own errors, and would accept bytes as a string
                break
        return overload(*args)

    def dispatch(args: tuple[Any, ...]) -> Any:
        of_batch = getattr(type(args[0]), "__imgops_operator__", None)
        if of_batch is not None:
            return of_batch(operator, args)
        tensors = [a for a in args if isinstance(a, Tensor)]
        if subclass.is_ordinary(tensors):
            return call(args)
        torch_private.run_deferred()
        plain = tuple(subclass.replicate_with_dtensors([subclass.plain(a) for a in args]))
        return subclass.rewrap(call(plain), args[0])

    return named(dispatch, f"{operator.name}.dispatch")
