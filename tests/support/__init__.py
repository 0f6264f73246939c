"""What several tests use. README.md in this folder says what is where."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
