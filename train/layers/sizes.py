"""What every network checks of its sizes, its batch and its data."""

from __future__ import annotations

__all__ = ["check_batch", "check_choice", "check_data", "check_heads", "check_image", "check_rate", "check_sizes"]


def check_sizes(sizes, what: str = "sizes", *, least: int = 1, exactly: int | None = None) -> tuple[int, ...]:
    """The sizes as a tuple, if they are so many positive integers; else ValueError.

    >>> check_sizes([64, 10], least=2)
    (64, 10)
    """
    sizes = tuple(sizes)
    right = len(sizes) >= least if exactly is None else len(sizes) == exactly
    if not right or not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in sizes):
        if exactly == 1:
            raise ValueError(f"{what} must be a positive integer, got {sizes[0]!r}")
        number = f"at least {_WORDS[least]}" if exactly is None else _WORDS[exactly]
        raise ValueError(f"{what} must be {number} positive integers, got {sizes!r}")
    return sizes


_WORDS = {1: "one", 2: "two", 3: "three", 4: "four"}


def check_image(image, least: int) -> tuple[int, int, int]:
    """Channels, height and width as a tuple, if they are positive integers and the sides have so many pixels.

    >>> check_image([1, 28, 28], 4)
    (1, 28, 28)
    """
    image = check_sizes(image, "image", exactly=3)
    if min(image[1:]) < least:
        raise ValueError(f"image must have at least {least} x {least} pixels, got {image[1]} x {image[2]}")
    return image


def check_heads(heads, model: int) -> int:
    """The number of heads of an attention, if it divides the features of the model; else ValueError.

    >>> check_heads(4, 32)
    4
    """
    (heads,) = check_sizes((heads,), "heads", exactly=1)
    if model % heads:
        raise ValueError(f"heads must divide the {model} features that they share, got {heads}")
    return heads


def check_choice(value, what: str, choices) -> str:
    """The name of one of some choices; else ValueError.

    >>> check_choice("rms", "norm", ("layer", "rms"))
    'rms'
    """
    if value not in choices:
        raise ValueError(f"{what} must be {' or '.join(choices)}, got {value!r}")
    return value


def check_rate(rate, what: str = "dropout") -> float:
    """A probability of dropout, if it is at least 0 and below 1; else ValueError.

    >>> check_rate(0.1)
    0.1
    """
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0.0 <= rate < 1.0:
        raise ValueError(f"{what} must be at least 0 and below 1, got {rate!r}")
    return float(rate)


def check_batch(batch) -> None:
    """Raise ValueError unless batch is a positive integer."""
    check_sizes((batch,), "batch", exactly=1)


def check_data(inputs: int, outputs: int, features: int, classes: int, steps: int | None = None) -> None:
    """Raise ValueError if data of so many features and classes do not fit a network of these inputs and outputs.

    Steps are those that the inputs are of, if they are of steps.
    """
    if features != inputs:
        message = f"the network takes {inputs} inputs, the data have {features} features a sample"
        if steps is not None:
            size = inputs // steps
            message += f" (inputs are {size} in each of {steps} steps"
            message += f"; with steps {features // size} they fit)" if features % size == 0 else ")"
        raise ValueError(message)
    if classes > outputs:
        raise ValueError(f"the network has {outputs} outputs, the data have {classes} classes")
