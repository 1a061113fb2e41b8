"""Make the pictures of the README again: python docs/images/make.py"""

# ruff: noqa: INP001  a script, no package
from pathlib import Path

from PIL import Image

from regard.lab.examples import gallery, kernel_regression_plots

PICTURES = {
    "window": (lambda: gallery.deep_zoom(100_000), 120),
    "regression": (lambda: kernel_regression_plots.side_by_side(kernel_regression_plots.compare()), 80),
}

for name, (draw, dpi) in PICTURES.items():
    path = Path(__file__).with_name(f"{name}.png")
    draw().savefig(path, dpi=dpi)
    Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)  # a quarter of the bytes, alike to the eye
