"""Beyond Python: programs that run without imgops, packages of AOTInductor, models of ONNX."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors

import imgops
from imgops import transforms as v2
from imgops._operator.record import Contract, operators
from tests.specs import OPERATORS
from tests.tiers import every_night, nightly


class Preprocess(torch.nn.Module):
    """A model with its preprocessing: uint8 in, scores out."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.register_buffer("mark", torch.randint(0, 256, (3, 6, 8), generator=generator, dtype=torch.uint8))
        self.register_buffer("mask", torch.rand(1, 6, 8, generator=generator))
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten()
        )

    def pixels(self, image: Tensor) -> Tensor:
        marked = imgops.paste(image, self.mark, (4, -2), self.mask)
        face = imgops.crop(marked, (-3, 2, 40, 33))
        small = imgops.resize(face, (24, 30), "bicubic")
        small = imgops.resize(small, (20, 28), "bilinear", antialias=False)
        return imgops.pad(small, (2, 1), "reflect")

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        pixels = self.pixels(image)
        return pixels, self.model(pixels.float().div(255))


@pytest.fixture(scope="module")
def image() -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randint(0, 256, (2, 3, 36, 48), generator=generator, dtype=torch.uint8)


@pytest.fixture(scope="module")
def decomposed(image: Tensor) -> torch.export.ExportedProgram:
    program = torch.export.export(Preprocess().eval(), (image,))
    return program.run_decompositions(torch.export.default_decompositions() | imgops.decompositions())


def elsewhere(tmp_path: Path, code: str) -> str:
    """Run code in a process that cannot import imgops."""
    guard = "import sys; sys.modules['imgops'] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", guard + code], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


RUN = """
import torch
image, pixels, scores = torch.load("data.pt")
found = run(image)
assert torch.equal(found[0], pixels), "other pixels"
torch.testing.assert_close(found[1], scores)
print("same")
"""


@nightly
def test_a_decomposed_program_runs_without_imgops(
    tmp_path: Path, image: Tensor, decomposed: torch.export.ExportedProgram
) -> None:
    torch.save((image, *Preprocess().eval()(image)), tmp_path / "data.pt")
    torch.export.save(decomposed, tmp_path / "program.pt2")
    load = "import torch; run = torch.export.load('program.pt2').module()"
    assert "same" in elsewhere(tmp_path, load + RUN)


@nightly
def test_aot_inductor_packages_it(
    tmp_path: Path, image: Tensor, decomposed: torch.export.ExportedProgram
) -> None:
    package = torch._inductor.aoti_compile_and_package(decomposed, package_path=str(tmp_path / "model.pt2"))
    torch.save((image, *Preprocess().eval()(image)), tmp_path / "data.pt")
    load = f"import torch; run = torch._inductor.aoti_load_package({package!r})"
    assert "same" in elsewhere(tmp_path, load + RUN)


@nightly
def test_onnx_gives_the_same(tmp_path: Path, image: Tensor, decomposed: torch.export.ExportedProgram) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    path = str(tmp_path / "model.onnx")
    torch.onnx.export(decomposed, (image,), path, dynamo=True, verbose=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: image.numpy()})
    pixels, scores = Preprocess().eval()(image)
    assert torch.equal(torch.from_numpy(found[0]), pixels), "other pixels"
    torch.testing.assert_close(torch.from_numpy(found[1]), scores, rtol=1e-4, atol=1e-5)


def test_decompositions_cover_what_can_be_exported() -> None:
    table = imgops.decompositions()
    names = {op.name().split("::")[1] for op in table if op.namespace == "imgops"}
    rows = operators().values()
    codecs = {name for name, spec in OPERATORS.items() if spec.straight_through}
    assert names == {row.name for row in rows if row.contract is Contract.FUNCTIONAL} - codecs


class Augment(torch.nn.Module):
    def __init__(self, transform: torch.nn.Module) -> None:
        super().__init__()
        self.transform = transform

    def forward(self, image: Tensor, *others: Tensor) -> Tensor | tuple[Tensor, ...]:
        return self.transform(image, *others)  # type: ignore[no-any-return]


def test_a_pipeline_that_draws_is_exported_without_strict() -> None:
    """The tracer replaces the ``__call__`` of nn.Module, which is no code of a user."""
    pipeline = v2.Compose([v2.RandomResizedCrop(8), v2.RandomHorizontalFlip()], per_sample=True)
    program = torch.export.export(Augment(pipeline), (torch.rand(2, 3, 12, 14),), strict=False).module()
    assert program(torch.rand(2, 3, 12, 14)).shape == (2, 3, 8, 8)


@nightly
@pytest.mark.skipif(not hasattr(torch.Tag, "inplace"), reason="from torch 2.13 on")
def test_tv_tensors_need_strict_export() -> None:
    """Without it they lose their classes: what would no longer follow the image is refused."""
    image = tv_tensors.Image(torch.arange(3 * 8 * 10.0).reshape(3, 8, 10))
    how = {"canvas_size": (8, 10)}
    followers = [
        tv_tensors.Mask(torch.arange(80).reshape(1, 8, 10)),
        tv_tensors.BoundingBoxes([[1.0, 1, 3, 3]], format="XYXY", **how),
        tv_tensors.KeyPoints([[1.0, 2]], **how),
        tv_tensors.Image(image.as_subclass(Tensor) + 1),
    ]
    pipeline = v2.Compose([v2.RandomHorizontalFlip(1.0), v2.Resize((4, 5))])
    for transform in (v2.RandomHorizontalFlip(1.0), v2.Resize((4, 5)), v2.CenterCrop(4), pipeline):
        model = Augment(transform)
        alone = torch.export.export(model, (image,), strict=False).module()(image)
        assert torch.equal(alone, model(image).as_subclass(Tensor)), transform
        for other in followers:
            with pytest.raises(ValueError, match="strict must be True in"):
                torch.export.export(model, (image, other), strict=False)
    program = torch.export.export(Augment(pipeline), (image, *followers), strict=True).module()
    for found, wanted in zip(program(image, *followers), pipeline(image, *followers), strict=True):
        assert torch.equal(found, wanted.as_subclass(Tensor))


@pytest.mark.skipif(not hasattr(torch.Tag, "inplace"), reason="from torch 2.13 on")
@pytest.mark.parametrize("strict", [*every_night(False), True])
def test_mutating_calls_are_exported_as_functional_ones(strict: bool) -> None:
    class Mutates(torch.nn.Module):
        def forward(self, x: Tensor, out: Tensor) -> Tensor:
            y = x + 1
            imgops.paste_(y, torch.zeros(3, 2, 2), (1, 1), torch.full((1, 2, 2), 0.5))
            imgops.paste_out(y, torch.ones(3, 2, 2), (0, 0), out=out[1])
            small = imgops.resize_out(y, (4, 4), out=torch.empty(3, 4, 4))
            imgops.accumulate(y, torch.zeros(1, 5, 5), small, (1, 0))
            return y

    x, out, same = torch.rand(3, 5, 5), torch.zeros(2, 3, 5, 5), torch.zeros(2, 3, 5, 5)
    program = torch.export.export(Mutates(), (x, out), strict=strict)
    program = program.run_decompositions(torch.export.default_decompositions() | imgops.decompositions())
    assert "imgops" not in str(program.graph)
    torch.testing.assert_close(program.module()(x, out), Mutates()(x, same))
    assert torch.equal(out, same) and out.any()


@pytest.mark.parametrize("strict", [*every_night(False), True])
def test_a_config_can_be_saved_and_loaded(tmp_path: Path, strict: bool) -> None:
    class Configured(torch.nn.Module):
        def __init__(self, *configs: object) -> None:
            super().__init__()
            self.crop, self.resize, self.pad = configs

        def forward(self, x: Tensor) -> Tensor:
            return imgops.pad(imgops.resize(imgops.crop(x, self.crop), self.resize), self.pad)

    config = imgops.extend.config
    configs = (
        config.Crop((1, 1, 8, 9)),
        config.Resize((5, 6), "bicubic", box=(0, 0, 6.5, 7)),
        config.Pad(2, "edge"),
    )
    x = torch.rand(3, 10, 12)
    by_keywords = imgops.resize(imgops.crop(x, (1, 1, 8, 9)), (5, 6), "bicubic", box=(0, 0, 6.5, 7))
    wanted = imgops.pad(by_keywords, 2, "edge")
    model = Configured(*configs)
    assert torch.equal(model(x), wanted)
    program = torch.export.export(model, (x,), strict=strict)
    torch.export.save(program, tmp_path / "p.pt2")
    assert torch.equal(torch.export.load(tmp_path / "p.pt2").module()(x), wanted)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), wanted)

    def built_inside(x: Tensor) -> Tensor:
        return imgops.resize(x, imgops.extend.config.Resize((5, 6), antialias=False))

    compiled = torch.compile(built_inside, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), imgops.resize(x, (5, 6), antialias=False))


def test_configs_are_values() -> None:
    Resize = imgops.extend.config.Resize
    assert Resize((4, 5)) == Resize(size=(4, 5), interpolation="bilinear", antialias=True)
    assert len({Resize((4, 5)), Resize((4, 5)), Resize((4, 6))}) == 2
    assert (
        repr(Resize((4, 5)))
        == "Resize(size=(4, 5), interpolation='bilinear', antialias=True, box=None, scale=None)"
    )
    with pytest.raises(AttributeError):
        Resize((4, 5)).size = (1, 1)  # type: ignore[misc]
    x, out = torch.rand(3, 6, 6), torch.empty(3, 4, 5)
    assert imgops.resize_out(x, Resize((4, 5)), out=out) is out and torch.equal(out, imgops.resize(x, (4, 5)))
    place = imgops.extend.config.Paste((1, 2))
    assert torch.equal(imgops.paste(x, x[:, :2, :2], place), imgops.paste(x, x[:, :2, :2], (1, 2)))
    levels = (x * 255).to(torch.uint8)
    data = imgops.encode_image(levels, imgops.extend.config.EncodeImage("png"))
    assert torch.equal(imgops.decode_image(data, imgops.extend.config.DecodeImage("RGB")), levels)
