"""Plain data as TOML, for tests that change files."""

import json

__all__ = ["write_toml"]


def _inline(value) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_inline(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return json.dumps(value)


def write_toml(table: dict) -> str:
    """A file that tomllib reads as the table.

    >>> write_toml({"a": {"b": [1, True]}})
    '"a" = { "b" = [1, true] }\\n'
    """
    return "".join(f"{json.dumps(key)} = {_inline(value)}\n" for key, value in table.items())
