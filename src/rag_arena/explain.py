"""The path a question took, as a tree: steps, verdicts, documents with scores (gold ones marked), calls, tokens and time."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.tree import Tree

from rag_arena.metering import Call
from rag_arena.records import Document, document_of
from rag_arena.wording import count

GOLD = "[green]gold[/green]"
_VERDICTS = {True: "yes", False: "no", None: "undecided"}
_LONGEST = 200  # characters of a text or thought
_DOCUMENTS = ("hits", "grades", "strips", "used")  # of a step's lists, those that hold documents
_OWN_PLACE = ("node", "decides", "verdict", "p", "source", "thoughts", "text")  # of a step's keys, those not shown as `key value`


def path(
    heading: str,
    trace: Sequence[Mapping[str, Any]],
    calls: Sequence[Call],
    document: Callable[[str], Document],
    gold: Collection[str],
) -> Tree:
    """One question's path through one strategy.

    Args:
        heading: the first line.
        trace: the steps as the nodes wrote them.
        calls: the model calls, in order.
        document: finds a document by id.
        gold: ids to mark.
    """
    tree = Tree(f"[bold]{escape(heading)}[/bold]")
    for step, made in zip(trace, _calls_of(trace, calls), strict=True):
        branch = tree.add(_step_line(step, gold))
        for line in (*_found(step, document, gold), *_written(step), *_cost(made)):
            branch.add(line)
    seen = {document_of(hit["doc_id"]) for step in trace for hit in step.get("hits", [])}
    if missed := [doc_id for doc_id in gold if doc_id not in seen]:
        branch = tree.add("[red]gold documents never seen[/red]")
        for doc_id in missed:
            branch.add(f"{escape(doc_id)}  {escape(document(doc_id).title)}")
    return tree


def _step_line(step: Mapping[str, Any], gold: Collection[str]) -> str:
    """The node, what it decided and how surely, and every other single value of the step."""
    shown = [f"[cyan]{step['node']}[/cyan]"]
    if "verdict" in step:
        shown.append(f"[bold]{step['decides']}? {_VERDICTS[step['verdict']]}[/bold]")
    if step.get("p") is not None:
        shown.append(f"p {step['p']:.3f}")
    if step.get("source"):
        shown.append(f"by {step['source']}")
    for key, value in step.items():
        if key not in _OWN_PLACE and not isinstance(value, list | dict):
            mark = f" {GOLD}" if key == "doc_id" and value and document_of(value) in gold else ""
            shown.append(f"{key} {_value(value)}{mark}")
    return "  ".join(shown)


def _found(step: Mapping[str, Any], document: Callable[[str], Document], gold: Collection[str]) -> Iterator[str]:
    """Documents and their pieces: found, graded, used."""
    for hit in step.get("hits", []):
        title = escape(step.get("titles", {}).get(hit["doc_id"]) or document(hit["doc_id"]).title)
        yield f"{escape(hit['doc_id'])}  {title}  score {hit['score']:.3f}  cosine {hit['cosine']:.3f}{_mark(hit, gold)}"
    for grade in step.get("grades", []):
        yield f"{_fate(grade)} {escape(grade['doc_id'])}  {grade['p']:.3f} by {grade['source']}{_mark(grade, gold)}"
    for strip in step.get("strips", []):
        text = escape(strip["text"][:_LONGEST])
        yield f"{_fate(strip)} {escape(strip['doc_id'])} strip {strip['position']}  {strip['p']:.3f}  {text}{_mark(strip, gold)}"
    if "used" in step:
        marked = [f"{escape(doc_id)} {GOLD}" if document_of(doc_id) in gold else escape(doc_id) for doc_id in step["used"]]
        yield f"used: {', '.join(marked) or 'nothing'}"


def _written(step: Mapping[str, Any]) -> Iterator[str]:
    """Texts and thoughts, cut, and lists of texts such as sub-queries and claims."""
    if step.get("text"):
        yield f"text: {escape(step['text'][:_LONGEST])}"
    for key, values in step.items():
        if isinstance(values, list) and key not in _DOCUMENTS and all(isinstance(value, str) for value in values):
            yield f"{key}: {escape(' | '.join(values)) or 'none'}"
    if step.get("thoughts"):
        yield f"[dim]thought: {escape(step['thoughts'][:_LONGEST])}[/dim]"


def _cost(calls: Sequence[Call]) -> Iterator[str]:
    if calls:
        tokens_in, tokens_out = (sum(getattr(call, name) for call in calls) for name in ("tokens_in", "tokens_out"))
        replayed = sum(call.replayed for call in calls)
        replay = f", {replayed} replayed" if 0 < replayed < len(calls) else ", replayed" if replayed else ""
        head = "call" if len(calls) == 1 else count(len(calls), "call")
        yield f"{head}: {count(tokens_in, 'token')} in, {tokens_out} out, {sum(c.latency_s for c in calls):.2f} s{replay}"


def _calls_of(trace: Sequence[Mapping[str, Any]], calls: Sequence[Call]) -> list[list[Call]]:
    """For every step the calls that led to it.

    Calls are in order: a step takes those at the head that carry its name. One that no later step waits for goes to the latest
    step of its name so far, and to the step at hand if there is none.
    """
    made: list[list[Call]] = [[] for _ in trace]
    waiting = list(calls)
    for position, step in enumerate(trace):
        later = {name for after in trace[position + 1 :] for name in _names(after)}
        while waiting and (waiting[0].node in _names(step) or waiting[0].node not in later):
            call = waiting.pop(0)
            home = max((i for i in range(position + 1) if call.node in _names(trace[i])), default=position)
            made[home].append(call)
    return made


def _names(step: Mapping[str, Any]) -> tuple[Any, Any]:
    return step["node"], step.get("correction")


def _fate(found: Mapping[str, Any]) -> str:
    return "kept" if found["kept"] else "dropped"


def _mark(found: Mapping[str, Any], gold: Collection[str]) -> str:
    return f"  {GOLD}" if document_of(found["doc_id"]) in gold else ""


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return "-" if value is None else escape(str(value))
