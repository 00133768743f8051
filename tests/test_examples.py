"""The examples as a new user runs them: real files, one truncated, on two processes, one of which is killed.

Loaders are compared with one process for the same files. The checksums that examples of trainers print are those of
images that this process augments one by one.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor

from imgops import transforms as v2
from tests.tiers import nightly

pytest.importorskip("skimage")

EXAMPLES = Path(__file__).parent.parent / "examples"
COUNT, CORRUPT, EPOCHS = 160, 2, 2
LEFT_OUT = ("astronaut/00000", "cat/00001")
LAUNCH = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc, and connect over gloo"),
    pytest.mark.xdist_group("examples"),
    nightly,  # each example is a process
]


def run(
    *command: object,
    watch: Callable[[subprocess.Popen[bytes]], None] = lambda process: None,
    fails: bool = False,
    **env: object,
) -> str:
    """Return the output of a program; ``watch`` may act on it while it runs."""
    known = {"HF_DATASETS_OFFLINE": 1, "RAY_DEDUP_LOGS": 0, "PYTHONUNBUFFERED": 1, "CUDA_VISIBLE_DEVICES": ""}
    environment = os.environ | {name: str(value) for name, value in (known | env).items()}
    # A file, because a program that has filled a pipe waits until somebody reads it.
    with tempfile.TemporaryFile("w+") as written:
        how: dict[str, Any] = {"stdout": written, "stderr": subprocess.STDOUT}
        process = subprocess.Popen([sys.executable, *map(str, command)], env=environment, **how)
        try:
            watch(process)
            code = process.wait(timeout=400)
        finally:
            process.kill()
            written.seek(0)
            out = written.read()
            print(out)  # pytest shows it if the test fails
    assert (code != 0) == fails
    return out


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where Trainer makes a folder


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples") / "photos"
    run(EXAMPLES / "photographs.py", folder, "--count", COUNT, "--corrupt", CORRUPT)
    return folder


def children(pid: int) -> list[int]:
    """Return the child processes, by age."""
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def named(part: str) -> Iterator[int]:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if part in entry.read_text():
                yield int(entry.parent.name)
        except (FileNotFoundError, ProcessLookupError):
            continue


def kill(find: Callable[[], int | None], process: subprocess.Popen[bytes]) -> None:
    """Kill the first process that is found, as the system does when it runs out of memory."""
    for _ in range(20_000):
        pid = find()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            return
        assert process.poll() is None, "it ended before anything could be killed"
        time.sleep(0.01)
    raise AssertionError("nothing was found to kill")


def reported(out: str, corrupt: tuple[str, ...] = LEFT_OUT) -> None:
    """Check that every file that could not be decoded is reported once, and no other."""
    lines = re.findall(r"^left out (\S+?)(?:\.jpg|_0)?: (.*)$", out, re.M)
    assert [name for name, _ in lines] == list(corrupt), out[-3000:]
    assert all(re.search("must be a complete (JPEG|image)", text) for _, text in lines)


def sums(out: str) -> list[tuple[str, str]]:
    """Return the number of images and the sum of each epoch."""
    found = re.findall(r"^epoch (\d): (\d+) images, sum (-?[\d.]+)", out, re.M)
    assert [epoch for epoch, *_ in found] == ["0", "1"], out[-3000:]
    return [(count, total) for _, count, total in found]


def images_of(folder: Path) -> dict[str, bytes]:
    """Return the images that ray_data.py wrote, in either format."""
    found = {}
    for path in folder.glob("*.parquet"):
        table = pytest.importorskip("pyarrow.parquet").read_table(path).to_pydict()
        found |= dict(zip(table["__key__"], table["jpg"], strict=True))
    for path in folder.glob("*.tar"):
        with tarfile.open(path) as shard:
            found |= {m.name[:-4]: shard.extractfile(m).read() for m in shard if m.name.endswith(".jpg")}
    return found


def test_ray_data(photos: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    out = run(EXAMPLES / "ray_data.py", photos, tmp_path / "one", "--workers", 1, "--copies", 6)
    reported(out)
    assert re.search(
        rf"^{6 * (COUNT - CORRUPT)} images, 2 files left out, 1 workers: \d+ images/s", out, re.M
    )
    one, two = images_of(tmp_path / "one"), tmp_path / "two"

    def when_something_is_written() -> int | None:
        return next(named("ray::MapWorker"), None) if any(two.glob("*.tar")) else None

    options = ("--workers", 2, "--copies", 6, "--batch", 2, "--format", "webdataset")
    out = run(
        *(EXAMPLES / "ray_data.py", photos, two, *options),
        watch=lambda process: kill(when_something_is_written, process),
    )
    reported(out)
    assert images_of(two) == one and len(one) == 6 * (COUNT - CORRUPT)


def test_hf_datasets(photos: Path, tmp_path: Path) -> None:
    """Two processes, some of which are killed, see the images of one."""
    pytest.importorskip("datasets")
    command = (EXAMPLES / "hf_datasets.py", photos)
    one = run(*command, tmp_path / "one", "--processes", 1, "--epochs", 2)
    reported(one)
    assert {count for count, _ in sums(one)} == {str(COUNT - CORRUPT)} and len(set(sums(one))) == EPOCHS

    def watch(process: subprocess.Popen[bytes]) -> None:
        """Kill the oldest process of map() once it writes (while it waits for work it holds a lock), and any of the loader."""
        seen: list[int] = []

        def mapping() -> int | None:
            seen[:] = children(process.pid)
            writes = len(seen) > 2 and any((tmp_path / "two").rglob("tmp*"))
            return seen[0] if writes else None

        def loading() -> int | None:
            young = [p for p in children(process.pid) if p > max(seen) + 1]
            return young[0] if (tmp_path / "two/photographs/dataset_info.json").exists() and young else None

        kill(mapping, process)
        kill(loading, process)

    two = run(*command, tmp_path / "two", "--processes", 2, "--epochs", 2, "--batch", 4, watch=watch)
    reported(two)
    assert sums(two) == sums(one)
    assert "a process was killed" in two and "a worker was killed" in two


@pytest.fixture(scope="module")
def shards(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write shards with images of one size, one of them truncated."""
    wds = pytest.importorskip("webdataset")
    folder = tmp_path_factory.mktemp("shards")
    for n in range(4):
        with wds.TarWriter(str(folder / f"{n}.tar")) as writer:
            for path in sorted(photos.glob(f"*/*{n}.jpg")) + sorted(photos.glob(f"*/*{n + 4}.jpg")):
                key = f"{path.parent.name}/{path.stem}"
                if key in LEFT_OUT:
                    file = path.read_bytes()
                else:
                    buffer = io.BytesIO()
                    Image.open(path).resize((160, 160)).save(buffer, "JPEG")
                    file = buffer.getvalue()
                writer.write({"__key__": key, "jpg": file, "txt": path.parent.name})
    return folder


def test_webdataset_loader(shards: Path, tmp_path: Path) -> None:
    pytest.importorskip("torchdata")
    command = (EXAMPLES / "webdataset_loader.py", shards, "--size", 128, "--batch", 4, "--epochs", 2)
    one = run(*command, "--workers", 0)
    reported(one)
    assert {count for count, _ in sums(one)} == {str(COUNT * 8 // 10 - CORRUPT)}
    assert sums(run(*command, "--workers", 1, "--threads", 2)) == sums(one)
    options = (*command, "--workers", 2, "--state", tmp_path / "state.pt")

    def worker(process: subprocess.Popen[bytes]) -> int | None:
        return (children(process.pid) or [None])[-1] if (tmp_path / "state.pt").exists() else None

    stopped = run(*options, "--stop-after", 45, watch=lambda p: kill(lambda: worker(p), p))
    assert "a worker was killed" in stopped and "stopped" in stopped
    resumed = run(*options)
    assert "going on in epoch 1" in resumed
    reported(resumed)
    assert sums(resumed) == sums(one)


def test_threads_loader(photos: Path, tmp_path: Path) -> None:
    """Threads, processes, and a run that was stopped and goes on see the same images."""
    command = (EXAMPLES / "threads_loader.py", photos, "--size", 64, "--batch", 16, "--epochs", 2)
    one = run(*command, "--threads", 1, "--ahead", 0)
    assert {count for count, _ in sums(one)} == {str(COUNT - CORRUPT)}
    assert sums(run(*command, "--threads", 2, "--ahead", 2)) == sums(one)
    assert sums(run(*command, "--threads", 1, "--workers", 2)) == sums(one)
    state = ("--state", tmp_path / "state.pt")
    assert "stopped in epoch 1" in run(*command, *state, "--stop-after", 13)
    resumed = run(*command, *state)
    assert "going on in epoch 1 after 48 files" in resumed and sums(resumed) == sums(one)
    reported(one)
    reported(resumed)


def test_train_ddp(photos: Path, tmp_path: Path) -> None:
    program = (EXAMPLES / "train_ddp.py", photos, "--epochs", 2, "--size", 64, "--batch", 16, "--every", 2)
    losses, models = [], []
    for processes in (1, 2):
        state = tmp_path / f"{processes}.pt"
        out = run(*LAUNCH, processes, *program, "--state", state)
        reported(out)
        losses.append([float(x) for x in re.findall(r"loss ([\d.]+)", out)])
        models.append(torch.load(state)["model"])
    one, two = losses
    assert one[1] < one[0] and all(abs(a - b) < 1e-3 for a, b in zip(one, two, strict=True))
    state = tmp_path / "killed.pt"

    def rank(process: subprocess.Popen[bytes]) -> int | None:
        return (children(process.pid) or [None])[-1] if state.exists() else None

    out = run(
        *(*LAUNCH, 2, "--max-restarts", 5, *program, "--state", state, "--timeout", 20),
        watch=lambda process: kill(lambda: rank(process), process),
    )
    reported(out)
    assert "going on in epoch" in out
    for name, value in torch.load(state)["model"].items():
        assert torch.equal(value, models[1][name]), name


# -- trainers ----------------------------------------------------------------------------------------------


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


def crc(image: Tensor) -> int:
    return zlib.crc32(image.numpy().tobytes())


def expected(augment: v2.Compose, images: dict[int | str, Tensor], epoch: int) -> int:
    """Return the sum of the checksums of images that are augmented one by one."""
    return sum(crc(v2.seeded(augment, (epoch, key))(image)) for key, image in images.items())


def checksums(out: str, name: str = "checksum") -> list[int]:
    """Return the sum that is printed for each epoch, over all processes."""
    found = re.findall(rf"epoch (\d): .*?{name} (\d+)", out)
    assert {int(epoch) for epoch, _ in found} == set(range(EPOCHS)), out[-3000:]
    return [sum(int(n) for epoch, n in found if int(epoch) == e) for e in range(EPOCHS)]


def test_lightning(example: Callable[[str], ModuleType]) -> None:
    """Only training augments; workers change nothing, and another device changes no image."""
    pytest.importorskip("lightning")
    two = run(EXAMPLES / "lightning_module.py", "--workers", 2)
    module = example("lightning_module")
    images = dict(enumerate(module.photographs().tensors[0]))
    want = [expected(module.AUGMENT, images, epoch) for epoch in range(EPOCHS)]
    assert want[0] != want[1]
    validated = [sum(crc(module.PREPARE(x)) for x in images.values())] * EPOCHS
    assert checksums(two, "training") == want and checksums(two, "validation") == validated
    weights = checksums(two, "weights")
    assert weights[0] != weights[1]
    alone = run(EXAMPLES / "lightning_module.py", "--workers", 0)
    assert checksums(alone, "training") == want and checksums(alone, "weights") == weights
    other = run(EXAMPLES / "lightning_module.py", "--workers", 1, "--devices", 2)
    assert checksums(other, "training") == want and checksums(other, "validation") == validated


@pytest.mark.parametrize(
    ("options", "launch"),
    [
        (("--workers", 2, "--persistent"), ()),
        (("--workers", 2), ()),
        (("--workers", 0), ()),
        (("--workers", 1, "--persistent"), (*LAUNCH, 2)),
    ],
    ids=["persistent", "workers", "alone", "processes"],
)
def test_hf_trainer(
    options: tuple[object, ...], launch: tuple[object, ...], example: Callable[[str], ModuleType]
) -> None:
    """The epoch reaches workers that persist, and every process."""
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    out = run(*launch, EXAMPLES / "hf_trainer.py", *options)
    module = example("hf_trainer")
    images = dict(enumerate(module.Photographs().images))
    assert checksums(out) == [expected(module.AUGMENT, images, epoch) for epoch in range(EPOCHS)]
    assert len(set(checksums(out))) == EPOCHS
    assert len(re.findall(r"epoch 0: ", out)) == (2 if launch else 1)


def test_accelerate_loop(example: Callable[[str], ModuleType]) -> None:
    """Two processes see the images of one, by name, and have its losses."""
    pytest.importorskip("accelerate")
    two = run(*LAUNCH, 2, EXAMPLES / "accelerate_loop.py", "--workers", 1)
    assert "2 processes" in two
    module = example("accelerate_loop")
    want = []
    for epoch in range(EPOCHS):
        samples = (
            (s["name"], s["image"]) for s in map(module.Photographs().__getitem__, range(module.COUNT))
        )
        seen = sorted((name, crc(v2.seeded(module.AUGMENT, (epoch, name))(image))) for name, image in samples)
        want.append(zlib.crc32(repr(seen).encode()))
    assert checksums(two) == want and want[0] != want[1]
    one = run(EXAMPLES / "accelerate_loop.py", "--workers", 0)
    assert "1 processes" in one and checksums(one) == want
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


def test_torchcodec_frames(video: Path, example: Callable[[str], ModuleType]) -> None:
    """Each frame of a clip has the draws of the clip's key."""
    out = run(EXAMPLES / "torchcodec_frames.py", "--video", video)
    module = example("torchcodec_frames")
    found = [[int(n) for n in line.split(", ")] for line in re.findall(r"checksums \[(.*)\]", out)]
    clips = module.clips(video)
    assert clips.dtype == torch.uint8 and clips.shape == (module.CLIPS, module.FRAMES, 3, 160, 200)
    for epoch in range(EPOCHS):
        for n, clip in enumerate(clips):
            alone = v2.seeded(module.AUGMENT, (epoch, video.name, n))
            assert found[epoch][n] == crc(torch.stack([alone(frame) for frame in clip]))
    assert len({n for line in found for n in line}) == EPOCHS * module.CLIPS


def test_torchcodec_without_ffmpeg(tmp_path: Path) -> None:
    """Without FFmpeg, here behind empty files, the example says what is missing."""
    pytest.importorskip("torchcodec")
    for version in range(50, 70):
        (tmp_path / f"libavutil.so.{version}").touch()
    out = run(EXAMPLES / "torchcodec_frames.py", fails=True, LD_LIBRARY_PATH=tmp_path)
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
