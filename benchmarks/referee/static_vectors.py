"""Word vectors of the package wordllama: thousands of texts a second on a busy machine, English only.

`pip install wordllama` brings the weights along, and nothing is downloaded (Miller, 2024, WordLlama:
token embeddings of large models, reduced and averaged).
"""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
LONGEST = 512  # tokens of a text


class StaticEmbedder:
    """The mean of the vectors of a text's tokens, with zeros up to the number of dimensions."""

    name = "wordllama"
    lexical = False

    def __init__(self, dim: int) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        folder = _package_folder()
        self.dim = dim
        (self._vectors,) = load_file(folder / WEIGHTS).values()
        self._tokenizer: Any = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.enable_truncation(LONGEST)
        self._tokenizer.no_padding()

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"]
    ) -> npt.NDArray[np.float32]:
        """Unit vectors, shape (len(texts), dim)."""
        rows = np.zeros((len(texts), self.dim), np.float32)
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        for row, encoding in zip(rows, encodings, strict=True):
            if encoding.ids:
                mean = self._vectors[encoding.ids].astype(np.float32).mean(axis=0)
                row[: len(mean)] = mean / (np.linalg.norm(mean) or 1.0)
        return rows


def _package_folder() -> Path:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise SystemExit("--embedder wordllama needs its weights: pip install wordllama")
    return Path(spec.origin).parent
