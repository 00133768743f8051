from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

torch.set_num_threads(2)


@pytest.fixture(autouse=True)
def _fresh_compiler():
    yield
    torch._dynamo.reset()
