"""Every error input of the specs gives the same error and message in eager, dispatched, compiled and meta calls."""

from __future__ import annotations

import inspect

import pytest
import torch

import imgops
from imgops._operator.record import Contract, operators
from tests.checks import check_compiled_raises, check_raises, through_dispatcher
from tests.specs import SPECS
from tests.specs._maker import Maker
from tests.specs._spec import ErrorInput
from tests.tiers import nightly_unless

ERRORS = [(name, error) for name, spec in SPECS.items() for error in spec.errors]
IDS = [f"{i}-{error}" for i, (_, error) in enumerate(ERRORS)]
#: One error of each check and operator family, because a compiler sees the same Python for all of them.
DISTINCT = list({(error.check, SPECS[name].section): error for name, error in reversed(ERRORS)}.values())


def image(error: ErrorInput, device: str = "cpu") -> torch.Tensor:
    return torch.ones(2, 3, 5, 6, dtype=error.dtype, device=device)


@pytest.mark.parametrize(("name", "error"), ERRORS, ids=IDS)
def test_eager_dispatched_recorded_and_meta(name: str, error: ErrorInput) -> None:
    contract = operators()[name].contract if name in operators() else Contract.FUNCTIONAL
    x = image(error)
    check_raises(lambda: error.call(x), error.error, error.message)
    check_raises(lambda: through_dispatcher(error.call, x), error.error, error.message)
    if error.dtype.is_floating_point and contract is not Contract.OUT:  # out= operators take no gradient
        recorded = x.clone().requires_grad_() * 1
        check_raises(lambda: error.call(recorded), error.error, error.message)
    if not error.reads_values and not contract.mutates:  # such errors bring their own tensors, on the CPU
        meta = image(error, "meta")
        check_raises(lambda: error.call(meta), error.error, error.message)
    assert torch.equal(x, image(error)), "something was written"


#: Dynamo takes no sparse tensors.
IN_A_GRAPH = [error for error in DISTINCT if "strided" not in error.message]
#: One of them for each section of the documentation is compiled in `make test`.
FEW = {
    SPECS[error.message.partition(":")[0]].section: error
    for error in IN_A_GRAPH
    if error.message.partition(":")[0] in SPECS
}


@pytest.mark.parametrize("error", nightly_unless(lambda e: e in FEW.values(), IN_A_GRAPH), ids=str)
def test_compiled(error: ErrorInput) -> None:
    """They also raise with symbolic sizes, except for overlaps, because symbolic strides cannot be compared."""
    x = image(error)
    dynamic = None if "overlap" in error.check else True
    check_compiled_raises(error.call, error.message, x, dynamic=dynamic, backend="aot_eager")
    assert torch.equal(x, image(error)), "something was written"


@pytest.mark.parametrize("name", [n for n, s in SPECS.items() if s.is_public and s.samples])
def test_what_is_no_tensor_is_named(name: str) -> None:
    for sample in SPECS[name].samples:
        function, args, keywords = sample.call(Maker(sample.dtypes[0]))
        given = inspect.signature(function).bind(*args, **keywords).arguments
        for parameter in (key for key, value in given.items() if isinstance(value, torch.Tensor)):
            with pytest.raises(TypeError, match=f"^{name}: {parameter} must (be|have) .*, got object$"):
                function(**given | {parameter: object()})


def test_no_half_result_in_a_batch() -> None:
    """The second box of a batch is wrong, and nothing is written for the first one, either."""
    x = torch.ones(2, 1, 4, 4)
    boxes = torch.tensor([[0.0, 0, 4, 4], [0, 0, 9, 4]], dtype=torch.float64)
    out = torch.full((2, 1, 2, 2), -1.0)
    with pytest.raises(ValueError, match="resize_out: box must satisfy"):
        imgops.resize_out(x, (2, 2), box=boxes, out=out)
    assert (out == -1).all()
