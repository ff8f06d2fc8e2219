"""DLRM with the cross network of its second version, as MLPerf trains it."""

from __future__ import annotations

from dataclasses import dataclass

from softnum.tta.architectures.layers import Activation, Concatenate, Dense, Flatten, Input, Layer, Loss, Work
from softnum.tta.architectures.lowering import Architecture

__all__ = ["dlrm_v2"]

#: rows of each table, and how many of them a sample adds up
_ROWS = (
    40_000_000, 39_060, 17_295, 7_424, 20_265, 3, 7_122, 1_543, 63, 40_000_000, 3_067_956, 405_282, 10, 2_209, 11_938,
    155, 4, 976, 14, 40_000_000, 40_000_000, 40_000_000, 590_152, 12_973, 108, 36,
)  # fmt: skip
_HOTS = (3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1)


@dataclass(frozen=True)
class _Bags(Layer):
    """Of several tables the sums of a sample's rows, side by side. Gradients and updates are of those rows alone, as if
    no two samples of a batch shared one.

    >>> _Bags("bags", (100, 50), (3, 1), 16).result(((4,),))
    (32,)
    """

    rows: tuple[int, ...]
    hots: tuple[int, ...]
    features: int

    def result(self, shapes):
        """A sum of each table."""
        if shapes[0] != (sum(self.hots),):
            self.fail(f"takes {sum(self.hots)} numbers of rows, got the shape {shapes[0]}")
        return (len(self.rows) * self.features,)

    def parameters(self, shapes):
        """The tables."""
        return {"weight": sum(self.rows) * self.features}

    def updated(self, shapes, batch):
        """Of the rows that a batch takes."""
        return sum(min(rows, hots * batch) for rows, hots in zip(self.rows, self.hots, strict=True)) * self.features

    def work(self, shapes, batch):
        """Sums of rows, and their gradients."""
        taken, sums = (batch * count * self.features for count in (sum(self.hots), len(self.rows)))
        gradients = ("weight_gradients", self.updated(shapes, batch))
        return [
            Work("forward", "embedding", taken - sums, (("weights", taken),), (("activations", sums),)),
            Work("backward_weight", "embedding", taken, (("errors", sums),), (gradients,)),
        ]


@dataclass(frozen=True)
class _Cross(Layer):
    """The network's first values times what a layer made of the last, plus the last.

    >>> _Cross("cross", inputs=("x0", "y", "x")).result(((64,), (64,), (64,)))
    (64,)
    """

    saves = "input"

    def work(self, shapes, batch):
        """Of both passes."""
        n = batch * shapes[0][0]
        x, errors = ("activations", 3 * n), ("errors", n)
        return [
            Work("forward", "cross", 2 * n, (x,), (("activations", n),)),
            Work("backward_data", "cross", 3 * n, (x, errors), (("errors", 3 * n),)),
        ]


def dlrm_v2() -> Architecture:
    """26 tables of 128 features, a perceptron of 13 numbers, three cross layers of rank 512, a perceptron on top."""
    layers: list[Layer] = [_Bags("tables", _ROWS, _HOTS, 128), Input("numbers", (13,))]
    for number, size in enumerate((512, 256, 128), start=1):
        layers += [Dense(f"bottom{number}", size), Activation(f"bottom{number}.relu")]
    layers.append(Concatenate("features", inputs=(layers[-1].name, "tables")))
    x = "features"
    for number in range(1, 4):
        layers += [Dense(f"cross{number}.v", 512, bias=False, inputs=(x,)), Dense(f"cross{number}.w", 27 * 128)]
        layers.append(_Cross(f"cross{number}", inputs=("features", f"cross{number}.w", x)))
        x = layers[-1].name
    for number, size in enumerate((1024, 1024, 512, 256), start=1):
        layers += [Dense(f"top{number}", size), Activation(f"top{number}.relu")]
    layers += [Dense("click", 1), Flatten("score"), Loss("loss")]
    return Architecture(
        "dlrm-v2", (sum(_HOTS),), tuple(layers), "DLRM-DCNv2, Criteo 1TB click logs, multi-hot",
        "MLCommons, training reference recommendation_v2/torchrec_dlrm: README (tables, multi-hot sizes, layers)",
    )  # fmt: skip
