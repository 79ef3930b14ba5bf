"""Reading from a hub on this machine, in processes of their own: the hub's address is read when `datasets` is imported."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.hubstub import COMMIT, REPOSITORY, hub
from tests.sources.test_musique import CARD, CORPUS, GENERATED, ORIGINAL, lines

SCRIPT = """
import json, sys
from rag_arena.errors import ArenaError
from rag_arena.params import Musique
from rag_arena.stages.download import download
told = []
for name, config, revision in json.loads(sys.argv[2]):
    dataset = Musique(kind="musique", name="test", path=sys.argv[1], licence="none", hub=name, config=config, revision=revision)
    try:
        done = download(dataset)
    except ArenaError as error:
        told.append(str(error))
    else:
        ids = [table.column(0).to_pylist() for table in (done.corpus, done.questions)]
        told.append([*ids, done.questions.schema.metadata[b"arena.source"].decode()])
print(json.dumps(told))
"""


def read(folder: Path, *asked: tuple[str, str, str], **environment: str) -> list[Any]:
    (folder / "own").mkdir()
    command = (sys.executable, "-c", SCRIPT, str(folder / "own"), json.dumps(asked))
    home = {"HF_HOME": str(folder / "home"), "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = subprocess.run(command, env={**os.environ, **home, **environment}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_both_files_come_from_one_commit_of_the_hub_and_what_it_does_not_have_is_refused(tmp_path):
    files = {
        "README.md": CARD,
        "data/musique/Corpus.json": lines(CORPUS),
        "data/musique/Question.json": lines([ORIGINAL, GENERATED]),
        "data/quality/Question.json": lines([GENERATED]),
    }
    asked = [
        (REPOSITORY, "musique", "main"),
        (REPOSITORY, "musique", "no-such-branch"),
        ("Chaplain0908/Nothing", "musique", "main"),
        (REPOSITORY, "quality", "main"),
    ]
    with hub(files) as url:
        found, no_revision, no_dataset, no_corpus = read(tmp_path, *asked, HF_ENDPOINT=url)
    assert found == [["0", "1", "2"], ["musique_0001", "musique_2418"], f"{REPOSITORY}@{COMMIT}"]
    assert no_revision.startswith(f"{REPOSITORY} (musique, no-such-branch): ")
    assert "mend dataset.hub, dataset.config or dataset.revision" in no_revision
    assert no_dataset.startswith("Chaplain0908/Nothing (musique, main): Dataset 'Chaplain0908/Nothing' doesn't exist")
    assert no_corpus.startswith(f"{REPOSITORY} (quality, main) Corpus.json: ")


def test_without_a_network_the_hub_cannot_be_reached(tmp_path):
    [told] = read(tmp_path, (REPOSITORY, "musique", "main"), HF_HUB_OFFLINE="1")
    assert (
        told
        == f"{REPOSITORY} (musique, main): the hub cannot be reached; go online, or fetch the files and choose dataset=folder"
    )
