import pytest

from rag_arena.scoring.answers import contains, exact_match, normalise, rouge_l, token_f1


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("The  Niger\n River", "niger river"),
        ("A man, a plan, an end!", "man plan end"),
        ("Thelma and Anna", "thelma and anna"),
        ("O'Brien", "obrien"),
        ("twenty-five", "twentyfive"),
        ("3.14", "3.14"),
        ("It is 3.14.", "it is 3.14"),
        ("1,234,567", "1234567"),
        ("U.S.A.", "usa"),
        ("Rhône", "rhône"),
        ("!!!", ""),
        ("The", ""),
        ("", ""),
    ],
)
def test_normalising_drops_case_punctuation_articles_and_spaces(text, normalised):
    assert normalise(text) == normalised


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [("the Niger River.", "Niger River"), ("1,000", "1000"), ("3.14", "3.14"), ("NIGER", "niger"), ("a  Nova", "Nova")],
)
def test_texts_that_normalise_alike_match_exactly(prediction, reference):
    assert exact_match(prediction, [reference]) == 1


@pytest.mark.parametrize(("prediction", "reference"), [("the Niger", "Niger River"), ("", "Niger"), ("Niger", "Nigeria")])
def test_other_texts_do_not_match(prediction, reference):
    assert exact_match(prediction, [reference]) == 0


@pytest.mark.parametrize(("one", "other"), [("3.14", "314"), ("3,14", "314"), ("1.000", "1000"), ("0.5", "05"), (".5", "5")])
def test_a_point_in_a_number_counts(one, other):
    for prediction, reference in ((one, other), (other, one)):
        assert exact_match(prediction, [reference]) == 0
        assert token_f1(prediction, [reference]) == 0
        assert contains(prediction, [reference]) == 0


@pytest.mark.parametrize("reference", ["!!!", "...", "the", "A", "", "  "])
@pytest.mark.parametrize("prediction", ["", " "])
def test_an_empty_prediction_never_scores(prediction, reference):
    for references in ([reference], ["Niger", reference]):
        assert exact_match(prediction, references) == 0
        assert token_f1(prediction, references) == 0
        assert contains(prediction, references) == 0


@pytest.mark.parametrize("reference", ["!!!", "the"])
def test_a_reference_that_normalises_to_nothing_is_compared_as_it_is_written(reference):
    assert exact_match(f" {reference} ", [reference]) == 1
    assert token_f1(reference, [reference]) == 2 * 1 / (1 + 1)
    assert contains(f"so {reference} indeed", [reference]) == 1
    assert exact_match("???", [reference]) == 0


def test_the_best_of_answer_and_aliases_counts():
    references = ["Data General Nova", "Nova"]
    assert exact_match("nova", references) == 1
    assert token_f1("nova", references) == max(2 * 1 / (1 + 3), 2 * 1 / (1 + 1))
    assert contains("It was the Nova.", references) == 1


@pytest.mark.parametrize(
    ("prediction", "reference", "f1"),
    [
        ("x y z", "y z w", 2 * 2 / (3 + 3)),
        ("x", "x", 2 * 1 / (1 + 1)),
        ("x y", "y x", 2 * 2 / (2 + 2)),
        ("x x", "x", 2 * 1 / (2 + 1)),
        ("x x y", "x x x", 2 * 2 / (3 + 3)),
        ("the long river Niger", "Niger", 2 * 1 / (3 + 1)),
        ("x", "y", 0),
    ],
)
def test_token_f1_is_the_harmonic_mean_of_precision_and_recall(prediction, reference, f1):
    assert token_f1(prediction, [reference]) == f1


@pytest.mark.parametrize(
    ("prediction", "reference", "found"),
    [
        ("It starts in Guinea, I believe.", "Guinea", 1),
        ("the answer is: The Niger River", "niger river", 1),
        ("It weighs 3.14.", "3.14", 1),
        ("It weighs 13.14", "3.14", 0),
        ("New Yorkers", "York", 0),
        ("Niger is a river", "Niger River", 0),
        ("River Niger", "Niger River", 0),
        ("Guinea", "Guinea in Africa", 0),
    ],
)
def test_containment_asks_for_the_whole_words_of_the_reference(prediction, reference, found):
    assert contains(prediction, [reference]) == found


def test_rouge_l_is_the_f_measure_of_the_longest_common_subsequence():
    precision, recall = 3 / 4, 3 / 5
    wanted = 2 * precision * recall / (precision + recall)
    assert rouge_l("rain fell over Lyon", "rain then fell on Lyon") == pytest.approx(wanted)


def test_rouge_l_respects_order():
    assert rouge_l("Lyon rain", "rain Lyon") == pytest.approx(2 * (1 / 2) * (1 / 2) / (1 / 2 + 1 / 2))


def test_rouge_l_compares_stems():
    assert rouge_l("rivers flooded", "river flooding") == 1


@pytest.mark.parametrize(("prediction", "reference"), [("", "rain"), ("rain", ""), ("rain", "snow")])
def test_rouge_l_of_texts_with_nothing_in_common_is_zero(prediction, reference):
    assert rouge_l(prediction, reference) == 0
