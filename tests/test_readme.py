"""The README and the pages: their examples run as printed, and their tables and numbers agree with the package."""

from __future__ import annotations

import doctest
import inspect
import os
import re
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

import imgops
from imgops import transforms
from imgops.integrations.albumentations import conversions, convert, moves
from tests.converted_cases import DIFFERENCES
from tests.specs import OPERATORS, SPECS
from tests.specs import __main__ as operator_table
from tests.specs._maker import Maker
from tests.tiers import nightly
from tests.transform_cases import picture

sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "_ext"))

import show
from migration import Row, route, rows

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
TABLES = (ROOT / "docs" / "tables.md").read_text()
(CODE,) = re.findall(r"```python\n(.*?)```", README, re.S)
MIGRATING = ROOT / "docs" / "migrating"


def words(page: Path) -> str:
    """Return the text of a page in one line."""
    return " ".join(page.read_text().split())


def run(code: str, folder: Path) -> str:
    # Without the last variable, albumentations asks for a newer version online.
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "NO_ALBUMENTATIONS_UPDATE": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 80 and max(map(len, README.splitlines())) <= 200


def test_the_example_runs(tmp_path: Path) -> None:
    """It needs no file; it writes the picture of its views and prints the gradient of an angle."""
    assert re.fullmatch(r"tensor\(-?\d\.\d+\)\n", run(CODE, tmp_path))
    assert imgops.EncodedImage(tmp_path / "views.jpg").shape == (3, 224, 1344)


#: Runs files one after the other, each as a program in a folder of its own.
PROGRAM = """
import os, runpy
from pathlib import Path
for file in sorted(Path.cwd().glob("*.py")):
    folder = file.with_suffix("")
    folder.mkdir()
    os.chdir(folder)
    runpy.run_path(str(file), run_name="__main__")
"""


@nightly
def test_examples_of_the_pages_run(tmp_path: Path) -> None:
    """Those of a page run one after the other, as they are read; the pages share a process, which imports PyTorch once."""
    for page in (*(ROOT / "docs").glob("*.rst"), *MIGRATING.glob("*.rst")):
        found = re.findall(r"^\.\. code-block:: python\n\n((?:(?:   .*)?\n)+)", page.read_text(), re.M)
        code = "\n".join(textwrap.dedent(block) for block in found)
        needed = re.findall(r"^(?:import|from) (albumentations|timm|open_clip|lightly)", code, re.M)
        if any(find_spec(library) is None for library in needed):
            continue
        code = code.replace("fullgraph=True)", 'fullgraph=True, backend="aot_eager")')
        (tmp_path / f"{page.stem}.py").write_text(code)
    run(PROGRAM, tmp_path)


def test_the_transforms_are_all_named() -> None:
    table = re.search(r"<!-- transforms -->\n(.*?)<!-- /transforms -->", TABLES, re.S)
    assert table is not None
    cells = [line.split("|")[1] for line in table.group(1).strip().splitlines()[2:]]
    assert sorted(re.findall(r"\w+", " ".join(cells))) == sorted(transforms.OURS)


def test_every_cell_of_the_comparison_has_its_proof() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    head, *peers = [row for row in rows if len(row) == 8 or row[0] == "same pixels"]
    assert len(head) == 7 and [re.sub(r"\W", "", row[0])[:8] for row in peers] == [
        *("imgops", "torchvis", "kornia", "albument", "CVCUDA", "DALI")
    ]
    assert [cell for row in peers for cell in row[1:] if not re.search(r"\[[^]]+\]\([^)]+\)", cell)] == []


def test_table_is_the_registry() -> None:
    assert operator_table.current() == operator_table.table(), "run python -m tests.specs"


# -- what the pages say of all operators -------------------------------------------------------------


def test_what_is_not_exact_on_uint8_is_named() -> None:
    """The README, the first page and the comparison name the functions that differ from PIL or OpenCV, and no others."""
    apart = {
        name
        for name, spec in SPECS.items()
        if (t := spec.tolerance.get(torch.uint8))
        and t.levels
        and re.search("PIL|Image|cv2", spec.reference_name)
    }
    for text, start, end in (
        (README, "[bit-exact on uint8]", "window"),
        ((ROOT / "docs" / "index.rst").read_text(), "bit-exact on uint8", "measured"),
        ((ROOT / "docs" / "comparison.md").read_text(), "[bit-exact on uint8]", "window"),
    ):
        assert set(re.findall(r"`(\w+)`", text.partition(start)[2].partition(end)[0])) == apart


@pytest.mark.parametrize(
    "name", [n for n, spec in SPECS.items() if callable(spec.reference) and spec.is_public]
)
def test_the_tables_say_how_close_the_pixels_are(name: str) -> None:
    """The column of the tables is made by hand; it names what the tests allow on uint8 and float32."""
    spec, said = SPECS[name], SPECS[name].difference
    levels, real = (
        getattr(spec.tolerance.get(d), k, 0) for d, k in ((torch.uint8, "levels"), (torch.float32, "real"))
    )
    assert (f"{levels} level" in said) if levels else ("level" not in said)
    assert not real or said.startswith("as ") or f"{real:.0e}".replace("e-0", "e-") in said


def test_samples_have_values_for_each_image() -> None:
    """They have each parameter of the column "per sample", so that test_generic.py compares it with a loop."""
    for name, spec in OPERATORS.items():
        calls = [sample.checked(Maker(sample.dtypes[-1])).op_args for sample in spec.samples]
        parameters = list(spec.operator.signature.parameters)
        given = {parameters[i] for args in calls for i, x in enumerate(args) if isinstance(x, Tensor)}
        assert set(operator_table.per_sample(spec)) <= given, name


def test_the_page_of_torchvision_names_the_differences() -> None:
    """The exceptions that tests/test_convert.py allows for torchvision's classes on PIL images are on the page."""
    text = (MIGRATING / "torchvision.rst").read_text()
    exceptions = text.partition("with these exceptions")[2].partition("On tensors")[0]
    assert set(re.findall(r"``(\w+)``", exceptions)) == set(DIFFERENCES)


# -- the tables of modules -----------------------------------------------------------------------------


def _first_cells(page: str) -> list[tuple[str, list[str]]]:
    """Return the heading and the names in the first column of each table of a page."""
    text = (ROOT / page).read_text()
    if page.endswith(".md"):
        tables = [t.strip().splitlines() for t in re.findall(r"((?:^\|.*\n)+)", text, re.M)]
        columns = [[line.split("|")[1] for line in [t[0], *t[2:]]] for t in tables]
    else:
        parts = text.split(".. list-table::")[1:]
        columns = [re.findall(r"^   \* - (.*)$", part, re.M) for part in parts]
    return [(head.strip(), re.findall(r"`+([\w/.]+)`+", " ".join(cells))) for head, *cells in columns]


def _modules_of(page: str) -> list[Path]:
    """Return the folders and modules that the tables of a page name; those of transforms are in a table of their own."""
    found = []
    for head, names in _first_cells(page):
        of_transforms = "imgops/transforms" in head
        for name in names if of_transforms or head in ("module", "folder") else []:
            path = (ROOT / "imgops" / "transforms" if of_transforms else ROOT) / name
            found.append(path if path.exists() else path.with_name(path.name + ".py"))
    return found


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.rst"])
def test_the_tables_of_modules_are_those_of_the_package(page: str) -> None:
    """What they name exists, and no folder and no module of the package is missing."""
    named = _modules_of(page)
    assert named and [p for p in named if not p.exists()] == []
    folders = ["", "kernels", "transforms", *(["transforms/_core"] if page == "CONTRIBUTING.md" else [])]
    for folder in folders:
        there = [
            path
            for path in (ROOT / "imgops" / folder).iterdir()
            if path.stem != "__init__" and (path.suffix == ".py" or any(path.rglob("*.py")))
        ]
        assert [p for p in there if not any(p in (n, *n.parents) for n in named)] == [], page


def test_the_transforms_that_take_packed_images_are_named() -> None:
    text = (ROOT / "docs" / "transforms.rst").read_text()
    said = text.partition("makes an ordinary batch of it")[2].partition("all other transforms refuse")[0]
    taking = {
        n
        for n in (*transforms.OURS, *transforms.ADDED)
        if getattr(getattr(transforms, n), "_takes_batches", False)
    }
    assert set(re.findall(r"``(\w+)``", said)) == taking


# -- numbers of the benchmarks ------------------------------------------------------------------------


def _newest(name: str) -> Path:
    return sorted((ROOT / "benchmarks" / "results").glob(f"{name}-*.md"))[-1]


def _rows(name: str, table: int) -> list[dict[str, str]]:
    """Return the rows of a table in the newest results of a benchmark, by column, without the medians."""
    tables = re.findall(r"((?:^\|.*\n?)+)", _newest(name).read_text(), re.M)
    head, _, *rows = tables[table].strip().splitlines()
    names = [cell.strip() for cell in head.split("|")]
    cells = [[c.strip("* ").partition(" ")[0] for c in r.split("|")] for r in rows if "| median" not in r]
    return [dict(zip(names, row, strict=True)) for row in cells]


def _column(name: str, table: int, *columns: str) -> list[float]:
    return [float(row[column]) for column in columns for row in _rows(name, table)]


def _over(many: list[float], one: list[float]) -> list[float]:
    return [a / b for a, b in zip(many, one, strict=True)]


TIMES, PAGE = "{:.2f} to {:.2f} times", "docs/benchmarks.rst"
LONG = f"takes {TIMES} as long"
CALLS = [f"{threads}{seed}" for threads in ("1 thread", "2 threads") for seed in ("", ", seed")]
ALONE, OF_16 = _column("pipelines", 0, "planar, us"), _column("pipelines", 1, "imgops, us an image")
#: Pages, a text with the least and the greatest ratio in the newest results, and these ratios.
RATIOS: list[tuple[str, str, list[float]]] = [
    ("README.md docs/index.rst", TIMES, _column("pipelines", 0, "imgops, compiled")),
    ("README.md docs/index.rst", TIMES, _column("pipelines", 1, "imgops compiled")),
    ("docs/transformers.rst", TIMES, _column("processors", 0, "torchvision")),
    (PAGE, f"{LONG} as ``cv2.imdecode``", [1 / ratio for ratio in _column("loading", 5, "cv2.imdecode")]),
    (PAGE, f"{LONG} in a batch of 256 as alone", _over(_column("batches", 0, "256"), _column("batches", 0, "one"))),
    (PAGE, f"{LONG} as one image", _over(OF_16, ALONE)),
    ("docs/migrating/index.rst", f"{LONG} as the original", _column("converted", 0, "converted")),
    ("docs/migrating/albumentations.rst", f"It {LONG} as the original", _column("albumentations-calls", 0, *CALLS)),
]  # fmt: skip


@pytest.mark.parametrize(("pages", "text", "ratios"), RATIOS)
def test_ratios_are_those_of_the_newest_results(pages: str, text: str, ratios: list[float]) -> None:
    said = text.format(min(ratios), max(ratios))
    assert [page for page in pages.split() if said not in words(ROOT / page)] == [], said


def test_conversions_cost_what_the_page_says() -> None:
    text = words(MIGRATING / "index.rst")
    for table, library in enumerate(("torchvision", "timm", "open_clip", "lightly", "albumentations")):
        found = _column("conversions", table, "one thread", "2 threads")
        owner = re.escape(library) + ("'" if library.endswith("s") else "'s")
        said = rf"{owner}( pipelines take)? {min(found):.2f} to {max(found):.2f} times"
        assert re.search(said, text), said
    processors = f"benchmark of {len(_rows('processors', 0))} processors"
    assert processors in words(ROOT / "docs" / "transformers.rst")


def test_the_speed_of_gradients_is_that_of_the_newest_results() -> None:
    said = r"^(\d+) rows with a peer: median ([\d.]+), (\d+) in bold\.$"
    (rows, median, losses), (_, of_two, _), *_ = re.findall(said, _newest("gradients").read_text(), re.M)
    page = words(ROOT / PAGE)
    assert f"the median is {median}, and {losses} of {rows} rows are losses" in page
    assert f"the median is {of_two} there" in page
    assert f"take {median} times as long as in the fastest of torchvision, kornia and plain PyTorch" in words(
        ROOT / "README.md"
    )
    assert f"the median of {rows} rows ([{losses} losses]" in words(ROOT / "README.md")


def test_the_speeds_are_those_of_the_newest_results() -> None:
    """All rows are those of one table: planar uint8 tensors, antialiased by each library."""
    newest = _newest("pipelines")
    assert f"benchmarks/results/{newest.name}" in README and "tensor of 375 × 500" in README
    results = newest.read_text()
    assert (
        results.startswith("# Augmentation pipelines\n\nAMD EPYC, one thread")
        and "375 x 500 uint8" in results
    )
    of_images = {row["pipeline"]: row for row in _rows("pipelines", 0)}
    said = re.findall(r"^\| (\w+) \| ([\d,]+) \| ([\d.]+) times as long \| ([\d.–]+)", README, re.M)
    assert len(said) == 3
    for name, rate, *times in said:
        row = of_images[name]
        assert [rate.replace(",", ""), *times] == [
            row[k] for k in ("images/s", "torchvision, planar", "kornia")
        ]
    loss = of_images["ImageNet"]["albumentations, no antialiasing"]
    assert (
        f"Without antialiasing, albumentations is faster for ImageNet's pipeline: it takes {loss} of imgops' time"
        in README
    )


#: Programs of benchmarks with targets, options or machines of their own.
_APART = {"scaling", "corruptions", "contributed", "cuda", "first_hour", "first_hour_work"}


def test_make_bench_makes_the_tables() -> None:
    """It runs each program of benchmarks that makes a table, except for those that need other engines or a GPU."""
    programs = {p.stem for p in (ROOT / "benchmarks").glob("[a-z]*.py") if "__main__" in p.read_text()}
    commands = (ROOT / "Makefile").read_text().partition("\nbench:")[2].partition("\n\n")[0]
    assert set(re.findall(r"-m benchmarks\.(\w+)", commands)) == programs - _APART


#: What PyTorch differentiates itself (maps), or what writes to given memory.
_WITHOUT_ROW = {
    "accumulate",
    "flow_map",
    "grid_distortion_map",
    "optical_distortion_map",
    "paste_",
    "paste_out",
}
_WITHOUT_ROW |= {"polar_map", "resize_out", "thin_plate_spline_map"}


def test_the_benchmark_of_gradients_has_every_operator() -> None:
    pytest.importorskip("kornia")
    from benchmarks.gradient_rows import rows

    named = {name for row in rows(1, 16, 16) for name in re.findall(r"^\w+", row.name)} | {"elastic_map"}
    refused = {"connected_components"} | {
        n for n, s in SPECS.items() if s.is_operator and s.operator.no_gradient
    }
    files = {"decode_frames", "decode_image", "encode_image"}
    assert named == {n for n, s in SPECS.items() if s.is_public} - refused - files - _WITHOUT_ROW


def test_pages_install_from_a_clone() -> None:
    """There is no release on PyPI, so the name of the package installs nothing."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.rst"), *(ROOT / "examples").glob("*.py")]
    assert [p.name for p in pages if re.search(r"pip install ['\"]?imgops", p.read_text())] == []


@nightly
def test_the_distance_of_hues_from_torchvisions() -> None:
    """On tensors torchvision computes hues in floats. The pages say how many levels this is at most."""
    from torchvision.transforms.v2 import functional

    image = torch.randint(
        0, 256, (3, 400, 400), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
    )
    factors = [step / 20 for step in range(-10, 11)]
    apart = [imgops.adjust_hue(image, f).int() - functional.adjust_hue(image, f).int() for f in factors]
    said = [TABLES, *((MIGRATING / f"{name}.rst").read_text() for name in ("index", "torchvision"))]
    most = {int(n) for text in said for n in re.findall(r"up\s+to (\d+)(?: levels| where the hue)", text)}
    (said_most,) = most
    assert said_most - 3 <= max(int(x.abs().max()) for x in apart) <= said_most


def test_the_recipe_for_opencv_is_the_one_that_works() -> None:
    """The builds share their files: after the one is removed, the other must be written anew, even if it is installed."""
    told = (ROOT / "imgops" / "__init__.py").read_text(), (ROOT / "Makefile").read_text(), README
    for text in told:
        assert "uninstall --yes opencv-python" in text
        assert "install --force-reinstall --no-deps opencv-python-headless" in text
        assert len(re.findall(r"(?<!--no-deps )opencv-python-headless", text)) == 0


def test_commands_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"make ([a-z]+(?:-[a-z]+)?)", README + (ROOT / "CONTRIBUTING.md").read_text()))
    assert named <= targets
    assert {"demo", "test", "lint", "bench", "help"} <= targets


def test_links_lead_somewhere() -> None:
    for page in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "docs/comparison.md"):
        folder = (ROOT / page).parent
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / page).read_text()):
            assert target.startswith("http") or (folder / target).exists(), f"{page}: {target}"


FUNCTIONS = {n: getattr(imgops, n) for n in imgops.__all__ if inspect.isfunction(getattr(imgops, n))}


OTHERS = {"check_operator": imgops.extend.testing.check_operator, "seeded": transforms.seeded}
OTHERS["convert"] = transforms.convert


@pytest.mark.parametrize("name", [*FUNCTIONS, *OTHERS])
def test_docstring_examples(name: str) -> None:
    function = FUNCTIONS.get(name) or OTHERS[name]
    runner = doctest.DocTestRunner()
    (test,) = doctest.DocTestFinder(recurse=False).find(function, name)
    assert test.examples
    assert runner.run(test).failed == 0


def test_the_versions_agree() -> None:
    """The version is the same in the package, the CHANGELOG's newest dated entry, and the citation."""
    (version,) = re.findall(r'^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text(), re.M)
    dated = re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    citation = (ROOT / "CITATION.cff").read_text()
    assert version == imgops.__version__ == dated[0][0]
    assert f"version: {version}\n" in citation and f"date-released: {dated[0][1]}\n" in citation


def test_the_number_of_added_transforms() -> None:
    assert f"**{len(transforms.ADDED)} transforms that torchvision does not have**" in README


# -- the migration pages ---------------------------------------------------------------------------------

#: Parameters that the page explains once for all transforms of a library.
OF_ALL = {
    "albumentations": {"p", "save_applied_params", "seed", "kwargs"},
    "kornia": {"p", "p_batch", "same_on_batch", "keepdim", "resample", "align_corners", "size"},
}


def by_name(library: str) -> dict[str, Row]:
    named = [(name, row) for row in rows(library) for name in row.names]
    assert len({n for n, _ in named}) == len(named), "a name stands there twice"
    return dict(named)


@pytest.mark.parametrize("library", ["albumentations", "kornia", "imgaug"])
def test_counterparts_exist(library: str) -> None:
    for row in rows(library):
        if row.here:
            assert row.here in {*transforms.OURS, *transforms.ADDED}, row
            known = ("yes", "draws nothing", "one sample of several", "one sample of two")
            assert row.per_sample in known, row
        else:
            assert row.text, f"{row.names}: why?"
        for name in re.findall(r"imgops\.(\w+)", row.text):
            assert hasattr(imgops, name), row


def classes_of(module: Any, *bases: type) -> dict[str, type]:
    found = {n: getattr(module, n) for n in dir(module)}
    return {n: c for n, c in found.items() if inspect.isclass(c) and (not bases or issubclass(c, bases))}


def compare(library: str, given: dict[str, type]) -> None:
    table = by_name(library)
    assert set(table) == set(given)
    for name, cls in given.items():
        parameters = set(inspect.signature(cls.__init__).parameters) - {"self", *OF_ALL[library]}
        missing = {p for p in parameters if not re.search(rf"\b{p}\b", table[name].text)}
        if not re.search(r"of volumes|of spectrograms", table[name].text):
            assert not missing, (name, missing)


def test_albumentations() -> None:
    A = pytest.importorskip("albumentations", "2.0.8")
    bases = {"BasicTransform", "BaseCompose", "DualTransform", "ImageOnlyTransform", "Transform3D"}
    given = classes_of(A, A.BasicTransform, A.BaseCompose)
    compare("albumentations", {n: c for n, c in given.items() if n not in bases})


def test_kornia() -> None:
    K = pytest.importorskip("kornia.augmentation")
    given = {n: c for n, c in classes_of(K).items() if "Base" not in n}
    assert {n for names in (r.names for r in rows("kornia")) for n in names} == set(given)
    compare("kornia", given)


def test_imgaug() -> None:
    """The names were counted in the wheel of 0.4.0, which NumPy 2 cannot import."""
    assert len(by_name("imgaug")) == 201


def test_what_the_page_says_of_conversions() -> None:
    """The page names how each class is converted; the tests of the converter compare all that it names."""
    names = set(by_name("albumentations"))
    assert {*convert.CONTAINERS, *convert.WITHOUT, *conversions.CONVERSIONS, *moves.MOVES} <= names
    assert {name for name in names if route(name).startswith("no: ")} == set(convert.WITHOUT)


# -- the pictures ----------------------------------------------------------------------------------------


def test_everything_has_a_picture_or_is_named() -> None:
    functions = {n for n in imgops.__all__ if callable(getattr(imgops, n))}
    every = functions | set(transforms.OURS) | set(transforms.ADDED)
    assert set(show.EXAMPLES) | show.NOT_PICTURED == every and not set(show.EXAMPLES) & show.NOT_PICTURED


@nightly
def test_every_picture_shows_something() -> None:
    scene = show.sample(show.fit_photo(picture(height=300, width=420) // 2 + 60))
    before = scene["image"].permute(1, 2, 0).numpy().astype(float)
    assert before.shape == (240, 336, 3)
    for name in show.EXAMPLES:
        after = show.draw(name, scene)
        assert after.mode == "RGB" and after.tobytes() == show.draw(name, scene).tobytes(), name
        if (after.height, after.width) == before.shape[:2]:
            assert np.abs(np.asarray(after) - before).mean() > 1, name


@pytest.mark.parametrize("center", [(15.5, 10.0), (0.0, 0.0), (16.0, 11.5)])
def test_rotations_of_opencv(center: tuple[float, float]) -> None:
    """The page of PIL and OpenCV says how the center and the sign of an angle are converted."""
    frame = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    wanted = cv2.warpAffine(frame, cv2.getRotationMatrix2D(center, 30, 1), (32, 24))
    image, middle = torch.from_numpy(frame).permute(2, 0, 1), tuple(c + 0.5 for c in center)
    for found in (
        imgops.rotate(image, 30, "bilinear", center=middle),
        imgops.affine(image, -30, (0, 0), 1.0, 0.0, "bilinear", center=middle),
    ):
        assert (found.int() - torch.from_numpy(wanted).permute(2, 0, 1).int()).abs().max() <= 1
