"""`python -m lexbandits` is the command `lexbandits`."""

from lexbandits.cli import app

app(prog_name="lexbandits")
