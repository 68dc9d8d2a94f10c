"""How the site is built (`make docs`). What is generated stands in .gitignore; no network is needed to read it."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

import conftest  # noqa: E402, F401 - programs of the gallery use what tests have compiled already
from tools import gallery_order, records, reference_pages  # noqa: E402

import modelweld  # noqa: E402

project = "modelweld"
author = "The modelweld developers"
project_copyright = author
version = release = modelweld.__version__

# made anew by every build, from the code and the records
records.write_pages(DOCS)
reference_pages.write_pages(DOCS)

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "tools.mathml",
    "tools.outward_links",
    "tools.reference_links",
]
exclude_patterns = ["build", "tools", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.json"]
suppress_warnings = [
    "config.cache",  # functions in sphinx_gallery_conf
    "myst.header",  # records begin their tables with headings of the second level
]
nitpicky = (
    False  # types in signatures of other libraries; links inside are checked in the built pages (tools/check_site.py)
)

# Markdown
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3

# reference
default_role = "autolink"  # names in single backticks lead to their page, where there is one
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc says the types in words
autodoc_mock_imports = ["flwr", "nvflare", "distributed", "dask", "opendp"]
numpydoc_show_class_members = False  # the template of a class lists its members, inherited ones of ours too
templates_path = ["_templates"]

# gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "capture_repr": ("_repr_html_",),  # tables, but not what a call of matplotlib returns
    "write_computation_times": False,  # its page would load scripts from a network
    "doc_module": ("modelweld",),
    "backreferences_dir": "gallery/backreferences",
    "subsection_order": gallery_order.order_sections,
    "within_subsection_order": gallery_order.order_programs,
    "thumbnail_size": (560, 392),
    "reference_url": {"modelweld": None},
}

# looks
html_theme = "pydata_sphinx_theme"
html_title = "modelweld"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "modelweld"},
    "navbar_align": "left",
    "show_nav_level": 1,
    "navigation_depth": 2,
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}


def skip(app, what, name, member, skipped, options):
    """Leave out what scikit-learn puts into every estimator."""
    return True if name.startswith("set_") and name.endswith(("_request", "_output")) else None


def setup(app):
    """Sphinx asks for this."""
    app.connect("autodoc-skip-member", skip)
