"""Checksums of pixels and draws, to see that a change of the code changes no result: ``python -m tests.same``.

``same.json`` holds a checksum of each transform in each mode, of each operator on its samples, and of public
pipelines, and the texts of errors, made by ``python -m tests.same --write``. A checksum covers the results of a call
and the states of the random generators after it. Other versions of the libraries and other processors may give other bits, so that the
comparison is skipped, with its reason, where they differ from those in the file; write the file before a change to
compare on such a machine.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten
from torchvision.transforms.v2 import functional as tv

from imgops import EncodedImages, PackedImages, encode_image
from imgops import transforms as v2
from tests.specs import OPERATORS
from tests.specs._maker import Maker

sys.path.insert(0, str(Path(__file__).parent))  # as under pytest

from tests.pipelines import PIPELINES
from tests.transform_cases import CASES, containers, picture, sample

FILE = Path(__file__).with_name("same.json")
LIBRARIES = (
    *("torch", "torchvision", "pillow", "opencv-python", "numpy"),
    *("timm", "open_clip_torch", "lightly", "albumentations"),
)
SEEDS = (3, 11)

Row = tuple[str, Callable[[], Any]]


def surroundings() -> dict[str, str]:
    """Return the versions and the processor that bits may depend on."""
    found = {"processor": f"{_vendor()} {torch.backends.cpu.get_cpu_capability()}"}
    for name in LIBRARIES:
        try:
            found[name] = version(name).partition("+")[0]
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _vendor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    vendors = [line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id")]
    return vendors[0] if vendors else platform.processor() or platform.machine()


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, Tensor):
        about = f"{type(value).__name__} {value.dtype} {tuple(value.shape)} {value.stride()} "
        about += str([getattr(value, name, "") for name in ("format", "canvas_size")])
        plain = value.detach().as_subclass(Tensor).contiguous()
        return about.encode() + plain.reshape(-1).view(torch.uint8).numpy().tobytes()
    if isinstance(value, PIL.Image.Image):
        return value.mode.encode() + value.tobytes()
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}".encode() + np.ascontiguousarray(value).tobytes()
    return repr(value).encode()


def checksum(result: Any) -> int:
    leaves, structure = tree_flatten(result)
    value = crc32(str(structure).encode())
    for leaf in leaves:
        value = crc32(_bytes_of(leaf), value)
    return value


def _seed(number: int) -> None:
    torch.manual_seed(number)
    random.seed(number)
    np.random.seed(number)


def _draws() -> tuple[Any, ...]:
    """Return the next number of each generator, which shows how many were drawn."""
    return torch.rand(()).item(), random.random(), float(np.random.rand())


def outcomes(call: Callable[[], Any]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield the result of a call under each seed, or the error that it raises, and the draws that follow."""
    for number in SEEDS:
        _seed(number)
        result: Any
        try:
            result = call()
        except Exception as error:
            result = error
        yield result, _draws()


def called(call: Callable[[], Any]) -> str:
    """Return the checksum of a call under each seed, or the error that it raises."""
    value = 0
    for result, draws in outcomes(call):
        if isinstance(result, Exception):
            return f"{type(result).__name__}: {str(result).splitlines()[0]}"
        value = crc32(str(checksum(result)).encode(), value)
        value = crc32(repr(draws).encode(), value)
    return f"{value:08x}"


# -- rows ----------------------------------------------------------------------------------------------------


def transforms_by_name(**more: Any) -> dict[str, Any]:
    """Return every transform of the tables of cases, and containers."""
    from tests.added_cases import ROWS

    made = {str(case): case.make(v2, **(more if case.draws else {})) for case in CASES if not case.boxes}
    made |= {str(row): row.make(**(more if row.per_sample else {})) for row in ROWS}
    return made | containers(v2, **more)


def transforms() -> Iterator[Row]:
    levels, floats = picture(), picture(torch.float32)
    inputs = {
        "levels": levels,
        "floats": floats,
        "interleaved": levels.permute(1, 2, 0).contiguous().permute(2, 0, 1),
        "PIL": tv.to_pil_image(levels),
        "sample": sample(levels),
        "batch": torch.stack([picture(seed=i) for i in range(3)]),
    }
    for name, transform in transforms_by_name().items():
        for mode, inpt in inputs.items():
            yield f"{name}, {mode}", lambda t=transform, x=inpt: t(x)
    packed = PackedImages.of([picture(height=30 + i, seed=i) for i in range(3)])
    for name, transform in transforms_by_name(per_sample=True).items():
        yield f"{name}, per sample", lambda t=transform: t(inputs["batch"])
        yield f"{name}, packed", lambda t=transform: t(packed)


def files() -> Iterator[Row]:
    """Each transform on random regions of JPEGs of different sizes, with draws for each of them."""
    jpegs = [encode_image(picture(height=40 + 9 * i, width=70 - 5 * i, seed=i), "jpeg") for i in range(3)]
    region = v2.RandomResizedCrop(48, per_sample=True)
    for name, transform in transforms_by_name(per_sample=True).items():
        pipeline = v2.Compose([region, transform])
        yield name, lambda p=pipeline: p(EncodedImages(jpegs))


def operators() -> Iterator[Row]:
    """The first dtype of each sample, and float32, in both memory formats."""
    for spec in OPERATORS.values():
        for each in spec.samples:
            real = [torch.float32] if torch.float32 in each.dtypes else []
            for dtype in dict.fromkeys([each.dtypes[0], *real]):
                for layout in ("planar", "interleaved"):
                    function, args, keywords = each.call(Maker(dtype, layout))
                    name = f"{each}, {str(dtype).removeprefix('torch.')}, {layout}"
                    yield name, lambda f=function, a=args, k=keywords: f(*a, **k)


def pipelines() -> Iterator[Row]:
    image = tv.to_pil_image(picture(height=75, width=97))
    tensor, array = tv.pil_to_tensor(image), np.array(image)
    for name, make in PIPELINES.items():
        try:
            pipeline = make()
        except ImportError as error:
            print(f"{name}: skipped, {error}")
            continue
        inputs = {"array": array} if name.endswith("arrays") else {"PIL": image, "levels": tensor}
        for mode, inpt in inputs.items():
            yield f"{name}, {mode}", lambda p=pipeline, x=inpt: p(x)


#: These have no graph: they need a PIL image, boxes, or they run on the host.
NOT_IN_A_GRAPH = ("DINO", "timm", "open_clip", "lightly", "albumentations", "weights", "first version")


def graphs(step: int = 1) -> Iterator[Row]:
    """Each transform in a graph, and each with a draw for each sample: one graph for all of a kind.

    With a ``step`` the graphs have only some of the transforms, which are that many apart.
    """
    levels, *others = [picture(width=40, seed=i) for i in range(3)]  # square: some transforms turn it
    batch = torch.stack([levels, *others])
    fixed = {n: t for n, t in transforms_by_name().items() if n not in _of_other_sizes()}
    own = {n: t for n, t in transforms_by_name(per_sample=True).items() if n not in _of_other_sizes()}
    whole = {n: m() for n, m in PIPELINES.items() if not n.startswith(NOT_IN_A_GRAPH) and "weights" not in n}
    whole = {n: p for n, p in whole.items() if n not in ("torchvision: multiscale", "torchvision: SSD")}
    for kind, made, inpt in (
        ("graph", fixed, levels),
        ("graph per sample", own, batch),
        ("graph", whole, levels),
    ):
        names = list(made)[::step]
        graph = torch.compile(_together([made[name] for name in names]), fullgraph=True, backend="aot_eager")
        results: list[list[Any]] = []
        for number in SEEDS:
            _seed(number)
            results.append(graph(inpt))
        yield f"all, {kind}", lambda g=graph, x=inpt: g(x)
        for i, name in enumerate(names):
            yield f"{name}, {kind}", lambda r=results, i=i: [one[i] for one in r]


def _together(transforms: list[Any]) -> Callable[[Tensor], list[Any]]:
    return lambda x: [transform(x) for transform in transforms]


def refusals() -> Iterator[Row]:
    """Yield calls whose errors the tests match with patterns; here the whole text is compared."""
    for name in ("corruptions", "from_albumentations", "packed", "training_recipes"):
        for error, calls in import_module(f"tests.test_{name}").REFUSED.items():
            for i, call in enumerate(chain.from_iterable(calls.values())):
                yield f"{name}, {error.__name__} {i}", call


def _of_other_sizes() -> set[str]:
    return {str(case) for case in CASES if case.sized}


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "operators": operators,
    "transforms": transforms,
    "files": files,
    "pipelines": pipelines,
    "graphs": graphs,
    "refusals": refusals,
}


def measure() -> dict[str, str]:
    """Return the checksum of each row."""
    torch.set_num_threads(1)
    rows: dict[str, str] = {}
    for part, make in PARTS.items():
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows |= {f"{part}: {name}": called(call) for name, call in make()}
        print(f"{part}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return rows


def differences(wanted: dict[str, str], found: dict[str, str]) -> list[str]:
    """Return a line for each row that is new, missing or changed."""
    names = sorted({*wanted, *found})
    return [
        f"{name}: {wanted.get(name, 'no row')} became {found.get(name, 'no row')}"
        for name in names
        if wanted.get(name) != found.get(name)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the file instead of comparing with it")
    parser.add_argument("--file", type=Path, default=FILE, help="another file than same.json")
    chosen, around = parser.parse_args(), surroundings()
    if chosen.write:
        chosen.file.write_text(json.dumps({"with": around, "rows": measure()}, indent=0) + "\n")
        print(chosen.file)
        return 0
    kept = json.loads(chosen.file.read_text())
    if other := [
        f"{n} {kept['with'].get(n)}, here {v}" for n, v in around.items() if kept["with"].get(n) != v
    ]:
        print("Skipped: the file was made with", "; ".join(other))
        return 0
    found = measure()
    lines = differences(kept["rows"], found)
    print("\n".join(lines[:50]))
    print(f"{len(lines)} of {len(found)} results differ")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
