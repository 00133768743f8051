"""Regions of an image: the distance of each pixel from the background, and connected components."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from imgops._common import check
from imgops._operator.declare import operator
from imgops.decomposition import regions as decomposition
from imgops.fake import regions as fake
from imgops.kernels.cpu import regions as cpu
from imgops.rules import packed, sharding, vmap

__all__ = ["ConnectedComponents", "connected_components", "distance_transform"]


@operator(
    "imgops::distance_transform",
    kernel=cpu.distance_transform,
    fake=fake.distance_transform,
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.distance_transform,
    no_gradient="a mask has no derivative",
    packed=packed.keeps_size,
)
def _distance_transform(image: Tensor, kernel_size: int, distance: str) -> Tensor: ...


@operator(
    "imgops::component_labels",
    kernel=cpu.component_labels,
    fake=fake.component_labels,
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.component_labels,
    no_gradient="labels have no derivative",
    packed=packed.keeps_size,
)
def _component_labels(image: Tensor, connectivity: int) -> Tensor: ...


@operator(
    "imgops::component_statistics",
    kernel=cpu.component_statistics,
    fake=fake.component_statistics,
    dynamic=True,
    host="the labels decide how many rows there are",
)
def _component_statistics(labels: Tensor) -> Tensor: ...


def distance_transform(image: Tensor, distance: str = "l2", kernel_size: int = 5) -> Tensor:
    """Compute the distance of each nonzero pixel from the nearest zero pixel.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8 or bool; each channel on its own. Any device.
    distance : {"l2", "l1", "c"}
        "l2" is Euclidean, "l1" the sum of the distances along x and y, "c" the larger of them.
    kernel_size : {5, 3, 0}
        For "l2": the distance is a sum of steps of a chess knight and a king (5), of a king (3), or exact
        (0). The other distances are always exact.

    Returns
    -------
    Tensor
        ``(..., C, H, W)`` float32, in pixels, in the memory format of ``image``. In a channel without any 0
        the distance is the largest float32 (its root for ``kernel_size`` 0).

    Raises
    ------
    TypeError
        If the dtype is neither uint8 nor bool.
    ValueError
        If ``distance`` or ``kernel_size`` is unknown.

    Notes
    -----
    Reference: ``cv2.distanceTransform``, bit-exact; on an accelerator within 1e-5 of the value. The operator
    is not differentiable, because a mask has no derivative. Autocast does not touch uint8.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.distance_transform(torch.tensor([[[0, 1, 1, 1, 0]]], dtype=torch.uint8), "l1")
    tensor([[[0., 1., 2., 1., 0.]]])
    """
    check.tensor_or_batch("distance_transform", image)
    size = check.integer("distance_transform", "kernel_size must be an integer", kernel_size)
    return _distance_transform(image, size, distance)


class ConnectedComponents(NamedTuple):
    """The result of :func:`connected_components`."""

    labels: Tensor
    num_labels: Tensor
    statistics: Tensor | None
    centroids: Tensor | None


def connected_components(
    image: Tensor, connectivity: int = 8, statistics: bool = False
) -> ConnectedComponents:
    """Label the connected regions of nonzero pixels.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8 or bool; each channel on its own. Any device.
    connectivity : {8, 4}
        Whether pixels that only touch at a corner are connected.
    statistics : bool
        Whether to measure the regions, too. The number n of their rows depends on the data: in a compiled
        graph it is a new dynamic size.

    Returns
    -------
    ConnectedComponents
        A named tuple of the four results below.
    labels : Tensor
        ``(..., C, H, W)`` int32 in the memory format of ``image``: 0 for the background, then 1, 2, ...
    num_labels : Tensor
        ``(..., C)`` int64: the number of labels, with the background.
    statistics : Tensor or None
        If requested, else None: ``(..., C, n, 5)`` int32 with left, top, width, height and area in pixels of
        each label; n is the largest count. A label without pixels has zeros.
    centroids : Tensor or None
        If requested, else None: ``(..., C, n, 2)`` float64 with the mean x and y of each label; NaN without
        pixels.

    Raises
    ------
    TypeError
        If the dtype is neither uint8 nor bool.
    ValueError
        If ``connectivity`` is neither 4 nor 8.

    Notes
    -----
    Reference: ``cv2.connectedComponentsWithStats``, with the same labels in the same order, on every device.
    (If a label has no pixels, OpenCV's statistics are those of an empty box in a corner.) On an accelerator
    regions are joined in a fixed number of steps, and the host reads nothing back; statistics are computed on
    the host. The statistics of different images have different numbers of rows, so ``statistics=True`` has no
    batching rule for :func:`torch.vmap`; a batch ``(..., C, H, W)`` needs none. The operator is not
    differentiable, because labels have no derivative. Autocast does not touch uint8.

    Examples
    --------
    >>> import torch, imgops
    >>> image = torch.tensor([[[1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0]]], dtype=torch.uint8)
    >>> found = imgops.connected_components(image)
    >>> found.labels
    tensor([[[1, 0, 0],
             [0, 1, 0],
             [0, 0, 0],
             [2, 2, 0]]], dtype=torch.int32)
    >>> found.num_labels
    tensor([3])
    """
    check.tensor("connected_components", "image", image)
    neighbors = check.integer("connected_components", "connectivity must be an integer", connectivity)
    if neighbors not in (4, 8):  # PyTorch's error for a larger integer would name the operator
        check.fail(ValueError, "connected_components", "connectivity must be 4 or 8", neighbors)
    measures = check.switch("connected_components", "statistics", statistics)
    labels = _component_labels(image, neighbors)
    planes = labels.flatten(-2)
    count = (planes.amax(-1) if planes.shape[-1] else labels.new_zeros(planes.shape[:-1])).long() + 1
    if not measures:
        return ConnectedComponents(labels, count, None, None)
    measured = _component_statistics(labels)
    return ConnectedComponents(labels, count, measured[..., :5].int(), measured[..., 5:])
