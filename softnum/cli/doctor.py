"""``softnum doctor``: what is installed, what is fast here, what is missing and how to get it."""

import json
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, writable_file
from softnum.cli.options import OutJson

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("doctor", short_help="Say what is installed, what is fast here, what is missing.")(exit_codes(doctor))


def doctor(
    speed: Annotated[
        bool, typer.Option("--speed/--no-speed", help="Measure a few works with each instruction set (seconds).")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    out: OutJson = None,
) -> None:
    """Say what is installed, what is fast on this machine, and what is missing, with the command that brings it.

    Exit code 0: what is installed works, whatever is missing. 1: something that is installed does not: a package of a
    version that softnum does not take, a program that does not answer, a compiler that does not compile, instruction
    sets that differ in their results. 2: softnum itself cannot run as asked, as with a SOFTNUM_CPU that this CPU lacks.

    \b
      softnum doctor
      softnum doctor --no-speed --json
    """
    if out is not None:
        writable_file(out)
    facts = _facts(speed)
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
    else:
        _print(facts)
    if out is not None:
        from softnum.runtime.atomic import write_atomic

        write_atomic(out, json.dumps(facts, indent=1) + "\n")
    if facts["problems"]:
        raise typer.Exit(1)


def _facts(speed: bool) -> dict:
    from softnum.runtime.config import describe_config
    from softnum.runtime.installed import describe_build, describe_extras, describe_programs

    facts = describe_config() | {"build": describe_build()}
    facts |= {"extras": describe_extras(), "programs": describe_programs(), "simulators": _simulators()}
    if speed:
        from softnum.cli.quick_speed import measure

        facts["speed"] = measure()
    facts["problems"] = _problems(facts)
    return facts


def _simulators() -> dict[str, dict]:
    """Simulators of accelerators, which have environments of their own."""
    from softnum.tta.simulators.environment import TOOLS, default_environment

    found = {}
    for name, tool in TOOLS.items():
        made = default_environment(name).is_dir()
        found[tool.name] = {
            "version": tool.version if made else None,
            "get": "" if made else f"softnum tta --simulate --simulator {name}",
        }
    return found


def _problems(facts: dict) -> list[str]:
    from softnum.runtime.installed import EXTRAS

    build, problems = facts["build"], []
    if build["metadata"] is None:
        problems.append("softnum has no metadata here, so that extras are not known: pip install softnum")
    elif build["metadata"] != facts["version"]:
        problems.append(f"metadata are of softnum {build['metadata']}, and {facts['version']} runs: install it again")
    elif older := [extra for extra in EXTRAS if extra not in facts["extras"]]:
        problems.append(f"metadata are older than softnum and lack {', '.join(older)}: install it again")
    for extra, each in facts["extras"].items():
        if each["unfit"]:
            have = ", ".join(f"{text} is needed" for text in each["unfit"])
            problems.append(f"{extra}: {have}: {each['get']}")
    problems += [f"{name}: {each['broken']}" for name, each in facts["programs"].items() if each["broken"]]
    problems += [
        f"{row['work']}: instruction sets differ in their results; report it, and take SOFTNUM_CPU=portable"
        for row in facts.get("speed", ()) if not row["same_bits"]
    ]  # fmt: skip
    return problems


def _print(facts: dict) -> None:
    from softnum.cli.tables import print_table

    sets, build = facts["instruction_sets"], facts["build"]
    typer.echo(f"softnum {facts['version']} ({build['install']}), Python {facts['python']}, NumPy {facts['numpy']}")
    typer.echo(f"extensions: {build['abi']}, on {build['system']}, {build['extension']}")
    typer.echo(
        f"instruction set: {sets['used']} ({sets['why']}); this CPU and build have {', '.join(sets['available'])}"
    )
    typer.echo(f"threads: at most {facts['threads']} (SOFTNUM_THREADS)")
    typer.echo(f"headers: {facts['headers']}\n")
    if "speed" in facts:
        names = sets["available"]
        rows = [
            (row["work"], *(f"{row['times'][name]:g} x" for name in names), row["against"]) for row in facts["speed"]
        ]
        print_table(
            "Speed here, one thread, 2^18 elements, 256 x 256 x 256: time over the baseline's",
            ["<work", *names, "<baseline"],
            rows,
        )
    rows, shown = [], set()
    for extra, each in facts["extras"].items():
        own = {name: version for name, version in each["packages"].items() if version and name not in shown}
        shown |= set(own)
        have = ", ".join(f"{name} {version}" for name, version in own.items())
        lacks = [name for name, version in each["packages"].items() if not version]
        state = f"out of range: {', '.join(each['unfit'])}" if each["unfit"] else f"lacks {', '.join(lacks)}"
        rows.append((extra, each["purpose"], state if each["get"] else have or "yes", each["get"]))
    print_table("Packages", ["<extra", "~for", "~installed", "<to get it"], rows)
    rows = [
        (name, each["purpose"], f"does not answer: {each['broken']}" if each["broken"]
         else each["version"] or each["path"] or "-", each["get"])
        for name, each in facts["programs"].items()
    ]  # fmt: skip
    rows += [
        (name, "times of an accelerator", each["version"] or "-", each["get"])
        for name, each in facts["simulators"].items()
    ]
    print_table("Programs", ["<program", "~for", "~found", "<to get it"], rows)
    for problem in facts["problems"]:
        typer.echo(f"does not work: {problem}")
