"""A user's own operators: one registration gives them everything that imgops' operators have."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd

import imgops
from imgops.extend.testing import check_operator
from tests.checks import bits_equal
from tests.tiers import nightly, nightly_unless


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


BLUR: dict[str, Any] = {
    "kernel": blur_kernel,
    "fake": blur_fake,
    "autograd": imgops.extend.Gradient(blur_setup_context, blur_backward, blur_jvp),
    "vmap": imgops.extend.vmap.leading(3),
    "sharding": imgops.extend.sharding.leading(3),
    "autocast": imgops.extend.autocast.float32,
    "decomposition": blur_decomposition,
}


@imgops.extend.operator("usertest::blur", **BLUR, adjoint="blur")
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


@pytest.mark.parametrize(
    ("operator", "samples", "missing"),
    nightly_unless(
        lambda row: row[0] is bare,
        [
            (blur, [(positive(3, 5, 6), 1), (positive(2, 1, 4, 4), 2)], ""),
            (
                gamma,
                [(positive(3, 5, 6), torch.tensor(2.2)), (positive(2, 3, 4, 4), torch.tensor([0.5, 3.0]))],
                "sharding autocast adjoint",
            ),
            (bare, [(positive(3, 4, 4),)], "autograd vmap sharding autocast decomposition adjoint"),
            (darken, [(positive(3, 4, 4), 3)], "sharding autocast decomposition adjoint"),
            (lambda x: imgops.resize(x, (4, 5), antialias=False), [(positive(3, 7, 6),)], ""),
        ],
    ),
)
def test_check_operator_passes(operator: Any, samples: list[Any], missing: str) -> None:
    """It returns the facets that are missing, which it cannot check."""
    assert check_operator(operator, samples) == missing.split()


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

    compiled = torch.compile(gamma, fullgraph=True, backend=aot_autograd(fw_compiler=backend))
    x, exponent = positive(3, 4, 4).requires_grad_(), torch.tensor(1.7, requires_grad=True)
    found = torch.autograd.grad(compiled(x, exponent).sum(), (x, exponent))
    wanted = torch.autograd.grad(gamma_decomposition(x, exponent).sum(), (x, exponent))
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a, b)
    assert "usertest.gamma.default" in graphs[0] and "pow" not in graphs[0]
    assert "usertest.gamma_backward.default" in graphs[1] and "pow" not in graphs[1]


def test_a_derived_gradient_is_exact_to_every_order() -> None:
    """Beyond those that check_operator checks."""
    x, exponent = (t.double().requires_grad_() for t in (positive(1, 2, 2), torch.tensor(2.5)))
    third = torch.func.grad(torch.func.grad(torch.func.grad(lambda e: gamma(x.detach(), e).sum())))
    torch.testing.assert_close(third(exponent.detach()), (x.log() ** 3 * x**2.5).sum().detach())
    pushed = torch.func.jvp(lambda e: gamma(x.detach(), e), (exponent.detach(),), (exponent.detach(),))[1]
    torch.testing.assert_close(pushed, (2.5 * x.log() * x**2.5).detach())
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


# -- declarations that are refused --------------------------------------------------------------------------


def one(image: Tensor) -> Tensor: ...


def two(image: Tensor, other: Tensor) -> Tensor: ...


def sized(image: Tensor, amount: Tensor, size: int) -> Tensor: ...


def several(images: list[Tensor]) -> Tensor: ...


def parts(image: Tensor) -> tuple[Tensor, Tensor]: ...


def kernel_of_one(out: Tensor, image: Tensor) -> None: ...


def kernel_of_two(out: Tensor, image: Tensor, other: Tensor) -> None: ...


WRITES = {"kernel": torch.Tensor.zero_, "mutates": ["image"], "autograd": BLUR["autograd"]}
TWO, SIZED = {"kernel": kernel_of_two}, {"kernel": lambda out, image, amount, size: None}
OF_ONE = {"vmap": imgops.extend.vmap.leading(3), "sharding": imgops.extend.sharding.leading(3)}
#: What replaces the facets of an operator, which has the name of its signature, and the error.
REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (one, {"kernel": None}, "usertest::one must have a kernel, got None: pass kernel=f"),
    (one, {"fake": None}, "usertest::one must have a fake, got None: pass fake=f"),
    (one, {"name": "sharpen"}, "name must be 'namespace::name', got 'sharpen'"),
    (one, {"name": "usertest::blur"}, "name must be new, got 'usertest::blur' a second time"),
    (one, {"mutates": ["other"]}, r"usertest::one: mutates must name .*, got \('other',\)"),
    (one, {"mutates": "image"}, "mutates must be a list of names, got 'image'"),
    *(
        (one, {facet: "x"}, f"usertest::one: {facet} must be a function, got 'x'$")
        for facet in ("kernel", "fake", "cuda", "vmap", "sharding", "autocast", "decomposition", "values")
    ),
    (one, {"autograd": darken_}, r"one: autograd must be an imgops\.extend\.Gradient, got function"),
    (one, WRITES, "autograd must be a function, for an operator that mutates, got Grad"),
    *(
        (two, TWO | {facet: rule}, rf"two: {facet} must have the dimensions of 2 tensors, got leading\(3\)")
        for facet, rule in OF_ONE.items()
    ),
    *(
        (sized, {"kernel": kernel}, r"sized: kernel must be kernel\(out, image, amount, size\), got")
        for kernel in (
            lambda image, amount, size: None,  # returns its result, as a function of PyTorch would
            lambda image, amount, size, extra=None: None,
            lambda out, image: None,
            lambda out, image, amount, size, needed: None,
        )
    ),
    (sized, SIZED | {"dynamic": True}, r"kernel must be kernel\(image, amount, size\), got"),
    (several, {}, "usertest::several: images must be a Tensor or None, not several"),
    (parts, {}, "usertest::parts: one Tensor or nothing must be returned, got"),
]


@pytest.mark.parametrize(("signature", "changed", "message"), REFUSED)
def test_refused_declarations(signature: Any, changed: dict[str, Any], message: str) -> None:
    """At the declaration, not at the first call."""
    facets = {"name": f"usertest::{signature.__name__}", "kernel": kernel_of_one, "fake": torch.empty_like}
    with pytest.raises((TypeError, ValueError), match=f"^operator: .*{message}"):
        imgops.extend.operator(**{**facets, **changed})(signature)


@pytest.mark.parametrize("wrong", ["3", -1, 1.0, True])
@pytest.mark.parametrize("facet", ["vmap", "sharding"])
def test_refused_rules(facet: str, wrong: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{facet}.leading: core must be integers from 0 on, got "):
        getattr(imgops.extend, facet).leading(wrong)


@pytest.mark.parametrize(
    ("name", "fake", "error", "message"),
    [
        ("shares_itself", lambda image: image, RuntimeError, "a tensor of its own, got image"),
        ("shares_view", lambda image: image[:, :2], RuntimeError, "a tensor of its own, got image"),
        ("pair", lambda image: (image,), TypeError, "a Tensor, got tuple"),
    ],
)
def test_refused_fakes(name: str, fake: Any, error: type[Exception], message: str) -> None:
    """The kernel would write into the input. PyTorch's wrapper checks this after the kernel, ours before it."""
    fills = imgops.extend.operator(f"usertest::{name}", kernel=lambda out, image: out.fill_(7), fake=fake)(
        one
    )
    image = torch.zeros(3, 4, 5)
    with pytest.raises(error, match=f"^{name}: fake must return {message}"):
        fills(image)
    assert not image.any()


def _quantize(name: str, backward: Any) -> Any:
    """Declare an operator that rounds, with a straight-through gradient."""
    gradient = imgops.extend.Gradient(lambda ctx, inputs, output: None, backward, straight_through=True)
    kernel = lambda out, image: torch.round(image, out=out)
    facets: dict[str, Any] = {"kernel": kernel, "fake": torch.empty_like, "decomposition": torch.round}
    return imgops.extend.operator(name, **facets, autograd=gradient)(one)


@nightly
def test_a_straight_through_gradient_is_declared() -> None:
    sample = torch.rand(3, 4, 5) * 9
    check_operator(_quantize("usertest::quantize", lambda ctx, grad: (grad,)), [(sample,)])
    wrong = _quantize("usertest::quantize_twice", lambda ctx, grad: (2 * grad,))
    with pytest.raises(AssertionError, match=r"check_operator: gradients: .*not the identity's"):
        check_operator(wrong, [(sample,)])


def other_order(op: Any, info: Any, in_dims: Any, image: Tensor, radius: int) -> tuple[Tensor, int]:
    return op(image.movedim(in_dims[0], 0).flip(0), radius), 0


def replicated(image: Any, radius: int) -> list[Any]:
    """Return a rule that is correct, but by which the batch does not stay sharded."""
    from torch.distributed.tensor import Replicate

    return [([Replicate()], [Replicate(), None])]


#: Wrong facets of a blur, by the check that finds them.
WRONG: dict[str, dict[str, Any]] = {
    "gradients": {
        "autograd": imgops.extend.Gradient(
            blur_setup_context, lambda ctx, grad: (2 * blur(grad, ctx.radius), None), blur_jvp
        )
    },
    "decomposition": {"decomposition": lambda image, radius: blur_decomposition(image, radius) + 1},
    "call": {"fake": lambda image, radius: image, "kernel": lambda out, image, radius: None},
    "vmap": {"vmap": other_order},
    "sharding": {"sharding": replicated},
}


@pytest.mark.parametrize("check", nightly_unless(lambda c: c not in ("decomposition", "sharding"), WRONG))
def test_check_operator_finds_what_is_wrong(check: str) -> None:
    def declared(image: Tensor, radius: int) -> Tensor: ...

    broken = imgops.extend.operator(f"usertest::broken_{check}", **{**BLUR, **WRONG[check]})(declared)
    with pytest.raises(AssertionError, match=rf"^check_operator: {check}: "):
        check_operator(broken, [(positive(3, 4, 5), 1)])


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


@imgops.extend.operator(
    "usertest::binary",
    kernel=lambda out, image: out.copy_(image > 0.5),
    fake=torch.empty_like,
    decomposition=lambda image: (image > 0.5).to(image.dtype),
    no_gradient="a pixel is 0 or 1",
)
def binary(image: Tensor) -> Tensor: ...


def test_no_gradient_refuses_in_every_mode() -> None:
    x = torch.tensor([0.2, 0.7])
    assert binary(x).tolist() == [0, 1]
    leaf, message = x.clone().requires_grad_(), r"binary: no argument may require .*a pixel is 0 or 1"
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


def test_equal_arguments_of_other_types_are_refused_in_repeated_calls() -> None:
    """2, 2.0 and True are equal, and so are the keys of a dict."""

    def times(image: Tensor, count: int) -> Tensor: ...

    facets: dict[str, Any] = {
        "kernel": lambda out, image, count: out.copy_(image * count),
        "fake": lambda image, count: torch.empty_like(image),
    }
    times = imgops.extend.operator("usertest::times", **facets)(times)
    image = torch.ones(1, 2, 2)
    for _ in range(2):
        assert torch.equal(times(image, 2), image * 2)
        with pytest.raises(TypeError, match=r"times: count must be an int, got 2\.0"):
            times(image, 2.0)
