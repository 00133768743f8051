"""Formulas and gradients on a device that is not there: where they mix devices, wait for it, or divide by a reciprocal.

Fake CUDA tensors, and those without data, stand in for the tensors of a device: nothing can read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import imgops
import imgops.transforms  # registers its operators
from imgops._common.torch_private import TorchDispatchMode, fake_tensors
from imgops._operator import record
from imgops._operator.record import Contract, Gradient
from imgops.autograd.derived import DerivedGradient
from tests.added_cases import ROWS
from tests.checks import bits_equal
from tests.kernel_calls import arguments, moved, operator_of, without_data
from tests.specs import OPERATORS, SAMPLES, Sample
from tests.specs._maker import Maker
from tests.tiers import every_night, nightly_unless

#: The first sample of each family of operators.
FIRST = [*{spec.operator.fake.__module__: spec.samples[0] for spec in reversed(OPERATORS.values())}.values()]
STATIC = [s for s in SAMPLES if operator_of(s).contract is not Contract.DYNAMIC]
DECOMPOSED = [
    s for s in SAMPLES if operator_of(s).decomposition and operator_of(s).contract is Contract.FUNCTIONAL
]
PARAMETERS = pytest.mark.parametrize("parameters", ["cuda", *every_night("cpu")])


def of(samples: list[Sample], quick: list[Sample] = FIRST) -> Any:
    """Return the mark of a test that runs one sample of each family of operators before a commit."""
    return pytest.mark.parametrize("sample", nightly_unless(quick.__contains__, samples), ids=str)


class Watch(TorchDispatchMode):
    """Shows each call of an operator of PyTorch to a function, and its result."""

    def __init__(self, seen: Callable[..., None]) -> None:
        super().__init__()
        self.seen = seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.seen(func.name().split(".")[0].removeprefix("aten::"), args, kwargs or {}, out)
        return out


def no_blocking(name: str, args: Any, options: Any, out: Any) -> None:
    """Refuse copies between the host and the device that block."""
    if name == "copy_":
        target, source, *rest = args
        asynchronous = any(rest) or options.get("non_blocking")
        assert target.device == source.device or asynchronous, f"a blocking copy from {source.device}"
    elif name == "_to_copy":
        device = options.get("device") or args[0].device
        assert device == args[0].device or options.get("non_blocking"), f"a blocking copy to {device}"


class Context(SimpleNamespace):
    """The context of a backward, without an autograd engine, which would need a GPU."""

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        pass


def on_cuda(sample: Sample, args: list[Any], parameters: str) -> list[Any]:
    """Return fake arguments with images on CUDA, and parameters there or on the CPU."""
    return moved(sample, args, without_data("cuda"), without_data(parameters))


@PARAMETERS
@of(STATIC)
def test_everything_stays_on_the_device(sample: Sample, parameters: str) -> None:
    """A formula does not wait for it either; it is called with all tensors there."""
    operator, real = operator_of(sample), arguments(sample)
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
            with Watch(no_blocking if parameters == "cuda" else lambda *seen: None):
                made = operator.decomposition(*args)
            assert (made.device, made.dtype, made.shape) == (out.device, out.dtype, out.shape)


@PARAMETERS
@of([s for s in STATIC if s.differentiable and isinstance(operator_of(s).autograd, Gradient)])
def test_each_gradient_is_where_its_tensor_is(sample: Sample, parameters: str) -> None:
    operator, real = operator_of(sample), arguments(sample)
    with fake_tensors(), torch.no_grad():
        args = on_cuda(sample, real, parameters)
        context = Context(needs_input_grad=[isinstance(a, Tensor) and a.is_floating_point() for a in args])
        if not any(context.needs_input_grad):
            return
        out = operator.fake(*args)
        with Watch(no_blocking if parameters == "cuda" else lambda *seen: None):
            operator.autograd.setup_context(context, tuple(args), out)
            grads = operator.autograd.backward(context, torch.empty_like(out))
        for value, grad in zip(args, grads, strict=True):
            if grad is not None:
                assert (grad.device, grad.shape) == (value.device, value.shape)


@of([s for s in DECOMPOSED if s.differentiable and not operator_of(s).no_gradient], FIRST[::3])
def test_no_derived_gradient_waits_for_the_device(sample: Sample) -> None:
    """Of a parameter on the CPU only the gradient itself has to come back, after these kernels."""
    operator = operator_of(sample)
    for parameter in (without_data("meta"), lambda x: x):
        args = moved(sample, arguments(sample), without_data("meta"), parameter)
        tensors = enumerate(args[: operator.tensors])
        wanted = [i for i, a in tensors if isinstance(a, Tensor) and a.is_floating_point()]
        if 0 not in wanted:  # an image of levels
            return
        rule = DerivedGradient(operator.decomposition, operator.fake, operator.tensors)
        out = operator.fake(*args)
        grad, tangent = torch.empty_like(out), rule.backward_fake(out, *args, wanted)
        with Watch(no_blocking):
            rule.backward_kernel(grad, *args, wanted)
            rule.forward_kernel(tangent, *args, wanted)


@pytest.mark.parametrize("name", ["gaussian_blur", "filter2d", "color_matrix", "resize", "resize_adjoint"])
def test_no_sum_of_float32_is_left_to_tf32(name: str, whole: bool) -> None:
    """On CUDA a float32 convolution has 10 bits by default, and a matrix product by a setting."""
    products: list[torch.dtype] = []

    def seen(name: str, args: Any, *rest: Any) -> None:
        if name in ("convolution", "mm", "bmm", "matmul"):
            products.append(args[0].dtype)

    samples = [s for s in STATIC if s.op == name and not s.edge and "nearest" not in s.id]
    for sample in samples[: 3 if whole else 1]:
        real = arguments(sample)
        with fake_tensors(), Watch(seen):
            args = on_cuda(sample, real, "cuda")
            assert operator_of(sample).decomposition(*args).dtype == args[0].dtype
    assert set(products) == {torch.float64}


# -- division by a number ----------------------------------------------------------------------------


class Reciprocals(Watch):
    """Divide by a number as ATen does on CUDA: multiply by its reciprocal. ``inexact`` has the numbers whose is rounded."""

    def __init__(self) -> None:
        super().__init__(self.divided)
        self.inexact: set[float] = set()

    def divided(self, name: str, args: Any, options: Any, out: Any) -> None:
        if name in ("div", "div_") and not options and not isinstance(args[1], Tensor):
            number = torch.tensor(float(args[1]), dtype=torch.promote_types(out.dtype, torch.float32))
            if number.frexp().mantissa.abs() != 0.5:
                self.inexact.add(number.item())
            if name == "div":
                out.copy_(args[0].to(number.dtype) * (1 / number))


@of(DECOMPOSED)
def test_no_formula_divides_by_a_number(sample: Sample) -> None:
    """On CUDA that rounds twice, and levels differ from the CPU's; a power of two has an exact reciprocal."""
    for dtype in (torch.uint8, torch.float32, torch.float64):
        if dtype in sample.dtypes:
            with Reciprocals() as mode:
                operator_of(sample).decomposition(*arguments(sample, Maker(dtype, "interleaved", (2,))))
            assert not mode.inexact


def test_reciprocals_are_seen() -> None:
    levels = torch.arange(256.0)
    with Reciprocals() as mode:
        assert not bits_equal(levels / 255, levels / torch.full((), 255.0))
        assert bits_equal(levels / 8, levels / torch.full((), 8.0))
        levels.clone().div_(3)
    assert mode.inexact == {255, 3}


# -- transforms, and how they are written -------------------------------------------------------------

#: Transforms that read images: Poisson noise is drawn on the CPU, and the image decides its rates.
READ = ("RandomISONoise",)


@pytest.mark.parametrize(
    "row", nightly_unless(ROWS[::12].__contains__, [r for r in ROWS if r.name not in READ]), ids=str
)
def test_no_transform_of_chosen_samples_waits(row: Any) -> None:
    """One sample alone, several at once, and all samples; their parameters are on the CPU."""
    transform = row.make()
    if not getattr(transform, "_description", "") or not hasattr(transform, "per_sample"):
        return
    operator = record.table["imgops_transforms::apply_transform"]
    assert operator.decomposition is not None
    rule = DerivedGradient(operator.decomposition, operator.fake, operator.tensors)
    shape = (1, 3, *row.size)
    torch.manual_seed(0)
    drawn = transform._draw_row(shape)
    while drawn is None:
        drawn = transform._draw_row(shape)
    numbers = torch.as_tensor(drawn, dtype=torch.float64)
    image = torch.empty((3, *shape[1:]), device="meta")
    extra = transform._extra(image)
    for chosen in (None, [1, 0, 0], [1, 0, 1], [1, 1, 1]):
        rows = numbers if chosen is None else numbers.repeat(3, 1)
        if chosen is not None:
            rows[:, 0] = torch.tensor(chosen)
        args = image, rows, extra, transform._description, "image"
        with Watch(no_blocking):
            operator.kernel(torch.empty_like(image), *args)
            rule.backward_kernel(torch.empty_like(image), *args, [0])


#: Their images and numbers are on the CPU.
ON_THE_HOST = ("pending.py", "steps.py")


def test_tensors_of_lists_are_made_on_the_cpu() -> None:
    """``torch.tensor(numbers, device="cuda")`` waits for its copy; the gradient of chosen samples had one."""
    made = re.compile(r"torch\.(tensor|as_tensor)\([^()]*(\([^()]*\)[^()]*)*device=(?!\"cpu\")")
    folder = Path(imgops.__file__).parent
    found = {
        f"{path.relative_to(folder)}: {line.strip()}"
        for part in ("decomposition", "autograd", "kernels/cuda", "transforms/_core")
        for path in sorted((folder / part).iterdir())
        if path.suffix == ".py" and path.name not in ON_THE_HOST
        for line in path.read_text().splitlines()
        if made.search(line)
    }
    assert not found
