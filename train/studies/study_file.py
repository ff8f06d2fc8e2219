"""Reading a study's file: TOML into the comparisons that it asks for, strictly. Errors name the file and the line."""

from __future__ import annotations

import dataclasses
import inspect
import re
import tomllib
from pathlib import Path

from softnum.runtime.plain import plain
from softnum.train.datasets.sets import DATA_SETS
from softnum.train.designs.design import nearest
from softnum.train.designs.reader import check_hardware, load_design, merged_hardware
from softnum.train.nets import NETWORKS, default_data, make_network
from softnum.train.runs.own import is_own, load_own, own_name
from softnum.train.runs.settings import Settings
from softnum.train.studies.rates import TUNING_SEEDS, check_apart, counted_seeds, scale_rates
from softnum.train.studies.sharing import check_collectives, check_counts, shared_cases
from softnum.train.studies.study import Case, case_labels, check_seeds
from softnum.train.studies.study_keys import (
    DATAFLOWS,
    KEYS,
    READING,
    RULES,
    SETTINGS,
    SIMULATION,
    SIMULATORS,
    VARIANTS,
)
from softnum.train.studies.study_tables import Comparison, Rates, StudyFile, Timings
from softnum.train.studies.toml_lines import TomlLines
from softnum.tta.outcomes.tuning import read_multipliers
from softnum.tta.study import outcome_rules

__all__ = ["read_study"]

#: what a study says where its file does not
_DEFAULTS = {"target": 0.95, "seeds": 3, "epochs": 20, "batches": [32], "workers": [1], "collectives": {}}
_NOT_OF_FILES = "for a simulator, and the times are from files; leave it out"
_NO_GRID = "tune_seeds is for tune_rates; add a grid like [0.5, 1, 2], or leave it out"


@plain
def read_study(path: str | Path) -> StudyFile:
    """Read a study's file.

    Parameters
    ----------
    path : path-like
        TOML, as `TEMPLATE` explains it. Paths in it are relative to it.

    Returns
    -------
    StudyFile

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not valid: the message names the file, the line where there is one, and the nearest key that is known;
        or if a design, network or setting of it is unusable.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.train.studies.study_tables import TEMPLATE
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "two.toml")
    ...     _ = file.write_text(TEMPLATE.format(name="two"))
    ...     study = read_study(file)
    >>> [(comparison.folder, comparison.labels) for comparison in study.comparisons]
    [('mlp', ('a-float32', 'c-wang-fp8')), ('lenet5', ('a-float32', 'c-wang-fp8'))]
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"no study file {str(file)!r}; begin with one: softnum study new {file}")
    try:
        text = file.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, brackets too deep
        raise ValueError(f"{file}: not valid TOML: {error}") from error
    return _Reader(file, text).study(table)


class _Reader(TomlLines):
    """Turns the tables of one file into a StudyFile."""

    def __init__(self, file: Path, text: str) -> None:
        super().__init__(file, text, KEYS, "networks")

    # -- the whole -----------------------------------------------------------------------------------------------------
    def study(self, table: dict) -> StudyFile:
        self.check("", 0, table)
        study = self.check("study", 0, table.get("study", {}))
        name = self.text("study", 0, study, "name", self.file.stem)
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
            self.fail("study", 0, "name", f"name must be letters, digits and . _ + - (it names a folder), got {name!r}")
        settings = self.check("settings", 0, table.get("settings", {}))
        networks = table.get("networks", [])
        if not isinstance(networks, list) or not networks:
            self.fail("", 0, "networks", "a study needs a network: add a table [[networks]] with a name")
        timings = self.timings(self.check("timings", 0, table.get("timings", {})))
        hardware = self.hardware(table.get("hardware", {}))
        report = self.check("report", 0, table.get("report", {}))
        html = report.get("html")
        if html is not None and not isinstance(html, bool):
            self.fail("report", 0, "html", f"html must be true or false, got {html!r}")
        folders: dict[str, int] = {}
        comparisons = []
        for index, own in enumerate(networks):
            self.check("networks", index, own)
            kind = self.text("networks", index, own, "name")
            called = own_name(kind)
            folders[called] = folders.get(called, 0) + 1
            folder = called if folders[called] == 1 else f"{called}-{folders[called]}"
            comparisons.append(self.comparison(folder, index, own, study, settings, timings, hardware))
        if "tune_seeds" in study and not any("tune_rates" in table for table in (study, *networks)):
            self.fail("study", 0, "tune_seeds", _NO_GRID)
        if hardware and all(comparison.timings.sources for comparison in comparisons):
            self.fail("", 0, "hardware", f"hardware is {_NOT_OF_FILES}")
        return StudyFile(name, self.file, table, tuple(comparisons), html)

    def hardware(self, value: object, index: int | None = None) -> dict:
        """What replaces keys of every design's [hardware]: for the study, or for a network alone."""
        place = ("hardware", 0) if index is None else ("networks", index)
        if index is not None and not isinstance(value, dict):
            self.fail(*place, "hardware", f"hardware must be a table, got {value!r}")
        known = KEYS["hardware"]
        for key in self.check("hardware", 0, value) if index is None else value:
            where = key if index is None else "hardware"
            try:
                if key not in known:
                    raise ValueError(f"unknown key {key!r}{nearest(key, known)} (known: {', '.join(known)})")
                check_hardware({key: value[key]}, self.file)
            except ValueError as error:
                self.fail(*place, where, str(error).removeprefix(f"{self.file}: "))
        return value

    # -- one network ---------------------------------------------------------------------------------------------------
    def comparison(
        self, folder, index: int, own: dict, study: dict, settings: dict, timings: Timings, hardware: dict
    ) -> Comparison:
        def said(key: str):
            """A value, and the table that says it."""
            if key in own:
                return own[key], ("networks", index)
            return study.get(key, _DEFAULTS.get(key)), ("study", 0)

        name = own["name"]
        if not is_own(name) and name not in NETWORKS:
            self.fail("networks", index, "name", f"no network is called {name!r}{nearest(name, NETWORKS)} "
                      f"(networks: {', '.join(NETWORKS)}, or file.py:function)")  # fmt: skip
        metric = said("metric")[0] or "accuracy"
        made = self.settings(index, own, settings, *said("epochs"), metric)
        cases = self.cases(*said("designs"), *said("batches"))
        cases = self.shared(cases, *said("workers"), *said("collectives"))
        (_, where), (baseline, there) = said("designs"), said("baseline")
        try:
            labels = case_labels(cases)
        except (ValueError, OSError) as error:
            self.fail(*where, "designs", str(error))
        baseline = labels[0] if baseline is None else baseline
        if baseline not in labels:
            hint = nearest(str(baseline), labels)
            self.fail(*there, "baseline", f"baseline {baseline!r} is not among the designs {', '.join(labels)}{hint}")
        target, place = said("target")
        if isinstance(target, bool) or not isinstance(target, (int, float)) or not 0 < target < float("inf"):
            self.fail(*place, "target", f"target must be a number above 0, got {target!r}")
        rules = {key: said(key)[0] for key in RULES if said(key)[0] is not None}
        if rules.get("metric", "accuracy") == "accuracy" and target > 1:
            self.fail(*place, "target", f"target must lie in (0, 1], because it is of the accuracy, got {target!r}")
        for key, value in rules.items():
            self.check_rule(said(key)[1], key, value)
        if rules.get("energy_table", "").endswith(".toml"):
            rules["energy_table"] = str(self.path(*said("energy_table")[1], "energy_table", rules["energy_table"]))
        try:
            outcome_rules(labels, baseline, **rules)
        except ValueError as error:
            self.fail("networks", index, "name", f"{name}: {error}")
        seeds = self.seeds(*said("seeds"))
        hardware = merged_hardware(hardware, self.hardware(own.get("hardware", {}), index))
        if "timings" in own:
            sources = self.sources("networks", index, "timings", own["timings"])
            timings = Timings(sources, timings.reading)
        elif timings.reading and not timings.sources:
            key = next(iter(timings.reading))
            self.fail("timings", 0, key, f"{key} is for files of times; add file or files, or leave it out")
        if "hardware" in own and timings.sources:
            self.fail("networks", index, "hardware", f"hardware is {_NOT_OF_FILES}")
        return Comparison(
            folder, made, tuple(cases), tuple(labels), seeds, float(target), rules, baseline, timings, hardware,
            self.rates(made, seeds, *said("tune_rates"), *said("tune_seeds")),
        )  # fmt: skip

    def rates(self, made: Settings, judged: tuple[int, ...], grid, place, seeds, there) -> Rates | None:
        """The learning rates to try: none where nothing is said, and where a network says []."""
        if grid is None and seeds is not None:
            self.fail(
                *there, "tune_seeds", "tune_seeds is for tune_rates; add a grid like [0.5, 1, 2], or leave it out"
            )
        if grid is None or grid == []:
            return None
        if not isinstance(grid, list) or not all(type(value) in (int, float) for value in grid):
            self.fail(*place, "tune_rates", f"tune_rates must be a list of multiples like [0.5, 1, 2], got {grid!r}")
        try:
            multipliers = read_multipliers(grid)
            for multiplier in multipliers:
                scale_rates(made, multiplier)
        except ValueError as error:
            self.fail(*place, "tune_rates", f"tune_rates: {error} (a network's own tune_rates = [] tunes nothing)")
        seeds = TUNING_SEEDS if seeds is None else seeds
        listed = isinstance(seeds, list) and seeds and all(type(seed) is int and 0 <= seed < 2**64 for seed in seeds)
        if not listed and type(seeds) is not int:
            what = "tune_seeds must be how many, or a list like [1001, 1002]"
            self.fail(*there, "tune_seeds", f"{what}, got {seeds!r}")
        try:
            seeds = seeds if listed else counted_seeds(seeds)
            check_apart(seeds, judged, "tune_seeds", "of seeds")
        except ValueError as error:
            self.fail(*there, "tune_seeds", f"tune_seeds: {error}")
        return Rates(multipliers, tuple(seeds))

    def settings(self, index: int, own: dict, settings: dict, epochs, place, metric: str) -> Settings:
        options = own.get("options", {})
        if not isinstance(options, dict):
            self.fail("networks", index, "options", f"options must be a table, got {options!r}")
        name = own["name"]
        if is_own(name):
            return self.own_settings(index, own, options, epochs, place, metric)
        known = list(inspect.signature(NETWORKS[name]).parameters)
        for key in options:
            if key not in known:
                self.fail("networks", index, "options", f"{name} has no parameter {key!r}{nearest(key, known)} "
                          f"(it has {', '.join(known)})")  # fmt: skip
        values = settings | {key: own[key] for key in SETTINGS if key in own}
        data = own.get("data") or default_data(name)
        if "data_folder" not in own and data in DATA_SETS and not DATA_SETS[data].files:
            values = {key: value for key, value in values.items() if key != "data_folder"}  # it is for the others
        if values.get("data_folder") is not None:
            table = ("networks", index) if "data_folder" in own else ("settings", 0)
            values = values | {
                "data_folder": str(self.path(*table, "data_folder", values["data_folder"], exists=False))
            }
        for key in values:  # TOML knows types: what is no number must not be taken for one
            self.check_type(index if key in own else None, key, values[key])
        self.check_epochs(epochs, place)
        try:
            made = Settings(network=name, network_options=options, data=own.get("data"), epochs=epochs, **values)
            if made.data in DATA_SETS and DATA_SETS[made.data].look and not Path(made.data_folder or "").is_dir():
                make_network(name, **options)  # a study opens without its data; running it asks what they say
            else:
                made.make_network()
            made.describe_updates()
        except (TypeError, ValueError) as error:
            self.fail("networks", index, "name", f"{name}: {error}")
        return made

    def own_settings(self, index: int, own: dict, options: dict, epochs, place, metric: str) -> Settings:
        """Settings of a model of the user's own, which says itself what those of [settings] say of other networks."""
        values = {key: own[key] for key in SETTINGS if key in own}
        for key in values:
            self.check_type(index, key, values[key])
        self.check_epochs(epochs, place)
        source, _, function = own["name"].rpartition(":")
        name = f"{self.folder / source}:{function}" if source.endswith(".py") else own["name"]
        try:
            made = Settings(network=name, network_options=options, data=own.get("data"), epochs=epochs, **values)
            judged = getattr(load_own(name, options), "metric", metric)
            if judged != metric:
                raise ValueError(f"{function} is judged by {judged!r}, and metric says {metric!r}: metric = {judged!r}")
        except (TypeError, ValueError, OSError) as error:
            self.fail("networks", index, "name", str(error))
        return made

    def check_epochs(self, epochs, place) -> None:
        if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1:
            self.fail(*place, "epochs", f"epochs must be a positive integer, got {epochs!r}")

    def check_type(self, index: int | None, key: str, value: object) -> None:
        hint = next(field.type for field in dataclasses.fields(Settings) if field.name == key).partition(" ")[0]
        kinds = {"str": str, "int": int, "float": (int, float), "bool": bool}[hint]
        if not isinstance(value, kinds) or (isinstance(value, bool) and hint != "bool"):
            table = ("settings", 0) if index is None else ("networks", index)
            what = {"str": "a text", "int": "an integer", "float": "a number", "bool": "true or false"}[hint]
            self.fail(*table, key, f"{key} must be {what}, got {value!r}")

    def check_rule(self, place, key: str, value: object) -> None:
        kind = RULES[key]
        good = isinstance(value, (int, float) if kind is float else kind) and not isinstance(value, bool)
        if not good or (kind is list and not all(isinstance(part, str) for part in value)):
            what = {str: "a text", float: "a number", list: "a list of texts"}[kind]
            self.fail(*place, key, f"{key} must be {what}, got {value!r}")

    def seeds(self, value, place) -> tuple[int, ...]:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return tuple(range(1, value + 1))
        good = isinstance(value, list) and value and all(type(seed) is int and 0 <= seed < 2**64 for seed in value)
        if not good:
            self.fail(*place, "seeds", f"seeds must be how many, or a list like [1, 2, 3], got {value!r}")
        try:
            check_seeds(value)
        except ValueError as error:
            self.fail(*place, "seeds", str(error))
        return tuple(value)

    def cases(self, designs, place, batches, there) -> list[Case]:
        if not isinstance(designs, list) or not designs or not all(isinstance(text, str) for text in designs):
            got = "and there are none" if designs is None else f"got {designs!r}"
            self.fail(*place, "designs", f"designs must be a list of names or files of designs, {got}")
        if not isinstance(batches, list) or not batches or not all(type(b) is int and b >= 1 for b in batches):
            self.fail(*there, "batches", f"batches must be a list of positive integers, got {batches!r}")
        found = []
        for text in designs:
            try:
                case = Case.parse(self.design(text))
                if case.label is not None:  # it says its batch size
                    found.append(case)
                    continue
                name = load_design(case.design).name
            except (ValueError, OSError) as error:
                self.fail(*place, "designs", str(error))
            several = len(batches) > 1
            found += [Case(case.design, batch, f"{name}@{batch}" if several else None) for batch in batches]
        return found

    def shared(self, cases: list[Case], counts, place, collectives, there) -> list[Case]:
        """The cases with each number of workers, and each collective."""
        for check, value, table, key in (
            (check_counts, counts, place, "workers"), (check_collectives, collectives, there, "collectives"),
        ):  # fmt: skip
            try:
                check(value)
            except ValueError as error:
                self.fail(*table, key, str(error))
        try:
            return shared_cases(cases, counts, collectives)
        except ValueError as error:
            self.fail(*place, "workers", str(error))

    def design(self, text: str) -> str:
        """A design's text with its file's path, if it is one, relative to the study's."""
        bare = re.sub(r"@\d+$", "", text)
        is_file = bare.endswith(".toml") or len(Path(bare).parts) > 1 or (self.folder / bare).is_file()
        return str(self.folder / text) if is_file else text

    def sources(self, table: str, index: int, key: str, value: object) -> tuple:
        """Files of times: one, or one for each label."""
        if not isinstance(value, dict):
            return (self.path(table, index, key, value),)
        if not value:
            self.fail(table, index, key, f"{key} names no file")
        return tuple((label, self.path(table, index, key, file)) for label, file in value.items())

    def timings(self, table: dict) -> Timings:
        kinds = {"simulate": (bool, "true or false"), "reports": (list, "a list of folders")}
        kinds |= {key: (kind, _type_name(kind)) for key, kind in READING.items()}
        for key, (kind, what) in kinds.items():
            if key in table and (not isinstance(table[key], kind) or (kind is not bool and table[key] is True)):
                self.fail("timings", 0, key, f"{key} must be {what}, got {table[key]!r}")
        for key, known in (("simulator", SIMULATORS), ("dataflow", DATAFLOWS), ("variant", tuple(VARIANTS))):
            if key in table and table[key] not in known:
                hint = nearest(str(table[key]), known)
                self.fail("timings", 0, key, f"{key} must be one of {', '.join(known)}, got {table[key]!r}{hint}")
        reading = {key: table[key] for key in READING if key in table}
        given = [key for key in ("file", "files") if key in table]
        if given:
            for key in (*SIMULATION, *given[1:]):
                if key in table:
                    why = (
                        "says the same as file" if key == "files" else f"is for a simulator, which {given[0]} replaces"
                    )
                    self.fail("timings", 0, key, f"{key} {why}; leave one out")
            if given == ["files"] and not isinstance(table["files"], dict):
                self.fail("timings", 0, "files", f"files must be a table of label = file, got {table['files']!r}")
            if given == ["file"] and not isinstance(table["file"], str):
                self.fail("timings", 0, "file", f"file must be a path, got {table['file']!r}; several: files")
            return Timings(self.sources("timings", 0, given[0], table[given[0]]), reading)
        facts = {key: table[key] for key in SIMULATION if key in table and key != "reports"}
        folders = tuple(self.path("timings", 0, "reports", report) for report in table.get("reports", []))
        return Timings((), reading, reports=folders, **facts)


def _type_name(kind) -> str:
    return {str: "a text", int: "an integer", (str, int): "a text or an integer"}[kind]
