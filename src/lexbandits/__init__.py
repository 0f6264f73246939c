"""Which option is best when several noisy measures matter in strict order of priority?

The public names are written in `__init__.pyi`, those of the policies in `policies/algorithms.py`. Each is
loaded on first use, so that `import lexbandits` costs nothing it does not need.
"""

from lexbandits._extras import lazy_names

__version__ = "0.4.0"

_names, __getattr__ = lazy_names(__name__, __file__)
__all__ = ["__version__", *_names]


def __dir__() -> list[str]:
    return sorted(__all__)
