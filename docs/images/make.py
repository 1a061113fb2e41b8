"""Make the pictures of the README again: python docs/images/make.py"""

# ruff: noqa: INP001  a script, no package
from pathlib import Path

from PIL import Image

from regard.lab import gallery

path = Path(__file__).with_name("window.png")
gallery.deep_zoom(100_000).savefig(path, dpi=120)
Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)  # a quarter of the bytes, the same to the eye
