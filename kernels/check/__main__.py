"""The command ``python -m softnum.kernels.check``."""

import contextlib
import sys

try:
    from softnum.kernels.check.all_kernels import main
except ImportError as error:  # it says what to install
    print(error, file=sys.stderr)
    sys.exit(2)

if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
