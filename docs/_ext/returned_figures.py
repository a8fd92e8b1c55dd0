"""A scraper for the gallery: figures that functions return, which pyplot knows nothing of."""

import weakref
from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

_shown: "weakref.WeakSet[Figure]" = weakref.WeakSet()


def returned_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures among an example's variables that were not saved before."""
    paths = []
    for value in list(block_vars["example_globals"].values()):
        if isinstance(value, Figure) and value not in _shown:
            _shown.add(value)
            # pyplot's own have a manager until its scraper, which comes next, saves and closes them
            if value.canvas.manager is None:
                paths.append(next(block_vars["image_path_iterator"]))
                value.savefig(paths[-1], dpi=100)
    return figure_rst(paths, gallery_conf["src_dir"])
