"""Pictures, the transforms that torchvision does not have, and the tables of the migration page."""

from __future__ import annotations

import re

import show
from benchmark_plots import newest
from migration import table as migration_table
from parsed import ROOT, Parsed, box, double, table
from pictures import CHOSEN, full_name, moves

import imgops
from benchmarks import contributed
from imgops import transforms
from tests.added_cases import JOINING, OF_BOXES, ROWS
from tests.specs import SPECS


def pair(before: str, after: str) -> list[str]:
    """Return the lines that show two pictures side by side."""
    lines = [".. container:: pair", ""]
    for name, text in ((before, "a photograph"), (after, f"the photograph after {after}")):
        lines += [f"   .. image:: /_build/pictures/{name}.webp", f"      :alt: {text}", ""]
    return lines


class PicturePair(Parsed):
    """``.. picture-pair:: before after`` shows the two pictures with these names."""

    required_arguments = 2

    def lines(self) -> list[str]:
        return pair(*self.arguments)


class Pictures(Parsed):
    """``.. pictures:: operators`` shows all pictures of operators, and ``chosen`` those of the front page.

    Each picture links to its page.
    """

    required_arguments = 1

    def lines(self) -> list[str]:
        kinds = {"chosen": CHOSEN, "operators": [n for n in show.EXAMPLES if not n[0].isupper()]}
        names = kinds.get(self.arguments[0], [n for n in show.EXAMPLES if n[0].isupper()])
        lines = [".. container:: pictures", ""]
        for name in names:
            lines += [
                f"   .. figure:: /_build/pictures/{full_name(name)}.webp",
                f"      :target: api/{full_name(name)}.html",
                f"      :alt: {name}",
                "",
                f"      ``{name}``",
                "",
            ]
        return lines


def _difference(name: str) -> tuple[str, str]:
    """Return what the pixels are compared with, and how far they may differ on uint8."""
    found = [row for row in ROWS if row.name == name and row.of]
    levels = max((row.levels for row in found), default=0)
    same = list(dict.fromkeys(row.of for row in found))
    text = "equal" if levels == 0 else f"{levels} level{'s' if levels > 1 else ''}"
    return double(", ".join(same)) or "PIL and NumPy", text


def _per_sample(name: str) -> str:
    if name in JOINING:
        return "one sample of several"
    return "yes" if any(row.name == name and row.per_sample for row in ROWS) else "draws nothing"


def _moved(name: str) -> str:
    if name in OF_BOXES:
        return "boxes alone"
    return "masks, boxes, keypoints" if moves(name) else "none: pixels stay where they are"


def added_facts(name: str) -> list[str]:
    made_of = [n for n, spec in SPECS.items() if name in spec.transforms]
    reference, difference = _difference(name)
    facts = [
        ("The same as", f"{reference}: {difference} on uint8, for the same parameters"),
        ("In a graph", "one graph, with the draws of eager mode; forward and backward"),
        ("per_sample", _per_sample(name)),
        ("Also moved", _moved(name)),
    ]
    if made_of:
        facts.append(("Made of", ", ".join(f":func:`imgops.{n}`" for n in made_of)))
    return box(facts)


class UnitFloats(Parsed):
    """List the functions whose docstrings say that they take floats from 0 to 1."""

    def lines(self) -> list[str]:
        said = {name: " ".join((getattr(imgops, name).__doc__ or "").split()) for name in imgops.__all__}
        found = [name for name, text in said.items() if "floating point in [0, 1]" in text]
        return [", ".join(f":func:`~imgops.{name}`" for name in found) + ".", ""]


class OwnWords(Parsed):
    """Show the words of each function that no other has, and the transforms that share them."""

    def lines(self) -> list[str]:
        rows = [
            [", ".join(f"``{n}``" for n in spec.own_words()[0]), spec.words]
            for spec in SPECS.values()
            if spec.words
        ]
        return table([["Function", "Words"], *sorted(rows)], "30 70")


class AddedTable(Parsed):
    """Show the transforms that torchvision does not have."""

    def lines(self) -> list[str]:
        rows = [["transform", "the same pixels as", "on uint8", "masks, boxes, keypoints", "per sample"]]
        for name in transforms.ADDED:
            follow = "boxes change" if name in OF_BOXES else "move" if moves(name) else "stay"
            rows.append(
                [f":class:`~imgops.transforms.{name}`", *_difference(name), follow, _per_sample(name)]
            )
        return table(rows, "24 36 10 15 15", "wide filter")


class MigrationTable(Parsed):
    """``.. migration:: kornia`` shows every transform of another library."""

    required_arguments = 1

    def lines(self) -> list[str]:
        return table(migration_table(self.arguments[0]), "22 18 48 12", "wide filter")


class Contributed(Parsed):
    """``.. contributed::`` shows the machines that have contributed timings, and all the timings by operator."""

    def lines(self) -> list[str]:
        machines = contributed.every()
        rows = [
            [
                "machine",
                "date, contributor",
                "versions",
                "timings",
                *(f"median, {p}" for p in contributed.PEERS),
            ]
        ]
        for one in machines:
            versions = ", ".join(f"{name} {one['versions'][name]}" for name in ("imgops", "torch", "opencv"))
            medians = [_ratio(one.typical(peer)) for peer in contributed.PEERS]
            cpu, cores = one["machine"]["cpu"], one["machine"].get("cores", "?")
            rows.append(
                [
                    f":download:`{cpu} </../benchmarks/results/contributed/{one.path.name}>`, {cores} cores",
                    f"{one['date']}, {one['contributor']}",
                    versions,
                    str(len(one["rows"])),
                    *medians,
                ]
            )
        names = list(dict.fromkeys(row["operator"] for one in machines for row in one["rows"]))
        sent = {"dtype": "uint8", "layout": "planar", "size": 512, "batch": 1}
        heads = [f"{one['machine']['slug']}, {peer}" for one in machines for peer in ("raw", "torchvision")]
        beside = [["operator", *heads]]
        for name in names:
            found = [one.ratios(p, operator=name, **sent) for one in machines for p in ("raw", "torchvision")]
            beside.append([double(f"`{name}`"), *(_ratio(f[0] if f else None) for f in found)])
        return [*table(rows), "uint8, planar, 512 × 512, one image:", "", *table(beside)]


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


class Results(Parsed):
    """``.. results:: recipes 1 5`` shows the first and the fifth section of a benchmark's newest file, or all."""

    required_arguments = 1
    optional_arguments = 9

    def lines(self) -> list[str]:
        name, *shown = self.arguments
        text = newest(ROOT / "benchmarks" / "results", f"{name}-*.md").read_text()
        about, *sections = re.split(r"^## ", text, flags=re.M)
        chosen = [sections[int(number) - 1] for number in shown] or sections
        titled = [
            f"**{title}**\n{rest}" for title, _, rest in (section.partition("\n") for section in chosen)
        ]
        lines: list[str] = []
        for part in "\n\n".join([about, *titled]).split("\n\n")[1:]:
            if part.startswith("|"):
                head, _, *rest = (
                    [c.strip() for c in row.strip("| ").split("|")] for row in part.strip().splitlines()
                )
                lines += table([head, *rest])
            else:
                lines += [*double(part).splitlines(), ""]
        return lines
