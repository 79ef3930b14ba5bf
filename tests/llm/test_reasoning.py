import pytest

from rag_arena.llm.reasoning import split_reasoning


@pytest.mark.parametrize(
    ("text", "thoughts", "answer"),
    [
        pytest.param("Paris", "", "Paris", id="none"),
        pytest.param("", "", "", id="empty"),
        pytest.param("<think>in France</think>Paris", "in France", "Paris", id="paired"),
        pytest.param("<think></think>Paris", "", "Paris", id="paired and empty"),
        pytest.param("<think>\nin France\n</think>\n\nParis\n", "in France", "Paris", id="white space around"),
        pytest.param("<think>a<think>b</think>c</think>Paris", "abc", "Paris", id="nested"),
        pytest.param("in France</think>Paris", "in France", "Paris", id="headless"),
        pytest.param("a</think>b</think>Paris", "ab", "Paris", id="headless twice"),
        pytest.param("<think>a</think>b</think>Paris", "ab", "Paris", id="paired, then headless"),
        pytest.param("a</think>Paris<think>b</think>", "ab", "Paris", id="headless, then paired"),
        pytest.param("<think>in France", "in France", "", id="unclosed"),
        pytest.param("Paris<think>or not", "or not", "Paris", id="unclosed after an answer"),
        pytest.param("<think>a<think>b</think>Paris", "abParis", "", id="outer tag unclosed"),
        pytest.param("<think>a</think>Par<think>b</think>is", "ab", "Paris", id="several"),
        pytest.param("<THINK>a</Think>Paris", "a", "Paris", id="any case"),
        pytest.param("<thinking>a</thinking>Paris", "a", "Paris", id="thinking"),
        pytest.param("<reasoning>a</reasoning>Paris", "a", "Paris", id="reasoning"),
        pytest.param("I think > all <b>Paris</b>", "", "I think > all <b>Paris</b>", id="other tags stay"),
        pytest.param("<think>a</think>", "a", "", id="thoughts alone"),
    ],
)
def test_a_reply_is_parted_into_thoughts_and_answer(text: str, thoughts: str, answer: str) -> None:
    assert split_reasoning(text) == (thoughts, answer)
