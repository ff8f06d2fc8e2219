"""Where softnum keeps what it made once and may make again: compiled code, simulators' results, the charts' library."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder(*, make: bool = True) -> Path:
    """The folder: SOFTNUM_CACHE, else softnum/ under XDG_CACHE_HOME or ~/.cache.

    Parameters
    ----------
    make : bool
        Whether it is made, for this user alone, if it is absent.

    Raises
    ------
    ValueError
        If it cannot be made.

    Examples
    --------
    >>> from softnum.runtime.caching import cache_folder
    >>> cache_folder().is_dir()
    True
    """
    given = os.environ.get("SOFTNUM_CACHE")
    folder = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "softnum")
    if make:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"the cache folder {folder} cannot be made ({error}); set SOFTNUM_CACHE") from None
    return folder
