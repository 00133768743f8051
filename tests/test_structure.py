"""The package layout: which module may import which; every facet of an operator has the right signature."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import MethodType

import pytest
import torch

import imgops
from imgops._operator import declare
from imgops._operator.record import Contract, Gradient, Operator, operators
from imgops.autograd.derived import DerivedGradient
from imgops.kernels import devices
from tests.specs import SPECS
from tests.tiers import nightly

ROOT = Path(imgops.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

#: The parts of the package from below: a module imports from its own part and from those before it.
LAYERS = (
    *("_common", "_operator.record", "rules", "decomposition", "fake", "kernels", "autograd"),
    *("_operator", "ops", "batches", "", "extend", "transforms", "integrations", "__main__"),
)
#: The modules that import what a variable names, and nothing above them.
BY_NAME = {
    "__init__.py": "submodules, when a user asks for them",
    "kernels/cuda/__init__.py": "families of kernels, below it",
    "integrations/_reader.py": "the folder of a library, next to it",
    "integrations/transformers/_rebinding.py": "modules of transformers",
    "transforms/__init__.py": "the functions that convert pipelines, when a user asks for them",
    "transforms/_core/programs.py": "classes of transforms, by the description of one",
}


def part_of(module: str) -> str:
    """Return the part of the package that a module ``imgops.…`` belongs to; "" is what ``import imgops`` gives."""
    parts = module.split(".")[1:]
    whole = ".".join(parts[:2])
    if whole in LAYERS:
        return whole
    return parts[0] if parts and parts[0] in LAYERS else ""


def name_of(path: Path) -> str:
    parts = ("imgops", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and written(node.test) == "TYPE_CHECKING"


@functools.cache
def imports_of(path: Path) -> set[str]:
    """Return the modules of imgops that a module imports, inside of functions and by ``import_module``, too."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, field, [x for x in value if not is_for_types(x)])
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in MODULES else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and written(node.func).endswith("import_module"):
            (name,) = node.args
            if isinstance(name, ast.Constant):
                found.add(name.value)
            else:
                assert str(path.relative_to(ROOT)) in BY_NAME, f"{path} imports {ast.unparse(name)}"
    return {name for name in found if name.split(".")[0] == "imgops"}


def test_modules_of_the_tests_have_one_name() -> None:
    """Some run as programs, for which the folder of the tests is not on the path."""
    folder = Path(__file__).parent
    own = {path.stem for path in folder.glob("*.py")}
    imported = [
        n for path in folder.rglob("*.py") for n in ast.walk(tree_of(path)) if isinstance(n, ast.ImportFrom)
    ]
    assert sorted({n.module for n in imported if n.module in own}) == []


def test_imports_go_down() -> None:
    above = {
        (str(path.relative_to(ROOT)), name)
        for path in FILES
        for name in imports_of(path)
        if LAYERS.index(part_of(name)) > LAYERS.index(part_of(name_of(path)))
    }
    assert not above


def test_no_modules_import_each_other() -> None:
    """Neither at once nor later, inside of a function; a module's packages are imported with it."""

    def needs_of(name: str) -> set[str]:
        found = imports_of(MODULES[name])
        found |= {".".join(n.split(".")[: i + 1]) for n in found for i in range(1, n.count("."))}
        return {n for n in found & MODULES.keys() if not f"{name}.".startswith(f"{n}.")}

    left = {name: needs_of(name) for name in MODULES}
    while ready := {name for name, needs in left.items() if not needs & left.keys()}:
        for name in ready:
            del left[name]
    assert not left


REGISTRATION = ("imgops._operator.declare", "imgops._common.torch_private")


def test_only_the_registry_talks_to_torch_library() -> None:
    for path in FILES:
        if (
            name_of(path) not in REGISTRATION and part_of(name_of(path)) != "extend"
        ):  # opcheck is in torch.library
            assert "torch.library" not in re.sub("``.*?``|:func:`.*?`", "", path.read_text()), path


def test_only_one_module_uses_private_names() -> None:
    found = {
        (str(path.relative_to(ROOT)), name)
        for path in FILES
        if name_of(path) != "imgops._common.torch_private"
        for name in private_names(tree_of(path))
    }
    assert not found


def written(node: ast.expr) -> str:
    """Return a name with its attributes; an attribute of anything else is no name of a module."""
    if isinstance(node, ast.Attribute):
        return f"{written(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def private_names(tree: ast.AST) -> set[str]:
    """Return every private name of torch that is imported or written out; torch._check is documented."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute):
            names.add(written(node))
    documented = ("torch._check", "torch.__version__")
    return {
        name
        for name in names
        if name.startswith("torch.")
        and any(part.startswith("_") for part in name.split("."))
        and not name.startswith(documented)
    }


@pytest.mark.parametrize(
    "source",
    [
        "from torch.utils._pytree import tree_map",
        "from torch.utils import _pytree",
        "import torch._dynamo",
        "import torch.utils._python_dispatch as dispatch",
        "x = torch._C._dispatch_dump_table",
        "x = torch.utils._pytree.tree_map",
    ],
)
def test_private_names_are_seen(source: str) -> None:
    assert private_names(ast.parse(source))
    documented = "import torch\nfrom torch.utils import data\ntorch._check(True)\ntorch.__version__"
    assert not private_names(ast.parse(documented))


#: PyTorch's factories, whose results follow the default dtype and device; random integers are always int64.
_FACTORIES = (
    *("empty", "zeros", "ones", "full", "tensor", "as_tensor", "scalar_tensor"),
    *("arange", "linspace", "logspace", "eye", "rand", "randn"),
)
_OF_INTEGERS = ("randint", "randperm")


def test_factories_name_dtype_and_device() -> None:
    """The results of imgops do not depend on ``torch.set_default_dtype`` and ``torch.set_default_device``."""
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if not isinstance(node, ast.Call) or not written(node.func).startswith("torch."):
                continue
            name = written(node.func).removeprefix("torch.")
            needed = (
                {"dtype", "device"} if name in _FACTORIES else {"device"} if name in _OF_INTEGERS else set()
            )
            named = {keyword.arg for keyword in node.keywords}
            missing = needed - named if None not in named else set()
            assert not missing, f"{path}:{node.lineno}: {ast.unparse(node)} does not name {missing}"


#: Code that runs on the host alone, where sizes are numbers.
_ON_THE_HOST = ("albumentations", "converters", "imagenet_c", "pil_images.py", "domain.py")


@pytest.mark.parametrize("path", sorted((ROOT / "transforms").rglob("*.py")), ids=lambda p: p.stem)
def test_texts_of_errors_are_whole_in_a_graph(path: Path) -> None:
    """Dynamo cannot write a symbolic size, or a tuple of them: ``check.number`` and ``written`` read it first."""
    if set(path.parts) & set(_ON_THE_HOST):
        return
    for node in ast.walk(ast.parse(path.read_text())):
        todo = [node.value] if isinstance(node, ast.FormattedValue) else []
        while todo:
            part = todo.pop()
            if isinstance(part, ast.Call) and ast.unparse(part.func).startswith("check."):
                continue
            is_size = isinstance(part, ast.Attribute) and part.attr in ("shape", "canvas_size")
            assert not is_size, f"line {part.lineno}: {ast.unparse(part)} may be symbolic"
            todo += ast.iter_child_nodes(part)


def test_functions_are_short() -> None:
    """A body has at most 70 lines without its docstring; a file is as long as its subject."""
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                assert not body or body[-1].end_lineno - body[0].lineno < 70, (path, node.name)


#: What programs write: ``python -m tests.specs``, ``tests.public_api`` and ``tests.same``.
_WRITTEN = {"docs/tables.md", "docs/api.rst", "tests/public_api.json", "tests/same.json"}
_READ = (
    "imgops/**/*.py",
    "tests/**/*.py",
    "tests/**/*.json",
    "docs/_ext/**/*.py",
    "docs/*.py",
    "docs/*.rst",
    "docs/migrating/*.rst",
)
_READ += ("docs/*.md", "docs/migration/*.txt", "benchmarks/*.py", "*.md")
#: Operators that have something in common. A file that names all of a group is a list that a new one must join.
GROUPS: dict[str, Callable[[Operator], object]] = {
    "operators": lambda operator: True,
    "public": lambda operator: operator.name in imgops.__all__,
    "not public": lambda operator: operator.name not in imgops.__all__,
    "with a kernel for CUDA": lambda operator: operator.cuda,
    "with a kernel that takes packed images": lambda operator: getattr(operator.cuda, "takes_packed", False),
    "that take packed images": lambda operator: operator.packed,
    "through the host": lambda operator: not devices.stays_on_device(operator),
    "without a gradient": lambda operator: operator.no_gradient,
    "without a decomposition": lambda operator: operator.decomposition is None,
    "without vmap": lambda operator: operator.vmap is None,
    "with an adjoint": lambda operator: operator.adjoint,
    "that read values": lambda operator: operator.values,
}


def words_of(path: Path) -> set[str]:
    """Return the words of a page, and those of a module outside of its comments and docstrings."""
    if path.suffix != ".py":
        return set(re.findall(r"\w+", path.read_text()))
    found: set[str] = set()
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.NAME or (token.type == tokenize.STRING and '"""' not in token.string):
                found |= set(re.findall(r"\w+", token.string))
    return found


#: The parts of the package that define operators; those above them call operators.
_OF_FACETS = ("rules", "decomposition", "fake", "kernels", "autograd", "_operator", "ops", "batches")


@nightly
def test_an_operator_is_named_in_few_files() -> None:
    """At most 7 have an entry for it: its family's with a function of its name, its spec's, and lists of operators."""
    top = Path(__file__).parents[1]
    paths = {str(p.relative_to(top)): p for pattern in _READ for p in top.glob(pattern)}
    words = {name: words_of(path) for name, path in paths.items() if name not in _WRITTEN}
    groups = {kind: {n for n, o in operators().items() if has(o)} for kind, has in GROUPS.items()}
    assert min(map(len, groups.values())) >= 5, "a file may name a few operators by chance"
    lists = [(name, kind) for name in words for kind, group in groups.items() if group <= words[name]]
    assert not lists, f"derive these lists from declarations or specs: {lists}"
    defined = {
        path: {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
        for name, path in MODULES.items()
        if part_of(name) in _OF_FACETS
    }
    for name, operator in operators().items():
        family = operator.fake.__module__.rsplit(".", 1)[1]
        own = {name, f"_{name}", f"{name}_backward", f"{name}_setup_context", f"{name}_jvp"}
        files = [path for path, functions in defined.items() if path.stem == family and own & functions]
        files.append(top / "tests" / "specs" / f"{family}.py")
        assert 4 <= len(files) <= 7, (name, files)


def names(function: object, skip: int = 0) -> list[str]:
    return list(inspect.signature(function).parameters)[skip:]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", list(operators()))
def test_facets_share_the_signature(name: str) -> None:
    operator = operators()[name]
    schema = [a.name for a in getattr(torch.ops.imgops, name).default._schema.arguments]
    assert list(operator.signature.parameters) == schema
    dynamic = operator.contract is Contract.DYNAMIC
    assert names(operator.fake) == (["new_size", *schema] if dynamic else schema)
    assert names(operator.kernel) == (
        ["out", *schema] if operator.contract is Contract.FUNCTIONAL else schema
    )
    if operator.cuda is not None:
        pytest.importorskip("triton")
        cuda = getattr(import_module(operator.cuda.__module__), operator.cuda.__name__)
        assert names(cuda) == names(operator.kernel)
    if operator.decomposition is not None:
        assert names(operator.decomposition) == schema
    if operator.contract.mutates and operator.autograd is not None:
        assert names(operator.autograd) == schema


@pytest.mark.parametrize("name", list(operators()))
def test_facets_are_where_their_name_says(name: str) -> None:
    operator = operators()[name]
    family = operator.fake.__module__.rsplit(".", 1)[1]
    assert operator.fake.__name__ == operator.kernel.__name__ == name
    assert operator.kernel.__module__ == f"imgops.kernels.cpu.{family}"
    if operator.cuda is not None:
        assert (operator.cuda.__module__, operator.cuda.__name__) == (f"imgops.kernels.cuda.{family}", name)
    if operator.no_gradient:
        assert operator.autograd.backward.__qualname__.startswith("refused_gradient"), name
    elif isinstance(getattr(operator.autograd, "backward", None), MethodType):
        assert isinstance(operator.autograd.backward.__self__, DerivedGradient)
    elif isinstance(operator.autograd, Gradient):
        assert operator.autograd.backward.__module__ == f"imgops.autograd.{family}"
        assert operator.autograd.backward.__name__ == f"{name}_backward"
        derived = isinstance(operator.autograd.jvp, MethodType)
        assert derived or operator.autograd.jvp.__name__ == f"{name}_jvp"
    elif operator.autograd is not None:
        assert (operator.autograd.__module__, operator.autograd.__name__) == (
            f"imgops.autograd.{family}",
            name,
        )
    if operator.decomposition is not None:
        assert operator.decomposition.__module__ == f"imgops.decomposition.{family}"
        assert operator.decomposition.__name__ == name


@pytest.mark.parametrize("name", list(operators()))
def test_dispatch_table(name: str) -> None:
    """Each has a kernel for the CPU, one for CUDA and one for every other device."""
    from imgops._common.torch_private import has_kernel

    for key in ("CPU", "CUDA", "Autograd", "CompositeExplicitAutograd"):
        assert has_kernel(f"imgops::{name}", key), key
    table = torch._C._dispatch_dump_table(f"imgops::{name}")
    for device in ("MPS", "XPU"):
        assert f"{device}: " in table
    assert torch.Tag.pt2_compliant_tag in getattr(torch.ops.imgops, name).default.tags


def test_what_goes_through_the_host() -> None:
    """The operators that do say why, and only they prevent CUDA graphs."""
    through_host = {name for name, operator in operators().items() if not devices.stays_on_device(operator)}
    assert through_host == {name for name, operator in operators().items() if operator.host}
    unsafe = torch.Tag.cudagraph_unsafe
    assert through_host == {n for n in operators() if unsafe in getattr(torch.ops.imgops, n).default.tags}
    import imgops.transforms as _  # noqa: F401

    of_transforms = operators("imgops_transforms")
    read = {
        "sample",
        "sample_from_annotations",
        "sizes",
        "size_after_rotation",
        "by_torchvision",
        "indices_of_true",
        "run_pipeline",  # which a graph has for images on the CPU alone
    }
    assert read == {name for name, operator in of_transforms.items() if not devices.stays_on_device(operator)}


def test_a_name_is_registered_once() -> None:
    def _crop(image: torch.Tensor) -> torch.Tensor: ...

    operator = operators()["crop"]
    with pytest.raises(ValueError, match="operator: name must be new, got 'imgops::crop' a second time"):
        declare.operator("imgops::crop", kernel=operator.kernel, fake=operator.fake)(_crop)
    assert operators()["crop"] is operator


def test_public_names() -> None:
    assert imgops.__all__ == sorted(imgops.__all__)
    assert {name for name in operators() if SPECS[name].section} == set(operators()) & set(imgops.__all__)
    for name in imgops.__all__:
        assert getattr(imgops, name).__doc__, name


@pytest.mark.parametrize("name", [n for n in operators() if n in imgops.__all__])
def test_docstrings_are_whole(name: str) -> None:
    function, contract = getattr(imgops, name), operators()[name].contract
    returns = [] if contract is Contract.BUFFERS else ["Returns"]
    for section in ("Parameters", *returns, "Raises", "Notes", "Examples", "Reference", "utocast"):
        assert section in function.__doc__, f"{name} says nothing of {section}"
    for parameter in inspect.signature(function).parameters:
        assert re.search(rf"^    [\w, ]*\b{parameter}\b", function.__doc__, re.M), parameter


@pytest.mark.parametrize("name", ["Crop", "Pad", "Resize", "EncodeImage", "DecodeImage", "Paste"])
def test_configs_mirror_their_functions(name: str) -> None:
    config = getattr(imgops.extend.config, name)
    function = getattr(imgops, re.sub("(?<!^)([A-Z])", r"_\1", name).lower())
    parameters = inspect.signature(function).parameters
    fields = {f.name: f.default for f in dataclasses.fields(config)}
    for field, default in fields.items():
        wanted = parameters[field].default
        missing = wanted is inspect.Parameter.empty
        assert default is dataclasses.MISSING if missing else default == wanted, field
    tensors = {"image", "source", "mask", "data"}
    implied = {"size"} if name in ("Crop", "Pad") else set()  # by the numbers that a config holds
    assert set(fields) == set(parameters) - tensors - implied
    assert config.__dataclass_params__.frozen


def test_import_is_light_and_says_nothing() -> None:
    """import imgops needs none of these; torchvision is imported with transforms or tv_tensors."""
    unwanted = ("torchvision", "triton", "matplotlib", "tqdm", "torch.distributed.tensor", "torch._inductor")
    code = (
        "import sys, torch; had = set(sys.modules); import imgops;"
        f"sys.exit([m for m in {unwanted!r} if m in sys.modules and m not in had] or 0)"
    )
    command = [sys.executable, "-W", "error::UserWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@nightly
def test_missing_libgl_names_the_cure(tmp_path: Path) -> None:
    (tmp_path / "cv2.py").write_text(
        "raise ImportError('libGL.so.1: cannot open shared object file: No such file or directory')"
    )
    path = f"{tmp_path}:{ROOT.parent}"
    done = subprocess.run(
        [sys.executable, "-c", "import imgops"], capture_output=True, text=True, env={"PYTHONPATH": path}
    )
    assert done.returncode == 1
    assert "opencv-python-headless" in done.stderr.strip().splitlines()[-1]


def test_nothing_is_asserted() -> None:
    """Errors are raised; ``python -O`` leaves assertions out. Generic checks are tests."""
    found = {
        f"{name}:{node.lineno}"
        for name, path in MODULES.items()
        if not name.startswith("imgops.extend.testing")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Assert)
    }
    assert not found
