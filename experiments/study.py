"""What the paper's studies share: tasks that resume, results as JSON, and the tables and the page made from them.

A study is a folder with a `run.py` that describes a `Study` and hands it to `main`. Its work is cut into tasks, one per
repeat and setting; the result of each is kept in a file as soon as it is there, so a run that was stopped goes on where
it stopped. A summary of all results gives tables and claims; `page.py` shows them.

python experiments/simulated/run.py                 # everything, into reproduced/simulated
python experiments/simulated/run.py --quick         # under a minute, into reproduced/quick/simulated
python experiments/simulated/run.py --accept        # then keep the results in the study's folder
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: tasks run side by side

import argparse
import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from paired import Paired
from provenance import KEY, SAID, as_text, code_of, commit, is_of_today, loaded, provenance
from provenance import versions as libraries

T = TypeVar("T")
HERE = Path(__file__).parent
RESULTS, TABLES = "results.json", "tables.md"
TASK_FOLDER, FIGURE_FOLDER, CODE = "tasks", "figures", "code"

NEEDS = 3
"""How a study ends that lacks a library: it has said which."""

DATA = "MODELWELD_STUDY_DATA"
"""Where files are that studies use and do not ship; `--data` sets it, also for the processes of tasks."""

Result = dict[str, Any]
"""What a task gives: numbers, texts and lists of them, as JSON holds them."""
Results = Mapping[str, Result]
"""Results of tasks by name."""


@dataclass(frozen=True)
class Task:
    """One piece of work that is done or not done: a function that can be sent to another process, and its arguments."""

    name: str
    run: Callable[..., Result]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table of the page: cells are texts, numbers or None."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """Something the study should show, what was found, whether it holds (or a word between), and on how many."""

    text: str
    found: str
    holds: bool | str
    n: str = ""


def not_behind(text: str, found: Paired, n: str, *, told: bool = False) -> Claim:
    """A claim not to be behind; with `told`, what is not told apart is said to be just that."""
    holds = "not told apart" if told and found.verdict == "not told apart" else found.verdict != "behind"
    return Claim(text, str(found), holds, n)


@dataclass(frozen=True)
class Figure:
    """A drawing in the study's folder of figures, and what to see in it."""

    file: str
    caption: str


@dataclass(frozen=True)
class Summary:
    """What the results of all tasks say."""

    tables: Sequence[Table]
    claims: Sequence[Claim] = ()


@dataclass(frozen=True)
class Study:
    """A study: what it asks, the tasks it consists of, and what is made of their results.

    Attributes
    ----------
    name, title, question
        The folder's name, the page's headline, and what is asked, in a sentence or three.
    tasks
        quick or not -> the tasks.
    summary
        Results -> Summary. Gets what there is: a quick run has fewer settings.
    draw
        Results and a folder -> the figures, written there as SVG.
    needs
        Modules that must be there, besides matplotlib for figures, and the extra that brings them.
    """

    name: str
    title: str
    question: str
    tasks: Callable[[bool], Sequence[Task]]
    summary: Callable[[Results], Summary]
    draw: Callable[[Results, Path], Sequence[Figure]] | None = None
    needs: Mapping[str, str] = field(default_factory=dict)


def main(study: Study) -> None:
    """Run a study from the command line."""
    parser = argparse.ArgumentParser(description=study.question)
    parser.add_argument("--quick", "--smoke", action="store_true", help="fewer settings and repeats: under a minute")
    parser.add_argument("--only", default="", help="tasks whose names begin so; the others when they are asked for")
    parser.add_argument("--data", help="a folder with files that are not shipped: the study's README names them")
    parser.add_argument("--jobs", type=int, default=2, help="tasks run side by side")
    parser.add_argument("--out", type=Path, help="folder for the results")
    parser.add_argument("--accept", action="store_true", help="keep the results in the study's folder")
    parser.add_argument("--retell", action="store_true", help="the record's tables, claims, figures anew; runs nothing")
    options = parser.parse_args()
    if options.retell:
        print(retold(study, HERE / study.name))
        return
    check_needs(study)
    if options.data:
        os.environ[DATA] = options.data
    out = options.out or Path("reproduced", *["quick"] * options.quick, study.name)
    folder, tasks = out / TASK_FOLDER, [t for t in study.tasks(options.quick) if t.name.startswith(options.only)]
    results = carried_out(tasks, folder, options.jobs)
    write(study, results, out, quick=options.quick)
    print((out / TABLES).read_text())
    if options.accept and not options.quick:
        accept(study, out)


def asked(about: str, **options: tuple[Any, str]) -> argparse.Namespace:
    """What was asked of a program of its own: by name a default (or keywords of `add_argument`) and a word of help."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, (default, said) in options.items():
        usual = {"action": "store_true"} if default is False else {"type": type(default), "default": default}
        parser.add_argument(f"--{name}", help=said, **(default if isinstance(default, dict) else usual))
    return parser.parse_args()


def timed(call: Callable[..., T], *given: Any) -> tuple[T, float]:
    """What a call gives, and the seconds of CPU it took."""
    begun = time.process_time()
    return call(*given), time.process_time() - begun


def by_cell(results: Results) -> dict[str, list[Result]]:
    """Results of tasks that are named by a cell and a seed, cell by cell."""
    cells: dict[str, list[Result]] = {}
    for name, result in results.items():
        cells.setdefault(name.rpartition("/")[0], []).append(result)
    return cells


def outside(name: str) -> Path | None:
    """A file that is not shipped, in the folder of `--data` or one inside it; tasks without theirs are left out."""
    folder = Path(os.environ.get(DATA, "."))
    return next((path for path in (folder / name, *sorted(folder.glob(f"*/{name}"))) if path.exists()), None)


def versions(package: ModuleType) -> dict[str, str]:
    """Of what was measured, the last commit that changed it among them, and of what it stands on."""
    return {package.__name__: package.__version__, "commit": commit(), **libraries()}


def check_needs(study: Study) -> None:
    """Stop before the work, not after it, where a library is missing."""
    from importlib.util import find_spec

    needs = {**study.needs, **({"matplotlib": "studies"} if study.draw else {})}
    missing = sorted({extra for module, extra in needs.items() if find_spec(module) is None})
    if missing:
        needed = f"pip install -e '.[{','.join(missing)}]'"
        print(f"error: the study '{study.name}' needs, in this clone: {needed}", file=sys.stderr)
        sys.exit(NEEDS)


def carried_out(tasks: Sequence[Task], folder: Path, jobs: int) -> dict[str, Result]:
    """Results of all tasks; those that are in the folder already, and of today's code, are not done again."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {task.name: file_of(task, folder) for task in tasks}
    left = [task for task in tasks if not files[task.name].exists()]
    of = done_with(folder)
    if left and of and not is_of_today(of):
        left, of = list(tasks), {}
        print("the code has changed: all tasks are done again", file=sys.stderr)
    modules = set(of.get("modules", ()))
    for name, (result, used) in shown(done(left, jobs), len(left)):
        modules |= used
        (folder / CODE).write_text(json.dumps({"commit": commit(), **code_of(modules)}))
        unfinished = files[name].with_suffix(".unfinished")
        unfinished.write_text(json.dumps(result))
        unfinished.replace(files[name])
    return {task.name: json.loads(files[task.name].read_text()) for task in tasks}


def done_with(folder: Path) -> dict[str, Any]:
    """Commit and code that the tasks in a folder were done with."""
    return json.loads((folder / CODE).read_text()) if (folder / CODE).exists() else {}


def file_of(task: Task, folder: Path) -> Path:
    """Where a task's result is kept."""
    return folder / f"{task.name.replace('/', '-')}.json"


def shown(items: Iterator[tuple[str, T]], total: int) -> Iterator[tuple[str, T]]:
    """The same, with a line for each on standard error."""
    for k, (name, result) in enumerate(items, 1):
        print(f"{k}/{total} {name}", file=sys.stderr, flush=True)
        yield name, result


def done(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[str, tuple[Result, set[str]]]]:
    """Names, results and modules used, as they come."""
    from joblib import Parallel, delayed

    if jobs == 1 or len(tasks) == 1:
        yield from map(named_result, tasks)
    elif tasks:
        make_importable(sys.modules["__main__"])
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(named_result)(t) for t in tasks)


def make_importable(program: ModuleType) -> None:
    """Let other processes import what a program defines, by the name of its file: `__main__` is another one there."""
    name = Path(getattr(program, "__file__", None) or "__main__").stem
    sys.modules[name] = program
    for thing in list(vars(program).values()):
        if getattr(thing, "__module__", "") == "__main__":
            thing.__module__ = name


def named_result(task: Task) -> tuple[str, tuple[Result, set[str]]]:
    """A task's name, what it gave, with the CPU time it took, and the library's modules it was done with."""
    result, seconds = timed(task.run, *task.arguments)
    return task.name, ({**result, "cpu": seconds}, loaded())


def write(study: Study, results: Results, out: Path, *, quick: bool) -> dict[str, Any]:
    """Write results, tables and figures of a study, and give back what was written as JSON.

    A quick run has too few repeats for verdicts, so it has no claims.
    """
    from modelweld import __version__

    summary = study.summary(results)
    origin = provenance({"quick": quick, "tasks": list(results)}, done_with(out / TASK_FOLDER))
    record = {
        KEY: origin,
        "study": study.name,
        "title": study.title,
        "question": study.question,
        "quick": quick,
        "modelweld": __version__,
        **asdict(replace(summary, claims=()) if quick else summary),
        "figures": drawn(study, results, out),
        "results": dict(results),
    }
    (out / RESULTS).write_text(as_text(record))
    (out / TABLES).write_text(markdown(record))
    return record


def drawn(study: Study, results: Results, out: Path) -> list[Result]:
    """The figures of a study, if it has some, written into a folder of their own."""
    if study.draw is None:
        return []
    (out / FIGURE_FOLDER).mkdir(exist_ok=True)
    return [asdict(figure) for figure in study.draw(results, out / FIGURE_FOLDER)]


def retold(study: Study, home: Path) -> str:
    """Tables, claims and figures that a record makes today; its results and where they come from stay."""
    record = json.loads((home / RESULTS).read_text())
    told = provenance({})
    record[KEY]["told"] = {"commit": told["commit"], "date": told["date"]}
    record |= {"title": study.title, "question": study.question, **asdict(study.summary(record["results"]))}
    record["figures"] = drawn(study, record["results"], home)
    (home / RESULTS).write_text(as_text(record))
    (home / TABLES).write_text(markdown(record))
    return markdown(record)


def write_record(
    out: Path, record: Mapping[str, Any], seeds: str, remark: str = "", done_with: Mapping[str, Any] | None = None
) -> str:
    """Write a record and its tables, headed by what was run; the tables."""
    out.mkdir(parents=True, exist_ok=True)
    told = {name: record[name] for name in SAID if name in record}
    (out / RESULTS).write_text(as_text({KEY: provenance(told, done_with), **record}))
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    head, rest = markdown(record).split("\n", 1)
    text = f"{head}\n\n{seeds}; {versions}; {record['cpu']:.0f} CPU s{remark}\n{rest}"
    (out / TABLES).write_text(text)
    return text


def markdown(record: Mapping[str, Any]) -> str:
    """Figures, tables and claims for people who read text."""
    parts = [f"# {record['title']}"] + ["Quick version: too few repeats to judge by."] * bool(record.get("quick"))
    for figure in record.get("figures", ()):
        short = re.split("[.:]", figure["caption"])[0]
        parts += [f"![{short}]({FIGURE_FOLDER}/{figure['file']})", f"*{figure['caption'].strip()}*"]
    for table in record["tables"]:
        rows = ([cell(c) for c in row] for row in table["rows"])
        parts += [f"## {table['title']}", grid(table["columns"], rows).strip(), table["note"]]
    parts += ["\n".join(f"- {held(c['holds'])}: {c['text']} Found: {c['found']}" for c in record["claims"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def grid(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in (columns, ["---"] * len(columns), *rows))


def held(holds: bool | str, no: str = "NO") -> str:
    """Whether a claim holds, in a word."""
    return holds if isinstance(holds, str) else "yes" if holds else no


def cell(value: str | float | None) -> str:
    """A cell as text: numbers with four digits at most."""
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.4g}"


def accept(study: Study, out: Path) -> None:
    """Keep results, tables and figures in the study's folder."""
    home = HERE / study.name
    for name in (RESULTS, TABLES):
        shutil.copyfile(out / name, home / name)
    if study.draw is not None:
        shutil.rmtree(home / FIGURE_FOLDER, ignore_errors=True)
        shutil.copytree(out / FIGURE_FOLDER, home / FIGURE_FOLDER)
