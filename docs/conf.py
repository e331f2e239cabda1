"""The site: `make docs` builds it into build/docs, offline, and warnings are errors."""

import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from site_parts.examples import stage_examples  # noqa: E402

import coolhead  # noqa: E402

# joblib replaces a worker of the gallery that torch made large, without loss.
warnings.filterwarnings("ignore", message="A worker stopped while some jobs")

project = "coolhead"
author = "the authors of coolhead"
copyright = "the authors of coolhead, BSD-3-Clause"
version = release = coolhead.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "site_parts.extension",
]
exclude_patterns = ["site_parts", "_examples"]
default_role = "py:obj"
suppress_warnings = ["config.cache"]

myst_heading_anchors = 3
myst_enable_extensions = ["attrs_block"]

autosummary_generate = False
# Only the name of a method fits into the column beside the page.
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": str(stage_examples(HERE.parent / "examples", HERE / "_examples")),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "nested_sections": False,
    "within_subsection_order": "site_parts.examples.ByPosition",
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 10_000,
    "plot_gallery": True,
    "parallel": 2,
    "reset_modules": ("matplotlib", "site_parts.examples.settle"),
    "image_srcset": ["2x"],
    "download_all_examples": True,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"coolhead {version}"
html_favicon = "_static/mark.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
html_theme_options = {
    "logo": {"image_light": "_static/mark.svg", "image_dark": "_static/mark.svg"}
    | {"text": html_title, "alt_text": "coolhead, start page"},
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
}
html_context = {"default_mode": "auto"}
# Pages of the navigation bar without pages below them.
html_sidebars = {"index": [], "start-here": [], "which-method": []}
