"""The runs that a scaling law is fitted to: from tables, and from records of ``softnum train gpt``.

A run of a record also has its design, and of that what a law may depend on: the roundings of its operands, and the
sums. `bits` are those of the narrowest sums of its matrix products: fraction bits that a tensor core keeps, or mantissa
bits of an accumulator; `products` is the K of these, so many products as are added before a wider sum takes them over,
on average over their multiply-adds.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import math
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from softnum.formats.blocks import format
from softnum.tta.accuracy.records import Record, read_record
from softnum.tta.text import read_text, table_rows

__all__ = ["LawRun", "LawRuns", "read_runs", "sums_of"]

_FORM = (
    "a run a row: parameters, tokens (or flops, which are 6 * parameters * tokens) and loss; for a law of several "
    "designs also design, operands, bits and products, and, of runs that share data and initial weights, seed"
)
#: bytes of an archive of records, unpacked
_LARGEST_ARCHIVE = 1 << 30
#: how operands begin that nobody named: a checksum of their roundings follows
UNNAMED = "#"
#: of a unit as a record describes it: where the bits of its sums stand
_CUT, _ACCUMULATED = ("fused", "two_stage", "BlockFusedDotUnit"), ("mad", "exact", "grouped", "block_dot")


class LawRun(NamedTuple):
    """A run: its parameters, the tokens that it was trained on, and the loss that it ended with.

    Of a law of several designs also its design; a name of the operands' roundings, which designs with the same share;
    bits and products of its narrowest sums, or None where nothing is said of them. Runs of one seed, size and number of
    tokens share their initial weights and data, and a bootstrap draws them together; with None, a run is drawn alone.
    """

    parameters: float
    tokens: float
    loss: float
    design: str = ""
    operands: str = ""
    bits: float | None = None
    products: float | None = None
    seed: int | None = None


class LawRuns(NamedTuple):
    """Runs, and one sentence for each that is left out."""

    runs: list[LawRun]
    excluded: list[str]


def read_runs(sources: str | Path | Iterable[str | Path], metric: str = "loss") -> LawRuns:
    """Read runs: tables, or folders of records of ``softnum train gpt`` or of studies of it.

    Parameters
    ----------
    sources : path-like, or iterable of path-like
        Each a CSV with one run per row and the columns parameters, tokens (or flops, which are 6 N D) and loss, and
        optionally design, operands, bits, products and seed; or a folder of records, where the last evaluation of each
        finished record counts; or a tar archive of such folders, compressed or not.
    metric : str
        The column of a table, or the key of a record's rows: "held_out_loss", "bits_per_byte".

    Returns
    -------
    LawRuns

    Raises
    ------
    ValueError
        If there is nothing to read, a column or number is missing or not positive, a record does not say how many
        parameters and tokens there are or how its units add, a run is there twice, or records do not fit together:
        of other data, vocabularies, batches, epochs or optimisers.

    References
    ----------
    6 N D: J. Kaplan et al., "Scaling Laws for Neural Language Models", 2020, section 2.1.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "runs.csv")
    ...     size = file.write_text("parameters,flops,loss\\n1e6,6e14,4.5\\n")
    ...     read_runs(file).runs[0][:3]
    (1000000.0, 100000000.0, 4.5)
    """
    paths = [Path(sources)] if isinstance(sources, (str, Path)) else [Path(source) for source in sources]
    found, excluded, records = [], [], []
    for path in paths:
        if path.is_dir():
            records += _records(path, metric, excluded)
        elif path.is_file() and tarfile.is_tarfile(path):
            with tempfile.TemporaryDirectory() as folder:
                _unpack(path, Path(folder))
                records += _records(Path(folder), metric, excluded)
        else:
            found += _of_table(path, metric)
    if records and found:
        raise ValueError(
            "tables and folders of records do not go together, as a table does not say which data its runs are of; "
            "fit one or the other"
        )
    if not records and not found:
        names = ", ".join(repr(str(path)) for path in paths) or "no source"
        left = f" ({excluded[0]})" if excluded else ""
        raise ValueError(f"{names} holds no finished record that ended with a finite {metric}{left}")
    _check_alike(records)
    return LawRuns(found + [_of_record(record) for record in records], excluded)


# -- tables ------------------------------------------------------------------------------------------------------------
def _of_table(path: Path, metric: str) -> list[LawRun]:
    def check(where: str, header: list[str]) -> None:
        missing = {"parameters", metric} - set(header)
        if missing or not {"tokens", "flops"} & set(header):
            raise ValueError(f"{where}: no column {sorted(missing)[0] if missing else 'tokens'!r}; expected {_FORM}")
        if ("bits" in header) != ("products" in header):
            raise ValueError(f"{where}: bits and products go together; expected {_FORM}")

    runs = []
    for where, row in table_rows(path, read_text(path, f"no file {str(path)!r}; expected {_FORM}"), check, what=_FORM):
        size, loss = (_number(where, name, row[name]) for name in ("parameters", metric))
        tokens = (
            _number(where, "tokens", row["tokens"]) if "tokens" in row
            else _number(where, "flops", row["flops"]) / (6.0 * size)
        )  # fmt: skip
        sums = [_number(where, name, row[name]) if row.get(name) else None for name in ("bits", "products")]
        if (sums[0] is None) != (sums[1] is None):
            raise ValueError(f"{where}: bits and products go together: state both of a run, or none")
        design = row.get("design", "")
        runs.append(LawRun(size, tokens, loss, design, row.get("operands", "") or design, *sums, _seed(where, row)))
    return runs


def _number(where: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{where}: {name} must be a positive number, got {text!r}")
    return value


def _seed(where: str, row: Mapping[str, str]) -> int | None:
    text = row.get("seed", "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{where}: seed must be an integer, got {text!r}") from None


# -- records -----------------------------------------------------------------------------------------------------------
def _unpack(archive: Path, folder: Path) -> None:
    """Write an archive's plain files into an empty folder; those with names that lead out of it are left."""
    size = 0
    try:
        with tarfile.open(archive) as tar:
            for entry in tar:
                size += entry.size
                if size > _LARGEST_ARCHIVE:
                    raise ValueError(
                        f"{archive} holds more than {_LARGEST_ARCHIVE >> 30} GiB, which no records of a law do; unpack "
                        "it and name the folder"
                    )
                place = folder / PurePosixPath(entry.name)
                if entry.isfile() and place.resolve().is_relative_to(folder.resolve()):
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(tar.extractfile(entry).read())
    except (tarfile.TarError, EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{archive}: no archive of records: {error}") from None


def _records(folder: Path, metric: str, excluded: list[str]) -> list[Record]:
    found = []
    for path in sorted(folder.rglob("seed-*.jsonl")):
        if path.name.endswith(".statistics.jsonl") or {"aside", "tuning"} & set(path.relative_to(folder).parts):
            continue  # what a study set aside or tried
        record = read_record(path, metric=metric)
        if record is None:
            excluded.append(f"{path} is not finished")
        elif record.diverged or not math.isfinite(record.evaluations[-1].value):
            excluded.append(f"{path} diverged after {record.iterations} iterations")
        elif not record.evaluations[-1].value > 0:
            raise ValueError(f"{path}: the last {metric} is {record.evaluations[-1].value:g}, and a loss is positive")
        else:
            size = record.config.get("parameters")
            if record.tokens is None or isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ValueError(
                    f"{path}: its config does not say how many parameters and tokens there are; train gpt again"
                )
            found.append(record)
    return found


def _check_alike(records: list[Record]) -> None:
    """Raise ValueError where two records do not belong to one law, or are of one run."""
    texts: dict[tuple[Any, ...], Record] = {}
    runs: dict[str, Record] = {}
    for record in records:
        first, data = records[0], record.config.get("data")
        for what, of in _ALIKE.items():
            ours, theirs = of(record), of(first)
            if ours != theirs:
                raise ValueError(
                    f"{record.path} and {first.path} do not belong to one law: {what} {_short(ours)} and "
                    f"{_short(theirs)}; fit each of the two with runs that are like it"
                )
        if isinstance(data, Mapping):
            same = texts.setdefault((data.get("train"), data.get("held_out")), record)
            if same.config["data"].get("sha256") != data.get("sha256"):
                raise ValueError(
                    f"{record.path} and {same.path} have as many samples and other texts; fit them one by one"
                )
        key = json.dumps([record.config, record.seed], sort_keys=True)
        if (twin := runs.setdefault(key, record)) is not record:
            raise ValueError(f"{record.path} and {twin.path} are of one run; name each folder once")


def _of_data(record: Record) -> object:
    data = record.config.get("data")
    if not isinstance(data, Mapping):
        return data
    return {key: value for key, value in data.items() if key not in ("train", "sha256")}  # which tokens change


_ALIKE = {
    "data": _of_data,
    "a vocabulary of": lambda record: (record.config.get("network") or {}).get("vocabulary"),
    "as metric": lambda record: record.config.get("metric"),
    "tokens a sample:": lambda record: record.tokens,
    "a batch of": lambda record: record.batch,
    "epochs:": lambda record: record.config.get("epochs"),
    "optimiser": lambda record: (record.config.get("optimiser") or {}).get("name"),
}


def _short(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _of_record(record: Record) -> LawRun:
    tokens = float(record.iterations * record.batch * record.tokens)
    facts = record.config["parameters"], tokens, record.evaluations[-1].value
    design = record.config["design"]
    if not isinstance(design, Mapping) or "layers" not in design:
        return LawRun(float(facts[0]), *facts[1:], record.design, record.design, seed=record.seed)
    bits, products, kinds = sums_of(record.config, record.path)
    roles = {name: layer.get("roles") for name, layer in design["layers"].items()}
    # of every layer alike, whatever the network's depth: what its first block and its ends have
    roles = {name: value for name, value in roles.items() if not name.startswith("block") or name.startswith("block1.")}
    text = json.dumps([roles, kinds, design.get("loss")], sort_keys=True)
    operands = UNNAMED + hashlib.sha256(text.encode()).hexdigest()[:12]
    return LawRun(float(facts[0]), *facts[1:], record.design, operands, bits, products, record.seed)


def sums_of(config: Mapping[str, Any], where: str = "config") -> tuple[float, float, list[str]]:
    """Bits and products of the narrowest sums of a run, and the kinds of its units.

    Parameters
    ----------
    config : Mapping
        Of a record's first row, with ``design`` and ``gemms``.
    where : str
        For errors.

    Returns
    -------
    bits : float
        Fraction bits that the narrowest sums keep: of a tensor core's alignment, or the accumulator's mantissa.
    products : float
        Products that such a sum adds before a wider one takes it over, averaged over the multiply-adds of all that are
        as narrow.
    kinds : list of str
        Of units, sorted.

    Raises
    ------
    ValueError
        If a unit is the user's own, of which nothing is known, or a layer's is not stated.

    Examples
    --------
    >>> unit = {"kind": "fused", "terms": 32, "fraction_bits": 13, "accumulator": "binary32"}
    >>> promoted = {"kind": "ChunkedDotUnit", "inner": unit, "chunk": 128, "accumulator": "binary32"}
    >>> gemms = [{"layer": "fc", "pass": "forward", "M": 8, "N": 4, "K": 64},
    ...          {"layer": "fc", "pass": "backward_weight", "M": 8, "N": 4, "K": 1024}]
    >>> layers = {"fc": {"units": {"forward": unit, "backward_weight": promoted}}}
    >>> bits, products, kinds = sums_of({"design": {"layers": layers}, "gemms": gemms})
    >>> bits, round(products, 1), kinds
    (13.0, 124.2, ['fused'])
    """
    layers = config["design"]["layers"]
    rows, kinds = [], set()
    for row in config.get("gemms") or ():
        try:
            unit = layers[row["layer"]]["units"][row["pass"]]
        except KeyError as missing:
            raise ValueError(
                f"{where}: the design says no unit of {row.get('layer')}, {row.get('pass')} (no {missing})"
            ) from None
        kind, bits, products = _sum_of(unit, row["K"], where)
        kinds.add(kind)
        rows.append((bits, products, row["M"] * row["N"] * row["K"] * row.get("count", 1)))
    if not rows:
        raise ValueError(f"{where}: the record lists no matrix products, so that its sums are not known")
    narrow = min(bits for bits, _, _ in rows)
    chosen = [(products, weight) for bits, products, weight in rows if bits == narrow]
    weights = sum(weight for _, weight in chosen)
    return float(narrow), sum(products * weight for products, weight in chosen) / weights, sorted(kinds)


def _sum_of(unit: Mapping[str, Any], products: int, where: str) -> tuple[str, int, int]:
    """The kind of a unit, the bits of its sums and how many of so many products one adds."""
    kind = unit.get("kind")
    if kind == "ChunkedDotUnit":
        return _sum_of(unit["inner"], min(products, unit["chunk"]), where)
    if kind == "block_dot" and unit.get("inner"):
        return _sum_of(unit["inner"], products, where)
    if kind in _CUT:
        return kind, unit["fraction_bits"], products
    if kind not in _ACCUMULATED:
        raise ValueError(
            f"{where}: a unit of kind {kind!r} does not say how wide its sums are; fit a table of runs with columns "
            "bits and products"
        )
    products = -(-products // (unit.get("lanes") or 1))
    chunk = unit.get("chunk")
    if chunk and chunk < products:
        wider = unit.get("outer_accumulator") not in (None, unit["accumulator"])
        products = chunk if wider else chunk + -(-products // chunk)
    return kind, format(unit["accumulator"]).mantissa_bits, products
