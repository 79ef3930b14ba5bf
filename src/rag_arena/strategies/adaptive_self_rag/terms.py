"""The words of a question that a rewritten query must not lose: names, numbers, codes, paths."""

import re

_QUOTED = re.compile(r'"([^"]+)"|\u201c([^\u201d]+)\u201d')
_AROUND = ",;:!?.()[]{}\"'\u2018\u2019\u201c\u201d"
_POSSESSIVE = re.compile(r"['\u2019]s$")
_CODE = re.compile(r"\d|[/\\_@#&+=<>$%~^|]|\w[.:]\w|[a-z][A-Z]|[A-Z]{2}")
_OPENERS = frozenset(
    re.findall(
        r"\w+",
        """
        A About According After Against All Also An And Any Are As At Based Because Before Between But By Can Compare Could
        Define Describe Did Do Does During Explain Find For From Give Had Has Have How I If In Into Is It Its List Many May
        Might Most My Name Near Of On One Or Our Out Over Please Roughly She He They Should Show Since So Some State Summarise
        Summarize Tell Than That The Their Then There These This Those Though Through To Under Until Using Was We Were What
        When Where Whether Which While Who Whom Whose Why Will With Within Without Would You Your
        """,
    )
)


def exact_terms(question: str) -> list[str]:
    """Terms to be kept letter by letter, in order: quoted phrases, words that hold a digit or a sign or an inner capital, and
    capitalised words other than those that commonly open a sentence.
    """
    quoted = [first or second for first, second in _QUOTED.findall(question)]
    words = [_POSSESSIVE.sub("", word.strip(_AROUND)).strip(_AROUND) for word in _QUOTED.sub(" ", question).split()]
    named = [word for word in words if _CODE.search(word) or (word[:1].isupper() and word not in _OPENERS)]
    return list(dict.fromkeys([*quoted, *named]))


def lost(terms: list[str], queries: list[str]) -> list[str]:
    """Terms that none of the queries holds as whole words, in the same letters."""
    return [term for term in terms if not any(re.search(rf"(?<!\w){re.escape(term)}(?!\w)", query) for query in queries)]
