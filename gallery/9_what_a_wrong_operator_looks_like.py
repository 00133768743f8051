"""
What a wrong operator looks like
================================

PyTorch believes what an operator says of itself. Where that is wrong there is often no error: the pixels are others, in a
graph alone, or a gradient is. Six mistakes in a few lines each, and the check of ``imgops.testing`` that sees it.
"""

# %%
# A right one
# -----------
# The negative of an image. ``check_operator`` runs all generic tests on a sample and says nothing.

import itertools
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import torch
from skimage import data
from torch import Tensor

import imgops

numbers = itertools.count()
# An interleaved image, as PIL and OpenCV have it
sample = torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)


def negative(out: Tensor, image: Tensor) -> None:
    out.copy_(image).neg_()


def operator(**facets: Any) -> Callable[[Tensor], Tensor]:
    """The negative with other facets."""
    right = {"kernel": negative, "fake": torch.empty_like, "decomposition": torch.neg}
    facets = right | {"vmap": imgops.vmap.leading(3)} | facets

    @imgops.operator(f"gallery::negative{next(numbers)}", **facets)
    def op(image: Tensor) -> Tensor: ...

    return op


def seen(op: Callable[[Tensor], Tensor]) -> None:
    try:
        imgops.testing.check_operator(op, [(sample,)])
        print("nothing is wrong")
    except AssertionError as error:
        check, _, text = str(error).removeprefix("check_operator: ").partition(": ")
        print(f"seen by {check!r}:", text.partition("): ")[2].splitlines()[0][:110])


seen(operator())

# %%
# Strides
# -------
# ``new_empty(image.shape)`` is planar whatever the image is. imgops allocates what the fake says, so there the check compares with
# the decomposition. With ``torch.library`` alone the fake and the kernel can differ, and a graph then reads memory in the
# wrong order, without an error.

seen(operator(fake=lambda image: image.new_empty(image.shape)))


@torch.library.custom_op("gallery::copied", mutates_args=())
def copied(image: Tensor) -> Tensor:
    return image.contiguous(memory_format=torch.channels_last).clone()


@copied.register_fake
def _(image: Tensor) -> Tensor:
    return image.new_empty(image.shape)  # planar: the kernel's result is not


def read(image: Tensor) -> Tensor:
    out = copied(image)
    return torch.as_strided(out, out.shape, out.stride())  # as generated code does


photo = torch.from_numpy(data.chelsea().copy()).permute(2, 0, 1)[None].contiguous()
graph = torch.compile(read, fullgraph=True, backend="aot_eager")
fig, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
for axis, image, title in zip(
    axes, (read(photo), graph(photo)), ("eager", "in a graph"), strict=True
):
    axis.imshow(image[0].permute(1, 2, 0))
    axis.set_title(title)
    axis.axis("off")
plt.show()

# %%
# A part that is not written
# --------------------------
# ``empty`` shows what was in the memory before: often zeros, often the last image.


def forgets_a_column(out: Tensor, image: Tensor) -> None:
    out[..., 1:] = -image[..., 1:]


seen(operator(kernel=forgets_a_column))

# %%
# An input that is written to
# ---------------------------
# In eager mode it shows sooner or later. A graph may have moved the call before or behind another use of the image.


def in_its_input(out: Tensor, image: Tensor) -> None:
    out.copy_(image.neg_())


seen(operator(kernel=in_its_input))

# %%
# A gradient of something else
# ----------------------------
# Training goes on, in another direction. Where a decomposition is given, the gradient is derived from it; both must be right.

seen(operator(decomposition=lambda image: image * 1.0))

# %%
# A batching rule that leaves out where the batch is
# --------------------------------------------------
# Right for ``in_dims=0``, which is what one tries.


def batched(op: Any, info: Any, in_dims: Any, image: Tensor) -> tuple[Tensor, int]:
    return op(image), 0


seen(operator(vmap=batched))

# %%
# A number that is compiled in
# ----------------------------
# A float in a signature is a constant of the graph: each new one compiles again, until PyTorch gives up and runs eager. A tensor
# is an input. imgops' public functions take numbers and pass tensors on.


@torch.library.custom_op("gallery::scaled", mutates_args=())
def scaled(image: Tensor, factor: float) -> Tensor:
    return image * factor


scaled.register_fake(lambda image, factor: torch.empty_like(image))


def compilations(function: Callable[[Tensor, float], Tensor]) -> int:
    torch.compiler.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(function, fullgraph=True, backend=counter)
    for factor in (0.1, 0.2, 0.3, 0.4, 0.5):
        compiled(sample, factor)
    return counter.frame_count


print("a float:", compilations(lambda x, k: scaled(x, k)), "compilations")
ours = compilations(lambda x, k: imgops.adjust_brightness(x, k))
print("a tensor:", ours, "compilation" + "s" * (ours > 1))
