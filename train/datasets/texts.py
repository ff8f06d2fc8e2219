"""A text of the user's own, as sequences of bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

__all__ = ["STEPS", "read_text"]

#: bytes of a sequence, unless a network has other steps
STEPS = 32
_FILE = "input.txt"


def read_text(file: Path | None, steps: int = STEPS) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cut a text into sequences, each with the bytes that follow its own, and hold out the last tenth.

    Sequence i of s bytes consists of the bytes s i to s i + s - 1, its labels of those one further on; what is left of
    the text after the last whole sequence is not used. Of n sequences the last n // 10, at least one, are held out.

    Parameters
    ----------
    file : pathlib.Path or None
        The text, in any encoding; or a folder with a file ``input.txt``.
    steps : int
        Bytes of a sequence.

    Returns
    -------
    train_x, train_y, test_x, test_y : int64 arrays (sequences, steps)

    Raises
    ------
    ValueError
        If no file is named, there is none, or it has no byte more than two sequences.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     size = Path(folder, "input.txt").write_bytes(bytes(range(100)))
    ...     parts = read_text(Path(folder))
    >>> [part.shape for part in parts], parts[1][1][:3].tolist()
    ([(2, 32), (2, 32), (1, 32), (1, 32)], [33, 34, 35])
    """
    if file is None:
        raise ValueError(
            "the data set 'text' is a plain text file of your own: name it with --data-dir FILE (data_folder= in "
            f"Settings), or a folder with a file {_FILE}"
        )
    file = file / _FILE if file.is_dir() else file
    try:
        content = np.frombuffer(file.read_bytes(), np.uint8).astype(np.int64)
    except OSError as error:
        raise ValueError(
            f"the text {str(file)!r} cannot be read ({error.strerror}); the data set 'text' is a plain text file of "
            f"your own, or a folder with a file {_FILE}"
        ) from error
    count = (len(content) - 1) // steps
    if count < 2:
        raise ValueError(
            f"the text {str(file)!r} has {len(content)} bytes; at least {2 * steps + 1} are needed, for a sequence of "
            f"{steps} to train on and one to hold out"
        )
    x, y = (content[first : first + count * steps].reshape(count, steps) for first in (0, 1))
    train = count - max(1, count // 10)
    return x[:train], y[:train], x[train:], y[train:]
