"""Build the documentation: sphinx-build -W --keep-going docs build/docs."""

import os

from clops_sweep import __version__

project = "clops-sweep"
author = "The clops-sweep developers"
copyright = author
version = release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click", "sphinx_copybutton"]
exclude_patterns = ["build"]
html_theme = "furo"
html_title = f"clops-sweep {version}"
html_show_sourcelink = False
html_logo = html_favicon = "logo.svg"
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "")
html_static_path = ["card"]  # card.png: preview picture of links to the site
html_css_files = ["site.css"]
html_js_files = ["site.js"]
templates_path = ["_templates"]
html_context = {
    "description": "Sweeps of continual-learning runs on physiological signals: methods, hyperparameters, seeds and"
    " patient splits, with results in Parquet tables.",
    "html_baseurl": html_baseurl,
}
smartquotes = False  # --where must not become an en dash

myst_enable_extensions = ["attrs_block", "dollarmath"]
myst_heading_anchors = 3
published = {"READTHEDOCS", "CLOPS_NOTEBOOKS"} & os.environ.keys()  # pages that show outputs and figures
nb_execution_mode = "auto" if published else "off"
nb_execution_in_temp = True  # each notebook has a results folder of its own
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_output_stderr = "remove"

default_role = "code"  # single backquotes in docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_numpy_docstring = False
napoleon_preprocess_types = False
