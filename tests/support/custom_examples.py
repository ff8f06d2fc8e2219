"""The examples of arithmetic of the user's own."""

from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "custom"
