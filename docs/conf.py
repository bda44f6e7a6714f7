"""Sphinx settings: `make docs` builds the site into docs/_build, without any network."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

import gwntf

mpl.use("Agg")
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "gwntf"
author = "The gwntf developers"
copyright = author  # noqa: A001
version = release = gwntf.__version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery"]
nitpicky = False
suppress_warnings = ["config.cache"]  # functions among the settings of the gallery

source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"gwntf {version}"
html_show_sourcelink = False
default_role = "code"
html_sidebars = {"index": [], "getting_started": []}
html_theme_options = {
    "logo": {"text": "gwntf"},
    "show_prev_next": True,
    "show_toc_level": 2,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}

templates_path = ["_templates"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": "",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 60,
    "abort_on_example_error": True,
    "plot_gallery": os.environ.get("GWNTF_GALLERY", "True"),
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "show_signature": False,
    "copyfile_regex": r"",
}


def escape_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:  # noqa: ARG001
    """Let |x| in docstrings be an absolute value; to Sphinx it would be the name of a substitution."""
    formula = False
    for number, line in enumerate(lines):
        formula = line.lstrip().startswith(".. math::") or (formula and (not line or line.startswith(" ")))
        if not formula and not line.lstrip().startswith((">>>", "...")):
            pieces = re.split(r"(``.*?``)", line)
            lines[number] = "".join(
                piece if piece.startswith("``") else re.sub(r"(?<!\\)\|", r"\|", piece) for piece in pieces
            )


def setup(app: Any) -> None:
    """Register the handler of docstrings."""
    app.connect("autodoc-process-docstring", escape_bars)
