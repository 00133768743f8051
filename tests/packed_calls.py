"""The samples of operators with packed images in the place of their image: what tests run and a program compiles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch

import imgops
from imgops._operator.record import Operator, operators
from imgops.batches.operators import FLIP
from tests.specs import OPERATORS, SAMPLES, Sample
from tests.specs._maker import Maker

Sizes = Sequence[tuple[int, int]]
SIZES = [(31, 44), (7, 9), (60, 5), (1, 1)]
#: For Triton's interpreter, which takes seconds for a few thousand pixels.
SMALL = [(13, 18), (7, 9), (20, 5), (1, 1)]
#: Images that contain the box of each sample.
WIDE = [(13, 18), (7, 9), (20, 10), (7, 40)]
COUNT = len(SIZES)
DTYPES = torch.uint8, torch.float32
ORDER, AMOUNTS = torch.tensor([2, 0, 1]), torch.linspace(0.3, 1.7, COUNT * 3).reshape(COUNT, 3)
#: What the specs' samples lack: kernels that packed images alone have, or use in another way.
MORE = [
    *(
        Sample(f"{dims}", lambda m, d=dims: (m.image(3, 2, 2), [*d]), dtypes=DTYPES, op="flip")
        for dims in ((-1,), (-2,), (-1, -2))
    ),
    *(
        Sample(
            id,
            lambda m, o=order, n=names: (m.image(3, 2, 2), o, AMOUNTS, n),
            dtypes=DTYPES,
            op="color_sequence",
        )
        for id, order, names in (
            ("sharpness", ORDER, ["equalize", "sharpness", "autocontrast"]),
            ("nothing", ORDER[:0], ["hue", "brightness", "contrast"]),
        )
    ),
]
#: The samples of operators that take packed images.
PACKED = [
    s for s in SAMPLES if OPERATORS[s.op].operator.packed and not s.edge and set(DTYPES) & set(s.dtypes)
]
#: What a kernel for CUDA leaves to a loop over the images, or never gets: area, many channels, results without pixels,
#: and a scale, whose size is that of one image.
LEFT = re.compile("area|five-to-one|^empty|^scale-")
#: The samples of kernels for CUDA that take packed images.
OF_KERNELS = [
    *(
        s
        for s in PACKED
        if getattr(OPERATORS[s.op].operator.cuda, "takes_packed", False) and not LEFT.search(s.id)
    ),
    *MORE,
]


def row_of(sample: Sample) -> Operator:
    return FLIP if sample.op == FLIP.name else operators()[sample.op]


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


def packed_arguments(
    sample: Sample, dtype: torch.dtype, interleaved: bool, sizes: Sizes = SIZES
) -> tuple[imgops.PackedImages, list[Any], tuple[Any, ...]]:
    """Return images, the operator's arguments after the image, and the arguments of the operator of packed images.

    Samples that have a parameter for each image of a batch have one for each of the packed images.
    """
    row, maker = row_of(sample), Maker(dtype, batch=(COUNT,))
    image, *given = sample.arguments(maker) if row is FLIP else sample.checked(maker).op_args
    assert row.packed is not None
    sizes = WIDE if row.packed.has_box and given[0] is not None else sizes
    images = [noise(image.shape[-3], *size, seed=i) for i, size in enumerate(sizes)]
    packed = imgops.PackedImages.of(images, interleaved)
    if dtype != torch.uint8:
        packed = packed.like((packed.data / 255).to(dtype))
    where, tensors = (packed.data, packed.sizes, packed.offsets), row.tensors - 1
    return packed, given, (*where, *given[:tensors], image.shape[-3], *given[tensors:], interleaved)


def one_by_one(sample: Sample, packed: imgops.PackedImages, given: list[Any]) -> list[tuple[Any, ...]]:
    """Return the arguments of the operator for each of the packed images."""
    row = row_of(sample)
    cores = row.vmap.core[1 : row.tensors]  # type: ignore[union-attr]
    return [
        (
            image,
            *(x if x is None or x.ndim <= core else x[i] for x, core in zip(given, cores, strict=False)),
            *given[len(cores) :],
        )
        for i, image in enumerate(packed.unpack())
    ]
