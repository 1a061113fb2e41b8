"""Translation: encoder-decoders on regard's own layers, their training, decoding and evaluation.

model = regard.seq2seq.load("en-fr")
translation = model.translate("i mistook him for my brother .")
translation.text, translation.weights.plot()
"""

from regard.seq2seq.decoding import Replay, Translation
from regard.seq2seq.evaluation import Evaluation, evaluate
from regard.seq2seq.model import Seq2Seq, Transformer, TranslationModel
from regard.seq2seq.pretrained import load
from regard.seq2seq.run import Record, Run
from regard.seq2seq.training import train
from regard.seq2seq.vocabulary import Vocabularies, Vocabulary

__all__ = [
    "load",
    "Seq2Seq",
    "Transformer",
    "train",
    "evaluate",
    "Run",
    "Record",
    "Evaluation",
    "Translation",
    "Replay",
    "TranslationModel",
    "Vocabulary",
    "Vocabularies",
]
