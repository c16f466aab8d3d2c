"""How telling it is that two names are mentioned together: frequency against chance."""

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.storage.vector_index import Floats


def association(
    together: npt.ArrayLike, first: npt.ArrayLike, second: npt.ArrayLike, chunks: int
) -> Floats:
    """The log-likelihood ratio of pairs of names (Dunning, 1993), shape (n,).

    Of `chunks`, `first` and `second` mention the two names and `together` both. 0 for pairs that are not
    together more often than chance would have it.
    """
    singles = np.stack([np.asarray(first, np.float64), np.asarray(second, np.float64)])
    joint = np.minimum(np.asarray(together, np.float64), singles.min(axis=0))
    only_first, only_second = singles - joint
    neither = np.maximum(chunks - singles.sum(axis=0) + joint, 0.0)
    with_first = singles[0] / max(chunks, 1)
    with_second = singles[1] / max(chunks, 1)
    expected = chunks * np.stack(
        [
            with_first * with_second,
            with_first * (1 - with_second),
            (1 - with_first) * with_second,
            (1 - with_first) * (1 - with_second),
        ]
    )
    observed = np.stack([joint, only_first, only_second, neither])
    ratios = np.divide(observed, expected, out=np.ones_like(observed), where=expected > 0)
    logarithms = np.log(ratios, out=np.zeros_like(ratios), where=ratios > 0)
    likelihood: Floats = 2 * (observed * logarithms).sum(axis=0)
    return np.where(joint > expected[0], np.maximum(likelihood, 0.0), 0.0)
