"""How ``softnum sweep`` prints how far measured times are from the roofline's."""

import typer

__all__ = ["print_errors"]


def print_errors(sweeps) -> None:
    """Print a row for each sweep that has measured times, and what contradicts the roofline or was left out."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Measured time over the roofline's", title_style="")
    columns = ("kind", "device", "models", "least", "median", "worst", "worst model", "rank correlation")
    for name in columns:
        table.add_column(name, justify="left" if name in ("kind", "device", "worst model") else "right")
    for one in sweeps:
        errors = one.measured
        worst = ", ".join(f"{name}={errors['worst'][name]}" for name in one.hyperparameters)
        rank = errors["rank_correlation"]
        table.add_row(
            one.kind, one.device, str(errors["models"]), *(f"{errors[key]:.4g}" for key in ("least", "median", "most")),
            worst, "-" if rank is None else f"{rank:.2f}",
        )  # fmt: skip
    typer.echo()
    Console(width=140).print(table)
    for one in sweeps:
        for line in _lines(one):
            typer.echo(f"{one.kind} on {one.device}: {line}", err=True)


def _lines(one) -> list[str]:
    errors, lines = one.measured, []
    if errors["faster"]:
        lines.append(
            f"{errors['faster']} of {errors['models']} models were measured faster than the roofline, which bounds a "
            f"device's speed: another device, precision (here {one.precision}) or unit of time, or merged operations"
        )
    if errors["measured_that_do_not_fit"]:
        lines.append(
            f"{errors['measured_that_do_not_fit']} measured models are among those that do not fit the device's memory "
            "by the least that they need: another device, or weights that it does not hold in full"
        )
    if errors["out_of_memory"]:
        least = errors["out_of_memory"] - errors["out_of_memory_that_fit"]
        lines.append(
            f"{errors['out_of_memory']} models ran out of memory there; {least} of them do not fit by the sweep"
        )
    if errors["left_out"]:
        lines.append(
            f"{errors['left_out']} measurements are of models that the sweep does not have, and are left out; the "
            f"first: {errors['first_left_out']}"
        )
    if errors["columns_not_read"]:
        lines.append(f"not read: {', '.join(errors['columns_not_read'])}")
    return lines
