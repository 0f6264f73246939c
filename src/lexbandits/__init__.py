"""Which option is best when several noisy measures matter in strict order of priority?

The public names are written in `__init__.pyi`, those of the policies in `policies/__init__.py`. Each is
loaded on first use, so that `import lexbandits` costs nothing it does not need.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

from lexbandits.extras import naming_extras

__version__ = "0.3.0"


def _homes(source: Path) -> dict[str, str]:
    """The names that a file imports and the modules they come from."""
    homes = {}
    for line in ast.parse(source.read_text("utf-8")).body:
        if isinstance(line, ast.ImportFrom):
            home = line.module or __name__
            for name in line.names:
                if name.name == "*":
                    homes |= _homes(source.parent.joinpath(*home.split(".")[1:], "__init__.py"))
                else:
                    homes[name.name] = home
    return homes


_HOME_OF = _homes(Path(__file__).with_suffix(".pyi"))

__all__ = ["__version__", *_HOME_OF]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lexbandits' has no attribute {name!r}")
    home = _HOME_OF[name]
    path = Path(__file__).parent.joinpath(*home.split(".")[1:], name)
    is_module = path.is_dir() or path.with_suffix(".py").is_file()
    with naming_extras():
        value = import_module(f"{home}.{name}") if is_module else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
