"""``python -m softnum`` is the ``softnum`` program."""

from softnum.cli import main

if __name__ == "__main__":
    main()
