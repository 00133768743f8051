"""The function ``check_operator``, which runs every check on every sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from imgops.extend.testing import _checks, _func, _sharded
from imgops.extend.testing._call import Call

#: The checks, in the order in which failures are best fixed.
CHECKS: dict[str, Callable[[Call], Any]] = {
    "registration": _checks.registration,
    "fake": _checks.fake,
    "memory": _checks.memory,
    "fast path": _checks.fast_path,
    "vmap": _checks.vmap,
    "gradients": _checks.gradients,
    "torch.func": _func.func,
    "torch.func in a graph": _func.func_in_a_graph,
    "adjoint": _checks.adjoint,
    "compile": _checks.compilation,
    "export": _checks.export,
    "decomposition": _checks.core_aten,
    "autocast": _checks.autocast,
    "torch_dispatch": _checks.torch_dispatch,
    "sharding": _sharded.sharding,
}
#: The facets that an operator may lack.
FACETS = ("autograd", "vmap", "sharding", "autocast", "decomposition", "adjoint")


def check_operator(
    op: Callable[..., Any], samples: Iterable[tuple[Any, ...]], *, keywords: dict[str, Any] | None = None
) -> list[str]:
    """Run every generic test on an operator.

    PyTorch's ``opcheck``; fakes and their strides; memory and versions; the fast path; vmap against a loop;
    gradients of first and second order in double precision; torch.func and forward mode; the adjoint; one
    graph under ``torch.compile`` with the same gradients; export, save and load; the decomposition; autocast;
    a wrapper subclass; the sharding rule on a mesh of one process. A gradient that is declared as
    ``straight_through`` is compared with that of the identity.

    Parameters
    ----------
    op : callable
        A function that ``imgops.extend.operator`` returned, or one that makes one call of such an operator.
    samples : iterable of tuple
        The arguments of the calls to check. Floating point tensors also test the gradient.
    keywords : dict, optional
        Keyword arguments of every call.

    Returns
    -------
    list of str
        The facets that the operator does not have, which were not tested. :func:`cuda_kernel` tests a kernel
        for CUDA.

    Raises
    ------
    AssertionError
        If a check fails; the message names the check, the call and what is wrong.
    ValueError
        If there is no sample, or ``op`` does not call exactly one operator.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.extend.testing.check_operator(imgops.crop, [(torch.rand(3, 5, 6), (1, 0, 7, 4))])
    ['autocast']
    """
    calls = []
    for sample in samples:
        try:
            calls.append(Call(op, sample, keywords))
        except ValueError:
            raise
        except Exception as error:
            raise AssertionError(f"check_operator: call: {error}") from error
    if not calls:
        raise ValueError("check_operator: samples must have at least one call, got none")
    for name, check in CHECKS.items():
        for call in calls:
            try:
                check(call)
            except Exception as error:
                raise AssertionError(f"check_operator: {name}: {call}: {error}") from error
    return [facet for facet in FACETS if getattr(calls[0].operator, facet) is None]
