"""Every refusal: the same error and message in eager, dispatched, compiled and meta calls."""

from __future__ import annotations

import pytest
import torch
from checks import check_compiled_raises, check_raises, through_dispatcher
from refusals import REFUSALS, Refusal
from refusals_more import MORE

import imgops


def image(refusal: Refusal, device: str = "cpu") -> torch.Tensor:
    return torch.ones(2, 3, 5, 6, dtype=refusal.dtype, device=device)


@pytest.mark.parametrize("refusal", REFUSALS + MORE, ids=str)
def test_eager_dispatched_and_meta(refusal: Refusal) -> None:
    x = image(refusal)
    check_raises(lambda: refusal.call(x), refusal.error, refusal.message)
    check_raises(lambda: through_dispatcher(refusal.call, x), refusal.error, refusal.message)
    if refusal.dtype.is_floating_point:
        recorded = x.clone().requires_grad_()
        check_raises(lambda: refusal.call(recorded), refusal.error, refusal.message)
    if not refusal.value:
        meta = image(refusal, "meta")
        check_raises(lambda: refusal.call(meta), refusal.error, refusal.message)
    assert torch.equal(x, image(refusal)), "the input was written to"


@pytest.mark.parametrize("refusal", REFUSALS + MORE, ids=str)
def test_compiled(refusal: Refusal) -> None:
    check_compiled_raises(refusal.call, refusal.message, image(refusal), dynamic=True, backend="aot_eager")


def test_sparse() -> None:
    x = torch.ones(3, 5, 6).to_sparse()
    message = "crop: image must be a strided tensor, got torch.sparse_coo"
    check_raises(lambda: imgops.crop(x, (0, 0, 1, 1)), TypeError, message)


def test_wrong_device() -> None:
    x = torch.ones(3, 5, 6)
    meta = x.to("meta")
    message = "paste: source must be on the device of image (cpu), got meta"
    check_raises(lambda: imgops.paste(x, meta, (0, 0)), ValueError, message)
    message = "paste: mask must be on the device of image (cpu), got meta"
    check_raises(lambda: imgops.paste(x, x, (0, 0), meta[:1]), ValueError, message)


def test_no_half_result_in_a_batch() -> None:
    """The second box of a batch is wrong: nothing was written when the first one's turn came."""
    x = torch.ones(2, 1, 4, 4)
    boxes = torch.tensor([[0.0, 0, 4, 4], [0, 0, 9, 4]], dtype=torch.float64)
    from imgops.kernels.cpu import resize as kernel

    out = torch.full((2, 1, 2, 2), -1.0)
    with pytest.raises(ValueError):
        kernel.resize(out, x, boxes, 2, 2, "bilinear", True)
    assert (out == -1).all()


def test_box_with_a_gradient_is_refused() -> None:
    box = torch.tensor([0.0, 0, 4, 4], dtype=torch.float64, requires_grad=True)
    message = (
        "resize: box must not require a gradient, which is not implemented, got a box with requires_grad=True"
    )
    check_raises(lambda: imgops.resize(torch.ones(1, 4, 4), (2, 2), box=box), NotImplementedError, message)
