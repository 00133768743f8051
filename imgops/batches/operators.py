"""The operators of packed images, one for each operator with a packed facet."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import Tensor
from torch.compiler import is_compiling

from imgops._common import check, layout, packing, torch_private
from imgops._operator.declare import operator
from imgops._operator.record import Contract, Operator, Packed, packed_observers, table
from imgops.decomposition import packed as decomposition
from imgops.fake import packed as fake
from imgops.kernels import cuda, transfer
from imgops.kernels.cpu import packed as cpu
from imgops.rules import vmap

if TYPE_CHECKING:
    from imgops.batches.packed import PackedImages

#: An operator's name -> the function of packed images: ``call(packed, *rest)``.
_functions: dict[str, Callable[..., Any]] = {}


def register() -> None:
    """Register the variants of all operators with a packed facet, those declared later included.

    Importing imgops does not register them, because it takes a while. In a graph, this does nothing.
    """
    if _functions or is_compiling():
        return
    for row in (*table.values(), FLIP):
        _add_variant(row)
    packed_observers.append(_add_variant)


def _add_variant(row: Operator) -> None:
    if row.packed is not None:
        _functions[row.qualified] = _variant(row, row.packed)


def call(row: Operator, args: Sequence[Any]) -> Any:
    """Call an operator whose first argument is packed images."""
    function = _functions.get(row.qualified)
    if function is None:
        must = "image must be a Tensor"
        check.fail(TypeError, row.name, must, f"{type(args[0]).__name__}, which it does not take")
    return function(*args)


def flip(images: PackedImages, dims: Sequence[int]) -> PackedImages:
    """Mirror each image along dimensions that are counted from the end."""
    return call(FLIP, (images, list(dims)))


def _variant(row: Operator, facet: Packed) -> Callable[..., Any]:
    """Make an operator ``imgops_packed::name`` of the tensors of packed images; return what calls it."""
    function = operator(
        row.qualified.replace("::", "_packed::"),
        kernel=partial(cpu.run, row, facet),
        cuda=partial(_on_device, row, facet),
        fake=partial(fake.allocate, row, facet),
        decomposition=partial(decomposition.loop, row, facet),
        values=lambda data, sizes, offsets, *args: packing.require_fit(
            row.name, data, sizes, offsets, args[row.tensors - 1]
        ),
        vmap=partial(_refuse_vmap, row.name),
        autocast=row.autocast,
        no_gradient=row.no_gradient,
    )(_declared(row))
    parameters = row.tensors - 1

    def variant(images: PackedImages, *args: Any) -> Any:
        if facet.has_box and args[0] is not None and args[0].requires_grad:
            must = f"{row.name}: box must not require a gradient, which is not implemented"
            raise NotImplementedError(f"{must}, got a box with requires_grad=True")
        where = images.data, images.sizes, images.offsets
        channels, interleaved = images.num_channels, images.interleaved
        no_images = torch_private.is_eager() and len(images) == 0 and images.requires_grad
        if no_images:  # without images there is no loop that would connect the output to the buffer
            where = images.data.detach(), *where[1:]
        out = function(*where, *args[:parameters], channels, *args[parameters:], interleaved)
        if no_images:
            out = images.data.reshape(out.shape).to(out.dtype)
        if not facet.keeps_size:
            return out
        if facet.channels is None:
            return images.like(out)
        count = facet.channels(channels, *args)
        made = images.like(out, images.sizes, images.offsets // channels * count)
        made.num_channels = count
        return made

    return variant


def _declared(row: Operator) -> Callable[..., Any]:
    """Return a signature: the three tensors, the operator's parameters, and the channels and format."""
    given = list(row.signature.parameters.values())[1:]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    buffer = [inspect.Parameter(name, kind, annotation="Tensor") for name in ("data", "sizes", "offsets")]
    channels = inspect.Parameter("channels", kind, annotation="int")
    interleaved = inspect.Parameter("interleaved", kind, annotation="bool")
    parameters = *buffer, *given[: row.tensors - 1], channels, *given[row.tensors - 1 :], interleaved

    def declared() -> None: ...

    declared.__name__ = row.name
    declared.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(default=p.empty) for p in parameters], return_annotation="Tensor"
    )
    return declared


def _on_device(row: Operator, facet: Packed, out: Tensor, *args: Any) -> None:
    """Run the kernel for all images at once, or, without such a kernel, the operator for each image."""
    plain = [x.detach() if isinstance(x, Tensor) else x for x in args]
    with torch.no_grad():
        if out.numel() and _launch(row, facet, out, *plain) is NotImplemented:
            out.copy_(decomposition.loop(row, facet, *plain))


def _launch(row: Operator, facet: Packed, out: Tensor, *args: Any) -> Any:
    kernel = row.cuda
    if kernel is None or not getattr(kernel, "takes_packed", False) or not cuda.runs_on(out.device):
        return NotImplemented
    from imgops.kernels.cuda._packed import Packed as Images

    count = row.tensors - 1
    data, sizes, offsets, *parameters = args[: 3 + count]
    channels, *rest, interleaved = args[3 + count :]
    _require_values(row, facet, data, sizes, channels, parameters, rest)
    shape = len(sizes), channels, *sizes.amax(0).tolist()
    sizes, offsets, *parameters = transfer.move_arguments(out.device, [sizes, offsets, *parameters])
    target: Any = out
    if facet.keeps_size:
        of_out = out.shape[0] // (data.shape[0] // channels)
        target = Images(out, sizes, offsets, (shape[0], of_out, *shape[2:]), interleaved)
    return kernel(target, Images(data, sizes, offsets, shape, interleaved), *parameters, *rest)


def _require_values(
    row: Operator,
    facet: Packed,
    data: Tensor,
    sizes: Tensor,
    channels: int,
    parameters: list[Any],
    rest: list[Any],
) -> None:
    """Check the parameters on the CPU as the operator does: a box must lie inside of its own image."""
    if row.values is None or all(x is None or not x.is_cpu for x in parameters):
        return
    if not facet.has_box:
        row.values(data.new_empty(()).expand(len(sizes), channels, 1, 1), *parameters, *rest)
        return
    for i, (height, width) in enumerate(sizes.tolist()):
        stand_in = torch.empty((channels, height, width), device="meta", dtype=torch.float32)
        row.values(stand_in, *decomposition.of_image(row, parameters, i), *rest)


def _refuse_vmap(op: str, *args: Any) -> NoReturn:
    must = f"{op}: image must be a Tensor under vmap, whose samples have one size"
    raise NotImplementedError(f"{must}, got PackedImages")


def _flip(image: Tensor, dims: Sequence[int]) -> Tensor: ...


#: PyTorch's flip as an operator.
FLIP = Operator(
    "flip",
    "imgops",
    Contract.FUNCTIONAL,
    inspect.signature(_flip),
    kernel=lambda out, image, dims: out.copy_(image.detach().flip(list(dims))),
    fake=lambda image, dims: layout.empty(image, *image.shape[-2:]),
    vmap=vmap.leading(3),
    cuda=cuda.Kernel("movement.flip", takes_packed=True),
    overload=lambda image, dims: image.flip(dims),
    packed=Packed(),
)
