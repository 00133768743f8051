"""``python -m benchmarks.first_hour``: the first checks on a GPU, in slices of at most eight minutes.

``operators`` compares each operator with the CPU's kernel, in a separate process, so that an illegal address in one
does not hide the results of the others; ``sanitizer`` does this under compute-sanitizer, if it is installed. ``tests``
runs the tests that use a GPU. ``graphs`` replays captured calls with other inputs, ``calls`` queues 1,000 calls of each
operator without a synchronization, ``streams`` runs backward on another stream, ``captures`` uses an operator for the
first time inside a capture. ``timings`` and ``pipelines`` are the benchmark: benchmarks/cuda.py.

Each call of this program runs the first unfinished slice, up to the limit, and prints the remaining work.
Call it until no work remains. It prints each result at once, and stores it in a JSON file, which the page of
benchmarks shows. ``--slice`` names slices, ``--again`` repeats failed items. ``--device cpu`` runs everything
on tiny samples in Triton's interpreter, to show that the program works; its timings are meaningless.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results")
Result = dict[str, Any]
Record = Callable[[Result], None]

SLICES = ("operators", "sanitizer", "tests", "graphs", "calls", "streams", "captures", "timings", "pipelines")
#: The slices whose items run one after another in one process, because nothing else may use the device during timings.
TIMED = ("timings", "pipelines")
#: The time limit of an item in seconds.
PATIENCE = {"operators": 300, "sanitizer": 400, "tests": 450, "pipelines": 240}
#: The tests that use a GPU if there is one.
TESTS = ("cuda", "cuda_kernels", "cuda_packed", "device_faults", "host", "generic", "reference", "codec")


class Document:
    """The file of results, which is rewritten after each result."""

    def __init__(self, path: Path, about: Result) -> None:
        self.path, self.lock = path, threading.Lock()
        self.content: Result = {**about, "date": str(date.today()), "results": []}
        if path.exists():
            self.content["results"] = json.loads(path.read_text())["results"]

    def add(self, found: Result) -> None:
        with self.lock:
            same = (found["slice"], found["item"])
            kept = [r for r in self.content["results"] if (r["slice"], r["item"]) != same]
            self.content["results"] = [*kept, found]
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(self.content, indent=1) + "\n")
            new.replace(self.path)
            mark = "ok  " if found["ok"] else "FAIL"
            print(f"{mark} {found['slice']}: {found['item']}: {found['said']}", flush=True)
            for each in found.get("wrong", ()):
                print(f"       {each}", flush=True)

    def left(self, name: str, items: Sequence[str], again: bool) -> list[str]:
        """Return the items without a result or, if failed items are repeated, without a good result."""
        done = {r["item"] for r in self.content["results"] if r["slice"] == name and (r["ok"] or not again)}
        return [item for item in items if item not in done]


# -- processes -------------------------------------------------------------------------------------------


class Lines:
    """A process whose lines are read with a time limit; ``tail`` is the end of its stderr."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], folder: str) -> None:
        self.errors = Path(folder, "stderr")
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self.queue: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.queue.put(line)
        self.queue.put(None)

    def next(self, until: float) -> str | None:
        """Return the next line, or None at the end; raise ``queue.Empty`` after the time limit."""
        return self.queue.get(timeout=max(until - time.monotonic(), 0.01))

    def end(self) -> int:
        """End the process and its child processes, and return its exit status."""
        with suppress(ProcessLookupError):
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait()

    def tail(self) -> str:
        return self.errors.read_text(errors="replace").strip()[-1500:]


def work(name: str, items: Sequence[str], device: str, deadline: float) -> Iterator[Result]:
    """Yield the results of items; if a process dies, one item is lost, and another process continues with the next."""
    left = list(items)
    while left and time.monotonic() < deadline:
        with tempfile.TemporaryDirectory() as folder:
            child = Lines(_command(name, device, left), _environment(name, device, folder), folder)
            patience, late = PATIENCE.get(name, 150), False
            while left:
                limit = time.monotonic() + patience
                try:
                    line = child.next(min(limit, deadline))
                except queue.Empty:
                    child.end()
                    if limit > deadline:  # too little time was left: the next call continues
                        return
                    late = True
                    break
                if line is None:
                    break
                if line.startswith("{"):
                    found = json.loads(line)
                    left = [item for item in left if item != found["item"]]
                    if name == "sanitizer":
                        found |= _sanitized(child)
                    yield found
            code = child.end() if late or left else child.process.wait()
            if left and not (code == 3 and not late):
                said = f"no result in {patience} s" if late else f"the process ended with status {code}"
                yield {"item": left.pop(0), "ok": False, "said": said, "wrong": [child.tail()]}


def _sanitized(child: Lines) -> Result:
    """Interpret compute-sanitizer's exit status, which comes after the result."""
    rest = []
    with suppress(queue.Empty):
        while (line := child.next(time.monotonic() + 60)) is not None:
            rest.append(line)
    faults = [line.strip() for line in rest if "=========" in line]
    if child.process.wait() == 0:
        return {}
    return {"ok": False, "said": "compute-sanitizer found faults", "wrong": faults[:12]}


def _command(name: str, device: str, items: Sequence[str]) -> list[str]:
    command = [sys.executable, "-m", "benchmarks.first_hour_work", name, device, *items]
    tool = shutil.which("compute-sanitizer")
    if name == "sanitizer" and tool is not None:
        return [tool, "--tool", "memcheck", "--error-exitcode", "86", "--launch-timeout", "120", *command]
    return command


def _environment(name: str, device: str, folder: str) -> dict[str, str]:
    found = {"OMP_NUM_THREADS": "2"} | ({"TRITON_INTERPRET": "1"} if device == "cpu" else {})
    if name == "captures":  # Triton compiles inside the capture
        found["TRITON_CACHE_DIR"] = folder
    if name == "sanitizer":  # so that each tensor has separate memory
        found["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    return found


def tests(names: Sequence[str], device: str, processes: int, deadline: float) -> Iterator[Result]:
    """Yield the result of each file of tests, which run in parallel processes."""
    for name in names:
        seconds = min(deadline - time.monotonic(), PATIENCE["tests"])
        if seconds < 30:
            return
        command = [sys.executable, "-m", "pytest", f"tests/test_{name}.py", "--tb=line", "-rfE"]
        command += ["-n", str(processes)] if processes > 1 else []
        command += ["-k", "crop"] if device == "cpu" else []
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            # pytest truncates the reason for a failure at the width of the terminal.
            child, lines = Lines(command, {"COLUMNS": "300"}, folder), [""]
            try:
                while (line := child.next(start + seconds)) is not None:
                    lines.append(line.rstrip())
            except queue.Empty:
                child.end()
                if seconds < PATIENCE["tests"]:
                    return
                said = f"did not end in {seconds:.0f} s"
                yield {"item": name, "ok": False, "said": said, "wrong": lines[-5:]}
                continue
            code, tail = child.process.wait(), child.tail()
        counts = next((x for x in reversed(lines) if re.search(r"\d+ (passed|failed|skipped|error)", x)), "")
        good = code in (0, 5)  # 5: no test was chosen
        failed = [line[:300] for line in lines if line.startswith(("FAILED", "ERROR"))][:30]
        yield {
            "item": name,
            "ok": good,
            "said": counts.strip("= ") or f"pytest ended with status {code}",
            "wrong": failed or ([] if good else [tail]),
            "seconds": round(time.monotonic() - start, 1),
        }


# -- slices ------------------------------------------------------------------------------------------------


def run_slice(
    name: str,
    items: Sequence[str],
    device: str,
    minutes: float,
    processes: int,
    add: Callable[[Result], None],
) -> None:
    """Run items of a slice until the limit."""
    deadline = time.monotonic() + 60 * minutes

    def record(found: Result) -> None:
        add({"slice": name} | found)

    if name == "tests":
        for found in tests(items, device, processes, deadline):
            record(found)
    elif name in TIMED:
        for found in work(name, items, device, deadline):
            record(found)
    else:  # a process for each item

        def alone(item: str) -> None:
            for found in work(name, [item], device, deadline):
                record(found)

        with ThreadPoolExecutor(processes) as pool:
            list(pool.map(alone, items))


def plan(device: str) -> tuple[Result, dict[str, list[str]]]:
    """Return the information of the worker program: about the device, and the items of each slice."""
    command = [sys.executable, "-m", "benchmarks.first_hour_work", "plan", device]
    environment = os.environ | _environment("plan", device, "")
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    known = json.loads(done.stdout.splitlines()[-1])
    found: dict[str, list[str]] = known["items"]
    found["tests"] = ["cuda_devices"] if device == "cpu" else list(TESTS)
    if device == "cuda" and shutil.which("compute-sanitizer") is None:
        found["sanitizer"] = []
    return known["about"], {name: found[name] for name in SLICES}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument(
        "--slice", default="", help="comma-separated names; default: the first with work left"
    )
    parser.add_argument("--only", default="", help="items whose name contains this")
    parser.add_argument("--minutes", type=float, default=8, help="the limit of each slice")
    parser.add_argument("--processes", type=int, default=max(1, min(6, (os.cpu_count() or 2) // 2)))
    parser.add_argument(
        "--out", type=Path, help="the file; benchmarks/results/first-hour-<device>.json by default"
    )
    parser.add_argument("--again", action="store_true", help="repeat what failed")
    options = parser.parse_args()
    about, items = plan(options.device)
    slug = re.sub(r"\W+", "-", about["device"].lower())
    folder = RESULTS if options.device == "cuda" else ROOT / "build"
    document = Document(options.out or folder / f"first-hour-{slug}.json", about)
    print(f"{about['device']}, torch {about['torch']}, Triton {about['triton']}: {document.path}", flush=True)
    every = {name: [i for i in each if options.only in i] for name, each in items.items()}
    chosen = [name for name in options.slice.split(",") if name]
    if not chosen:
        chosen = [name for name in SLICES if document.left(name, every[name], options.again)][:1]
    for name in chosen:
        left = document.left(name, every[name], options.again)
        print(f"{name}: {len(left)} of {len(every[name])} to do", flush=True)
        run_slice(name, left, options.device, options.minutes, options.processes, document.add)
    rest = {name: len(document.left(name, each, False)) for name, each in every.items()}
    said = ", ".join(f"{name} {count}" for name, count in rest.items() if count)
    print(f"left: {said}; call again" if said else "nothing is left", flush=True)
    return any(not r["ok"] for r in document.content["results"] if r["slice"] in chosen)


# -- the page ----------------------------------------------------------------------------------------------


def checks_table(content: Result) -> list[list[str]]:
    """Return the rows of a table: the number of good items of each slice, and the names of the others."""
    rows = [["slice", "good", "failed", "which"]]
    for name in SLICES:
        found = [r for r in content["results"] if r["slice"] == name]
        bad = [r["item"] for r in found if not r["ok"]]
        if found:
            rows.append([name, str(len(found) - len(bad)), str(len(bad)), ", ".join(bad) or "–"])
        else:
            rows.append([name, "–", "–", "not run"])
    return rows


def timings_tables(content: Result) -> list[tuple[str, list[list[str]]]]:
    """Return a table for each shape of batches: its title and its rows."""
    from benchmarks.cuda import HEAD, cells

    found = [r["timing"] for r in content["results"] if "timing" in r]
    shapes = list(dict.fromkeys(tuple(t["shape"]) for t in found))
    return [
        (" × ".join(map(str, s)), [list(HEAD), *(cells(t) for t in found if tuple(t["shape"]) == s)])
        for s in shapes
    ]


if __name__ == "__main__":
    sys.exit(main())
