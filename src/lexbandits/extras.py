"""What a plain install leaves out, and the one line that says how to get it."""


class MissingExtra(ImportError):  # noqa: N818
    """Something needs a package that comes with an extra of this one."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        install = f"pip install 'lexbandits[{extra}]'"
        super().__init__(
            f"{what} needs {package}: {install}, in a clone pip install '.[{extra}]'", name=package
        )
