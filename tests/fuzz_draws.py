"""Random states, rules and sizes for the native code that draws.

``python -m tests.fuzz_draws CALLS DRAWS.so``, run by ``make sanitize``, checks a module built with sanitizers.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

from tests.native_program import load

#: Rules as ``draws.encode`` writes them; every operation is there.
RULES: list[list[float]] = [
    [0, 0, 2, 12, 0, 0.5, 2, 0, 1, 0, 1, 4, 1, 3, 0, 0, -1, 1],
    [0, 0, 2, 5, 2, 0.5, 7, 1, 1, 0, 3, 3, 2, 1, 0, 0],
    [1, 0, 1, 7, -1, 4, 1, 3, 0, 2, -3.5, 1.25, 5, 0, 3, 0, 3, 2, 2.0**28],
    [6, 0, 4, 0, 0, 1, 2, -1, 4, 4, 3, 0, 1, -2, 2],
    [9, 0, 8, 0, 0, 0, 0.08, 1, -0.2876821, 0.2876821, 0.75, 4 / 3, 8, 4, 4, 0, 20, 20, 1, -7],
    [10, 0, 6, 0, 20, 20, 0.02, 0.33, -1.2, 1.2],
    [11, 0, 6, 0, 31, 0, 1, 3, 2, 1, 6, 3, 700, 0, *range(700)],
]
NUMBERS = [*map(float, range(-1, 13)), 0.5, 1e300, -1e300, np.nan, np.inf, 2.0**53, 2.0**31, 624.0]


class Fake:
    """A generator whose state is any bytes."""

    def __init__(self, state: np.ndarray) -> None:
        self.state = state

    def get_state(self) -> Fake:
        return self

    def numpy(self) -> np.ndarray:
        return self.state


def words_of(fake: Fake, count: int) -> np.ndarray:
    """Return the next words of a state, as PyTorch gives them, and put the state after them."""
    generator = torch.Generator()
    generator.set_state(torch.from_numpy(fake.state))
    words = torch.empty(count, dtype=torch.int32).random_(generator=generator).numpy()
    fake.state = generator.get_state().numpy()
    return words


def run(calls: int, seed: int, module: Any = None) -> tuple[int, int]:
    """Return how many calls drew and how many raised."""
    if module is None:
        from imgops.transforms._core import _draws as module  # type: ignore[attr-defined, no-redef]
    rng = np.random.default_rng(seed)
    good = torch.Generator().manual_seed(1).get_state().numpy()
    drew = 0
    for _ in range(calls):
        state = good.copy()
        if rng.random() < 0.3:
            at = rng.integers(0, 40)
            state[at : at + 4] = rng.integers(0, 256, 4)
        if rng.random() < 0.05:
            state = rng.integers(0, 256, rng.integers(0, 6000)).astype(np.uint8)
        code = np.array(RULES[rng.integers(len(RULES))], dtype=np.float64)
        for _ in range(rng.integers(0, 3)):
            code[rng.integers(len(code))] = NUMBERS[rng.integers(len(NUMBERS))]
        if rng.random() < 0.2:
            code = code[rng.integers(len(code)) :].copy()
        if rng.random() < 0.1:
            code = rng.choice(NUMBERS, rng.integers(0, 30))
        columns, count = int(rng.choice([0, 1, 4, 8, *[800] * 12])), int(rng.integers(0, 4))
        neutral, rows = np.zeros(columns), np.zeros((count, columns))
        if rng.random() < 0.05:
            rows = np.zeros(int(rng.integers(0, 50)))
        sizes = rng.choice(NUMBERS, (count, 2)) if rng.random() < 0.3 else np.full(2, 20.0)
        generator, gate = Fake(state), rng.integers(0, 2, count).astype(np.uint8)
        if rng.random() < 0.1:  # arguments that share their memory
            neutral = rows.ravel()[:columns]
        if rng.random() < 0.1 and rows.size >= len(code):
            rows.ravel()[: len(code)] = code
            code = rows.ravel()[: len(code)]
        module.check(code, int(rng.integers(-2, 10)))
        try:
            take = words_of if rng.random() < 0.8 else lambda *_: rng.bytes(rng.integers(0, 40))
            done = module.draw(generator, take, code, neutral, gate, sizes, rows, int(rng.integers(-1, 4)))
        except ValueError:
            continue
        assert 0 <= done <= count
        drew += 1
    return drew, calls - drew


if __name__ == "__main__":
    drew, raised = run(int(sys.argv[1]), 1, load(sys.argv[2], "_draws"))
    print(f"{drew} calls drew and {raised} raised under the sanitizers")
