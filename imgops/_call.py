"""What the decorated name of an operator becomes: its kernel where nothing watches, else the dispatcher."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops import _subclass, _torch_private
from imgops._rows import Contract, Function, Operator

_autocasts = torch.is_autocast_enabled
_wrote_to = torch.autograd.graph.increment_version


def function(row: Operator, tagged: bool) -> Function:
    """The operator as a function of Python; ``tagged``: whether it returns what it wrote to."""
    nothing_watches, is_plain = _torch_private.nothing_watches, _torch_private.is_plain
    kernel, fake, tensors, casts = row.kernel, row.fake, row.tensors, row.autocast is not None
    arity, through = len(row.signature.parameters), _through_dispatcher(row, tagged)
    only_one = tensors == 1

    def functional(*args: Any, **keywords: Any) -> Any:
        if keywords or len(args) != arity:
            args = _bound(row, args, keywords)
        if not nothing_watches() or not is_plain(args[0]) or (casts and _autocasts("cpu")):
            return through(args)
        if not only_one:
            for x in args[1:tensors]:
                if not is_plain(x):
                    return through(args)
        out = fake(*args)
        kernel(out, *args)
        return out

    def dispatched(*args: Any, **keywords: Any) -> Any:
        if keywords or len(args) != arity:
            args = _bound(row, args, keywords)
        return through(args)

    at = [list(row.signature.parameters).index(name) for name in row.mutates]

    def mutating(*args: Any, **keywords: Any) -> Any:
        if keywords or len(args) != arity:
            args = _bound(row, args, keywords)
        watched = not nothing_watches() or not all(is_plain(x) for x in args if isinstance(x, Tensor))
        if watched or any(args[i].is_inference() for i in at):
            through(args)
        else:
            fake(*args)
            kernel(*args)
            for i in at:
                _wrote_to(args[i])
        if row.contract is Contract.BUFFERS:
            return None
        return args[at[0]]

    if row.contract.mutates:
        return mutating
    # The kernel of a dynamic operator costs far more than the dispatcher.
    return dispatched if row.contract is Contract.DYNAMIC else functional


def _bound(row: Operator, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
    bound = row.signature.bind(*args, **keywords)
    bound.apply_defaults()
    return tuple(bound.arguments.values())


def _through_dispatcher(row: Operator, tagged: bool) -> Function:
    overload = row.overload
    keyword = row.contract is Contract.OUT and tagged

    def call(args: tuple[Any, ...]) -> Any:
        return overload(*args[:-1], out=args[-1]) if keyword else overload(*args)

    def through(args: tuple[Any, ...]) -> Any:
        tensors = [a for a in args if isinstance(a, Tensor)]
        if _subclass.is_ordinary(tensors):
            return call(args)
        _torch_private.run_deferred()
        plain = tuple(_subclass.placed([_subclass.plain(a) for a in args]))
        return _subclass.like(call(plain), args[0])

    return through
