"""A gradient derived from a decomposition: two products with its Jacobian, each a separate operator.

A compiler sees opaque calls of these two operators; inside of them PyTorch differentiates the decomposition.
Both operators use reverse mode, which works in any context: a vector-Jacobian product is linear, and its
transpose is the Jacobian-vector product. Beyond the first order the decomposition itself is differentiated
outside of the opaque calls. Forward mode raises beyond the first order, because it would have to run inside a
transform of torch.func, which cannot start another transform.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from imgops._common import torch_private


class DerivedGradient:
    """The derived gradient of one operator; its backward and forward operators are set after registration."""

    def __init__(
        self,
        decomposition: Callable[..., Tensor],
        fake: Callable[..., Tensor],
        tensors: int,
        kernel: Callable[..., Any] | None = None,
        is_linear: bool = False,
    ) -> None:
        self.decomposition = decomposition
        #: The formula that is differentiated: values are known here, so that it may compute one case alone.
        self.recorded = getattr(decomposition, "of_known_values", decomposition)
        self.kernel, self.is_linear = kernel, is_linear
        self.fake = fake
        self.tensors = tensors
        #: Whether the decomposition reads its parameters on the host, so that they stay where they are.
        self.reads_parameters = getattr(decomposition, "reads_parameters", False)
        self.backward_operator: Any = None
        self.forward_operator: Any = None

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        kept = list(inputs[: self.tensors])
        if self.is_linear and not any(ctx.needs_input_grad[1 : self.tensors]):
            kept[0] = kept[0].new_zeros(()).expand(kept[0].shape)  # its values do not matter, and take memory
        ctx.save_for_backward(*kept)
        self._keep(ctx, inputs)

    def setup_with(self, setup_context: Callable[..., None]) -> Callable[..., None]:
        """Extend the ``setup_context`` of a hand-written backward, so that forward mode can be derived."""

        def both(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            setup_context(ctx, inputs, output)
            self._keep(ctx, inputs)

        return both

    def _keep(self, ctx: Any, inputs: tuple[Any, ...]) -> None:
        """Save the inputs for a jvp, which reads them from ``ctx.saved_tensors``."""
        ctx.save_for_forward(*inputs[: self.tensors])
        ctx.rest = inputs[self.tensors :]

    def backward(self, ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        wanted = [i for i, needed in enumerate(ctx.needs_input_grad[: self.tensors]) if needed]
        saved = ctx.saved_tensors  # a second reading raises under non-reentrant checkpoints
        flat = self.backward_operator(grad, *saved, *ctx.rest, wanted)
        inputs = [saved[i] for i in wanted]
        return _place(_unflatten(flat, inputs), wanted, self.tensors + len(ctx.rest))

    def jvp(self, ctx: Any, *tangents: Any) -> Tensor:
        wanted = [i for i, tangent in enumerate(tangents[: self.tensors]) if tangent is not None]
        saved = ctx.saved_tensors
        flat = _flatten([tangents[i] for i in wanted], saved[0].device)
        return self.forward_operator(flat, *saved, *ctx.rest, wanted)

    # The backward operator maps (grad, *inputs, wanted) to all gradients in one flat tensor. (With several
    # output tensors PyTorch could not compute batched gradients.)

    def backward_kernel(self, grad: Tensor, *args: Any) -> Tensor:
        *inputs, wanted = args
        if self.kernel is not None and grad.is_cpu:
            flat, like = self.backward_fake(grad, *args), [inputs[i] for i in wanted]
            is_flat = all(x.dtype == flat.dtype for x in like)
            if is_flat:
                grads = _unflatten(flat, like)
            else:
                grads = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in like]
            if self.kernel(_place(grads, wanted, self.tensors), grad, *inputs) is not NotImplemented:
                return flat if is_flat else _flatten(grads, grad.device)
        with torch_private.default_dispatch_state(), torch.enable_grad():
            out, leaves = self._record(inputs, wanted)
            return _flatten(_grad(out, leaves, grad), grad.device)

    def backward_fake(self, grad: Tensor, *args: Any) -> Tensor:
        *inputs, wanted = args
        size = sum(inputs[i].numel() for i in wanted)
        return grad.new_empty((size,), dtype=_widest([inputs[i] for i in wanted]))

    # The forward operator maps (all tangents in one flat tensor, *inputs, wanted) to the output's tangent.

    def forward_kernel(self, tangent: Tensor, *args: Any) -> Tensor:
        *inputs, wanted = args
        with torch_private.default_dispatch_state(), torch.enable_grad():
            out, leaves = self._record(inputs, wanted)
            grad = torch.zeros_like(out, requires_grad=True)
            pulled = _grad(out, leaves, grad, create_graph=True)
            pushed = torch.zeros_like(out)
            for part, leaf in zip(pulled, _unflatten(tangent, leaves), strict=True):
                pushed += _grad(part, [grad], leaf, retain_graph=True)[0]
            return self.fake(*inputs).copy_(pushed)

    def forward_fake(self, tangent: Tensor, *args: Any) -> Tensor:
        return self.fake(*args[:-1])

    # Both operators share these methods: their first argument is the vector that multiplies the Jacobian.

    def product_setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        *arguments, ctx.wanted = inputs
        ctx.save_for_backward(*arguments[: self.tensors + 1])
        ctx.rest = arguments[self.tensors + 1 :]

    def product_vmap(
        self, op: Any, info: Any, in_dims: tuple[int | None, ...], *args: Any
    ) -> tuple[Tensor, int]:
        """Loop over the samples, because a rule of torch.func cannot start another transform."""
        at = [i for i, dim in enumerate(in_dims[: self.tensors + 1]) if dim is not None]

        def one(select: Callable[[Tensor, Any], Tensor]) -> Tensor:
            return op(*_replace(args, at, [select(args[j], in_dims[j]) for j in at]))

        if info.batch_size:
            rows = [one(lambda x, dim, i=i: x.select(dim, i)) for i in range(info.batch_size)]  # type: ignore[misc]
            return torch.stack(rows), 0
        sample = one(lambda x, dim: x.new_zeros([n for d, n in enumerate(x.shape) if d != dim % x.ndim]))
        return sample.new_empty((0, *sample.shape)), 0

    def open(self, product: Callable[..., Tensor], ctx: Any, cotangent: Tensor) -> tuple[Any, ...]:
        """Return the gradients of one of the two products for its tensors that need a gradient."""
        at = [i for i, needed in enumerate(ctx.needs_input_grad[: self.tensors + 1]) if needed]
        every = ctx.saved_tensors

        def function(*chosen: Tensor) -> Tensor:
            vector, *inputs = _replace(every, at, chosen)
            return product(vector, [*inputs, *ctx.rest], ctx.wanted)

        found = torch.func.vjp(function, *[every[i] for i in at])[1](cotangent)
        return _place(found, at, 1 + self.tensors + len(ctx.rest) + 1)

    def _record(self, inputs: Sequence[Any], wanted: Sequence[int]) -> tuple[Tensor, list[Tensor]]:
        """Run the decomposition on new leaf tensors, inside a kernel; return its output and the leaves."""
        plain = [x.detach() if isinstance(x, Tensor) else x for x in inputs]
        if not self.reads_parameters:
            plain = [_moved(x, inputs[0].device) if self._is_moved(x) else x for x in plain]
        leaves = [plain[i].detach().requires_grad_() for i in wanted]
        return self.recorded(*_replace(plain, wanted, leaves)), leaves

    def _is_moved(self, x: Any) -> bool:
        """Return whether a formula has an argument on the device; one of known values reads whole numbers."""
        return isinstance(x, Tensor) and (self.recorded is self.decomposition or x.is_floating_point())

    def pull(self, grad: Tensor, inputs: Sequence[Any], wanted: Sequence[int]) -> Tensor:
        function, primals = self._of(wanted, inputs)
        return _flatten(torch.func.vjp(function, *primals)[1](grad), grad.device)

    def push(self, tangent: Tensor, inputs: Sequence[Any], wanted: Sequence[int]) -> Tensor:
        function, primals = self._of(wanted, inputs)

        def pulled(grad: Tensor) -> tuple[Tensor, ...]:
            return torch.func.vjp(function, *primals)[1](grad)

        zero = torch.zeros_like(function(*primals))
        return torch.func.vjp(pulled, zero)[1](tuple(_unflatten(tangent, primals)))[0]

    def _of(self, at: Sequence[int], inputs: Sequence[Any]) -> tuple[Callable[..., Tensor], list[Tensor]]:
        """Return the decomposition as a function of some of its tensors, and these tensors."""

        def function(*chosen: Tensor) -> Tensor:
            return self.decomposition(*_replace(inputs, at, chosen))

        return function, [inputs[i] for i in at]


def _grad(out: Tensor, leaves: Sequence[Tensor], grad: Tensor, **options: Any) -> Sequence[Tensor]:
    """Return the gradients of the leaves, 0 for a leaf that the output does not depend on."""
    if not out.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    return torch.autograd.grad(out, leaves, grad, allow_unused=True, materialize_grads=True, **options)


def _flatten(tensors: Sequence[Tensor], device: torch.device) -> Tensor:
    """Concatenate tensors into a flat one on ``device``, to which a parameter on the CPU is moved too."""
    dtype = _widest(tensors)
    return torch.cat([_moved(t.reshape(-1), device).to(dtype) for t in tensors])


def _moved(x: Tensor, device: torch.device) -> Tensor:
    """Return a tensor on ``device``; a parameter on the CPU is copied to it asynchronously."""
    return x.to(device, non_blocking=x.is_cpu)


def _unflatten(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    parts = flat.split([x.numel() for x in like])
    return [p.reshape(x.shape).to(x.device, x.dtype) for p, x in zip(parts, like, strict=True)]


def _place(values: Sequence[Any], at: Sequence[int], size: int) -> tuple[Any, ...]:
    found = dict(zip(at, values, strict=True))
    return tuple(found.get(i) for i in range(size))


def _replace(values: Sequence[Any], at: Sequence[int], chosen: Sequence[Any]) -> list[Any]:
    filled = list(values)
    for i, value in zip(at, chosen, strict=True):
        filled[i] = value
    return filled


def _widest(tensors: Sequence[Tensor]) -> torch.dtype:
    return reduce(torch.promote_types, [t.dtype for t in tensors])
