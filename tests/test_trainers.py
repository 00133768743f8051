"""The examples of trainers as a user runs them: the same images with any number of workers and processes.

The checksums that they print are compared with those of images that this process augments one by one.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

from imgops import transforms as v2
from tests.tiers import nightly

pytest.importorskip("skimage")

EXAMPLES = Path(__file__).parent.parent / "examples"
EPOCHS, TWO = 2, ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2)

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux", reason="processes connect over gloo, and libraries are hidden"
    ),
    pytest.mark.xdist_group("trainers"),
    nightly,  # each example is a process
]

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that gives the output of an example; Trainer makes a folder where it runs."""

    def output(
        name: str, *options: object, launch: tuple[object, ...] = (), fails: bool = False, **env: str
    ) -> str:
        command = [sys.executable, *launch, EXAMPLES / name, *options]
        environment = os.environ | {"PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": ""} | env
        how = {"cwd": tmp_path, "env": environment, "timeout": 300, "text": True}
        done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **how)
        assert (done.returncode != 0) == fails, done.stdout[-6000:]
        return done.stdout

    return output


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


def crc(image: Tensor) -> int:
    return zlib.crc32(image.numpy().tobytes())


def expected(augment: v2.Compose, images: dict[int | str, Tensor], epoch: int) -> int:
    """Return the sum of the checksums of images that are augmented one by one."""
    return sum(crc(v2.seeded(augment, (epoch, key))(image)) for key, image in images.items())


def sums(out: str, name: str = "checksum") -> list[int]:
    """Return the sum that is printed for each epoch, over all processes."""
    found = re.findall(rf"epoch (\d): .*?{name} (\d+)", out)
    assert {int(epoch) for epoch, _ in found} == set(range(EPOCHS)), out[-3000:]
    return [sum(int(n) for epoch, n in found if int(epoch) == e) for e in range(EPOCHS)]


def test_lightning(run: Run, example: Callable[[str], ModuleType]) -> None:
    """Only training augments; workers change nothing, and another device changes no image."""
    pytest.importorskip("lightning")
    two = run("lightning_module.py", "--workers", 2)
    module = example("lightning_module")
    images = dict(enumerate(module.photographs().tensors[0]))
    want = [expected(module.AUGMENT, images, epoch) for epoch in range(EPOCHS)]
    assert want[0] != want[1]
    validated = [sum(crc(module.PREPARE(x)) for x in images.values())] * EPOCHS
    assert sums(two, "training") == want and sums(two, "validation") == validated
    weights = sums(two, "weights")
    assert weights[0] != weights[1]
    alone = run("lightning_module.py", "--workers", 0)
    assert sums(alone, "training") == want and sums(alone, "weights") == weights
    other = run("lightning_module.py", "--workers", 1, "--devices", 2)
    assert sums(other, "training") == want and sums(other, "validation") == validated


@pytest.mark.parametrize(
    ("options", "launch"),
    [
        (("--workers", 2, "--persistent"), ()),
        (("--workers", 2), ()),
        (("--workers", 0), ()),
        (("--workers", 1, "--persistent"), TWO),
    ],
    ids=["persistent", "workers", "alone", "processes"],
)
def test_hf_trainer(
    options: tuple[object, ...], launch: tuple[object, ...], run: Run, example: Callable[[str], ModuleType]
) -> None:
    """The epoch reaches workers that persist, and every process."""
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    out = run("hf_trainer.py", *options, launch=launch)
    module = example("hf_trainer")
    images = dict(enumerate(module.Photographs().images))
    assert sums(out) == [expected(module.AUGMENT, images, epoch) for epoch in range(EPOCHS)]
    assert len(set(sums(out))) == EPOCHS
    assert len(re.findall(r"epoch 0: ", out)) == (2 if launch else 1)


def test_accelerate_loop(run: Run, example: Callable[[str], ModuleType]) -> None:
    """Two processes see the images of one, by name, and have its losses."""
    pytest.importorskip("accelerate")
    two = run("accelerate_loop.py", "--workers", 1, launch=TWO)
    assert "2 processes" in two
    module = example("accelerate_loop")
    want = []
    for epoch in range(EPOCHS):
        samples = (
            (s["name"], s["image"]) for s in map(module.Photographs().__getitem__, range(module.COUNT))
        )
        seen = sorted((name, crc(v2.seeded(module.AUGMENT, (epoch, name))(image))) for name, image in samples)
        want.append(zlib.crc32(repr(seen).encode()))
    assert sums(two) == want and want[0] != want[1]
    one = run("accelerate_loop.py", "--workers", 0)
    assert "1 processes" in one and sums(one) == want
    losses = [[float(x) for x in re.findall(r"loss ([\d.]+)", out)] for out in (one, two)]
    assert all(abs(a - b) < 1e-3 for a, b in zip(*losses, strict=True))


@pytest.fixture
def video(example: Callable[[str], ModuleType], tmp_path: Path) -> Path:
    pytest.importorskip("torchcodec")
    path = tmp_path / "cat.mp4"
    try:
        example("torchcodec_frames").write(path)
    except RuntimeError as error:
        if "Could not load libtorchcodec" not in str(error):
            raise
        pytest.skip("TorchCodec does not find FFmpeg's shared libraries")
    return path


def test_torchcodec_frames(video: Path, run: Run, example: Callable[[str], ModuleType]) -> None:
    """Each frame of a clip has the draws of the clip's key."""
    out = run("torchcodec_frames.py", "--video", video)
    module = example("torchcodec_frames")
    found = [[int(n) for n in line.split(", ")] for line in re.findall(r"checksums \[(.*)\]", out)]
    clips = module.clips(video)
    assert clips.dtype == torch.uint8 and clips.shape == (module.CLIPS, module.FRAMES, 3, 160, 200)
    for epoch in range(EPOCHS):
        for n, clip in enumerate(clips):
            alone = v2.seeded(module.AUGMENT, (epoch, video.name, n))
            assert found[epoch][n] == crc(torch.stack([alone(frame) for frame in clip]))
    assert len({n for line in found for n in line}) == EPOCHS * module.CLIPS


def test_torchcodec_without_ffmpeg(run: Run, tmp_path: Path) -> None:
    """Without FFmpeg, here behind empty files, the example says what is missing."""
    pytest.importorskip("torchcodec")
    for version in range(50, 70):
        (tmp_path / f"libavutil.so.{version}").touch()
    out = run("torchcodec_frames.py", fails=True, LD_LIBRARY_PATH=str(tmp_path))
    assert "install FFmpeg" in out and "Traceback" not in out


def test_what_torchcodec_takes_for_torchvisions(video: Path) -> None:
    """The decoder resizes by FFmpeg where it is given imgops' Resize, and its crops are imgops' to the bit."""
    from torchcodec import transforms as codec
    from torchcodec.decoders import VideoDecoder

    frames = VideoDecoder(video)[:]
    resize = v2.Resize((96, 112))
    by_decoder = VideoDecoder(video, transforms=[resize])[:]
    assert torch.equal(by_decoder, VideoDecoder(video, transforms=[codec.Resize((96, 112))])[:])
    assert by_decoder.shape == resize(frames).shape and not torch.equal(by_decoder, resize(frames))
    for crop in (v2.CenterCrop((97, 111)), v2.RandomCrop((97, 111))):
        torch.manual_seed(0)
        by_decoder = VideoDecoder(video, transforms=[crop])[:]
        torch.manual_seed(0)
        assert torch.equal(by_decoder, crop(frames))
