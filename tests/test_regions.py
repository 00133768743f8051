"""connected_components: labels, counts, statistics and centroids against OpenCV, for all sizes and densities."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch

import imgops
from imgops.decomposition import regions as formula


@pytest.mark.parametrize("connectivity", [4, 8])
def test_statistics(connectivity: int) -> None:
    masks = torch.from_numpy(np.random.default_rng(0).random((3, 2, 17, 23)) < 0.45)
    labels, count, statistics, centroids = imgops.connected_components(masks, connectivity, statistics=True)
    assert statistics.shape == (3, 2, int(count.max()), 5) and centroids.shape[-1] == 2
    for i in np.ndindex(3, 2):
        array = masks[i].numpy().astype(np.uint8)
        n, wanted, rows, middles = cv2.connectedComponentsWithStats(array, connectivity=connectivity)
        assert int(count[i]) == n and np.array_equal(labels[i].numpy(), wanted)
        assert np.array_equal(statistics[i][:n].numpy(), rows)
        assert np.array_equal(centroids[i][:n].numpy(), middles)
        assert (statistics[i][n:] == 0).all() and centroids[i][n:].isnan().all()


def test_a_label_without_pixels_has_zeros() -> None:
    full = torch.ones(1, 3, 4, dtype=torch.uint8)
    _, count, statistics, centroids = imgops.connected_components(full, statistics=True)
    assert count.tolist() == [2] and statistics[0].tolist() == [[0] * 5, [0, 0, 4, 3, 12]]
    assert centroids[0, 0].isnan().all() and centroids[0, 1].tolist() == [1.5, 1.0]


def test_nothing_to_label() -> None:
    labels, count, *_ = imgops.connected_components(torch.zeros(2, 1, 0, 4, dtype=torch.uint8))
    assert labels.shape == (2, 1, 0, 4) and count.tolist() == [[1], [1]]


@pytest.mark.parametrize("connectivity", [4, 8])
def test_labels_of_a_device_are_opencvs(connectivity: int) -> None:
    """The labels have OpenCV's order for all shapes of regions: spirals, combs and noise of every density."""
    generator = np.random.default_rng(2)
    for height, width in ((1, 1), (1, 40), (33, 1), (2, 2), (31, 45), (64, 64)):
        for share in (0.3, 0.5, 0.6, 0.9):
            array = (generator.random((height, width)) < share).astype(np.uint8)
            wanted = cv2.connectedComponents(array, connectivity=connectivity)[1]
            found = formula.component_labels(torch.from_numpy(array)[None], connectivity)
            assert np.array_equal(found[0].numpy(), wanted), (height, width, share)
    snake = np.zeros((41, 41), np.uint8)
    snake[::2] = 1
    snake[1::4, -1] = snake[3::4, 0] = 1
    found = formula.component_labels(torch.from_numpy(snake)[None], connectivity)
    assert np.array_equal(found[0].numpy(), cv2.connectedComponents(snake, connectivity=connectivity)[1])
