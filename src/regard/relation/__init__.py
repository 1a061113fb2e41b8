"""Relevance of text segments to questions: attention over sentences."""

from regard.relation._encoders import Encoded, Encoder
from regard.relation._encoders import check_known as check_known  # these three are for the lab
from regard.relation._encoders import choose_encoder as choose_encoder
from regard.relation._relate import relate
from regard.relation._relation import Relation
from regard.relation._split import split
from regard.relation._unicode_script import script_of as script_of

__all__ = ["relate", "Relation", "split", "Encoder", "Encoded"]
