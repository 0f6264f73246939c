"""`python -m lexbandits` is the command `lexbandits`."""

from lexbandits.cli.main import app

if __name__ == "__main__":
    app(prog_name="lexbandits")
