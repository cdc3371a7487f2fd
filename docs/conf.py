"""The documentation as a site: `tests/python.sh -m sphinx -W --keep-going docs site`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared" / "python"))
project = "TVM dashboard"
html_title = project
extensions = ["myst_parser", "sphinx.ext.autodoc"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
myst_heading_anchors = 4
smartquotes = False  # "--" in a command stays as it is
highlight_language = "none"
html_theme = "furo"
html_copy_source = False
html_show_copyright = False
html_use_index = False
