from __future__ import annotations

import gc
import os
import re
import sys
from importlib import import_module
from itertools import compress
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

from tests import budget, interpreter

# One worker for each core: more threads would wait for each other. Tests of threads set their own number.
torch.set_num_threads(1 if "PYTEST_XDIST_WORKER" in os.environ else 2)
if (
    not torch.cuda.is_available()
):  # then Triton's interpreter runs the CUDA kernels; Triton reads the variable when it is imported
    os.environ.setdefault("TRITON_INTERPRET", "1")


# For each graph PyTorch measures how long its guards take, and empties the processor's caches for this, which takes
# a tenth of the time of a small graph.
torch._dynamo.guards.profile_guard_manager = lambda *args: 0.0

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # else albumentations asks for a newer version online


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", dest="whole", help="run the nightly tests as well")
    parser.addoption(
        "--part", default="", help="of the nightly tests, without the others: 2/6 runs the second sixth"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a file whose tests are all nightly: some need other libraries, which take seconds."""
    if config.getoption("whole") or collection_path.suffix != ".py":
        return None
    mark = re.search(r"^pytestmark = (\[[^]]*\]|.*)", collection_path.read_text(), re.M)
    return True if mark and "nightly" in mark[1] else None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: Any) -> list[Any] | None:
    """Do not make tests that are left out, which are two in three: making them takes seconds."""
    if collector.config.getoption("whole") or not name.startswith("test_"):
        return None
    marks = getattr(obj, "pytestmark", [])
    for i, mark in enumerate(marks):
        if mark.name == "parametrize":
            names, values, *rest = mark.args
            values = list(values)
            quick = [not is_nightly(value) for value in values]
            ids = mark.kwargs.get("ids")
            options = {"ids": [*compress(ids, quick)]} if isinstance(ids, (list, tuple)) else {}
            kept = names, [*compress(values, quick)], *rest
            marks[i] = pytest.mark.parametrize(*kept, **{**mark.kwargs, **options}).mark
    is_left_out = any(mark.name == "nightly" or mark.args[1:2] == ([],) for mark in marks)
    return [] if is_left_out else None


def is_nightly(value: Any) -> bool:
    """Whether a parameter is marked nightly."""
    return any(mark.name == "nightly" for mark in getattr(value, "marks", ()))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part = config.getoption("part")
    if config.getoption("whole") and not part:
        return

    def runs(item: pytest.Item) -> bool:
        is_nightly = item.get_closest_marker("nightly") is not None
        if not part:
            return not is_nightly
        which, count = map(int, part.split("/"))
        return is_nightly and crc32(item.nodeid.encode()) % count == which % count

    left_out = [item for item in items if not runs(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if runs(item)]


#: The modules that a build may lack, by the names that the mark ``needs`` takes, and where imgops imports them.
MODULES = {
    "native": ("imgops.kernels.cpu.native", "module"),
    "libjpeg": ("imgops.kernels.cpu._libjpeg", "module"),
    "draws": ("imgops.transforms._core.draws", "_draws"),
    "memory": ("imgops._common.memory", "_memory"),
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            module, attribute = MODULES[name]
            if getattr(import_module(module), attribute) is None:
                pytest.skip(f"this build has no {name} module")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave the modules and tests out of Python's search for garbage, a tenth of the time of a compilation."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="session")
def whole(pytestconfig: pytest.Config) -> bool:
    """Whether every sample is asked for, not the quick tier."""
    return bool(pytestconfig.getoption("whole"))


@pytest.fixture(autouse=True)
def _fresh_compiler():
    yield
    torch._dynamo.reset()


def pytest_sessionstart(session: pytest.Session) -> None:
    budget.begin()
    interpreter.prepare()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):
        budget.keep()
    elif is_complete(session.config) and budget.total() > budget.LIMIT_S:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    found = budget.total()
    terminalreporter.write_line(f"{found:.0f} CPU seconds")
    if is_complete(config) and found > budget.LIMIT_S:
        terminalreporter.write_line(f"make test must take at most {budget.LIMIT_S} CPU seconds", red=True)


def is_complete(config: pytest.Config) -> bool:
    """Whether this is the run that the budget is for: all tests, without the nightly ones."""
    options = config.option
    chosen = (
        options.keyword
        or options.markexpr
        or options.whole
        or options.collectonly
        or getattr(options, "lf", False)
    )
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not chosen


@pytest.fixture(scope="session")
def photograph() -> torch.Tensor:
    """Return a real photograph, (3, 600, 512) uint8."""
    import matplotlib.cbook
    import numpy as np
    from PIL import Image

    with matplotlib.cbook.get_sample_data("grace_hopper.jpg") as file:
        image = np.array(Image.open(file).convert("RGB"))
    return torch.from_numpy(image).permute(2, 0, 1).contiguous()
