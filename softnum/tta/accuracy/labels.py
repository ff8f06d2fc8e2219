"""Labels of a study's designs: what they are called where batch sizes, collectives or numbers of workers differ."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["LabelParts", "label_parts", "split_label"]

_AFTER_DESIGN = re.compile(
    r"(?:@(?P<batch>[1-9]\d{0,8}))?"
    r"(?P<shared>(?:@(?!w\d+$)(?P<how>[A-Za-z][A-Za-z0-9._-]*))?(?:@w(?P<workers>[1-9]\d{0,4}))?)"
)


class LabelParts(NamedTuple):
    """What a label says besides the design.

    Attributes
    ----------
    batch, workers : int or None
    collective : str or None
        A study's name for it.
    shared : str
        The part of the label that is of workers.
    """

    batch: int | None
    collective: str | None
    workers: int | None
    shared: str


def split_label(text: str) -> tuple[str, int | None]:
    """The design and the batch size of a label; the batch size is None where the label does not name one.

    >>> split_label("a-float32@128"), split_label("a-float32")
    (('a-float32', 128), ('a-float32', None))
    """
    found = re.fullmatch(r"(.+)@([1-9]\d{0,8})", text)
    return (found[1], int(found[2])) if found else (text, None)


def label_parts(text: str, design: str) -> LabelParts | None:
    """What a label of a design says besides it: ``design@batch@collective@w8``, each part if it is there.

    None if it is no label of the design.

    >>> label_parts("a-float32@128@ring@w8", "a-float32")
    LabelParts(batch=128, collective='ring', workers=8, shared='@ring@w8')
    >>> label_parts("a-float32@w8", "a-float32").collective, label_parts("b", "a-float32")
    (None, None)
    """
    found = _AFTER_DESIGN.fullmatch(text[len(design) :]) if text.startswith(design) else None
    if found is None:
        return None
    batch, workers = (None if x is None else int(x) for x in (found["batch"], found["workers"]))
    return LabelParts(batch, found["how"], workers, found["shared"])
