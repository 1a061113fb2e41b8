"""Nadaraya-Watson regression is attention: average the y of the points whose x is near.

Run: python examples/kernel_regression.py
"""

from regard import datasets
from regard.lab import lessons

data = datasets.sine(50, seed=0)
learned = lessons.learn_width(data)
print(f"leave-one-out error while w is learned: {learned.losses[0]:.3f} -> {learned.losses[-1]:.3f}\n")

fits = {
    "average pooling": lessons.average(data),
    "Nadaraya-Watson, w = 1": lessons.nadaraya_watson(data),
    f"Nadaraya-Watson, w = {learned.w:.2f} (learned)": lessons.nadaraya_watson(data, learned.w),
}
print(f"{'':<36}error against the truth    keys that share the weight")
for name, fit in fits.items():
    error = (fit.prediction - data.y_truth).square().mean().item()
    spread = fit.weights.entropy().exp().mean().item()  # 50 = all of them alike
    print(f"{name:<36}{error:23.3f}    {spread:26.1f}")
