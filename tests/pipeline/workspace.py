"""A copy of the project on a small dataset and a stub endpoint, driven through its real runners."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
VARYING = ("calls.parquet", "timings.parquet", "leaderboard.csv", "graders.csv", "node_costs.csv")


@dataclass(frozen=True)
class Workspace:
    """A project folder of its own, with its own ledger; commands see its src/ and nothing of the user's."""

    folder: Path
    ledger: Path

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder; on failure show everything it printed."""
        done = subprocess.run(command, cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise AssertionError(f"{' '.join(command)} exited {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def environment(self) -> dict[str, str]:
        """The environment of every command."""
        foreign = ("GIT_", "ARENA_", "DVC_", "SNAKEMAKE", "PYTHONDONTWRITEBYTECODE")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        return {
            **kept,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(self.folder / "src"),
            "ARENA_LEDGER": str(self.ledger),
            "OPENAI_API_KEY": "stub-key",
        }

    def snakemake(self, cores: int = 4, check: bool = True) -> subprocess.CompletedProcess[str]:
        """`snakemake --cores N`."""
        return self.run("snakemake", "--cores", str(cores), check=check)

    def params(self) -> str:
        """The text of params.yaml."""
        return (self.folder / "params.yaml").read_text()

    def replace(self, path: str, old: str, new: str) -> None:
        """Edit one file of the project."""
        file = self.folder / path
        text = file.read_text()
        assert old in text, f"{old!r} not in {path}"
        file.write_text(text.replace(old, new))

    def artifacts(self) -> dict[str, str]:
        """SHA-256 of everything that was made, by path."""
        made = [*self.folder.glob("data/**/*.parquet"), *self.folder.glob("results/*")]
        return {str(p.relative_to(self.folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(made)}

    def deterministic(self) -> dict[str, str]:
        """The same without what may vary from run to run."""
        return {path: digest for path, digest in self.artifacts().items() if not path.endswith(VARYING)}

    def resolved(self, strategy: str, mode: str) -> dict[str, str]:
        """A cell's settings in force, as JSON by key."""
        rows = pq.read_table(self.folder / f"data/resolved/{strategy}/{mode}.parquet").to_pylist()
        return {row["key"]: row["value"] for row in rows}

    def wipe(self) -> None:
        """Delete every artifact and DVC's cache; the ledger stays."""
        for path in self.artifacts():
            (self.folder / path).unlink()
        for folder in (".dvc/cache", ".dvc/tmp", ".snakemake"):
            shutil.rmtree(self.folder / folder, ignore_errors=True)


def create(folder: Path, ledger: Path, experiment: str = "") -> Workspace:
    """A workspace as a git repository of its own.

    `experiment` is the text of an experiment file that becomes the default one, so that `dvc exp run`, which composes anew,
    uses it too; without it the project's own default stays.
    """
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if not name.startswith(("tests/", "docs/", "dvc.lock", "results/")) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    made = Workspace(folder, ledger)
    made.run("git", "init", "--quiet")
    made.run("git", "config", "user.name", "test")
    made.run("git", "config", "user.email", "test@example.invalid")
    if experiment:
        (folder / "conf/experiment/test.yaml").write_text(experiment)
        made.replace("conf/config.yaml", "experiment: demo", "experiment: test")
    made.run("arena", "compose")
    made.run("git", "add", "--all")
    made.run("git", "commit", "--quiet", "--message", "start")
    return made


def small_dataset(folder: Path, per_type: int = 5, distractors: int = 10) -> Path:
    """A few demo questions of each type with their gold documents and some others, in the demo's shape."""
    documents = [json.loads(line) for line in (ROOT / "data/demo/Corpus.json").read_text().splitlines()]
    questions = [json.loads(line) for line in (ROOT / "data/demo/Question.json").read_text().splitlines()]
    chosen = [q for t in ("multi_hop", "single_hop", "summary") for q in [q for q in questions if q["type"] == t][:per_type]]
    gold = {fact["doc_id"] for q in chosen for fact in q["supporting_facts"]}
    others = [d["id"] for d in documents if d["id"] not in gold][:distractors]
    kept = [d for d in documents if d["id"] in gold or d["id"] in others]
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("Corpus.json", kept), ("Question.json", chosen)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def stub_experiment(
    url: str, dataset: Path, strategies: str = "[vanilla, self_corrective, no_retrieval]", modes: str = "[dense, hybrid]"
) -> str:
    """A small experiment on a dataset folder, with a stub as model and judge."""
    return f"""# @package _global_
defaults:
  - override /dataset: folder
  - override /retrieval: {modes}
  - override /strategy: {strategies}
  - override /llm: openai_compatible
  - override /llm@judge.llm: openai_compatible
experiment: test
dataset:
  path: {dataset}
sample:
  evaluation: 6
  calibration: 3
llm:
  endpoint:
    base_url: {url}
    model: stub
judge:
  llm:
    endpoint:
      base_url: {url}
      model: stub
"""
