"""Devices without a GPU: fake CUDA tensors show where an operator, its formula or its gradient mixes devices."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from imgops._common.torch_private import TorchDispatchMode, fake_tensors
from imgops._operator.record import Contract, Gradient
from tests.specs import OPERATORS, SAMPLES, Sample
from tests.specs._maker import Maker
from tests.tiers import nightly_unless

STATIC = [s for s in SAMPLES if OPERATORS[s.op].operator.contract is not Contract.DYNAMIC]
#: With parameters on the CPU; beside the image for one sample of each operator, for the others nightly.
PLACED = nightly_unless(
    lambda values: values[1] == "cpu" or values[0] is OPERATORS[values[0].op].samples[0],
    [(sample, parameters) for sample in STATIC for parameters in ("cpu", "cuda")],
)


def arguments(sample: Sample) -> list[Any]:
    dtype = torch.float32 if torch.float32 in sample.dtypes else sample.dtypes[0]
    call = sample.checked(Maker(dtype, "interleaved", (2,)))
    return [*call.op_args, *call.op_keywords.values()]


def on_cuda(sample: Sample, args: list[Any], parameters: str) -> list[Any]:
    """Return fake arguments with images on CUDA, and parameters there or on the CPU."""
    operator = OPERATORS[sample.op].operator
    cores = getattr(operator.vmap, "core", ())

    def moved(i: int, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        is_image = i >= len(cores) or cores[i] == 3
        device = "cuda" if is_image else parameters
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)

    return [moved(i, a) for i, a in enumerate(args)]


class Context(SimpleNamespace):
    """The context of a backward, without an autograd engine, which would need a GPU."""

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        pass


@pytest.mark.parametrize(("sample", "parameters"), PLACED, ids=str)
def test_everything_stays_on_the_device(sample: Sample, parameters: str) -> None:
    operator, real = OPERATORS[sample.op].operator, arguments(sample)
    with fake_tensors():
        args = on_cuda(sample, real, parameters)
        if operator.contract is Contract.OUT and args[-1].device.type == "cuda":
            operator.fake(*args)
            return
        out = operator.overload(*args)
        if operator.contract is not Contract.FUNCTIONAL:
            return
        assert out.device.type == "cuda"
        if operator.decomposition is not None:
            made = operator.decomposition(*args)
            assert (made.device, made.dtype, made.shape) == (out.device, out.dtype, out.shape)


@pytest.mark.parametrize(("sample", "parameters"), PLACED, ids=str)
def test_each_gradient_is_where_its_tensor_is(sample: Sample, parameters: str) -> None:
    operator = OPERATORS[sample.op].operator
    if not isinstance(operator.autograd, Gradient) or not sample.differentiable:
        return
    real = arguments(sample)
    with fake_tensors(), torch.no_grad():
        args = on_cuda(sample, real, parameters)
        context = Context(needs_input_grad=[isinstance(a, Tensor) and a.is_floating_point() for a in args])
        if not any(context.needs_input_grad):
            return
        out = operator.fake(*args)
        operator.autograd.setup_context(context, tuple(args), out)
        grads = operator.autograd.backward(context, torch.empty_like(out))
        for value, grad in zip(args, grads, strict=True):
            if grad is not None:
                assert (grad.device, grad.shape) == (value.device, value.shape)


@pytest.mark.parametrize("name", ["gaussian_blur", "filter2d", "color_matrix", "resize", "resize_adjoint"])
def test_no_sum_of_float32_is_left_to_tf32(name: str) -> None:
    """On CUDA a float32 convolution has 10 bits by default, and a matrix product by a setting."""
    products: list[torch.dtype] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.name().split(".")[0] in ("aten::convolution", "aten::mm", "aten::bmm", "aten::matmul"):
                products.append(args[0].dtype)
            return func(*args, **(kwargs or {}))

    samples = [s for s in STATIC if s.op == name and not s.edge and "nearest" not in s.id]
    for sample in samples[:3]:
        real = arguments(sample)
        with fake_tensors(), Watch():
            args = on_cuda(sample, real, "cuda")
            assert OPERATORS[name].operator.decomposition(*args).dtype == args[0].dtype
    assert set(products) == {torch.float64}
