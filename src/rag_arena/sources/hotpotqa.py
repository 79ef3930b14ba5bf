"""HotpotQA's official JSON and 2WikiMultihopQA's, which has the same shape: one array of questions, each with its paragraphs.

`context` is a list of [title, [sentence, …]] and `supporting_facts` one of [title, number of the sentence]. A supporting fact's
document is the paragraph of that title in the question's own pool. 2WikiMultihopQA adds `evidences`, triples of subject, relation
and object, which become the decomposition; the hop's document is the gold one whose title is the subject.
Sources: Yang et al. 2018, arXiv:1809.09600; Ho et al. 2020, arXiv:2011.01060.
"""

import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from rag_arena.errors import ArenaError
from rag_arena.params import HotpotQa, TwoWiki
from rag_arena.records import ORIGINAL
from rag_arena.sources.files import objects, present
from rag_arena.sources.pool import Pool
from rag_arena.sources.table import Ids, Loaded, list_of, not_empty, text_of


def check(dataset: HotpotQa | TwoWiki) -> None:
    """Is the file there?

    Raises:
        ArenaError: it is missing or is a folder.
    """
    present(Path(dataset.path), "dataset.path must be the dataset's JSON file, as hotpot_dev_distractor_v1.json or dev.json")


def load(dataset: HotpotQa | TwoWiki) -> Loaded:
    """Read one file.

    Raises:
        ArenaError: naming file and entry, for what is not JSON, a missing or empty field, a duplicate id, a pool or supporting
            fact of another shape, or an empty file.
    """
    check(dataset)
    ids, pool = Ids("question"), Pool()
    questions: list[dict[str, Any]] = []
    unresolved: list[str] = []
    for where, row in islice(objects(Path(dataset.path)), dataset.limit):
        question_id = ids.new(text_of(row, ("_id", "id"), where), where)
        if row.get("answer") is None:
            raise ArenaError(f"{where}: no answer; use the file of the dev or train set, since the test set has none")
        by_title = _paragraphs(row, pool, where)
        gold: dict[str, str] = {}  # title by document
        facts = list_of(row, "supporting_facts", where)
        if not facts:
            raise ArenaError(f"{where}: question {question_id!r} has no supporting_facts; recall needs gold documents")
        for fact in facts:
            if not isinstance(fact, list) or len(fact) != 2:
                raise ArenaError(f"{where}: an entry of supporting_facts is not [title, number of the sentence]")
            found = by_title.get(str(fact[0]).strip(), [])
            if len(found) == 1:
                gold[found[0]] = str(fact[0]).strip()
            else:
                unresolved.append(f"{question_id}: {json.dumps(fact, ensure_ascii=False)}")
        questions.append(
            {
                "question_id": question_id,
                "question": text_of(row, ("question",), where),
                "answer": text_of(row, ("answer",), where),
                "aliases": [],
                "question_type": "multi_hop",
                "origin": ORIGINAL,
                "gold_ids": list(gold),
                "decomposition": _hops(row, {title: doc_id for doc_id, title in gold.items()}, where),
            }
        )
    not_empty(questions, "questions", dataset.path)
    return Loaded(pool.corpus, questions, unresolved)


def _paragraphs(row: Mapping[str, Any], pool: Pool, where: str) -> dict[str, list[str]]:
    by_title: dict[str, list[str]] = {}
    for paragraph in list_of(row, "context", where):
        if not (isinstance(paragraph, list) and len(paragraph) == 2 and isinstance(paragraph[1], list)):
            raise ArenaError(f"{where}: an entry of context is not [title, [sentence, …]]")
        title = str(paragraph[0]).strip()
        doc_id = pool.add(title, " ".join(str(sentence).strip() for sentence in paragraph[1]))
        if doc_id is not None and doc_id not in by_title.get(title, []):
            by_title.setdefault(title, []).append(doc_id)
    return by_title


def _hops(row: Mapping[str, Any], gold: Mapping[str, str], where: str) -> list[dict[str, str | None]]:
    hops = list_of(row, "evidences", where)
    if any(not isinstance(hop, list) or len(hop) != 3 for hop in hops):
        raise ArenaError(f"{where}: an entry of evidences is not [subject, relation, object]")
    return [
        {"question": f"{subject} >> {relation}", "answer": str(answer), "doc_id": gold.get(str(subject))}
        for subject, relation, answer in hops
    ]
