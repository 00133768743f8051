"""The fuzz of tests/fuzz_calls.py with a native module that was built with sanitizers.

``python -m tests.sanitized MODULE.so CALLS``, run by ``make sanitize``.
"""

from __future__ import annotations

import sys

from tests.native_program import load

if __name__ == "__main__":
    module, calls = load(sys.argv[1]), int(sys.argv[2])
    sys.modules["imgops.kernels.cpu._native"] = module  # before imgops imports its own module
    from imgops.kernels.cpu import native
    from tests import fuzz_calls

    assert native.module is module
    found, wrong = fuzz_calls.run(2_000_000, 0, calls, patience=600)
    more, worse = fuzz_calls.run(3_000_000, 0, calls // 2, patience=600, new=True)
    found, wrong = found + more, wrong + worse
    for index, call, error in wrong:
        print(f"call {index}: {call}\n    {error}")
    print(f"{sum(found.values())} calls under the sanitizers: {dict(found)}")
    sys.exit(bool(wrong))
