"""The fuzz of tests/fuzz_calls.py with native modules that were built with sanitizers.

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
    from tests import fuzz_calls, fuzz_pipelines

    assert native.module is module and memory._memory is pool
    memory.LEAST = 1
    found, wrong = fuzz_calls.run(2_000_000, 0, calls, patience=600)
    more, worse = fuzz_calls.run(3_000_000, 0, calls // 2, patience=600, new=True)
    found, wrong = found + more, wrong + worse
    counted, differ = fuzz_pipelines.run(4_000_000, calls // 2)
    found, wrong = found + counted, wrong + [(n, "a pipeline", "; ".join(how)) for n, how in differ]
    for index, call, error in wrong:
        print(f"call {index}: {call}\n    {error}")
    print(f"{sum(found.values())} calls under the sanitizers: {dict(found)}")
    sys.exit(bool(wrong))
