"""Pictures of attention, drawn with matplotlib.

Every picture is a `matplotlib.figure.Figure` outside pyplot: it is returned, never shown by force, and is freed with
its last reference. A notebook displays it as the last line of a cell; a script saves it with `figure.savefig(path)`.
To have a picture in a window of pyplot, hand over axes of your own: `heatmap(weights, ax=plt.gca())`.
"""

from importlib.util import find_spec

from regard.errors import MissingExtraError

if find_spec("matplotlib") is None:
    raise MissingExtraError("regard.plot draws with matplotlib, which is not installed: pip install 'regard[plot]'")

from regard.plot._figure import Picture
from regard.plot._heads import heads
from regard.plot._heatmaps import heatmap, show_heatmaps
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
    "saturation",
    "heads",
    "profiles",
    "similar",
    "depths",
    "relations",
    "Picture",
]
