"""Which texts are embedded together: a function of the corpus that one added or changed text disturbs in one place only.

A group holds the texts whose sha256 begins with the same bits, as many bits as make a group about `size` texts on average. A run
that was stopped and run again, or a corpus in which a text changed, therefore has the same groups but for the ones touched.
"""

import math
from collections.abc import Iterable
from itertools import groupby


def groups(digests: Iterable[str], size: int) -> list[tuple[str, ...]]:
    """Distinct hexadecimal sha256 digests in groups of about `size`, between size/1.5 and 1.5*size on average; all sorted."""
    distinct = sorted(set(digests))
    bits = max(0, round(math.log2(len(distinct) / size))) if distinct else 0
    return [tuple(alike) for _, alike in groupby(distinct, lambda digest: int(digest[:16], 16) >> (64 - bits))]
