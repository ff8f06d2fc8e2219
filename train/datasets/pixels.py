"""Images of bytes, which become numbers as they are taken."""

from __future__ import annotations

import numpy as np

__all__ = ["Pixels"]


class Pixels:
    """Images of bytes that become numbers as they are taken: byte / 256, exact in binary32.

    Parameters
    ----------
    codes : uint8 array (samples, features)

    Examples
    --------
    >>> x = Pixels(np.array([[0, 64], [128, 255]], np.uint8))
    >>> x.shape, x[[1]]
    ((2, 2), array([[0.5       , 0.99609375]], dtype=float32))
    """

    def __init__(self, codes: np.ndarray) -> None:
        self.codes = codes

    @property
    def shape(self) -> tuple[int, int]:
        """(samples, features)"""
        return self.codes.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, samples) -> np.ndarray:
        """The given samples, as float32 (samples, features)."""
        return self.codes[samples] * np.float32(2.0**-8)

    def first(self, count: int) -> Pixels:
        """The first so many images."""
        return Pixels(self.codes[:count])
