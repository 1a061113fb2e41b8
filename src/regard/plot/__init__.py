"""Pictures of attention, drawn with matplotlib.

Every picture is drawn outside pyplot: it is returned, never shown by force, and freed with its last reference. A
picture with one panel is returned as its `matplotlib.axes.Axes`, one with several as a `matplotlib.figure.Figure`. A
notebook displays both as the last line of a cell; a script saves both with `picture.savefig(path)`. To have a picture
in a window of pyplot, hand over axes of your own, `heatmap(weights, ax=plt.gca())`; they are returned as they are.
"""

from importlib.util import find_spec

from regard.errors import MissingExtraError

if find_spec("matplotlib") is None:
    raise MissingExtraError("regard.plot draws with matplotlib, which is not installed: pip install 'regard[plot]'")

from regard.plot._alignment import alignment
from regard.plot._figure import Picture
from regard.plot._heads import heads
from regard.plot._heatmaps import heatmap, show_heatmaps
from regard.plot._lengths import lengths
from regard.plot._partial_dependence import partial_dependence
from regard.plot._regression import regression
from regard.plot._relations import relations
from regard.plot._saturation import saturation
from regard.plot._tables import depths, profiles, similar
from regard.plot._zoom import zoom

__all__ = [
    "heatmap",
    "show_heatmaps",
    "zoom",
    "regression",
    "partial_dependence",
    "saturation",
    "heads",
    "profiles",
    "similar",
    "depths",
    "relations",
    "alignment",
    "lengths",
    "Picture",
]
