"""The round trip through the host. Without a GPU its copies are made from CPU memory to CPU memory."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from imgops._operator.record import Contract, operators
from imgops.kernels import host
from tests.checks import bits_equal, captured
from tests.specs import OPERATORS, SAMPLES, Sample
from tests.specs._maker import Maker
from tests.tiers import nightly_unless


def samples_of(*contracts: Contract) -> list[Sample]:
    return [s for s in SAMPLES if OPERATORS[s.op].operator.contract in contracts]


@pytest.mark.parametrize(
    ("sample", "format"),
    nightly_unless(
        lambda row: row[0] is OPERATORS[row[0].op].samples[0] and row[1] in ("interleaved", "expanded"),
        product(samples_of(Contract.FUNCTIONAL), ["planar", "interleaved", "expanded", "sliced"]),
    ),
    ids=str,
)
def test_round_trip(sample: Sample, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, args, keywords = sample.call(Maker(format=format, batch=(2,)))
    overload, op_args = captured(function, *args, **keywords)
    row = operators()[sample.op]
    wanted = overload(*op_args)
    monkeypatch.setattr(host, "_HOST", "elsewhere")  # every tensor is copied
    seen: list[torch.Tensor] = []

    def kernel(out: torch.Tensor, *arguments: object) -> None:
        seen.extend(a for a in (out, *arguments) if isinstance(a, torch.Tensor))
        row.kernel(out, *arguments)

    out = row.fake(*op_args)
    host.round_trip(kernel)(out, *op_args)
    # A slice is copied as a whole, and the last bits of a product of matrices may depend on the strides.
    same = bits_equal(out, wanted) or (format == "sliced" and torch.allclose(out, wanted, 1e-6, 1e-6))
    assert same and out.stride() == wanted.stride()
    given = {
        t.untyped_storage().data_ptr() for t in (out, *op_args) if isinstance(t, torch.Tensor) and t.numel()
    }
    assert not given & {t.untyped_storage().data_ptr() for t in seen if t.numel()}


@pytest.mark.parametrize("sample", samples_of(Contract.INPLACE, Contract.OUT, Contract.BUFFERS), ids=str)
def test_round_trip_of_what_is_written(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    for format in ("planar", "interleaved", "sliced"):
        call = sample.checked(Maker(format=format, batch=(2,)))
        args = (*call.op_args, *call.op_keywords.values())
        written = call.operator.mutated_indices
        wanted, found = ([a.clone() if i in written else a for i, a in enumerate(args)] for _ in range(2))
        call.operator.kernel(*wanted)
        monkeypatch.setattr(host, "_HOST", "elsewhere")  # every tensor is copied
        host.round_trip_writing(call.operator.kernel, written)(*found)
        monkeypatch.undo()
        for i in written:
            assert bits_equal(found[i], wanted[i])


@pytest.mark.parametrize("sample", samples_of(Contract.DYNAMIC), ids=str)
def test_round_trip_of_what_is_returned(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    call = sample.checked(Maker())
    monkeypatch.setattr(host, "_HOST", "elsewhere")
    assert bits_equal(host.round_trip_returning(call.operator.kernel)(*call.op_args), call.outputs()[0])


def test_an_expanded_tensor_travels_once() -> None:
    x = torch.rand(1, 3, 1, 1).expand(16, 3, 32, 32)
    there = host._expand_again(x, pinned=False)
    assert bits_equal(there, x) and there.untyped_storage().nbytes() == 12


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
class TestCuda:
    def test_memory_is_pinned(self) -> None:
        x = torch.rand(3, 8, 8, device="cuda")
        assert host._host_like(x, pinned=True).is_pinned()

    def test_streams(self) -> None:
        """The copies belong to the caller's stream."""
        import imgops

        x = torch.rand(16, 3, 512, 512, device="cuda")
        with torch.cuda.stream(torch.cuda.Stream()):
            outs = [imgops.crop(x * k, (0, 0, 300, 300)) for k in range(1, 9)]
        torch.cuda.synchronize()
        for k, out in enumerate(outs, 1):
            assert bits_equal(out, (x * k)[..., :300, :300])

    def test_gradient(self) -> None:
        import imgops

        x = torch.rand(2, 3, 16, 16, device="cuda", requires_grad=True)
        imgops.resize(imgops.pad(imgops.crop(x, (1, 2, 9, 11)), 2, "reflect"), (5, 5)).sum().backward()
        cpu = x.detach().cpu().requires_grad_()
        imgops.resize(imgops.pad(imgops.crop(cpu, (1, 2, 9, 11)), 2, "reflect"), (5, 5)).sum().backward()
        torch.testing.assert_close(x.grad.cpu(), cpu.grad)
