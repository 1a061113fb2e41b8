"""Recall: a GRU reads a sentence, then says which word stood at each place, from one vector or with attention.

>>> from regard.lab import recall
>>> model = recall.load("luong")
>>> answer = model(recall.read("red cat finds small key"))
>>> [recall.WORDS[i].en for i in answer.logits.argmax(-1).tolist()]
['red', 'cat', 'finds', 'small', 'key']
"""

from regard.lab.recall._model import HIDDEN, LONGEST, MODELS, Answer, Recall, load, mean_probability, weights_path
from regard.lab.recall._vocabulary import WORDS, Word, draw, read

__all__ = [
    "HIDDEN", "LONGEST", "MODELS", "WORDS", "Answer", "Recall", "Word", "draw", "load", "mean_probability", "read",
    "weights_path",
]  # fmt: skip
