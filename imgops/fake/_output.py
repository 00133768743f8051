"""The output of most operators."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check, layout


def output(op: str, image: Tensor, *channels: int, **parameters: Tensor) -> Tensor:
    """Check an image and its numbers per sample, and allocate an output of its shape and dtype.

    ``channels`` are the numbers of channels that the image may have, by default any.
    """
    check.computed_image(op, image, *channels)
    for name, value in parameters.items():
        check.per_sample_parameter(op, name, value, image)
    return layout.empty(image, *image.shape[-2:])
