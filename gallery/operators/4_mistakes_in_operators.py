"""
Mistakes in operators
=====================

See six mistakes of operators that raise no error, and the checks that find them.

PyTorch trusts the statements that an operator makes about itself. If one of them is wrong, there is often no error: a gradient
is wrong, or the pixels are, perhaps only in a graph.
"""

# %%
# A correct operator
# ------------------
# This operator computes the negative of an image.

import itertools
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import torch
from skimage import data
from torch import Tensor

import imgops

numbers = itertools.count()


def negative(out: Tensor, image: Tensor) -> None:
    out.copy_(image).neg_()


def operator(**facets: Any) -> Callable[[Tensor], Tensor]:
    """Return the negative, with some parts of the operator replaced."""
    right = {"kernel": negative, "fake": torch.empty_like, "decomposition": torch.neg}
    facets = right | {"vmap": imgops.extend.vmap.leading(3)} | facets

    @imgops.extend.operator(f"gallery::negative{next(numbers)}", **facets)
    def op(image: Tensor) -> Tensor: ...

    return op


photo = torch.from_numpy(data.chelsea().copy()).permute(2, 0, 1)[None].contiguous()
fig, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
for axis, image in zip(axes, (photo / 255, 1 + operator()(photo / 255)), strict=True):
    axis.imshow(image[0].permute(1, 2, 0))
    axis.axis("off")

# %%
# ``check_operator`` runs all generic tests on a sample. It raises nothing for this operator.

# An interleaved image, as in PIL and OpenCV
sample = torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)


def seen(op: Callable[[Tensor], Tensor]) -> None:
    try:
        imgops.extend.testing.check_operator(op, [(sample,)])
        print("nothing is wrong")
    except AssertionError as error:
        check, _, text = str(error).removeprefix("check_operator: ").partition(": ")
        print(f"seen by {check!r}:", text.partition("): ")[2].splitlines()[0][:110])


seen(operator())

# %%
# Strides
# -------
# ``new_empty(image.shape)`` is planar even if the image is interleaved. imgops allocates the memory that the fake describes, so
# the check compares the fake with the decomposition. With ``torch.library`` alone, the strides of the fake and the kernel can
# differ. Then a graph reads memory in the wrong order, without an error.

seen(operator(fake=lambda image: image.new_empty(image.shape)))


@torch.library.custom_op("gallery::copied", mutates_args=())
def copied(image: Tensor) -> Tensor:
    return image.contiguous(memory_format=torch.channels_last).clone()


@copied.register_fake
def _(image: Tensor) -> Tensor:
    return image.new_empty(image.shape)  # planar; the kernel's result is not


def read(image: Tensor) -> Tensor:
    out = copied(image)
    return torch.as_strided(out, out.shape, out.stride())  # as generated code does


# sphinx_gallery_thumbnail_number = 2

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
# An output that is only partly written
# -------------------------------------
# The unwritten part of the output keeps the previous contents of the memory: often zeros, often the last image.


def forgets_a_column(out: Tensor, image: Tensor) -> None:
    out[..., 1:] = -image[..., 1:]


seen(operator(kernel=forgets_a_column))

# %%
# An input that is written to
# ---------------------------
# In eager mode you notice this mistake sooner or later. A graph may move the call before or after another use of the image.


def in_its_input(out: Tensor, image: Tensor) -> None:
    out.copy_(image.neg_())


seen(operator(kernel=in_its_input))

# %%
# A wrong gradient
# ----------------
# Training continues, but in the wrong direction. imgops derives the gradient from the decomposition if you give one, so the
# decomposition must be correct too.

seen(operator(decomposition=lambda image: image * 1.0))

# %%
# A batching rule that ignores ``in_dims``
# ----------------------------------------
# This rule is correct for ``in_dims=0``, the case that is usually tested.


def batched(op: Any, info: Any, in_dims: Any, image: Tensor) -> tuple[Tensor, int]:
    return op(image), 0


seen(operator(vmap=batched))

# %%
# A number that is a constant of the graph
# ----------------------------------------
# A float argument becomes a constant of the graph: each new value recompiles the graph, until PyTorch gives
# up and runs eagerly. A tensor is an input of the graph. imgops' public functions take numbers and pass them
# to the operator as tensors.


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
