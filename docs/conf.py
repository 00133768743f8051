"""The configuration of Sphinx, for `make docs`. Warnings and failing examples are errors."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

os.environ["TQDM_MININTERVAL"] = "3600"  # a page shows only the end of a progress bar

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE), str(HERE.parent)]

import torch
from publish import version_of

import imgops

if not torch.cuda.is_available():  # a page runs CUDA kernels; Triton reads this variable when it is imported
    os.environ.setdefault("TRITON_INTERPRET", "1")

project = "imgops"
author = "the imgops developers"
copyright = "2026, the imgops developers"
release = version = imgops.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "imgops_docs",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery/**.ipynb", "gallery/**.py"]
nitpicky = False
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings contain a function

autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False
autodoc_inherit_docstrings = False

# Without a network, Sphinx uses the small inventories that imgops_docs.py writes. They give the same links.
_INVENTORIES = HERE / "_build" / "inventories"
intersphinx_mapping = {
    name: (url, (None, str(_INVENTORIES / f"{name}.inv")))
    for name, url in (
        ("python", "https://docs.python.org/3/"),
        ("torch", "https://docs.pytorch.org/docs/stable/"),
        ("torchvision", "https://docs.pytorch.org/vision/stable/"),
        ("numpy", "https://numpy.org/doc/stable/"),
        ("PIL", "https://pillow.readthedocs.io/en/stable/"),
    )
}
intersphinx_timeout = 5

html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}
html_math_renderer = "mathml"
html_title = "imgops"
html_static_path = ["_static"]
html_css_files = ["imgops.css"]
html_js_files = ["tables.js"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "imgops"},
    # versions.json is next to the folder of this version. A local build has none, and does not show the menu.
    "switcher": {"json_url": "../versions.json", "version_match": version_of(release)},
    "check_switcher": False,
    "navbar_start": ["navbar-logo", "version-switcher"],
    "show_prev_next": False,
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc", "sg_download_links"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
#: Only the pages of the API have a list of pages at the left.
_WITHOUT_SIDEBAR = (
    "gallery/**",
    "recipes/*",
    "migrating/*",
    *(p.stem for p in HERE.glob("*.rst") if p.stem != "api"),
)
html_sidebars = {page: [] for page in _WITHOUT_SIDEBAR}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../gallery",
    "gallery_dirs": "gallery",
    "nested_sections": False,
    "subsection_order": [
        f"../gallery/{name}" for name in ("start", "pipelines", "training", "deployment", "operators")
    ],
    "filename_pattern": r"/\d_",
    "ignore_pattern": r"__init__",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("imgops",),
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "remove_config_comments": True,
    "capture_repr": (),
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "reset_modules": ("matplotlib", "imgops_docs.reset"),
    "image_srcset": ["2x"],
    "first_notebook_cell": "%pip install --quiet imgops matplotlib scikit-image scikit-learn\n%matplotlib inline",
    "download_all_examples": False,
    "thumbnail_size": (560, 210),
}

warnings.filterwarnings("ignore", category=FutureWarning)
warnings.filterwarnings("ignore", category=DeprecationWarning)
