"""Small translation models for tests: every kind of decoder, with parameters drawn from a seed."""

import torch

from regard.seq2seq import Seq2Seq, Transformer, Vocabularies, Vocabulary
from regard.seq2seq.vocabulary import SPECIAL, UNKNOWN

SOURCE = Vocabulary((*SPECIAL, *"abcdefg"), "en", lower=True)
TARGET = Vocabulary((*SPECIAL, *"uvwxy"), "fr")
SMALL = {"embedding": 6, "hidden": 10, "dropout": 0.0}
KINDS = {
    "bahdanau": lambda: Seq2Seq("bahdanau", **SMALL),
    "bahdanau lstm": lambda: Seq2Seq("bahdanau", cell="lstm", **SMALL),
    "luong dot": lambda: Seq2Seq("luong", "dot", **SMALL),
    "luong general lstm": lambda: Seq2Seq("luong", "general", "lstm", **SMALL),
    "luong concat": lambda: Seq2Seq("luong", "concat", **SMALL),
    "luong location": lambda: Seq2Seq("luong", "location", **SMALL),
    "luong input feeding": lambda: Seq2Seq("luong", "general", input_feeding=True, **SMALL),
    "local": lambda: Seq2Seq("local", "dot", window=3, **SMALL),
    "local input feeding lstm": lambda: Seq2Seq("local", "general", "lstm", input_feeding=True, window=3, **SMALL),
    "none": lambda: Seq2Seq("none", **SMALL),
    "none lstm": lambda: Seq2Seq("none", cell="lstm", **SMALL),
    "transformer": lambda: Transformer(embedding=12, heads=3, layers=2, feed_forward=14, dropout=0.0),
}


def built(kind, dtype=torch.float32, seed=0, vocabularies=None):
    """A model of this kind whose output is far from uniform and hardly ever unknown."""
    model = KINDS[kind]()
    model.build(vocabularies or Vocabularies(SOURCE, TARGET), seed)
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    model.bias.data[UNKNOWN] = -20.0
    return model.to(dtype).eval()
