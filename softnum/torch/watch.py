"""What a design does to the numbers of a model, layer by layer, as it trains."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from torch import nn

from softnum.runtime.columns import text_table
from softnum.torch.models import mode_of
from softnum.train.engine.watch import Event
from softnum.train.runs.statistics import Watch

__all__ = ["statistics", "watched"]

_COLUMNS = ("layer", "role", "format", "shape", "roundings", "saturated", "underflowed", "error", "exponents")


@contextlib.contextmanager
def watched(model: nn.Module, listener: Callable[[Event], None]):
    """Tell a listener of every call of a converted model's arithmetic, as long as the context lasts.

    Raises
    ------
    ValueError
        If the model is not converted, or watched already.
    """
    mode = mode_of(model)
    plain = mode.arithmetic
    if plain.listener is not None:
        raise ValueError("the model is watched already, by another softnum.torch.statistics")
    mode.arithmetic = twin = plain.watched(listener)
    try:
        yield
    finally:
        twin.listener = None
        mode.arithmetic = plain


class statistics:
    """A context manager that collects statistics of a model's roundings: saturation, underflow, errors, exponents.

    Every rounding to a role and every product in a unit is compared with its exact result. No bit of what is computed
    depends on it; it takes several times as long.

    Parameters
    ----------
    model : torch.nn.Module
        A converted one (`convert`).

    Attributes
    ----------
    tensors : dict
        (layer, role, format, shape) -> ``softnum.train.runs.statistics.TensorStatistics``, in the order of the first
        rounding; of a product, the role is the pass.

    Raises
    ------
    ValueError
        If the model is not converted, or watched already.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> model = st.convert(torch.nn.Linear(4, 2, bias=False), "j-mxfp4", quiet=True)
    >>> with st.statistics(model) as seen:
    ...     y = model(torch.tensor([[1.0, 2.0, 300.0, 0.01]]))
    >>> [(row["role"], row["saturated"], row["underflowed"]) for row in seen.rows()][0]
    ('input', 0, 3)
    """

    def __init__(self, model: nn.Module) -> None:
        mode_of(model)
        self._watch = Watch()
        self._watching = watched(model, self._watch)
        self.tensors = self._watch.tensors

    def __enter__(self) -> statistics:
        self._watching.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._watching.__exit__(*error)

    def rows(self) -> list[dict]:
        """One for each layer, role, format and shape, with the entries of ``softnum train --statistics``."""
        return [{k: v for k, v in row.items() if k != "iteration"} for row in self._watch.rows(0)]

    def __str__(self) -> str:
        """A table: shares of saturated and underflowed elements, relative error, and the exponents that there were."""
        lines = [_COLUMNS]
        for row in self.rows():
            exponents = [exponent for exponent, _ in row["exponents"]]
            error, share = row["relative_error"], max(row["elements"], 1)
            lines.append(
                (
                    row["layer"], row["role"], row["format"], " x ".join(map(str, row["shape"])), str(row["roundings"]),
                    f"{row['saturated'] / share:.2%}", f"{row['underflowed'] / share:.2%}",
                    "-" if error is None else f"{error:.1e}",
                    f"{exponents[0]} to {exponents[-1]}" if exponents else "-",
                )
            )  # fmt: skip
        return text_table(lines, numbers=5)

    def draw(self) -> bytes:
        """A picture of it, a PNG file (``softnum.train.inspect.plot.draw_rows``).

        ``pathlib.Path("statistics.png").write_bytes(seen.draw())`` keeps it.
        """
        from softnum.train.inspect.plot import draw_rows

        rows = self.rows()
        if not rows:
            raise ValueError("nothing was computed: run the model within the with statement")
        return draw_rows(rows)
