"""The output of most operators."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check, layout


def output(
    op: str,
    image: Tensor,
    known: check.Channels | None = None,
    takes_uint16: bool = False,
    **parameters: Tensor,
) -> Tensor:
    """Check an image and its numbers per sample, and allocate an output of its shape and dtype.

    ``known`` says which channels the image may have, by default any.
    """
    check.computed_image(op, image, known, takes_uint16)
    for name, value in parameters.items():
        check.per_sample_parameter(op, name, value, image)
    return layout.empty(image, *image.shape[-2:])
