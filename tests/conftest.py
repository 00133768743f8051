from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

torch.set_num_threads(2)
if (
    not torch.cuda.is_available()
):  # then Triton's interpreter runs the CUDA kernels; Triton reads the variable when it is imported
    os.environ.setdefault("TRITON_INTERPRET", "1")


os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # else albumentations asks for a newer version online


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", dest="whole", help="run the nightly tests as well")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("whole"):
        return
    nightly = [item for item in items if item.get_closest_marker("nightly")]
    if nightly:
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]


@pytest.fixture(scope="session")
def whole(pytestconfig: pytest.Config) -> bool:
    """Whether every sample is asked for, not the quick tier."""
    return bool(pytestconfig.getoption("whole"))


@pytest.fixture(autouse=True)
def _fresh_compiler():
    yield
    torch._dynamo.reset()


@pytest.fixture(scope="session")
def photograph() -> torch.Tensor:
    """Return a real photograph, (3, 600, 512) uint8."""
    import matplotlib.cbook
    import numpy as np
    from PIL import Image

    with matplotlib.cbook.get_sample_data("grace_hopper.jpg") as file:
        image = np.array(Image.open(file).convert("RGB"))
    return torch.from_numpy(image).permute(2, 0, 1).contiguous()
