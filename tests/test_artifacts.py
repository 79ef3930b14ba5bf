from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_arena import artifacts
from rag_arena.artifacts import CORPUS, HITS, QUESTIONS, SAMPLE, Artifact
from rag_arena.errors import ArenaError

ROWS = [{"doc_id": i, "title": f"title {i}", "text": f"text {i}", "metadata": ()} for i in ("b", "c", "a")]
EVERY = [value for value in vars(artifacts).values() if isinstance(value, Artifact)]


def stored(path: Path, artifact: Artifact, rows: list[dict], schema: pa.Schema | None = None, **metadata: str) -> Path:
    """A Parquet file that claims to be an artifact, whatever it holds."""
    claims = {"arena.artifact": artifact.name, "arena.version": "1", **metadata}
    loose = schema or pa.schema([field.with_nullable(True) for field in artifact.schema])
    pq.write_table(pa.Table.from_pylist(rows, schema=loose).replace_schema_metadata(claims), path)
    return path


def strict(path: Path, artifact: Artifact, rows: list[dict]) -> Path:
    return stored(path, artifact, rows, artifact.schema)


def test_what_is_written_is_read_back(tmp_path):
    written = artifacts.table(CORPUS, ROWS)
    artifacts.write(tmp_path / "corpus.parquet", written)
    assert artifacts.read(tmp_path / "corpus.parquet", CORPUS).equals(written)


def test_columns_that_are_not_wanted_stay_on_disk_and_the_rest_is_as_it_was(tmp_path):
    written = artifacts.table(CORPUS, ROWS, {"arena.dataset": "demo"})
    artifacts.write(tmp_path / "corpus.parquet", written)
    found = artifacts.read(tmp_path / "corpus.parquet", CORPUS, without=("text",))
    assert found.equals(written.drop(["text"]))
    assert found.schema.metadata == written.schema.metadata


@pytest.mark.parametrize("artifact", EVERY, ids=lambda a: a.name)
def test_an_artifact_without_rows_is_read_back(tmp_path, artifact):
    artifacts.write(tmp_path / "empty.parquet", artifacts.table(artifact, []))
    assert artifacts.read(tmp_path / "empty.parquet", artifact).num_rows == 0


@pytest.mark.parametrize("artifact", EVERY, ids=lambda a: a.name)
def test_the_key_of_an_artifact_is_among_its_columns_and_never_empty(artifact):
    assert [artifact.schema.field(column).nullable for column in artifact.key] == [False] * len(artifact.key)


def test_no_two_artifacts_share_a_name():
    assert len({artifact.name for artifact in EVERY}) == len(EVERY)


def test_rows_are_sorted_by_key():
    assert artifacts.table(CORPUS, ROWS)["doc_id"].to_pylist() == ["a", "b", "c"]


def test_rows_are_sorted_by_every_column_of_the_key_in_turn():
    rows = [
        {"question_id": q, "rank": r, "doc_id": "d", "score": 0.0, "cosine": 0.0} for q, r in (("q2", 1), ("q1", 10), ("q1", 9))
    ]
    built = artifacts.table(HITS, rows)
    assert list(zip(built["question_id"].to_pylist(), built["rank"].to_pylist(), strict=True)) == [
        ("q1", 9),
        ("q1", 10),
        ("q2", 1),
    ]


def test_equal_rows_give_equal_bytes_whatever_their_order(tmp_path):
    artifacts.write(tmp_path / "one.parquet", artifacts.table(CORPUS, ROWS))
    artifacts.write(tmp_path / "two.parquet", artifacts.table(CORPUS, reversed(ROWS)))
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_a_note_is_kept_in_the_file(tmp_path):
    artifacts.write(tmp_path / "corpus.parquet", artifacts.table(CORPUS, ROWS, {"arena.licence": "CC-BY-4.0"}))
    assert artifacts.read(tmp_path / "corpus.parquet", CORPUS).schema.metadata[b"arena.licence"] == b"CC-BY-4.0"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"doc_id": "a", "title": "t", "metadata": ()}, r"corpus: columns \['text'\] missing or unknown"),
        (
            {"doc_id": "a", "title": "t", "text": "x", "metadata": (), "author": "y"},
            r"corpus: columns \['author'\] missing or unknown",
        ),
        ({"doc_id": "b", "title": "t", "text": "x", "metadata": ()}, "corpus: the key doc_id is not unique"),
        ({"doc_id": "a", "title": None, "text": "x", "metadata": ()}, "corpus: column title has empty values; it must not"),
        ({"doc_id": "a", "title": 5, "text": "x", "metadata": ()}, "int"),
    ],
    ids=["missing column", "unknown column", "key twice", "empty value", "wrong type"],
)
def test_a_table_refuses_a_row_that_breaks_its_schema(row, message):
    with pytest.raises(ValueError, match=message):
        artifacts.table(CORPUS, [{"doc_id": "b", "title": "t", "text": "x", "metadata": ()}, row])


def test_a_column_that_may_be_empty_may_be_empty():
    row = {"question_id": "q", "kind": "self", "candidate": "x", "is_correct": True}
    nulls = dict.fromkeys(("accuracy_first", "accuracy_second", "answer_accuracy", "error"))
    assert artifacts.table(artifacts.KNOWN_TRUTH, [row | nulls])["error"].null_count == 1


def test_writing_makes_the_folders_above(tmp_path):
    artifacts.write(tmp_path / "a" / "b" / "corpus.parquet", artifacts.table(CORPUS, ROWS))
    assert [p.name for p in (tmp_path / "a" / "b").iterdir()] == ["corpus.parquet"]


def test_writing_replaces_the_file_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "corpus.parquet"
    artifacts.write(path, artifacts.table(CORPUS, ROWS[:1]))
    artifacts.write(path, artifacts.table(CORPUS, ROWS))
    assert artifacts.read(path, CORPUS).num_rows == len(ROWS)
    assert [p.name for p in tmp_path.iterdir()] == ["corpus.parquet"]


def test_a_path_that_cannot_be_written_is_refused_and_leaves_nothing_behind(tmp_path):
    (tmp_path / "corpus.parquet").mkdir()
    with pytest.raises(ArenaError, match=r"corpus\.parquet: cannot be written \(.+\); free space or mend the rights"):
        artifacts.write(tmp_path / "corpus.parquet", artifacts.table(CORPUS, ROWS))
    assert [p.name for p in tmp_path.iterdir()] == ["corpus.parquet"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "data").write_text("a file where a folder should be")
    with pytest.raises(ArenaError, match=r"corpus\.parquet: cannot be written \(.+\); free space or mend the rights"):
        artifacts.write(tmp_path / "data" / "corpus.parquet", artifacts.table(CORPUS, ROWS))


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()], ids=["nothing", "folder"])
def test_a_missing_artifact_is_refused_with_the_way_to_make_it(tmp_path, make):
    make(tmp_path / "corpus.parquet")
    with pytest.raises(ArenaError, match=r"corpus\.parquet: missing; run the stage that makes it, or `snakemake --cores 4`"):
        artifacts.read(tmp_path / "corpus.parquet", CORPUS)


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99])
def test_half_a_file_is_refused(tmp_path, share):
    path = tmp_path / "corpus.parquet"
    artifacts.write(path, artifacts.table(CORPUS, ROWS))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(ArenaError, match=r"corpus\.parquet: not a whole Parquet file \(.+\); delete it and run again") as refusal:
        artifacts.read(path, CORPUS)
    assert "\n" not in str(refusal.value)


def test_a_text_file_is_refused(tmp_path):
    (tmp_path / "corpus.parquet").write_text("doc_id,title,text\n" * 10)
    with pytest.raises(ArenaError, match="not a whole Parquet file"):
        artifacts.read(tmp_path / "corpus.parquet", CORPUS)


def test_another_artifact_is_refused_by_name(tmp_path):
    artifacts.write(tmp_path / "x.parquet", artifacts.table(SAMPLE, []))
    with pytest.raises(ArenaError, match=r"x\.parquet: holds sample, not corpus; delete it and run again"):
        artifacts.read(tmp_path / "x.parquet", CORPUS)


def test_a_foreign_parquet_file_is_refused(tmp_path):
    pq.write_table(pa.table({"doc_id": ["a"]}), tmp_path / "x.parquet")
    with pytest.raises(ArenaError, match=r"x\.parquet: holds a foreign table, not corpus"):
        artifacts.read(tmp_path / "x.parquet", CORPUS)


def test_another_version_is_refused(tmp_path):
    with pytest.raises(ArenaError, match="delete it and run again"):
        artifacts.read(stored(tmp_path / "x.parquet", CORPUS, ROWS, CORPUS.schema, **{"arena.version": "0"}), CORPUS)


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([CORPUS.schema.field("doc_id"), CORPUS.schema.field("title")]),
        CORPUS.schema.append(pa.field("author", pa.string())),
        pa.schema([CORPUS.schema.field(c) for c in ("title", "doc_id", "text")]),
        CORPUS.schema.set(0, pa.field("doc_id", pa.large_string(), nullable=False)),
    ],
    ids=["one too few", "one too many", "another order", "another type"],
)
def test_other_columns_are_refused(tmp_path, schema):
    with pytest.raises(ArenaError, match=r"x\.parquet: columns differ from those of corpus; delete it and run again"):
        artifacts.read(stored(tmp_path / "x.parquet", CORPUS, ROWS, schema), CORPUS)


def test_a_file_that_allows_empty_values_where_none_may_be_is_refused(tmp_path):
    with pytest.raises(ArenaError, match=r"x\.parquet: columns differ from those of corpus"):
        artifacts.read(stored(tmp_path / "x.parquet", CORPUS, [{**ROWS[0], "title": None}]), CORPUS)


def test_a_file_with_a_key_twice_is_refused(tmp_path):
    with pytest.raises(ArenaError, match=r"x\.parquet: the key doc_id is not unique"):
        artifacts.read(strict(tmp_path / "x.parquet", CORPUS, [ROWS[0], ROWS[0]]), CORPUS)


def test_lists_of_records_are_read_back_in_their_order(tmp_path):
    hops = [{"question": f"q{i}", "answer": f"a{i}", "doc_id": str(i)} for i in (2, 1)]
    row = {"question_id": "q", "question": "?", "answer": "a1", "aliases": ["z", "b"], "question_type": "multi_hop"}
    row |= {"gold_ids": ["2", "1"], "decomposition": hops, "where": (), "origin": None}
    artifacts.write(tmp_path / "q.parquet", artifacts.table(QUESTIONS, [row]))
    found = artifacts.read(tmp_path / "q.parquet", QUESTIONS).to_pylist()[0]
    assert (found["aliases"], found["gold_ids"], found["decomposition"]) == (["z", "b"], ["2", "1"], hops)
