"""The commands that work on studies, one file per group; cli.py puts them under `lexbandits`."""
