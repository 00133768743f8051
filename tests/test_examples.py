"""The examples as a new user runs them: real files, one truncated, on two processes, one of which is killed.

Each is compared with the result of one process for the same files.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from tests.tiers import nightly

pytest.importorskip("ray")
pytest.importorskip("datasets")
pytest.importorskip("torchdata")
wds = pytest.importorskip("webdataset")
parquet = pytest.importorskip("pyarrow.parquet")

ROOT = Path(__file__).parent.parent
COUNT, CORRUPT = 160, 2
LEFT_OUT = ("astronaut/00000", "cat/00001")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc"),
    pytest.mark.xdist_group("examples"),
]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples") / "photos"
    run("examples/photographs.py", folder, "--count", COUNT, "--corrupt", CORRUPT)
    return folder


def run(*command: object, watch: Callable[[subprocess.Popen[str]], None] | None = None) -> str:
    """Return the output of a program; ``watch`` may act on it while it runs."""
    environment = os.environ | {"HF_DATASETS_OFFLINE": "1", "RAY_DEDUP_LOGS": "0", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, *map(str, command)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if watch is not None:
        watch(process)
    out, _ = process.communicate(timeout=400)
    assert process.returncode == 0, out[-6000:]
    return out


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


def kill(find: Callable[[], int | None], process: subprocess.Popen[str]) -> None:
    """Kill the first process that is found, as the system does when it runs out of memory."""
    for _ in range(20_000):
        pid = find()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            return
        assert process.poll() is None, (
            "it ended before anything could be killed:\n" + process.communicate()[0]
        )
        time.sleep(0.01)
    raise AssertionError("nothing was found to kill")


def reported(out: str, corrupt: tuple[str, ...] = LEFT_OUT) -> None:
    """Check that every file that could not be decoded is reported once, and no other."""
    lines = re.findall(r"^left out (\S+?)(?:\.jpg|_0)?: (.*)$", out, re.M)
    assert [name for name, _ in lines] == list(corrupt), out[-3000:]
    assert all("must be a complete JPEG" in text for _, text in lines)


def images_of(folder: Path) -> dict[str, bytes]:
    """Return the images that ray_data.py wrote, in either format."""
    found = {}
    for path in folder.glob("*.parquet"):
        table = parquet.read_table(path).to_pydict()
        found |= dict(zip(table["__key__"], table["jpg"], strict=True))
    for path in folder.glob("*.tar"):
        with tarfile.open(path) as shard:
            found |= {m.name[:-4]: shard.extractfile(m).read() for m in shard if m.name.endswith(".jpg")}
    return found


@nightly
def test_ray_data(photos: Path, tmp_path: Path) -> None:
    out = run("examples/ray_data.py", photos, tmp_path / "one", "--workers", 1, "--copies", 6)
    reported(out)
    assert re.search(
        rf"^{6 * (COUNT - CORRUPT)} images, 2 files left out, 1 workers: \d+ images/s", out, re.M
    )
    one, two = images_of(tmp_path / "one"), tmp_path / "two"

    def when_something_is_written() -> int | None:
        return next(named("ray::MapWorker"), None) if any(two.glob("*.tar")) else None

    options = ("--workers", 2, "--copies", 6, "--batch", 2, "--format", "webdataset")
    out = run(
        *("examples/ray_data.py", photos, two, *options),
        watch=lambda process: kill(when_something_is_written, process),
    )
    reported(out)
    assert images_of(two) == one and len(one) == 6 * (COUNT - CORRUPT)


@nightly
def test_hf_datasets(photos: Path, tmp_path: Path, whole: bool) -> None:
    """Run the example on one process; in the nightly tests also on two, some of which are killed."""
    command = ("examples/hf_datasets.py", photos)
    one = run(*command, tmp_path / "one", "--processes", 1, "--epochs", 2)
    reported(one)
    sums = re.findall(rf"^epoch (\d): {COUNT - CORRUPT} images, sum ([\d.]+)", one, re.M)
    assert [n for n, _ in sums] == ["0", "1"] and sums[0][1] != sums[1][1]
    if not whole:
        return

    def watch(process: subprocess.Popen[str]) -> None:
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
    assert re.findall(rf"^epoch (\d): {COUNT - CORRUPT} images, sum ([\d.]+)", two, re.M) == sums
    assert "a process was killed" in two and "a worker was killed" in two


@pytest.fixture(scope="module")
def shards(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write shards with images of one size, one of them truncated."""
    import io

    from PIL import Image

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


@nightly
def test_webdataset_loader(shards: Path, tmp_path: Path) -> None:
    command = ("examples/webdataset_loader.py", shards, "--size", 128, "--batch", 4, "--epochs", 2)
    one = run(*command, "--workers", 0)
    reported(one)
    sums = re.findall(r"^epoch (\d): (\d+) images, sum ([\d.]+)", one, re.M)
    assert len(sums) == 2 and {n for _, n, _ in sums} == {str(COUNT * 8 // 10 - CORRUPT)}
    threads = run(*command, "--workers", 1, "--threads", 2)
    assert re.findall(r"^epoch (\d): (\d+) images, sum ([\d.]+)", threads, re.M) == sums
    options = (*command, "--workers", 2, "--state", tmp_path / "state.pt")

    def worker(process: subprocess.Popen[str]) -> int | None:
        return (children(process.pid) or [None])[-1] if (tmp_path / "state.pt").exists() else None

    stopped = run(*options, "--stop-after", 45, watch=lambda p: kill(lambda: worker(p), p))
    assert "a worker was killed" in stopped and "stopped" in stopped
    resumed = run(*options)
    assert "going on in epoch 1" in resumed
    reported(resumed)
    assert re.findall(r"^epoch (\d): (\d+) images, sum ([\d.]+)", resumed, re.M) == sums


@nightly
def test_threads_loader(photos: Path, tmp_path: Path) -> None:
    """Threads, processes, and a run that was stopped and goes on see the same images."""
    command = ("examples/threads_loader.py", photos, "--size", 64, "--batch", 16, "--epochs", 2)
    found = {}
    for name, options in {
        "one": ("--threads", 1, "--ahead", 0),
        "two": ("--threads", 2, "--ahead", 2),
        "workers": ("--threads", 1, "--workers", 2),
    }.items():
        found[name] = run(*command, *options)
    state = ("--state", tmp_path / "state.pt")
    assert "stopped in epoch 1" in run(*command, *state, "--stop-after", 13)
    found["resumed"] = run(*command, *state)
    assert "going on in epoch 1 after 48 files" in found["resumed"]
    sums = {
        name: re.findall(r"^epoch (\d): (\d+) images, sum (-?[\d.]+)", out, re.M)
        for name, out in found.items()
    }
    assert len(sums["one"]) == 2
    assert all(count == str(COUNT - CORRUPT) for _, count, _ in sums["one"])
    assert all(other == sums["one"] for other in sums.values())
    reported(found["one"])
    reported(found["resumed"])


@nightly
def test_train_ddp(photos: Path, tmp_path: Path) -> None:
    program = ("examples/train_ddp.py", photos, "--epochs", 2, "--size", 64, "--batch", 16, "--every", 2)
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
    losses, models = [], []
    for processes in (1, 2):
        state = tmp_path / f"{processes}.pt"
        out = run(*launch, processes, *program, "--state", state)
        reported(out)
        losses.append([float(x) for x in re.findall(r"loss ([\d.]+)", out)])
        models.append(torch.load(state)["model"])
    one, two = losses
    assert one[1] < one[0] and all(abs(a - b) < 1e-3 for a, b in zip(one, two, strict=True))
    state = tmp_path / "killed.pt"

    def rank(process: subprocess.Popen[str]) -> int | None:
        return (children(process.pid) or [None])[-1] if state.exists() else None

    out = run(
        *(*launch, 2, "--max-restarts", 5, *program, "--state", state, "--timeout", 20),
        watch=lambda process: kill(lambda: rank(process), process),
    )
    reported(out)
    assert "going on in epoch" in out
    for name, value in torch.load(state)["model"].items():
        assert torch.equal(value, models[1][name]), name
