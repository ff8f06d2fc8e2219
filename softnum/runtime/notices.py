"""Whose code is about to run: what a command says once of each file or module that a design or a study names."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["about_to_run", "tell_what_runs"]

_listeners: list[Callable[[str], None]] = []
_told: set[str] = set()


def tell_what_runs(listener: Callable[[str], None]) -> Callable[[], None]:
    """Let a function be called with each file or module, once, before its code runs; returns what ends that.

    >>> end = tell_what_runs(print)
    >>> about_to_run("formats.py"), about_to_run("formats.py")
    formats.py
    (None, None)
    >>> end()
    """
    _listeners.append(listener)
    _told.clear()
    return lambda: _listeners.remove(listener)


def about_to_run(what: str) -> None:
    """Say that a user's code is about to run, if somebody wants to know."""
    if _listeners and what not in _told:
        _told.add(what)
        for listener in _listeners:
            listener(what)
