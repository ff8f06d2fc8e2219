"""Tables on the terminal."""

__all__ = ["print_table", "si"]


def _console():
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=120)


def print_table(title, columns, rows, notes=()):
    """A table; columns whose name starts with "<" are aligned left, and one that starts with "~" may be folded too."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in columns:
        justify = "left" if name[0] in "<~" else "right"
        table.add_column(name.lstrip("<~"), justify=justify, no_wrap=name[0] != "~")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    console = _console()
    console.print(title, style="bold", highlight=False, markup=False)
    console.print(table)
    for note in notes:
        console.print(f"  {note}", highlight=False, markup=False)


def si(value, unit):
    for scale, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:.4g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def words(text):
    """The parts of an option's text between its commas; those in brackets are a part's own.

    >>> words("e5m2, top_k(share=0.01, memory=None)")
    ['e5m2', 'top_k(share=0.01, memory=None)']
    """
    parts = [""]
    for character in text or ():
        held = parts[-1].count("(") > parts[-1].count(")")
        if character == "," and not held:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts] if text else []


def whole_numbers(text, option):
    """The whole numbers from 1 up of an option's text; ValueError names the option.

    >>> whole_numbers("1,32", "--batch")
    [1, 32]
    """
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = [0]
    if min(numbers) < 1:
        raise ValueError(f"{option} must be whole numbers from 1 up with commas between, got {text!r}")
    return numbers


def write_rows(path, rows, everything):
    """Write rows to a .csv file, or all that is known to a .json file."""
    import csv
    import io
    import json

    from softnum.runtime.atomic import write_atomic

    if path.suffix == ".json":
        write_atomic(path, json.dumps(everything, indent=1, ensure_ascii=False) + "\n")
    elif path.suffix == ".csv":
        out = io.StringIO()
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_atomic(path, out.getvalue())
    else:
        raise ValueError(f"--out {path} must end in .json or .csv")
