"""The documentation as a site: `make docs`. Its source is the whole clone, so links work as they do there."""

import re
import typing

import numpy.typing

# a name instead of the page-long union that it is
numpy.typing.ArrayLike = typing.NewType("ArrayLike", object)

import lexbandits  # noqa: E402

project = "lexbandits"
author = "The lexbandits authors"
version = release = lexbandits.__version__
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**", "examples/*/README.md"]
exclude_patterns = ["docs/conf.py"]

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
myst_heading_anchors = 3
myst_dmath_double_inline = False
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_ipywidgets_js = {}

default_role = "code"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_ivar = True
toc_object_entries_show_parents = "hide"
smartquotes = False  # "gaussian" is a word of the language
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"lexbandits {release}"
html_static_path = ["site"]
html_css_files = ["site.css"]
nb_output_stderr = "remove"
html_copy_source = html_show_sourcelink = html_show_sphinx = html_show_copyright = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def _as_rst(app, what, name, obj, options, lines):
    """Docstrings are plain text: what reStructuredText would take for markup is escaped."""
    in_example = False
    for i, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and line.strip() != "")
        if not in_example:
            parts = re.split(r"(`[^`]*`)", line)
            parts[::2] = [
                re.sub(r"(?<!\*)(?!\*\*\w+:)[*|]|_\b(?=\W|$)", r"\\\g<0>", part) for part in parts[::2]
            ]
            lines[i] = "".join(parts)


def _is_plain_field(app, what, name, obj, skip, options):
    """Fields of named tuples are told in the docstring of their class."""
    return True if str(getattr(obj, "__doc__", "")).startswith("Alias for field") else None


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", _is_plain_field)
    app.connect("autodoc-process-docstring", _as_rst, priority=100)
