"""Think one sentence further, and make it the next query (IRCoT, Trivedi et al. 2023, arXiv:2212.10509, section 3)."""

import re
from typing import Any

from rag_arena.strategies.sentences import sentences
from rag_arena.strategies.state import State, Tools
from rag_arena.strategies.steps import context, ids

_CONCLUDES = re.compile(r"\banswer is:", re.IGNORECASE)
_DEDUCES = re.compile(r"((thus|so|therefore|hence|consequently)\b|that is,)", re.IGNORECASE)
_CALCULATES = re.compile(r"\d\s*[-+*/]\s*\d[\d.,]*\s*=")
_WH_WORDS = frozenset(["who", "whom", "whose", "what", "when", "where", "why", "which", "how"])


async def reason(state: State, runtime: Tools) -> State:
    """Ask for the next sentence of a chain of thought; done when it concludes, repeats an earlier one, or nothing comes.

    Only the first sentence of the reply is kept: what follows was thought without the documents that this one leads to. The first
    thought is not offered to conclude, as none of the paper's demonstrations does.
    """
    tools, chain = runtime.context, state.get("chain", [])
    known = {"question": state["question"], "context": context(state, tools, ids(state["hits"]))}
    prompt = (
        tools.prompts.render("next_thought", chain=" ".join(chain), **known)
        if chain
        else tools.prompts.render("first_thought", **known)
    )
    reply = await tools.model.ask("reason", prompt, tools.settings.step_tokens)
    sentence = next(iter(sentences(reply.text)), "")
    done = not sentence or concludes(sentence) or sentence in chain
    query = "" if done else query_of(sentence)
    step: dict[str, Any] = {"node": "reason", "sentence": sentence, "query": query, "done": done}
    if reply.thoughts:
        step["thoughts"] = reply.thoughts
    return {"chain": [*chain, sentence], "query": query, "done": done, "trace": [step]}


def concludes(sentence: str) -> bool:
    """Does a sentence state the answer, in the words that the prompt asks for?"""
    return _CONCLUDES.search(sentence) is not None


def query_of(sentence: str) -> str:
    """What to search for after a sentence: the sentence without its wh-words; nothing when it only draws a conclusion."""
    if _DEDUCES.match(sentence) or _CALCULATES.search(sentence):
        return ""
    return " ".join(word for word in sentence.split() if word.strip(".,;:!?\"'()").lower() not in _WH_WORDS)
