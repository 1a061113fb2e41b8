"""Which segments of a text matter to a question: attention over sentences."""

from regard.relation._encoders import Encoded, Encoder
from regard.relation._relate import relate
from regard.relation._relation import Relation
from regard.relation._split import split

__all__ = ["relate", "Relation", "split", "Encoder", "Encoded"]
