"""A user's own operators: one registration gives them everything that imgops' operators have."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
import torch
from checks import bits_equal
from torch import Tensor

import imgops
from imgops.extend.testing import check_operator

_checked: list[int] = []


def _image(op: str, image: Tensor) -> None:
    if image.ndim < 3:
        raise ValueError(f"{op}: image must have at least 3 dimensions, got {image.ndim}")


# A linear filter with every facet written down; it is its own adjoint.


def blur_fake(image: Tensor, radius: int) -> Tensor:
    _image("blur", image)
    return torch.empty(image.shape, dtype=image.dtype, device=image.device)


def blur_kernel(out: Tensor, image: Tensor, radius: int) -> None:
    source = image.detach().contiguous().numpy().reshape(-1, *image.shape[-2:])
    target = out.numpy().reshape(source.shape)
    for plane, result in zip(source, target, strict=True):
        # An odd box over a zero border is symmetric, so its matrix is its own transpose.
        cv2.boxFilter(plane, -1, (2 * radius + 1,) * 2, dst=result, borderType=cv2.BORDER_CONSTANT)


def blur_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.radius = inputs


def blur_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    return blur(grad, ctx.radius), None


def blur_jvp(ctx: Any, image: Tensor, radius: None) -> Tensor:
    return blur(image, ctx.radius)


def blur_decomposition(image: Tensor, radius: int) -> Tensor:
    size = 2 * radius + 1
    flat = image.reshape(-1, 1, *image.shape[-2:])
    weight = image.new_full((1, 1, size, size), 1 / size**2)
    return torch.nn.functional.conv2d(flat, weight, padding=radius).reshape(image.shape)


@imgops.extend.operator(
    "usertest::blur",
    kernel=blur_kernel,
    fake=blur_fake,
    autograd=imgops.extend.Gradient(blur_setup_context, blur_backward, blur_jvp),
    vmap=imgops.extend.vmap.leading(3),
    sharding=imgops.extend.sharding.leading(3),
    autocast=imgops.extend.autocast.float32,
    decomposition=blur_decomposition,
    adjoint="blur",
)
def blur(image: Tensor, radius: int = 1) -> Tensor:
    """Mean over a square of pixels."""


# An operator whose gradient is derived from the decomposition.


def gamma_fake(image: Tensor, exponent: Tensor) -> Tensor:
    _image("gamma", image)
    return torch.empty(image.shape, dtype=image.dtype, device=image.device)


def gamma_kernel(out: Tensor, image: Tensor, exponent: Tensor) -> None:
    out.numpy()[...] = np.power(image.detach().numpy(), exponent.detach().numpy()[..., None, None, None])


def gamma_decomposition(image: Tensor, exponent: Tensor) -> Tensor:
    return torch.pow(image, exponent[..., None, None, None])


@imgops.extend.operator(
    "usertest::gamma",
    kernel=gamma_kernel,
    fake=gamma_fake,
    vmap=imgops.extend.vmap.leading(3, 0),
    decomposition=gamma_decomposition,
)
def gamma(image: Tensor, exponent: Tensor) -> Tensor: ...


# An operator with neither a gradient nor a batching rule.


@imgops.extend.operator("usertest::bare", kernel=lambda out, image: out.copy_(image), fake=torch.empty_like)
def bare(image: Tensor) -> Tensor: ...


# An operator that works in place, and is random.


def darken_(image: Tensor, amount: int) -> None:
    image.mul_(1 - amount / 10)


@imgops.extend.operator(
    "usertest::darken_",
    kernel=darken_,
    fake=lambda image, amount: _image("darken_", image),
    mutates=["image"],
    autograd=darken_,
    vmap=imgops.extend.vmap.leading(3, mutates=1),
)
def darken(image: Tensor, amount: int) -> Tensor: ...


@imgops.extend.operator(
    "usertest::noise",
    kernel=lambda out, image: out.copy_(image + torch.rand(image.shape)),
    fake=torch.empty_like,
    random=True,
    vmap=imgops.extend.vmap.leading(3),
)
def noise(image: Tensor) -> Tensor: ...


def positive(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(1)) + 0.5


def test_check_operator_passes_all_of_them() -> None:
    check_operator(blur, [(positive(3, 5, 6), 1), (positive(2, 1, 4, 4), 2)])
    check_operator(
        gamma, [(positive(3, 5, 6), torch.tensor(2.2)), (positive(2, 3, 4, 4), torch.tensor([0.5, 3.0]))]
    )
    assert check_operator(bare, [(positive(3, 4, 4),)]) == [
        *("autograd", "vmap", "sharding", "autocast", "decomposition", "adjoint")
    ]
    check_operator(darken, [(positive(3, 4, 4), 3)])
    check_operator(imgops.resize, [(positive(3, 7, 6), (4, 5))], keywords={"antialias": False})


def test_keywords_defaults_and_names() -> None:
    x = positive(3, 5, 5)
    assert bits_equal(blur(image=x), blur(x, 1)) and bits_equal(blur(x, radius=2), blur(x, 2))
    assert blur.__name__ == "blur" and blur.__doc__ == "Mean over a square of pixels."
    assert torch.ops.usertest.blur(x, 1).shape == x.shape
    with pytest.raises(TypeError):
        blur(x, 1, 2)
    with pytest.raises(TypeError):
        blur(x, size=1)


def test_a_derived_gradient_is_opaque_to_a_compiler() -> None:
    graphs: list[str] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(str(graph.graph))
        return graph

    from torch._dynamo.backends.common import aot_autograd

    compiled = torch.compile(gamma, fullgraph=True, backend=aot_autograd(fw_compiler=backend))
    x, exponent = positive(3, 4, 4).requires_grad_(), torch.tensor(1.7, requires_grad=True)
    found = torch.autograd.grad(compiled(x, exponent).sum(), (x, exponent))
    wanted = torch.autograd.grad(gamma_decomposition(x, exponent).sum(), (x, exponent))
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a, b)
    assert "usertest.gamma.default" in graphs[0] and "pow" not in graphs[0]
    assert "usertest.gamma_backward.default" in graphs[1] and "pow" not in graphs[1]


def test_a_derived_gradient_is_exact_to_every_order() -> None:
    x, exponent = (
        positive(1, 2, 2).double().requires_grad_(),
        torch.tensor(2.5, dtype=torch.float64).requires_grad_(),
    )
    assert torch.autograd.gradcheck(gamma, (x, exponent), check_batched_grad=True)
    assert torch.autograd.gradgradcheck(gamma, (x, exponent))
    third = torch.func.grad(torch.func.grad(torch.func.grad(lambda e: gamma(x.detach(), e).sum())))
    torch.testing.assert_close(third(exponent.detach()), (x.log() ** 3 * x**2.5).sum().detach())
    pushed = torch.func.jvp(lambda e: gamma(x.detach(), e), (exponent.detach(),), (exponent.detach(),))[1]
    torch.testing.assert_close(pushed, (2.5 * x.log() * x**2.5).detach())
    assert torch.autograd.gradcheck(gamma, (x, exponent), check_forward_ad=True)
    with pytest.raises(NotImplementedError, match="gamma_backward: forward-mode AD of this order must have"):
        torch.func.jacfwd(torch.func.grad(lambda e: gamma(x.detach(), e).sum()))(exponent.detach())
    only = torch.autograd.grad(gamma(x, exponent.detach()).sum(), x)[0]
    torch.testing.assert_close(only, 2.5 * x.detach() ** 1.5)


def test_missing_facets_are_named() -> None:
    x = positive(2, 3, 4, 4)
    with pytest.raises(
        NotImplementedError, match=r"bare: vmap must be a facet of usertest::bare, got none: .*vmap=f"
    ):
        torch.vmap(bare)(x)
    with pytest.raises(
        NotImplementedError, match=r"bare: autograd must be a facet .* autograd=imgops.extend.Gradient"
    ):
        bare(x.clone().requires_grad_()).sum().backward()
    with pytest.raises(NotImplementedError, match="forward-mode AD of this order must have a rule"):
        torch.func.jvp(bare, (x,), (x,))
    with pytest.raises(NotImplementedError, match="adjoint must be a facet of usertest::bare"):
        imgops.adjoint(bare)
    assert torch.ops.usertest.bare.default not in imgops.decompositions()
    assert torch.ops.usertest.gamma.default in imgops.decompositions()
    assert imgops.adjoint(blur)(x, x, 1).shape == x.shape


def test_incomplete_registrations_are_refused() -> None:
    def sharpen(image: Tensor) -> Tensor: ...

    with pytest.raises(
        TypeError, match=r"operator: usertest::sharpen must have a kernel, got None: pass kernel=f"
    ):
        imgops.extend.operator("usertest::sharpen", fake=torch.empty_like)(sharpen)
    with pytest.raises(
        TypeError, match=r"operator: usertest::sharpen must have a fake, got None: pass fake=f"
    ):
        imgops.extend.operator("usertest::sharpen", kernel=print)(sharpen)
    with pytest.raises(ValueError, match="operator: name must be 'namespace::name', got 'sharpen'"):
        imgops.extend.operator("sharpen", kernel=print, fake=torch.empty_like)
    with pytest.raises(ValueError, match="operator: name must be new, got 'usertest::blur' a second time"):
        imgops.extend.operator("usertest::blur", kernel=print, fake=torch.empty_like)(sharpen)
    with pytest.raises(ValueError, match=r"usertest::sharpen: mutates must name .*, got \('other',\)"):
        imgops.extend.operator("usertest::sharpen", kernel=print, fake=print, mutates=["other"])(sharpen)


@pytest.mark.parametrize("facet", ["vmap", "sharding"])
def test_a_rule_for_another_number_of_tensors_is_refused(facet: str) -> None:
    def both(image: Tensor, other: Tensor) -> Tensor: ...

    rule = {facet: getattr(imgops.extend, facet).leading(3)}
    must = rf"operator: usertest::both: {facet} must have the dimensions of 2 tensors, got leading\(3\)"
    with pytest.raises(ValueError, match=must):
        imgops.extend.operator(
            "usertest::both", kernel=lambda out, image, other: None, fake=torch.add, **rule
        )(both)


def test_a_kernel_with_other_parameters_is_refused() -> None:
    def sharpen(image: Tensor, amount: Tensor, size: int) -> Tensor: ...

    kernels: list[Any] = [
        lambda image, amount, size: None,  # returns its result, as a function of PyTorch would
        lambda image, amount, size, extra=None: None,
        lambda out, image: None,
        lambda out, image, amount, size, needed: None,
    ]
    for kernel in kernels:
        with pytest.raises(
            TypeError, match=r"sharpen: kernel must be kernel\(out, image, amount, size\), got"
        ):
            imgops.extend.operator("usertest::sharpen", kernel=kernel, fake=print)(sharpen)
    with pytest.raises(TypeError, match=r"kernel must be kernel\(image, amount, size\), got"):
        imgops.extend.operator(
            "usertest::sharpen", kernel=lambda out, image, amount, size: None, fake=print, dynamic=True
        )(sharpen)


def _quantize(name: str, backward: Any) -> Any:
    """Declare an operator that rounds, with a straight-through gradient."""

    def fake(image: Tensor) -> Tensor:
        return torch.empty_like(image)

    def kernel(out: Tensor, image: Tensor) -> None:
        torch.round(image, out=out)

    def quantize(image: Tensor) -> Tensor: ...

    gradient = imgops.extend.Gradient(lambda ctx, inputs, output: None, backward, straight_through=True)
    declare = imgops.extend.operator(
        name, kernel=kernel, fake=fake, autograd=gradient, decomposition=torch.round
    )
    return declare(quantize)


def test_a_straight_through_gradient_is_declared() -> None:
    sample = torch.rand(3, 4, 5) * 9
    check_operator(_quantize("usertest::quantize", lambda ctx, grad: (grad,)), [(sample,)])
    wrong = _quantize("usertest::quantize_twice", lambda ctx, grad: (2 * grad,))
    with pytest.raises(AssertionError, match=r"check_operator: gradients: .*not the identity's"):
        check_operator(wrong, [(sample,)])


def test_a_gradient_of_the_wrong_kind_is_refused() -> None:
    def soften(image: Tensor) -> Tensor: ...

    gradient = imgops.extend.Gradient(blur_setup_context, blur_backward)
    with pytest.raises(
        TypeError, match=r"usertest::soften: autograd must be an imgops\.extend\.Gradient, got function"
    ):
        imgops.extend.operator("usertest::soften", kernel=print, fake=print, autograd=darken_)(soften)
    with pytest.raises(
        TypeError, match=r"autograd must be a function, for an operator that mutates, got Grad"
    ):
        imgops.extend.operator(
            "usertest::soften", kernel=print, fake=print, mutates=["image"], autograd=gradient
        )(soften)


@pytest.mark.parametrize(
    ("break_", "check"),
    [
        ("gradient", "gradients"),
        ("decomposition", "decomposition"),
        ("alias", "call: broken_alias"),
        ("vmap", "vmap"),
        ("sharding", "sharding"),
    ],
)
def test_check_operator_finds_what_is_wrong(break_: str, check: str) -> None:
    name = f"usertest::broken_{break_}"

    def fake(image: Tensor, radius: int) -> Tensor:
        return image if break_ == "alias" else blur_fake(image, radius)

    def kernel(out: Tensor, image: Tensor, radius: int) -> None:
        if break_ != "alias":
            blur_kernel(out, image, radius)

    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return 2 * blur(grad, ctx.radius), None

    def wrong_vmap(op: Any, info: Any, in_dims: Any, image: Tensor, radius: int) -> tuple[Tensor, int]:
        return op(image.movedim(in_dims[0], 0).flip(0), radius), 0

    def wrong_sharding(image: Any, radius: int) -> list[Any]:
        from torch.distributed.tensor import Replicate

        return [([Replicate()], [Replicate(), None])]  # correct, but the batch does not stay sharded

    def declared(image: Tensor, radius: int) -> Tensor: ...

    broken = imgops.extend.operator(
        name,
        kernel=kernel,
        fake=fake,
        autograd=imgops.extend.Gradient(
            blur_setup_context, backward if break_ == "gradient" else blur_backward, blur_jvp
        ),
        vmap=wrong_vmap if break_ == "vmap" else imgops.extend.vmap.leading(3),
        sharding=wrong_sharding if break_ == "sharding" else None,
        autocast=imgops.extend.autocast.float32,
        decomposition=torch.neg if break_ == "decomposition" else None,
    )(declared)
    if break_ == "decomposition":
        broken = imgops.extend.operator(
            f"{name}2", kernel=kernel, fake=fake, autograd=imgops.extend.Gradient(blur_setup_context, blur_backward, blur_jvp),
            decomposition=lambda image, radius: blur_decomposition(image, radius) + 1,
        )(declared)  # fmt: skip
    with pytest.raises(AssertionError, match=rf"^check_operator: ({check}): "):
        check_operator(broken, [(positive(3, 4, 5), 1)])


@pytest.mark.parametrize(
    ("name", "fake"), [("shares_itself", lambda image: image), ("shares_view", lambda image: image[:, :2])]
)
def test_a_fake_that_returns_what_it_was_given_is_refused(name: str, fake: Any) -> None:
    """The kernel would write into the input. PyTorch's wrapper checks this after the kernel, ours before it."""

    def declared(image: Tensor) -> Tensor: ...

    shares = imgops.extend.operator(f"usertest::{name}", kernel=lambda out, image: out.fill_(7), fake=fake)(
        declared
    )
    image = torch.zeros(3, 4, 5)
    with pytest.raises(RuntimeError, match=f"^{name}: fake must return a tensor of its own, got image"):
        shares(image)
    assert not image.any()


def test_check_operator_refuses_what_it_cannot_check() -> None:
    with pytest.raises(ValueError, match="samples must have at least one call"):
        check_operator(blur, [])
    with pytest.raises(ValueError, match="op must call one operator"):
        check_operator(torch.neg, [(positive(3, 4, 4),)])


def test_randomness_under_vmap() -> None:
    x = torch.zeros(4, 1, 3, 3)
    with pytest.raises(RuntimeError, match="noise: randomness must be 'same' or 'different' under vmap"):
        torch.vmap(noise)(x)
    different = torch.vmap(noise, randomness="different")(x)
    assert not bits_equal(different[0], different[1])
    same = torch.vmap(noise, randomness="same")(x)
    assert all(bits_equal(same[0], s) for s in same[1:])
    torch.manual_seed(3)
    first = torch.vmap(noise, randomness="same")(x)
    torch.manual_seed(3)
    assert bits_equal(first[0], noise(x[0])) and bits_equal(noise(x[0]), noise(x[0])) is False
    assert torch.Tag.nondeterministic_seeded in torch.ops.usertest.noise.default.tags


# An operator without a useful gradient: it declares this, and refuses to be recorded.


def binary_fake(image: Tensor) -> Tensor:
    return torch.empty_like(image)


def binary_kernel(out: Tensor, image: Tensor) -> None:
    out.copy_(image > 0.5)


@imgops.extend.operator(
    "usertest::binary",
    kernel=binary_kernel,
    fake=binary_fake,
    decomposition=lambda image: (image > 0.5).to(image.dtype),
    no_gradient="a pixel is 0 or 1",
)
def binary(image: Tensor) -> Tensor: ...


def test_no_gradient_refuses_in_every_mode() -> None:
    x = torch.tensor([0.2, 0.7])
    assert binary(x).tolist() == [0, 1]
    leaf, message = (
        x.clone().requires_grad_(),
        r"binary: no argument may require a gradient.*a pixel is 0 or 1",
    )
    with torch.no_grad():
        assert binary(leaf).tolist() == [0, 1]
    calls = (
        lambda: binary(leaf),
        lambda: torch.func.grad(lambda x: binary(x).sum())(x),
        lambda: torch.func.jvp(binary, (x,), (x,)),
    )
    for call in calls:
        with pytest.raises(NotImplementedError, match=message):
            call()
    with pytest.raises(Exception, match=message):
        torch.compile(binary, fullgraph=True, backend="aot_eager")(leaf)


def test_several_tensors_in_one_argument_are_refused() -> None:
    def total(images: list[Tensor]) -> Tensor: ...

    def parts(image: Tensor) -> tuple[Tensor, Tensor]: ...

    with pytest.raises(
        TypeError, match="operator: usertest::total: images must be a Tensor or None, not several"
    ):
        imgops.extend.operator("usertest::total", kernel=print, fake=print)(total)
    with pytest.raises(
        TypeError, match="operator: usertest::parts: one Tensor or nothing must be returned, got"
    ):
        imgops.extend.operator("usertest::parts", kernel=print, fake=print)(parts)

    def same(image: Tensor) -> Tensor: ...

    pair = imgops.extend.operator("usertest::pair", kernel=print, fake=lambda image: (image,))(same)
    with pytest.raises(TypeError, match="pair: fake must return a Tensor, got tuple"):
        pair(torch.zeros(3, 4, 5))


def test_equal_arguments_of_other_types_are_refused_in_repeated_calls() -> None:
    """2, 2.0 and True are equal, and so are the keys of a dict."""

    def kernel(out: torch.Tensor, image: torch.Tensor, count: int) -> None:
        out.copy_(image * count)

    @imgops.extend.operator(
        "test_user_operator::times", kernel=kernel, fake=lambda image, count: torch.empty_like(image)
    )
    def times(image: torch.Tensor, count: int) -> torch.Tensor: ...

    image = torch.ones(1, 2, 2)
    for _ in range(2):
        assert torch.equal(times(image, 2), image * 2)
        with pytest.raises(TypeError, match=r"times: count must be an int, got 2\.0"):
            times(image, 2.0)  # type: ignore[arg-type]
