"""The random calls of tests/fuzz.py with native modules that were built with sanitizers.

``python -m tests.sanitized NATIVE.so MEMORY.so CALLS``, run by ``make sanitize``. All outputs take memory of the pool.
"""

from __future__ import annotations

import sys

from tests.native_program import load

if __name__ == "__main__":
    module, pool, calls = load(sys.argv[1]), load(sys.argv[2], "_memory"), int(sys.argv[3])
    sys.modules["imgops.kernels.cpu._native"] = module  # before imgops imports its own modules
    sys.modules["imgops._common._memory"] = pool
    from imgops._common import memory
    from imgops.kernels.cpu import native
    from tests import fuzz

    assert native.module is module and memory._memory is pool
    memory.LEAST = 1
    is_wrong = False
    for seed, kind in enumerate(fuzz.KINDS, 2):
        found, wrong = fuzz.run(
            kind, seed * 1_000_000, 0, calls if kind == "calls" else calls // 2, patience=600
        )
        for index, call, error in wrong:
            print(f"{kind} {index}: {call}\n    {error}")
        print(f"{sum(found.values())} {kind} under the sanitizers: {dict(found)}")
        is_wrong |= bool(wrong)
    sys.exit(is_wrong)
