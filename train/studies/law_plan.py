"""The runs that a scaling law of several designs takes, as studies in pieces whose hours are known beforehand.

Bits of sums and K vary apart: FP8 with sums of 4 to 13 fraction bits, each with sums of all products of K and with
sums of 32 that binary32 takes over, in networks of three widths.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import NamedTuple

from softnum.runtime.atomic import write_atomic
from softnum.runtime.toml_strings import toml_string
from softnum.train.designs.reader import load_design
from softnum.train.nets.gpt import GPT, count_parameters
from softnum.train.runs.loop import make_run
from softnum.train.runs.settings import Settings
from softnum.tta.text import number, read_text, table_rows

__all__ = ["LawPlan", "Piece", "measure_seconds", "read_seconds", "write_plan", "write_seconds"]

#: sizes that are fitted, and the one that a prediction is tested with
SIZES, HELD_OUT = ("30k", "100k", "300k"), "1m"
DESIGNS = ("a-float32", "hopper-fp8", "te-mxfp8-block-scaling", "te-nvfp4-block-scaling")
BITS, CHUNK = range(4, 14), 32
STEPS, BATCH = 64, 16
_MOST_TOKENS = 32e6  # of the dictionary's nine tenths, each once
_MEASURED = 3  # iterations, of which the fastest counts


class Piece(NamedTuple):
    """A study: its name, runs and machine-hours, and whether its runs are fitted."""

    name: str
    runs: int
    hours: float
    fitted: bool


class _Case(NamedTuple):
    """Runs of one size, tokens and design: a run for each seed."""

    size: str
    tokens: int
    design: str


@dataclass(frozen=True)
class LawPlan:
    """What is to be trained.

    Parameters
    ----------
    tokens : tuple of int
        Of the four designs' runs: at least three numbers.
    sums_tokens : tuple of int
        Of the runs with narrow sums.
    seeds : int
        Runs of each.
    data : str
        Name of a data set of text.
    data_folder : path-like, optional
        The file of the user's own text.

    Raises
    ------
    ValueError
        If a number is not positive, tokens are no whole batches or too few different ones, or the data are no text.

    Examples
    --------
    >>> plan = LawPlan((524288, 1572864, 4194304), (1572864,), seeds=1)
    >>> len(plan.cases()), len(plan.designs)
    (93, 23)
    """

    tokens: tuple[int, ...]
    sums_tokens: tuple[int, ...]
    seeds: int = 2
    data: str = "text-gcide"
    data_folder: str | Path | None = None

    def __post_init__(self) -> None:
        if isinstance(self.seeds, bool) or not isinstance(self.seeds, int) or self.seeds < 1:
            raise ValueError(f"seeds must be a positive number of runs, got {self.seeds!r}")
        if len(set(self.tokens)) < 3:
            raise ValueError(f"a law takes three different numbers of tokens, got {sorted(set(self.tokens))}")
        if not self.sums_tokens:
            raise ValueError("narrow sums take runs too: state at least one number of tokens of theirs")
        whole = STEPS * BATCH
        for count in (*self.tokens, *self.sums_tokens):
            if isinstance(count, bool) or not isinstance(count, int) or count < whole or count % whole:
                raise ValueError(f"tokens must be a multiple of {whole}, a batch's, got {count!r}")
            if self.data == "text-gcide" and count > _MOST_TOKENS:
                raise ValueError(f"{count} tokens are more than the dictionary has to train on; ask for fewer")
        if not self.data.startswith("text"):
            raise ValueError(f"a language model learns a text, which {self.data!r} is not; take text-gcide or text")

    @property
    def designs(self) -> tuple[str, ...]:
        """Names of all designs."""
        narrow = itertools.product(BITS, ("", f"-c{CHUNK}"))
        names = (f"hopper-fp8-f{bits}{chunk}" for bits, chunk in narrow)
        return (*DESIGNS, *(name for name in names if name != f"hopper-fp8-f{max(BITS)}"))

    def cases(self, sizes: tuple[str, ...] = SIZES) -> list[_Case]:
        """What is trained, with each seed: the four designs, and the narrow sums."""
        return [
            _Case(size, count, design)
            for size in sizes
            for design in self.designs
            for count in (self.tokens if design in DESIGNS else self.sums_tokens)
        ]

    def settings(self, size: str, tokens: int) -> Settings:
        """Of the runs of a size."""
        return Settings(
            network="gpt", network_options={"sizes": size, "steps": STEPS}, data=self.data,
            data_folder=None if self.data_folder is None else str(self.data_folder), samples=tokens // STEPS,
            batch=BATCH, epochs=1, **_recipe(tokens),
        )  # fmt: skip


def _recipe(tokens: int) -> dict:
    """What updates the network, alike for all: a tenth of the rate is left at the end of a cosine."""
    iterations = tokens // (STEPS * BATCH)
    return {
        "held_out": 256, "optimiser": "adamw", "learning_rate": 0.003, "schedule": "cosine",
        "warmup": min(50, max(1, iterations // 10)), "final_rate": 0.1, "clip_norm": 1.0,
        "evaluate_every": max(1, iterations // 16),
    }  # fmt: skip


def design_text(name: str) -> str | None:
    """The file of a design of the plan's own: FP8 with sums of so many fraction bits. None of a shipped design."""
    if not name.startswith("hopper-fp8"):
        return None
    _, _, rest = name.partition("hopper-fp8")
    chunk = f", chunk = {CHUNK}" if rest.endswith(f"-c{CHUNK}") else ""
    bits = int(rest.split("-")[1][1:]) if rest else max(BITS)
    unit = (
        'kind = "fused", accumulator = "binary32", terms = 32, min_exponent = -133, overflow = "always_infinity", '
        f"fraction_bits = {bits}, truncate_fraction = {bits}{chunk}"
    )
    told = f"of {CHUNK} products, then binary32" if chunk else "of all products"
    core = "nvidia_h100_bf16"
    return f'''# Written by softnum law plan.
name = "{name}"
description = """
e4m3 forward, e5m2 errors, one scale a tensor from its own largest magnitude; sums {told} in a tensor core
that keeps {bits} fraction bits (13 are an H100's), in every pass. The last layer and attention multiply in bfloat16."""

[roles]
default     = {{ format = "binary32" }}
input       = {{ format = "e4m3fn", overflow = "saturate", scale = {{ per = "tensor" }} }}
weights     = {{ format = "e4m3fn", overflow = "saturate", scale = {{ per = "tensor" }} }}
activations = {{ format = "e4m3fn", overflow = "saturate", scale = {{ per = "tensor" }} }}
errors      = {{ format = "e5m2", overflow = "saturate", scale = {{ per = "tensor" }} }}

[units]
forward         = {{ {unit} }}
backward_data   = {{ {unit} }}
backward_weight = {{ {unit} }}

[layers.'(.*\\.)?(fc2?|attention)'.roles]
weights     = {{ format = "bfloat16" }}
activations = {{ format = "bfloat16" }}
errors      = {{ format = "bfloat16" }}

[layers.'(.*\\.)?(fc2?|attention)'.units]
forward         = "{core}"
backward_data   = "{core}"
backward_weight = "{core}"
'''


# -- seconds -----------------------------------------------------------------------------------------------------------
def measure_seconds(plan: LawPlan, say: Callable[[str], None] = lambda line: None) -> dict[tuple[str, str], float]:
    """Seconds an iteration of each size, the held-out one too, and design: the fastest of three, of one thread's own
    time, whatever else the machine does.

    Of the narrow sums one design stands for all of its kind, whose work is the same.
    """
    import tempfile

    found: dict[tuple[str, str], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in (*SIZES, HELD_OUT):
            kinds: dict[str, float] = {}
            for design in plan.designs:
                kind = _kind(design)
                if kind not in kinds:
                    kinds[kind] = _measure(plan, size, _file(design, Path(folder)))
                    say(f"{size}, {design}: {kinds[kind]:.3g} seconds an iteration")
                found[size, design] = kinds[kind]
    return found


def _kind(design: str) -> str:
    text = design_text(design)
    return design if text is None else f"chunk {'-c' in design}"


def _measure(plan: LawPlan, size: str, design: str) -> float:
    run = make_run(plan.settings(size, _MEASURED * STEPS * BATCH), load_design(design), 1)
    spent = []
    for iteration, part in run.plan(1):
        begun = process_time()
        run.train(iteration, part)
        spent.append(process_time() - begun)
    return min(spent)


def read_seconds(path: str | Path) -> dict[tuple[str, str], float]:
    """Seconds an iteration of sizes and designs: a CSV with the columns size, design and seconds."""
    form = "the columns size, design and seconds"
    file, found = Path(path), {}

    def check(where: str, header: list[str]) -> None:
        if missing := {"size", "design", "seconds"} - set(header):
            raise ValueError(f"{where}: no column {sorted(missing)[0]!r}; expected {form}")

    for where, row in table_rows(file, read_text(file, f"no file {str(path)!r}; expected {form}"), check, what=form):
        found[row["size"], row["design"]] = float(number(where, "seconds", row["seconds"]))
    return found


def write_seconds(path: str | Path, seconds: Mapping[tuple[str, str], float]) -> None:
    """Write seconds an iteration, for `read_seconds`."""
    rows = [(size, design, repr(value)) for (size, design), value in seconds.items()]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    _table(Path(path), ("size", "design", "seconds"), rows)


# -- pieces ------------------------------------------------------------------------------------------------------------
def write_plan(
    plan: LawPlan, seconds: Mapping[tuple[str, str], float], folder: str | Path, *, hours: float = 48.0,
    piece_hours: float = 2.0,
) -> list[Piece]:  # fmt: skip
    """Write the studies of a plan: pieces, the held-out runs, their designs, times and plan.csv with a run a row.

    Parameters
    ----------
    plan : LawPlan
    seconds : mapping of (str, str) to float
        Seconds an iteration of a size and a design.
    folder : path-like
    hours, piece_hours : float
        The most machine-hours of all pieces, and of one.

    Returns
    -------
    list of Piece
        In the order in which they are to be trained: cheap runs first; last, what is held out.

    Raises
    ------
    ValueError
        If the seconds of a size and design are missing, a run takes longer than a piece, or all runs longer than the
        hours; nothing is written then.

    Examples
    --------
    >>> import tempfile
    >>> plan = LawPlan((16384, 32768, 65536), (32768,), seeds=1)
    >>> seconds = {(size, design): 0.1 for size in (*SIZES, HELD_OUT) for design in plan.designs}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pieces = write_plan(plan, seconds, folder, piece_hours=0.05)
    ...     files = sorted(file.name for file in Path(folder).iterdir())
    >>> [(piece.name, piece.runs, round(piece.hours, 3)) for piece in pieces][-2:]
    [('piece-07', 4, 0.017), ('held-out', 12, 0.041)]
    >>> files[:3]
    ['designs', 'held-out.toml', 'piece-01.toml']
    """
    for name, value in (("hours", hours), ("piece_hours", piece_hours)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a positive number, got {value!r}")
    folder = Path(folder)
    groups = _packed(plan, seconds, plan.cases(), piece_hours)
    fitted = sum(_hours(plan, seconds, case) for group in groups for case in group)
    if fitted > hours:
        raise ValueError(
            f"the runs take {fitted:.1f} machine-hours, and at most {hours:g} are allowed; take fewer tokens or seeds, "
            "or allow more"
        )
    tested = [case for case in plan.cases((HELD_OUT,)) if case.design in DESIGNS]
    for case in tested:
        _hours(plan, seconds, case)
    named = [(f"piece-{index:02}", group, True) for index, group in enumerate(groups, start=1)]
    named.append(("held-out", tested, False))
    (folder / "designs").mkdir(parents=True, exist_ok=True)
    for design in plan.designs:
        _file(design, folder / "designs")
    write_seconds(folder / "seconds.csv", seconds)
    for size in (*SIZES, HELD_OUT):
        own = [(design, 1, repr(value)) for (of, design), value in seconds.items() if of == size]
        _table(folder / f"seconds-{size}.csv", ("design", "iteration", "seconds"), own)
    pieces, listed = [], []
    for name, group, fits in named:
        write_atomic(folder / f"{name}.toml", _study(plan, name, group))
        spent = [_hours(plan, seconds, case) for case in group]
        pieces.append(Piece(name, len(group) * plan.seeds, sum(spent), fits))
        listed += [
            (name, case.size, _parameters(case.size), case.tokens, case.design, seed, f"{own / plan.seeds:.4f}")
            for case, own in zip(group, spent, strict=True)
            for seed in range(1, plan.seeds + 1)
        ]
    _table(folder / "plan.csv", ("piece", "size", "parameters", "tokens", "design", "seed", "hours"), listed)
    return pieces


def _packed(plan: LawPlan, seconds, cases: list[_Case], most: float) -> list[list[_Case]]:
    """Cases in groups that take at most so many hours, in the order of sizes, tokens and designs."""
    groups, spent = [], math.inf
    for case in sorted(cases, key=lambda case: (_parameters(case.size), case.tokens)):
        own = _hours(plan, seconds, case)
        if own > most:
            raise ValueError(
                f"{plan.seeds} runs of {case.design} with {case.size} parameters and {case.tokens} tokens take "
                f"{own:.2f} hours, and a piece at most {most:g}; take fewer tokens or seeds, or longer pieces"
            )
        if spent + own > most:
            groups.append([])
            spent = 0.0
        groups[-1].append(case)
        spent += own
    return groups


def _hours(plan: LawPlan, seconds, case: _Case) -> float:
    """Machine-hours of a case, with all seeds."""
    if (case.size, case.design) not in seconds:
        raise ValueError(
            f"there are no seconds an iteration of {case.design} with {case.size} parameters; measure them"
        )
    recipe, iterations = _recipe(case.tokens), case.tokens // (STEPS * BATCH)
    # an evaluation is the forward pass of what is held out, a third of an iteration's multiply-adds
    judged = math.ceil(iterations / recipe["evaluate_every"]) * recipe["held_out"] / BATCH / 3.0
    return seconds[case.size, case.design] * (iterations + judged) * plan.seeds / 3600.0


def _parameters(size: str) -> int:
    return count_parameters(**GPT(size, steps=STEPS).options)


def _file(design: str, folder: Path) -> str:
    """The file of a design, which is written; or the name of a shipped one."""
    text = design_text(design)
    if text is None:
        return design
    write_atomic(folder / f"{design}.toml", text)
    return str(folder / f"{design}.toml")


def _table(path: Path, header, rows) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    write_atomic(path, text.getvalue())


def _study(plan: LawPlan, name: str, cases: list[_Case]) -> str:
    """A study's file, a network for each size and number of tokens."""
    lines = [
        f"# Written by softnum law plan. Train it: softnum study run {name}.toml --jobs 1 --out runs/{name}",
        "# Times are seconds of the emulation where it was measured, and of no hardware.",
        "[study]", f'name = "{name}"', f"seeds = {plan.seeds}", f"batches = [{BATCH}]", "epochs = 1",
        'metric = "bits_per_byte"', 'direction = "lower"', "target = 3.0", "", "[report]", "html = false",
    ]  # fmt: skip
    for (size, tokens), group in itertools.groupby(cases, key=lambda case: case[:2]):
        own = [f"designs/{case.design}.toml" if design_text(case.design) else case.design for case in group]
        recipe = {**_recipe(tokens), "samples": tokens // STEPS}
        if plan.data_folder is not None:
            recipe["data_folder"] = str(Path(plan.data_folder).resolve())
        lines += [
            "", "[[networks]]", 'name = "gpt"', f"data = {toml_string(plan.data)}",
            f'options = {{ sizes = "{size}", steps = {STEPS} }}', f"designs = [{', '.join(map(toml_string, own))}]",
            f'timings = "seconds-{size}.csv"',
            *(f"{key} = {toml_string(value) if isinstance(value, str) else value}" for key, value in recipe.items()),
        ]  # fmt: skip
    return "\n".join(lines) + "\n"
