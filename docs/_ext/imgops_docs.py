"""The generated parts of the pages: facts of operators, tables, plots of benchmarks, inventories."""

from __future__ import annotations

import inspect
import logging
import random
import re
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import latex2mathml.converter
import numpy as np
import show
import torch
from benchmark_plots import draw
from device import FirstHour, Instructions
from docutils import nodes
from measured import difference
from more_docs import (
    AddedTable,
    Contributed,
    MigrationTable,
    OwnWords,
    PicturePair,
    Pictures,
    Results,
    UnitFloats,
    added_facts,
    pair,
)
from parsed import DOCS, ROOT, Parsed, box, double, table
from pictures import draw_all, full_name, moves
from sphinx.application import Sphinx

from imgops import extend, transforms
from imgops._operator.record import Contract, operators
from imgops.transforms import functional
from tests.specs import SPECS
from tests.specs import __main__ as operator_table

#: The sections of the API: those of the specs, and below those of names that are no operators.
FAMILIES = {
    **{
        title: [n for n, s in SPECS.items() if s.section == title and s.is_public]
        for title in operator_table.SECTIONS
    },
    "Images of different sizes": ["PackedImages"],
    "Adjoint and inverse": ["adjoint", "inverse"],
    "Operators of your own": ["extend.operator", "extend.Gradient", "decompositions"],
    "What runs": ["show_config", "NothingChangesWarning", "SlowPathWarning"],
}
FAMILIES["Regions"].append("ConnectedComponents")  # the result of connected_components
FAMILIES["Files"] += [
    "decode_images",
    "EncodedImage",
    "EncodedImages",
]  # a loop over decode_image, and files in the place of images
#: The operators that each transform and functional calls. Their pages have its formula, border rule and gradient.
MADE_OF = {
    name: [n for n, s in SPECS.items() if name in s.transforms or name == n]
    for name in {*transforms.OURS, *transforms.ADDED, *functional.OURS, *dir(functional)}
}
#: Transforms that only apply other transforms, use torchvision's own arithmetic, or only index tensors.
NOT_MADE = {
    *("Compose", "RandomApply", "RandomChoice", "RandomOrder", "GaussianNoise", "RandomChannelPermutation"),
    *("ClampBoundingBoxes", "ClampKeyPoints", "ConvertBoundingBoxFormat", "SetClampingMode"),
    *("SanitizeBoundingBoxes", "SanitizeKeyPoints", "UniformTemporalSubsample", "LinearTransformation"),
    *("ConvertImageDtype", "Normalize", "ToDtype", "Identity", "Lambda"),
    *("PILToTensor", "ToImage", "ToPILImage", "ToPureTensor", "ToTensor"),
    *("to_dtype", "normalize", "permute_channels", "uniform_temporal_subsample"),
    *(name for name in transforms.ADDED if not MADE_OF[name]),  # PyTorch's own operators
}
MODULES = ("config", "vmap", "sharding", "autocast", "packed", "testing")


def public_of(module: Any) -> list[str]:
    """Return the functions and classes of a small module that users may call."""
    return [n for n in module.__all__ if inspect.isclass(v := getattr(module, n)) or inspect.isfunction(v)]


class Facts(Parsed):
    """``.. facts:: imgops.crop`` shows formula, reference, tolerance, measured difference, border and gradient."""

    required_arguments = 1

    def lines(self) -> list[str]:
        name = self.arguments[0].removeprefix("imgops.")
        short = name.removeprefix("transforms.")
        pictured = short in show.EXAMPLES and full_name(short) == self.arguments[0]
        above = pair("before-with" if moves(short) else "before", self.arguments[0]) if pictured else []
        if name.startswith("transforms."):
            facts = (
                added_facts(short) if short in transforms.ADDED else _transform_facts(name.rpartition(".")[2])
            )
            return above + facts
        spec = SPECS.get(name)
        if spec is None:
            return above
        facts = [
            ("Reference", double(spec.reference_name) or "PyTorch's own operators"),
            ("Tolerance", spec.difference),
            ("dtypes", spec.dtype_names),
        ]
        gradient, batching = spec.gradient or "that of the operators that it calls", "yes"
        if spec.is_operator:
            gradient = double(operator_table.gradient(spec))
            batching = "yes" if spec.operator.vmap else "none"
        facts += [
            ("Measured", f"{difference(name)} (a photograph, uint8, on the machine that built this page)"),
            ("Border", spec.border),
            ("Gradient", _GRADIENTS.get(gradient, gradient)),
            ("vmap", batching),
        ]
        return above + box(facts, f".. math:: {spec.formula}", "")


_GRADIENTS = {
    "straight through": "that of the identity, because the true gradient is 0 almost everywhere",
    "derived": "derived from the decomposition, inside an operator (beyond the first order, reverse mode only)",
    "none": "none: asking for a gradient raises ``NotImplementedError``",
    "–": "none, because the data are files",
}


@cache
def _tables(mark: str) -> list[list[str]]:
    text = (DOCS / "tables.md").read_text()
    table = re.search(rf"<!-- {mark}.*?-->\n(.*?)<!-- /{mark} -->", text, re.S)
    assert table, mark
    rows = [line.strip("| \n").split(" | ") for line in table.group(1).strip().splitlines()]
    return [rows[0], *rows[2:]]


def _rest(cell: str) -> str:
    """Turn Markdown's links and code into reStructuredText's."""
    cell = re.sub(r"\[([^]]+)\]\(([^)]+)\)", r"`\1 <\2>`__", cell)
    return re.sub(r"(?<!`)`(imgops\.\w+)`(?!_)", r":func:`\1`", cell)


def _transform_facts(name: str) -> list[str]:
    facts = []
    for names, near, each in _tables("transforms")[1:]:
        if name in names.split(", "):
            facts += [
                ("torchvision", f":class:`torchvision.transforms.v2.{name}`: the same arguments and draws"),
                ("Same seed", _rest(near)),
                ("In a graph", "one graph, with the draws of eager mode; forward and backward"),
                ("per_sample", each),
            ]
    if MADE_OF.get(name):
        operators = ", ".join(f":func:`imgops.{n}`" for n in MADE_OF[name])
        facts.append(("Made of", f"{operators} (there: formula, border rule, tolerance and gradient)"))
    return box(facts) if facts else []


class OperatorTable(Parsed):
    """``.. operator-table::`` shows every operator by family, with all facets, of which a script shows one group."""

    def lines(self) -> list[str]:
        rows = [["operator", *(head for heads in _FACETS.values() for head, _ in heads)]]
        for title, specs in operator_table.families().items():
            rows.append([title, *("" for _ in rows[0][1:])])
            for spec in specs:
                name = f":func:`~imgops.{spec.name}`" if spec.is_public else f"``{spec.name}``"
                facets = (cell(spec.name, spec) for heads in _FACETS.values() for _, cell in heads)
                rows.append([name, *facets])
        return table(rows, kind="wide filter")

    def run(self) -> list[nodes.Node]:
        found = super().run()
        groups = ["", *(part for part, heads in _FACETS.items() for _ in heads)]
        for row in (row for node in found for row in node.findall(nodes.row)):
            entries = list(row.findall(nodes.entry))
            if not any(entry.children for entry in entries[1:]):
                row["classes"].append("family")
            for entry, part in zip(entries, groups, strict=True):
                entry["classes"].append(part)
        return found


#: The columns of the table of operators, in the groups that its script shows.
_FACETS: dict[str, list[tuple[str, Callable[[str, Any], str]]]] = {
    "pixels": [
        ("reference", lambda name, spec: double(spec.reference_name)),
        ("tolerance", lambda name, spec: spec.difference),
        ("measured", lambda name, spec: difference(name)),
        ("dtypes", lambda name, spec: spec.dtype_names),
    ],
    "gradients": [
        ("gradient", lambda name, spec: double(operator_table.gradient(spec))),
        ("adjoint", lambda name, spec: f"``{a}``" if (a := operators()[name].adjoint) else "–"),
        (
            "per sample",
            lambda name, spec: ", ".join(f"``{n}``" for n in operator_table.per_sample(spec)) or "–",
        ),
        ("packed images", lambda name, spec: operator_table.packed(spec)),
        ("vmap", lambda name, spec: "yes" if operators()[name].vmap else "–"),
    ],
    "places": [
        ("CUDA", lambda name, spec: operator_table.cuda(spec)),
        ("in core ATen", lambda name, spec: operator_table.decomposition(spec)),
        (
            "layouts",
            lambda name, spec: (
                "planar" if operators()[name].contract is Contract.DYNAMIC else "planar, interleaved"
            ),
        ),
        ("DTensor", lambda name, spec: "batch" if operators()[name].sharding else "–"),
        ("autocast", lambda name, spec: f.__name__ if (f := operators()[name].autocast) else "as given"),
    ],
}


class TransformTable(Parsed):
    """Show imgops' own classes, and how near they are to torchvision's."""

    def lines(self) -> list[str]:
        rows = []
        for i, (names, near, each) in enumerate(_tables("transforms")):
            if i:
                names = ", ".join(f":class:`~imgops.transforms.{n}`" for n in names.split(", "))
            rows.append([names, _rest(near), each])
        return table(rows, "40 45 15", "wide filter")


_FUNCTIONALS = (
    "These are torchvision's functions, made of imgops' operators, with the same names, arguments and defaults. Where "
    "torchvision takes a number, they also take a tensor of one number per sample, with a gradient."
)


def _title(text: str) -> list[str]:
    return [text, "-" * len(text), ""]


def _summary(names: list[str]) -> list[str]:
    lines = [".. autosummary::", "   :toctree: api", "   :nosignatures:", ""]
    return [*lines, *(f"   {n}" for n in names), ""]


def api_page() -> str:
    """Return the page with the tables of the API, section by section, made from the public names."""
    lines = [".. docs/_ext/imgops_docs.py makes this page from the public names.", "", "API", "===", ""]
    for family, names in FAMILIES.items():
        lines += [*_title(family), *_summary([f"imgops.{n}" for n in names])]
    for name in MODULES:
        names = [f"imgops.extend.{name}.{n}" for n in public_of(getattr(extend, name))]
        lines += [*_title(f"imgops.extend.{name}"), *_summary(names)]
    own = [f"imgops.transforms.{n}" for n in transforms.OURS]
    lines += [*_title("Transforms of torchvision"), *_summary(own)]
    annotations = [f"imgops.transforms.annotations.{n}" for n in ("Camera", "Disparity", "Flow", "Normals")]
    lines += [*_title("Annotations that torchvision does not have"), *_summary(annotations)]
    functions = "convert", "corruptions", "from_albumentations"
    added = [f"imgops.transforms.{n}" for n in (*transforms.ADDED, *functions)]
    lines += [*_title("Transforms that torchvision does not have"), *_summary(added)]
    named = [f"imgops.transforms.recipes.{n}" for n in transforms.recipes.__all__]
    lines += [*_title("Recipes of public training code"), *_summary(named)]
    lines += [*_title("The same draws everywhere"), *_summary(["imgops.transforms.seeded"])]
    integrations = [f"imgops.integrations.transformers.{n}" for n in ("exact", "register")]
    lines += [*_title("Processors of transformers"), *_summary(integrations)]
    lines += [*_title("Functionals of transforms"), _FUNCTIONALS, ""]
    lines += _summary([f"imgops.transforms.functional.{n}" for n in functional.OURS if n in dir(functional)])
    return "\n".join(lines)


def reset(conf: Any, where: str) -> None:
    """Start each example with the same seeds and with nothing compiled."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    torch.compiler.reset()
    torch.set_grad_enabled(True)
    torch._logging.set_logs(all=logging.ERROR)


def _sources() -> str:
    """Return the text of all docstrings, tutorials and pages."""
    return "".join(
        p.read_text()
        for n in ("imgops/**/*.py", "gallery/*/*.py", "docs/*.rst", "docs/*/*.rst")
        for p in ROOT.glob(n)
    )


#: Replacements for other projects' inventories: (domain:role, name, page)
_NAMES: dict[str, list[tuple[str, str, str]]] = {
    "python": [("py:module", "io", "library/io.html#module-$")],
    "numpy": [("py:class", "numpy.ndarray", "reference/generated/numpy.ndarray.html#$")],
    "torch": [
        ("py:class", "torch.Tensor", "tensors.html#$"),
        ("py:module", "torch", "torch.html#module-$"),
        *(
            ("py:function", f"torch.{n}", f"generated/torch.{n}.html#$")
            for n in ("compile", "vmap", "func.grad", "func.jvp", "func.vmap", "autograd.gradcheck")
        ),
        *(
            ("py:function", f"torch.library.{n}", "library.html#$")
            for n in ("custom_op", "opcheck", "register_vmap", "register_fake", "register_autograd")
        ),
        (
            "py:function",
            "torch.distributed.tensor.experimental.register_sharding",
            "distributed.tensor.html#$",
        ),
    ],
    "torchvision": [
        ("py:class", f"torchvision.transforms.v2.{n}", "generated/$.html#$") for n in transforms.OURS
    ],
    "PIL": [
        ("py:" + {"meth": "method", "func": "function"}.get(role, role), name, f"reference/{module}.html#$")
        for role, name, module in sorted(set(re.findall(r":(\w+):`(PIL\.(\w+)\.[\w.]+)`", _sources())))
    ],
}


def _inline_math(self: Any, node: Any) -> None:
    self.body.append(latex2mathml.converter.convert(node.astext()))
    raise nodes.SkipNode


def _block_math(self: Any, node: Any) -> None:
    formula = latex2mathml.converter.convert(node.astext(), display="block")
    self.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode


def _write_inventories() -> None:
    folder = DOCS / "_build" / "inventories"
    folder.mkdir(parents=True, exist_ok=True)
    for project, names in _NAMES.items():
        head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
        head += "# The remainder of this file is compressed using zlib.\n"
        body = "".join(f"{name} {kind} 1 {page} -\n" for kind, name, page in names)
        (folder / f"{project}.inv").write_bytes(head.encode() + zlib.compress(body.encode()))


def setup(app: Sphinx) -> dict[str, bool]:
    _write_inventories()
    draw(ROOT / "benchmarks" / "results", DOCS / "_build" / "plots")
    draw_all()
    page = DOCS / "api.rst"
    if not page.exists() or page.read_text() != api_page():
        page.write_text(api_page())
    # MathML, because every browser draws it without a script from the network.
    app.add_html_math_renderer("mathml", (_inline_math, None), (_block_math, None))
    app.add_directive("facts", Facts)
    app.add_directive("operator-table", OperatorTable)
    app.add_directive("transform-table", TransformTable)
    app.add_directive("added-table", AddedTable)
    app.add_directive("unit-floats", UnitFloats)
    app.add_directive("own-words", OwnWords)
    app.add_directive("migration", MigrationTable)
    app.add_directive("pictures", Pictures)
    app.add_directive("picture-pair", PicturePair)
    app.add_directive("results", Results)
    app.add_directive("contributed", Contributed)
    app.add_directive("instructions", Instructions)
    app.add_directive("first-hour", FirstHour)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
