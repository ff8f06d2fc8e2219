"""A decoder as language models have been built since 2023, in sizes from 30 thousand to 10 million parameters."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

from softnum.train.datasets.vocabulary import BYTES
from softnum.train.designs.design import nearest
from softnum.train.engine.tensor import Tensor
from softnum.train.layers.dispatch import Dispatch
from softnum.train.layers.mixture import Mixture
from softnum.train.layers.sizes import check_choice, check_heads, check_sizes
from softnum.train.layers.transformer_blocks import FEEDFORWARDS
from softnum.train.nets.transformer_lm import POSITIONS, TransformerLM, check_base, check_kv_heads
from softnum.train.tasks.language import LanguageModelling

__all__ = ["GPT", "PRESETS", "Preset", "count_parameters"]


class Preset(NamedTuple):
    """A size of a `GPT` by name: features and hidden features, blocks, heads, heads of keys and values."""

    sizes: tuple[int, int]
    depth: int
    heads: int
    kv_heads: int


#: sizes by their parameters, with a vocabulary of the bytes and no experts
PRESETS = {
    "30k": Preset((32, 80), 2, 2, 1),
    "100k": Preset((64, 160), 2, 2, 1),
    "300k": Preset((96, 224), 3, 3, 1),
    "1m": Preset((160, 384), 4, 5, 1),
    "3m": Preset((256, 768), 4, 8, 2),
    "10m": Preset((384, 1088), 6, 6, 2),
}


class GPT(TransformerLM):
    """A token of the text at each step, which attends to itself and those before it::

        embedding, dropout, blocks block1, block2, ..., norm, fc

    It is a `TransformerLM` with other defaults: RMS normalisations, SwiGLU, rotary positions, fewer heads of keys and
    values, tied embeddings, and no biases; in place of the feedforward a block may have a mixture of experts
    (`softnum.train.layers.mixture.Mixture`). It is judged by bits a byte
    (`softnum.train.tasks.language.LanguageModelling`).

    Parameters
    ----------
    sizes : str or sequence of two int
        One of `PRESETS`, a number of parameters; or features of a step in the blocks, and those of the feedforward's
        (each expert's) hidden layer. A preset says depth and heads too, where they are not stated.
    depth, heads, kv_heads : int, optional
        Blocks; heads of each attention, and of its keys and values. Default: the preset's; of stated sizes 2, 2 and as
        many as heads. Where heads are stated, and heads of keys and values not, these are as many.
    dropout : float
        Of embedded steps, and of each branch of a block.
    steps : int
        Tokens of a sequence.
    vocabulary : int
        Tokens: 256 are the bytes; more are learned from the text
        (`softnum.train.datasets.vocabulary.learn_vocabulary`).
    norm, feedforward, positions, rotary_base, tied_embeddings
        As of `TransformerLM`.
    biases : bool
        Whether linear layers have biases.
    experts : int, optional
        Of each block's mixture, at least 2; default: none.
    experts_chosen : int, optional
        That a token passes; default 1.
    capacity, balance : float, optional
        Of the mixture: seats of an expert over those that it needs where all are equally busy, 1.25; the factor of the
        loss that keeps them so, 0.01.
    expert_dispatch, expert_combine : str, optional
        Of experts on several ranks, the text of a `softnum.collective`, ``"ring(ranks=4, wire='e4m3fn')"``: the wire
        over which rows are sent to experts, and the one over which results are sent back
        (`softnum.train.layers.dispatch.Dispatch`). Default: nothing is sent; of the second alone, as the first.

    Raises
    ------
    ValueError
        If there is no preset of the name, a size is no positive integer, heads or heads of keys and values do not
        divide what they share, an option is none of its choices or out of its range, or one of experts is stated
        without experts.

    References
    ----------
    The options together are as in H. Touvron et al., "Llama 2: Open Foundation and Fine-Tuned Chat Models", 2023,
    section 2.2 (there embeddings are not tied).

    Examples
    --------
    >>> net = GPT("100k")
    >>> net.options["sizes"], net.options["depth"], net.options["heads"], net.options["kv_heads"]
    ((64, 160), 2, 2, 1)
    >>> count_parameters(**net.options)
    102720
    >>> [name for name in GPT("30k", depth=1, experts=2).layer_names if "router" in name or "expert1" in name]
    ['block1.router', 'block1.expert1.gate', 'block1.expert1.ff1', 'block1.expert1.ff2']
    """

    name = "gpt"
    task = LanguageModelling

    def __init__(
        self, sizes="30k", depth: int | None = None, heads: int | None = None, kv_heads: int | None = None,
        dropout: float = 0.0, steps: int = 64, vocabulary: int = BYTES, norm: str = "rms", feedforward: str = "swiglu",
        positions: str = "rotary", rotary_base: float | None = None, tied_embeddings: bool = True,
        biases: bool = False, experts: int | None = None, experts_chosen: int | None = None,
        capacity: float | None = None, balance: float | None = None,
        expert_dispatch: str | None = None, expert_combine: str | None = None,
    ) -> None:  # fmt: skip
        preset = _preset(sizes)
        (features, hidden) = sizes = preset.sizes
        if kv_heads is None and heads is None:
            kv_heads = preset.kv_heads
        depth, heads = preset.depth if depth is None else depth, preset.heads if heads is None else heads
        heads = check_heads(heads, features)
        kv_heads = heads if kv_heads is None else check_kv_heads(kv_heads, heads)
        self.vocabulary = _vocabulary(vocabulary)
        rotary_base = check_base(check_choice(positions, "positions", POSITIONS), rotary_base, features // heads)
        check_choice(feedforward, "feedforward", FEEDFORWARDS)
        if not isinstance(biases, bool):
            raise ValueError(f"biases must be true or false, got {biases!r}")
        mixture = _mixture(experts, experts_chosen, capacity, balance)
        wires = _wires(experts, expert_dispatch, expert_combine)
        options = {
            "sizes": sizes, "depth": depth, "heads": heads, "kv_heads": kv_heads, "dropout": dropout, "steps": steps,
            "vocabulary": vocabulary, "norm": norm, "feedforward": feedforward, "positions": positions,
            **({} if rotary_base is None else {"rotary_base": rotary_base}), "tied_embeddings": tied_embeddings,
            "biases": biases, **mixture,
            **({} if wires is None else wires.options),
        }  # fmt: skip
        block = {
            "norm": norm, "feedforward": feedforward, "kv_heads": kv_heads, "rotary_base": rotary_base, "bias": biases,
        }  # fmt: skip
        if mixture:
            (steps,) = check_sizes((steps,), "steps", exactly=1)
            block["feedforward"] = partial(
                Mixture, features=features, hidden=hidden, steps=steps, kind=feedforward, experts=mixture["experts"],
                chosen=mixture["experts_chosen"], capacity=mixture["capacity"], balance=mixture["balance"], bias=biases,
                wires=wires,
            )  # fmt: skip
        self._build(
            options, sizes, depth, heads, dropout=dropout, steps=steps, words=vocabulary, tied=tied_embeddings,
            block=block,
        )  # fmt: skip

    @property
    def penalties(self) -> list[Tensor]:
        """The losses of its experts, of the last pass."""
        found = (getattr(block.feedforward, "penalty", None) for block in self.blocks)
        return [penalty for penalty in found if penalty is not None]


def count_parameters(
    sizes, depth: int, heads: int, kv_heads: int, steps: int, vocabulary: int = BYTES, norm: str = "rms",
    feedforward: str = "swiglu", positions: str = "rotary", tied_embeddings: bool = True, biases: bool = False,
    experts: int | None = None, **others,
) -> int:  # fmt: skip
    """How many parameters a `GPT` of these options has, by formula: what updates change, the embedding included.

    With F features, H hidden ones, V tokens, d blocks, kv of h heads of keys and values, and without biases::

        V F + d (2 F**2 + 2 F**2 kv / h + m F H + 2 F) + F

    m is 3 of SwiGLU, else 2; with E experts E m F H + E F stands for m F H. Layer normalisations have twice the F of
    RMS ones, learned positions add steps * F, embeddings that are not tied V F more; biases one for each output.

    Parameters
    ----------
    sizes, depth, heads, kv_heads, steps, vocabulary, norm, feedforward, positions, tied_embeddings, biases, experts
        As `GPT` has them in its ``options``.
    **others
        Those on which nothing depends.

    Returns
    -------
    int

    Examples
    --------
    >>> [count_parameters(*preset, steps=64) for preset in PRESETS.values()]
    [29856, 102720, 292512, 1025440, 3082496, 9982848]
    """
    features, hidden = sizes
    shared = features // heads * kv_heads
    norms = features * (2 if norm == "layer" else 1)
    inner = 2 if feedforward == "swiglu" else 1
    forward = (inner + 1) * features * hidden + biases * (inner * hidden + features)
    forward = forward if experts is None else experts * (forward + features)
    attended = features * (2 * features + 2 * shared) + biases * (2 * features + 2 * shared)
    ends = vocabulary * features * (1 if tied_embeddings else 2) + biases * vocabulary
    positioned = steps * features if positions == "learned" else 0
    return ends + positioned + depth * (attended + forward + 2 * norms) + norms


def _preset(sizes) -> Preset:
    if isinstance(sizes, str):
        if sizes not in PRESETS:
            raise ValueError(
                f"no size of gpt is called {sizes!r}{nearest(sizes, PRESETS)} (sizes: {', '.join(PRESETS)}; or "
                "features and hidden features, like 64,160)"
            )
        return PRESETS[sizes]
    return Preset(check_sizes(sizes, exactly=2), 2, 2, 2)


def _vocabulary(size) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or not BYTES <= size <= 65536:
        raise ValueError(f"a vocabulary has {BYTES} to 65536 tokens, the {BYTES} bytes among them, got {size!r}")
    return size


def _mixture(experts, chosen, capacity, balance) -> dict:
    """The options of a mixture, all of them; none without experts."""
    given = {"experts_chosen": chosen, "capacity": capacity, "balance": balance}
    if experts is None:
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name} is for a mixture of experts; state experts, or leave it out")
        return {}
    (experts,) = check_sizes((experts,), "experts", exactly=1)
    (chosen,) = check_sizes((1 if chosen is None else chosen,), "experts_chosen", exactly=1)
    if experts < 2 or chosen > experts:
        raise ValueError(
            f"a mixture has at least 2 experts and at most as many for a token, got {experts} and {chosen}"
        )
    numbers = {"capacity": 1.25 if capacity is None else capacity, "balance": 0.01 if balance is None else balance}
    for name, value in numbers.items():
        right = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not right or value < 0 or (name == "capacity" and value == 0):
            least = "positive" if name == "capacity" else "0 or more"
            raise ValueError(f"{name} must be {least}, got {value!r}")
    return {"experts": experts, "experts_chosen": chosen, **{name: float(value) for name, value in numbers.items()}}


def _wires(experts: int | None, dispatch: str | None, combine: str | None) -> Dispatch | None:
    """What sends rows to experts and back; None if nothing does."""
    for name, text in (("expert_dispatch", dispatch), ("expert_combine", combine)):
        if text is not None and experts is None:
            raise ValueError(f"{name} is for a mixture of experts; state experts, or leave it out")
    if dispatch is None and combine is not None:
        raise ValueError(
            f"expert_combine={combine!r} sends results back; state expert_dispatch, which sends rows there"
        )
    return None if dispatch is None else Dispatch.of(dispatch, combine, experts)
