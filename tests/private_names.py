"""The private names of imgops that tests import, and why no public behavior would do.

``test_structure.py`` compares this list with the tests: a new private name in a test is a line here, which a reviewer sees.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent

_TABLE = "the table of operators and their facets, over which the generic tests loop"
_CHECKS = "the checks of imgops.extend.testing one by one, to say which fails, and to check the checks"
_LIBRARIES = "tells whether another library's private names still mean what they meant"
_TABLES_OF_WEIGHTS = "compares the native kernel with its formula, stage by stage"
_JPEG = "whether imgops was built with libjpeg-turbo, and with which one"
_THREADS = "how work is split among threads, which no result shows"
_BASE = "the base class by which a test finds the transforms with random parameters"

#: Name -> why a test imports it.
KNOWN: dict[str, str] = {
    "imgops._common.layout": "whether a write into a strided tensor makes a copy, which no result shows",
    "imgops._operator.record": _TABLE,
    "imgops._operator.record.Contract": _TABLE,
    "imgops._operator.record.Gradient": _TABLE,
    "imgops._operator.record.Operator": _TABLE,
    "imgops._operator.record.operators": _TABLE,
    "imgops._operator.declare": "the modules that may read the registry",
    "imgops._common.compare": "the report of fallbacks, without a machine on which one happens",
    "imgops._common.torch_private": _LIBRARIES,
    "imgops._common.torch_private.CountingBackend": "a backend that counts compilations",
    "imgops._common.torch_private.TorchDispatchMode": "the class that PyTorch has under a private name",
    "imgops._common.torch_private.fake_tensors": "the mode that PyTorch has under a private name",
    "imgops._common.torch_private.has_kernel": "the question that PyTorch answers under a private name",
    "imgops._common.torch_private.tree_leaves": "the function that PyTorch has under a private name",
    "imgops.decomposition._borders.fold_positions": "borders wider than an image, against OpenCV's positions",
    "imgops.decomposition._resampling_filters": _TABLES_OF_WEIGHTS,
    "imgops.extend.testing._call": _CHECKS,
    "imgops.extend.testing._call.Call": _CHECKS,
    "imgops.extend.testing._call.bits_equal": _CHECKS,
    "imgops.extend.testing._call.through_dispatcher": _CHECKS,
    "imgops.extend.testing._checks": _CHECKS,
    "imgops.extend.testing._checks.check_adjoint": _CHECKS,
    "imgops.extend.testing._checks.check_vmap": _CHECKS,
    "imgops.extend.testing._checks.same_metadata": _CHECKS,
    "imgops.extend.testing._func": _CHECKS,
    "imgops.extend.testing._sharded": _CHECKS,
    "imgops.integrations.transformers._pixels": "a device that shares memory with the host, which no test machine has",
    "imgops.integrations.transformers._registration": "the list of processors, over which the tests loop",
    "imgops.kernels.cpu._libjpeg": _JPEG,
    "imgops.kernels.cpu._pil": _TABLES_OF_WEIGHTS,
    "imgops.kernels.cpu._resample": _TABLES_OF_WEIGHTS,
    "imgops.kernels.cpu._resampling_tables": _TABLES_OF_WEIGHTS,
    "imgops.kernels.cpu._splines": "a part of an image smaller than that of real ones",
    "imgops.kernels.cpu._threads": _THREADS,
    "imgops.kernels.cuda._packed.Packed": "addresses beyond 32 bits, without the memory that they would take",
    "imgops.kernels.cuda._resampling_tables": "empties the tables that are kept, so that a count is exact",
    "imgops.transforms._core.base.RandomTransform": _BASE,
    "imgops.transforms._core.operators": _TABLE,
    "imgops.transforms._core.origin": "whose code runs, for classes of each library",
    "imgops.transforms._core.parameters": "parameters of a CUDA kernel, without a transform around it",
    "imgops.transforms._core.probabilistic.ADDED": _BASE,
    "imgops.transforms._core.probabilistic.from_seed": "the draws of an image, made again from its seed",
    "imgops.transforms._core.programs": "the handle of a generator, in a process that does not have it",
    "imgops.transforms._core.rotated_boxes": "the arithmetic of rotated boxes, against exact polygons",
    "imgops.transforms._core.seeding.seed_of": "seeds of keys must stay equal between versions",
    "imgops.transforms._core.torchvision_private": _LIBRARIES,
    "imgops.integrations.torchvision.first_version.share_of_white": "where a policy's fill is seen, against PIL",
    "imgops.integrations._reader.MAKERS": "the table of counterparts, over which the tests loop",
    "imgops.transforms.functional._dispatch": "breaks a kernel on purpose, to see that its error is not hidden",
    "imgops.transforms.imagenet_c.formulas._fog_side": "the size of the fog of ImageNet-C, which no result shows",
    "imgops.transforms.imagenet_c.formulas._moved": "the displacement of ImageNet-C, which no result shows",
}


def imported() -> Iterator[str]:
    """Yield the private names of imgops that the tests import."""
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                parts = name.split(".")
                if parts[0] == "imgops" and any(p.startswith("_") and not p.startswith("__") for p in parts):
                    yield name
