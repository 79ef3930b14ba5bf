"""The path a question took, as a tree: steps, documents with scores (gold ones marked), verdicts, calls, tokens and time."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.markup import escape
from rich.tree import Tree

from rag_arena.records import Document
from rag_arena.wording import count

GOLD = "[green]gold[/green]"
_SHOWN_APART = ("node", "hits", "titles", "grades", "strips", "used", "thoughts")


@dataclass(frozen=True, slots=True)
class CallSummary:
    """What a reader wants to know of one model call."""

    node: str
    tokens_in: int
    tokens_out: int
    latency_s: float
    replayed: bool


def path(
    heading: str,
    trace: Iterable[Mapping[str, Any]],
    calls: Iterable[CallSummary],
    document: Callable[[str], Document],
    gold: Collection[str],
) -> Tree:
    """One question's path through one strategy.

    Args:
        heading: the first line.
        trace: the steps as the nodes wrote them.
        calls: the model calls, in order; each is shown under the next step of its node.
        document: finds a document by id.
        gold: ids to mark.
    """
    tree = Tree(f"[bold]{escape(heading)}[/bold]")
    waiting = list(calls)
    for step in trace:
        branch = tree.add(_step_line(step))
        for hit in step.get("hits", []):
            mark = f"  {GOLD}" if hit["doc_id"] in gold else ""
            title = escape(step.get("titles", {}).get(hit["doc_id"]) or document(hit["doc_id"]).title)
            branch.add(f"{escape(hit['doc_id'])}  {title}  score {hit['score']:.3f}  cosine {hit['cosine']:.3f}{mark}")
        for grade in step.get("grades", []):
            mark = f"  {GOLD}" if grade["doc_id"] in gold else ""
            verdict = "kept" if grade["kept"] else "dropped"
            branch.add(f"{verdict} {escape(grade['doc_id'])}  {grade['p']:.3f} by {grade['source']}{mark}")
        for strip in step.get("strips", []):
            verdict = "kept" if strip["kept"] else "dropped"
            where = f"{escape(strip['doc_id'])} strip {strip['position']}"
            branch.add(f"{verdict} {where}  {strip['p']:.3f}  {escape(strip['text'])}")
        if "used" in step:
            marked = [f"{escape(doc_id)} {GOLD}" if doc_id in gold else escape(doc_id) for doc_id in step["used"]]
            branch.add(f"used: {', '.join(marked) or 'nothing'}")
        for call in [call for call in waiting if call.node == step["node"] or call.node == step.get("correction")]:
            waiting.remove(call)
            replay = ", replayed" if call.replayed else ""
            branch.add(f"call: {count(call.tokens_in, 'token')} in, {call.tokens_out} out, {call.latency_s:.2f} s{replay}")
    missed = [doc_id for doc_id in gold if not any(hit["doc_id"] == doc_id for step in trace for hit in step.get("hits", []))]
    if missed:
        branch = tree.add("[red]gold documents never seen[/red]")
        for doc_id in missed:
            branch.add(f"{escape(doc_id)}  {escape(document(doc_id).title)}")
    return tree


def _step_line(step: Mapping[str, Any]) -> str:
    shown = [f"[cyan]{step['node']}[/cyan]"]
    shown += [f"{key} {escape(str(value))}" for key, value in step.items() if key not in _SHOWN_APART]
    if step.get("thoughts"):
        shown.append(f"[dim]thought: {escape(step['thoughts'][:200])}[/dim]")
    return "  ".join(shown)
