"""Options of all verbs: those that mean the same have one name and one help text."""

from collections import defaultdict
from functools import cache

from typer.main import get_command

from softnum.cli import build_app

#: Names that stand for different things in different verbs, which a reader tells apart by the verb, and for how many.
DIFFERENT = {
    "--bandwidth": 2, "--baseline": 2, "--batch": 4, "--compress": 2, "--data": 2, "--data-dir": 2, "--design": 5,
    "--device": 5, "--devices": 2, "--epochs": 2, "--explain": 3, "--file-format": 2, "--force": 2, "--format": 4,
    "--json": 3, "--latency": 4, "--layers": 2, "--memory": 2, "--method": 2, "--metric": 2, "--nan-box": 2,
    "--network": 2, "--optimiser": 3, "--out": 17, "--output": 2, "--parameters": 2, "--per-layer": 2, "--plot": 2,
    "--port": 2, "--profile": 2, "--reports": 2, "--samples": 2, "--schedule": 2, "--seed": 3, "--seeds": 2,
    "--server": 2, "--spec": 2, "--system": 3, "--tie": 2, "--tokens": 3, "--unit": 2, "--warmup": 2, "--workers": 2,
}  # fmt: skip


@cache
def texts():
    """Name of an option -> help text, without its default -> verbs."""
    found = defaultdict(lambda: defaultdict(list))

    def walk(command, path):
        for name, part in getattr(command, "commands", {}).items():
            walk(part, [*path, name])
        for option in command.params if path and not hasattr(command, "commands") else ():
            if option.param_type_name == "option":
                found[max(option.opts, key=len)][option.help.partition("  [default")[0]].append(" ".join(path))

    walk(get_command(build_app()), [])
    return found


def test_an_option_has_one_help_text_unless_it_means_different_things():
    several = {name: len(by_text) for name, by_text in texts().items() if len(by_text) > 1}
    assert several == DIFFERENT, "take the text of softnum.cli.options, or say here that the meaning differs"


def test_every_option_says_what_it_is():
    for name, by_text in texts().items():
        for text, verbs in by_text.items():
            assert text and text.strip() == text, f"{name} of {', '.join(verbs)} has no help"


def test_a_text_stands_under_one_name():
    names = defaultdict(set)
    for name, by_text in texts().items():
        for text in by_text:
            names[text].add(name)
    # but that a study, which has options of those names for other things, calls what is of its --timings so
    plain = {text: {name.replace("--timings-", "--") for name in found} for text, found in names.items()}
    assert {text: found for text, found in plain.items() if len(found) > 1} == {}
