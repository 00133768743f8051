"""Facts that only a GPU can show: streams, graphs, several devices, no synchronization, and the bits of the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import imgops
import imgops.transforms as T
from imgops._operator.record import Contract
from imgops.kernels import devices
from tests.checks import bits_equal
from tests.kernel_calls import arguments, moved
from tests.specs import OPERATORS, SAMPLES, Sample
from tests.specs._maker import Maker

if not torch.cuda.is_available():  # a mark would make 1,300 tests to skip
    pytest.skip("needs a GPU", allow_module_level=True)
ON_DEVICE = [s for s in SAMPLES if devices.stays_on_device(OPERATORS[s.op].operator)]


def placed(sample: Sample, dtype: torch.dtype, parameters: str) -> list[Any]:
    """Return the operator's arguments, with images on the GPU and parameters there or on the CPU."""
    args = arguments(sample, Maker(dtype, "interleaved", (2,)))
    return moved(sample, args, lambda x: x.detach().to("cuda"), lambda x: x.detach().to(parameters))


def replayed(call: Callable[[], Tensor]) -> Tensor:
    """Return what a captured graph of a call computes when it is replayed."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = call()
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    return out.clone()


def run(sample: Sample, args: list[Any]) -> Any:
    operator = OPERATORS[sample.op].operator
    if operator.contract is Contract.OUT and hasattr(torch.Tag, "out"):
        return operator.overload(*args[:-1], out=args[-1])
    return operator.overload(*args)


@pytest.mark.parametrize("parameters", ["cpu", "cuda"])
@pytest.mark.parametrize("sample", ON_DEVICE, ids=str)
def test_nothing_waits_for_the_device(sample: Sample, parameters: str) -> None:
    for dtype in (torch.uint8, torch.float32, torch.float64):
        if dtype not in sample.dtypes:
            continue
        args = placed(sample, dtype, parameters)
        run(sample, args)  # the first call compiles
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            run(sample, args)
        finally:
            torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("sample", [s for s in ON_DEVICE if not s.edge], ids=str)
def test_a_cuda_graph_replays(sample: Sample) -> None:
    operator = OPERATORS[sample.op].operator
    if operator.contract is not Contract.FUNCTIONAL or torch.uint8 not in sample.dtypes:
        return
    args = placed(sample, torch.uint8, "cuda")
    wanted = run(sample, args)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run(sample, args)
    torch.cuda.current_stream().wait_stream(stream)
    assert bits_equal(replayed(lambda: run(sample, args)), wanted)


def test_a_graph_cannot_capture_parameters_on_the_cpu() -> None:
    image, factor = torch.zeros(2, 3, 8, 8, device="cuda"), torch.tensor([0.5, 0.7])
    imgops.adjust_brightness(image, factor)
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="must be on the device of the image"), torch.cuda.graph(graph):
        imgops.adjust_brightness(image, factor)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: imgops.canny(x, 50, 90),
        lambda x: imgops.clahe(x, 2.0),
        lambda x: imgops.erode(x, 3),
        lambda x: imgops.erase(x, (1, 2, 5, 6), 7),
        lambda x: imgops.gaussian_blur(x, 5, 1.5),
        lambda x: imgops.pad(x, 2, fill=9),
    ],
)
def test_a_graph_captures_numbers(call: Any) -> None:
    image = torch.randint(0, 256, (2, 1, 20, 24), dtype=torch.uint8, device="cuda")
    wanted = call(image)
    assert bits_equal(replayed(lambda: call(image)), wanted)


def test_work_is_queued_on_the_current_stream() -> None:
    image = torch.randint(0, 256, (64, 3, 512, 512), dtype=torch.uint8, device="cuda")
    box = torch.tensor([3.5, 2, 400, 380], dtype=torch.float64)
    wanted = imgops.resize(image, (99, 101), box=box)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        late = image.clone()
        found = imgops.resize(late, (99, 101), box=box)
    stream.synchronize()
    assert bits_equal(found, wanted)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_a_second_device() -> None:
    image = torch.randint(0, 256, (2, 3, 40, 50), dtype=torch.uint8)
    found = imgops.resize(image.to("cuda:1"), (20, 30))
    assert found.device.index == 1
    assert bits_equal(found.cpu(), imgops.resize(image, (20, 30)))


def test_an_adjoint_is_deterministic_on_request() -> None:
    grad = torch.rand(2, 3, 200, 200, device="cuda")
    map = torch.rand(2, 2, 200, 200, device="cuda") * 20  # many pixels land on few
    torch.use_deterministic_algorithms(True)
    try:
        first, second = (
            torch.ops.imgops.remap_adjoint(grad, map, 30, 30, "bilinear", "edge") for _ in range(2)
        )
    finally:
        torch.use_deterministic_algorithms(False)
    assert bits_equal(first, second)
    usual = torch.ops.imgops.remap_adjoint(grad, map, 30, 30, "bilinear", "edge")
    torch.testing.assert_close(usual, first, rtol=1e-4, atol=1e-3)


def pipeline() -> Any:
    return T.Compose(
        [
            T.RandomResizedCrop(48, per_sample=True),
            T.RandomHorizontalFlip(per_sample=True),
            T.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 5, per_sample=True),
            T.ColorJitter(0.4, 0.4, 0.4, 0.1, per_sample=True),
            T.RandomGrayscale(0.3, per_sample=True),
            T.GaussianBlur(9, per_sample=True),
        ]
    )


def test_a_pipeline_has_the_pixels_of_the_cpu() -> None:
    """The same seed gives the same draws and the same bits, eagerly and compiled."""
    images = torch.randint(0, 256, (6, 3, 70, 90), dtype=torch.uint8)
    transform = pipeline()
    torch.manual_seed(5)
    wanted = transform(images)
    torch.manual_seed(5)
    assert bits_equal(transform(images.cuda()).cpu(), wanted)
    for mode in ("default", "reduce-overhead"):
        compiled = torch.compile(transform, fullgraph=True, mode=mode)
        for _ in range(3):
            torch.manual_seed(5)
            assert bits_equal(compiled(images.cuda()).cpu(), wanted)


def test_gradients_are_those_of_the_cpu() -> None:
    image = torch.rand(2, 3, 20, 24, dtype=torch.float32)
    matrix = torch.tensor([[[0.9, -0.2, 1.0], [0.1, 1.1, 0.5]]] * 2, dtype=torch.float64)

    def grads(device: str, parameters: str) -> list[Tensor]:
        x = image.to(device).requires_grad_()
        m = matrix.to(parameters).requires_grad_()
        factor = torch.tensor([0.8, 1.1], device=parameters, requires_grad=True)
        out = imgops.adjust_contrast(imgops.warp_affine(imgops.resize(x, (15, 17)), m), factor)
        weight = torch.linspace(0, 1, out.numel(), device=device).reshape(out.shape)
        return list(torch.autograd.grad((out * weight).sum(), (x, m, factor)))

    wanted = grads("cpu", "cpu")
    for parameters in ("cpu", "cuda"):
        for found, want in zip(grads("cuda", parameters), wanted, strict=True):
            torch.testing.assert_close(found.cpu(), want, rtol=1e-3, atol=1e-3)
