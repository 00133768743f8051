"""The public names of imgops with their parameters and defaults: ``python -m tests.public_api`` writes public_api.json.

A test compares the file with the package. A change of the file is a decision, which has a line in the CHANGELOG.
"""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import torch
from torchvision.transforms import v2

import imgops
from imgops import extend, transforms
from imgops._operator import record

FILE = Path(__file__).with_name("public_api.json")
MODULES = (
    *("imgops.extend", "imgops.extend.testing", "imgops.integrations.transformers"),
    "imgops.transforms.recipes",
)


def parameters_of(function: Any) -> list[str]:
    """Return parameters as they stand in a call, with their defaults; ``*`` stands before those by keyword only."""
    found: list[str] = []
    kinds = inspect.Parameter
    by_keyword = False
    for name, each in inspect.signature(function).parameters.items():
        if each.kind is kinds.KEYWORD_ONLY and not by_keyword:
            by_keyword = True
            found.append("*")
        by_keyword |= each.kind is kinds.VAR_POSITIONAL
        star = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is kinds.empty else f"={_shown(each.default)}"
        found.append(f"{star}{name}{default}")
        if each.kind is kinds.POSITIONAL_ONLY:
            found[-1] += " /"
    return found


def _shown(default: Any) -> str:
    return str(default.value) if hasattr(default, "value") else repr(default)


def described(value: Any) -> Any:
    """Return what is public of a name: parameters of a function, or of a class with its public members."""
    if inspect.isclass(value):
        members = {
            name: described(member)
            for name, member in vars(value).items()
            if not name.startswith("_")
            and (inspect.isfunction(member) or isinstance(member, (classmethod, staticmethod, property)))
        }
        return {"class": _of_class(value), **members}
    if isinstance(value, property):
        return "property"
    if isinstance(value, classmethod):
        return parameters_of(value.__func__)[1:]
    if isinstance(value, staticmethod):
        return parameters_of(value.__func__)
    if inspect.isfunction(value):
        return parameters_of(value)
    return type(value).__name__


def _of_class(value: type) -> Any:
    try:
        return parameters_of(value)
    except (TypeError, ValueError):  # a protocol, or a class of C
        return "no signature"


def _added(name: str) -> list[str]:
    """Return the parameters of a transform that torchvision's class of the same name does not have."""
    theirs = inspect.signature(getattr(v2, name)).parameters if hasattr(v2, name) else {}
    return [
        p
        for p in parameters_of(getattr(transforms, name))
        if p != "*" and p.partition("=")[0].lstrip("*") not in theirs
    ]


def _of_random(name: str) -> list[str]:
    """Return the parameters of a method that all transforms with random parameters share."""
    classes = [getattr(transforms, n) for n in (*transforms.OURS, *transforms.ADDED)]
    (found,) = {
        tuple(parameters_of(getattr(c, name))) for c in classes if "per_sample=False" in parameters_of(c)
    }
    return list(found)


def public() -> dict[str, Any]:
    """Return the public names by module.

    Transforms of torchvision have its parameters, which differ between its versions: only the parameters that imgops
    adds are listed. Functionals are defined by imgops, so all of their parameters are.
    """
    found: dict[str, Any] = {"imgops": {n: described(getattr(imgops, n)) for n in sorted(imgops.__all__)}}
    found["imgops.transforms, as in torchvision"] = {n: _added(n) for n in transforms.OURS}
    found["imgops.transforms, with random parameters"] = {n: _of_random(n) for n in ("sample", "apply")}
    functional = transforms.functional
    found["imgops.transforms.functional"] = {n: described(getattr(functional, n)) for n in functional.OURS}
    found["imgops.transforms"] = {n: described(getattr(transforms, n)) for n in transforms.ADDED}
    annotations = transforms.annotations
    found["imgops.transforms.annotations"] = {
        n: described(getattr(annotations, n)) for n in ("Camera", "Disparity", "Flow", "Normals")
    }
    own = ("convert", "corruptions", "from_albumentations", "seeded")
    found["imgops.transforms"] |= {n: described(getattr(transforms, n)) for n in own}
    for name in ("autocast", "config", "packed", "sharding", "vmap"):
        rules = getattr(extend, name)
        found[f"imgops.extend.{name}"] = {n: described(getattr(rules, n)) for n in sorted(rules.__all__)}
    for name in MODULES:
        module = importlib.import_module(name)
        names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
        found[name] = {n: described(getattr(module, n)) for n in sorted(names)}
    found["torch.ops.imgops"] = sorted(
        str(getattr(torch.ops.imgops, name.partition("::")[2]).default._schema)
        for name in record.table
        if name.startswith("imgops::")
    )
    return found


def main() -> None:
    FILE.write_text(json.dumps(public(), indent=1) + "\n")
    print(FILE)


if __name__ == "__main__":
    main()
