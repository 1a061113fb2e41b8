"""Nadaraya-Watson regression is attention: average the y of the points whose x is near.

Run: python examples/kernel_regression.py [folder]
With a folder, the five pictures of the lesson are written there, in English and in Chinese.
"""

import sys
from pathlib import Path

from regard.lab.examples import kernel_regression_plots as lesson

learned = lesson.compare()
print(f"w = {learned.w:.2f} was learned; leave-one-out error {learned.losses[0]:.3f} -> {learned.losses[-1]:.3f}\n")
print(lesson.table(learned))
print("\nThe learned fit is rougher, and its weights are sharper: it looks at fewer points.\n")
print(lesson.table(learned, lesson.CHINESE))
print("\n学到的拟合更粗糙，权重也更尖锐：它只看更少的点。")

if len(sys.argv) > 1:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for language, words in lesson.LANGUAGES.items():
        for name, draw in lesson.PICTURES.items():
            draw(learned, words).savefig(folder / f"{name}-{language}.png", dpi=150)
