"""One round: every site answers once, what answered is fused, who did not is named, and a folder keeps it. Knows
nothing of transports.

What travels between sites and server: the bytes of a site's file, so that a message is checked as a file is.

Sites that cannot be fused with the others: they describe something else, or nothing works with them; so that one bad
answer costs no other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from math import fsum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from modelweld.core.values import arrays_of
from modelweld.errors import InputError, printable, shorten
from modelweld.files import limits, save
from modelweld.files.fusion_file import content_of
from modelweld.files.limits import first_line
from modelweld.files.manifest import SITE, load_site, manifest_of, site_bytes
from modelweld.files.tensors import open_tensors
from modelweld.fuse import fuse
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import LocalModel, is_count, name_axes
from modelweld.inputs.sets import check_units
from modelweld.kinds import kind_of
from modelweld.report.page import text_of
from modelweld.site.export import Report, export


def find_disagreeing(models: Sequence[LocalModel], votes: Sequence[float] | None = None) -> dict[str, str]:
    """Sites that cannot be fused with what more than half of all sites sent, and why; empty if all can.

    Each site has one vote, unless `votes` says otherwise.

    Raises
    ------
    InputError
        If no such majority exists: who is right cannot be known then.

    Examples
    --------
    >>> axes = {"v": ("atom", None)}
    >>> sites = [LocalModel({"v": v}, axes, site=s) for s, v in (("a", [[1.0]]), ("b", [[2.0]]), ("c", [[3.0, 4.0]]))]
    >>> list(find_disagreeing(sites)), list(find_disagreeing(sites, votes=[0.5, 0.5, 2.0]))
    (['c'], ['a', 'b'])
    """
    wrong = difference(models)
    if wrong is None:
        return {}
    groups: list[list[LocalModel]] = []
    likely: dict[object, list[LocalModel]] = {}
    for model in models:
        named = (model.kind, *model.axes.items(), *model.coordinates.items())
        candidates = [likely[named], *groups] if named in likely else groups  # its like first: thousands may come
        group = next((g for g in candidates if difference([g[0], model]) is None), None)
        if group is None:
            group = []
            groups.append(group)
        group.append(model)
        likely.setdefault(named, group)
    count = counting(models, votes)
    counted = [count(group) for group in groups]
    largest = groups[counted.index(max(counted))]
    if 2 * max(counted) <= fsum(counted):
        raise InputError(f"the sites do not describe the same things, and no majority does. {wrong}")
    others = [model for group in groups if group is not largest for model in group]
    return {model.site: difference([largest[0], model]) or wrong for model in others}


def counting(models: Sequence[LocalModel], votes: Sequence[float] | None) -> Callable[[Sequence[LocalModel]], float]:
    """How many votes some of these models have together: one each, unless `votes` says otherwise."""
    if votes is None:
        return len
    worth = dict(zip(map(id, models), votes, strict=True))
    return lambda some: fsum(worth[id(model)] for model in some)


def difference(models: Sequence[LocalModel]) -> str | None:
    """Why these models cannot be fused, as `fuse` would say it; None if they can."""
    try:
        check_units(models)
        kind_of(models).arrange(models)
    except InputError as wrong:
        return str(wrong)
    except Exception as wrong:  # whatever one site sends, the others go on
        return f"it cannot be compared with the others ({type(wrong).__name__}: {first_line(wrong)})."
    return None


Member = TypeVar("Member")


def fuse_others(
    models: Sequence[LocalModel], use: Callable[[Fusion], object], votes: Sequence[float] | None = None, **options: Any
) -> tuple[Fusion, dict[str, str]]:
    """Fuse the sites that can be fused, if they are more than half, and say of the others by name why they cannot.

    Those are sites that describe something else than more than half of all do (other features, another kind), and
    those without which the others can be fused and used and with which they cannot.

    Parameters
    ----------
    models : sequence of LocalModel
        Each with its site's name.
    use : function of a Fusion
        What is to be done with it (to return it, to write it).
    votes : sequence of float, optional
        How many votes each site has as to who is right; default one.
    **options
        For `modelweld.fuse`.

    Examples
    --------
    >>> axes = {"v": ("atom", None)}
    >>> sites = [LocalModel({"v": v}, axes, site=s) for s, v in (("a", [[1.0]]), ("b", [[2.0]]), ("c", [[3.0, 4.0]]))]
    >>> fusion, refused = fuse_others(sites, use=str)
    >>> fusion.sites, list(refused)
    (['a', 'b'], ['c'])
    """
    refused = find_disagreeing(models, votes) if len(models) > 1 else {}
    count = counting(models, votes)
    models = [model for model in models if model.site not in refused]

    def attempt(some: Sequence[LocalModel]) -> Fusion:
        fusion = fuse(some, **options)
        use(fusion)
        return fusion

    try:
        return attempt(models), refused
    except Exception as wrong:  # whatever one site sends, the answers of the others must not be lost
        kept = largest_working(models, lambda some: _is_fine(attempt, some))
        if 2 * count(kept) <= count(models):
            raise
        why = f"with it nothing can be fused ({type(wrong).__name__}: {first_line(wrong)})"
    chosen = {id(model) for model in kept}
    return attempt(kept), {**refused, **{model.site: why for model in models if id(model) not in chosen}}


def _is_fine(attempt: Callable[[Sequence[LocalModel]], Fusion], some: Sequence[LocalModel]) -> bool:
    try:
        attempt(some)
    except Exception:
        return False
    return True


def largest_working(members: Sequence[Member], works: Callable[[Sequence[Member]], bool]) -> list[Member]:
    """As many members as work together, in the order given: halves are tried alone, joined, then filled up one by one.

    One culprit among J is found with about 4 log J trials, if it fails alone or with anyone; where only a combination
    fails, the member that completes it is left out. Largest is not proved: no single
    member can be added.

    Parameters
    ----------
    members : sequence
        Who might work.
    works : function of some members
        Whether these do.

    Examples
    --------
    >>> largest_working([1, 2, -7, 3, 4], lambda some: min(some) > 0)
    [1, 2, 3, 4]
    """
    tried = cache(lambda some: works([members[i] for i in some]))
    chosen = _working(tuple(range(len(members))), tried)
    return [members[i] for i in chosen]


def _working(members: tuple[int, ...], works: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    if works(members):
        return members
    if len(members) == 1:
        return ()
    half = len(members) // 2
    first, second = _working(members[:half], works), _working(members[half:], works)
    if first and second and works(first + second):
        return first + second
    kept = max(first, second, key=len)
    for one in members:
        more = tuple(sorted({*kept, one}))
        kept = more if works(more) else kept
    return kept


def pack(model: LocalModel) -> bytes:
    """A model as bytes: those of the file `modelweld.files.save` writes.

    Examples
    --------
    >>> site = LocalModel({"v": [[1.0, 2.0]]}, {"v": ("atom", None)}, site="north")
    >>> unpack(pack(site), "north").arrays["v"].tolist()
    [[1.0, 2.0]]
    """
    with limits.naming(model.site or "the model"):
        return site_bytes(model)


def export_packed(made: object, site: str, options: Mapping[str, Any]) -> tuple[bytes, Report]:
    """What leaves a site that takes part in a round, as `modelweld.export` would write it, and what that is.

    Parameters
    ----------
    made : fitted model, LocalModel, or pair of one and a mapping
        What was trained, perhaps with options of `export` that are known only now.
    site : str
        Its name.
    options : mapping
        Of `export`.
    """
    model, more = made if isinstance(made, tuple) else (made, {})
    with TemporaryDirectory() as folder:
        file = Path(folder, "site.safetensors")
        report = export(model, file, site=site, **{**options, **more})
        return file.read_bytes(), report


def unpack(data: bytes, sender: str) -> LocalModel:
    """The model in bytes that `pack` made, or an `InputError` that begins with who sent them.

    Everything is checked that is checked of a file: size, header, hashes, names, and that all values are finite.

    Examples
    --------
    >>> unpack(b"no model at all", "north")
    Traceback (most recent call last):
    modelweld.errors.InputError: 'north': it is no safetensors file, or only a part of one. Ask the site to send it \
again.
    """
    with limits.naming(sender):
        if not isinstance(data, bytes):
            raise InputError(f"a model travels as bytes; found {type(data).__name__}. {limits.AGAIN}")
        limits.check_bytes(len(data), limits.LARGEST_FILE)
        file = open_tensors(data)
        manifest = manifest_of(file)
        if manifest is None or manifest["format"] != SITE:
            raise InputError("it is not a site's model. Make it with modelweld.federate.pack.")
        return load_site(file, manifest)


FEWEST_SITES_OF_A_ROUND = 2
"""Answers below which there is nothing to fuse."""


class Answers:
    """What the sites of one round have sent.

    An answer that cannot be used is kept as a sentence and never stops the others. A name that two senders claim
    counts for neither, because which of them is the site cannot be known: so the order of arrival decides nothing.

    Parameters
    ----------
    expected : iterable of str, optional
        Names of the sites that should answer; others are then refused. Default: all sites are accepted.

    Attributes
    ----------
    models : dict of str to LocalModel
        What counts: site -> model, in the order of names.
    refused : dict of str to str
        Sender -> why something that it sent does not count.
    late : set of str
        Senders whose answer came after the fusion.

    Examples
    --------
    >>> axes = {"v": ("atom", None)}
    >>> south, north = LocalModel({"v": [[1.0]]}, axes, site="south"), LocalModel({"v": [[1.1]]}, axes, site="north")
    >>> answers = Answers(expected=["north", "south", "east", "west"])
    >>> answers.accept("node 7", pack(south)), answers.accept("node 3", pack(north))
    (True, True)
    >>> answers.accept("east", b"what is this")
    False
    >>> answers.fuse().sites
    ['north', 'south']
    >>> print(answers)
    answered: north, south; missing: west; refused: east (it is no safetensors file, or only a part of one. Ask the \
site to send it again.)
    """

    def __init__(self, expected: Iterable[str] | None = None) -> None:
        self.expected = None if expected is None else frozenset(limits.check_name(str(s), "a site") for s in expected)
        self.refused: dict[str, str] = {}
        self.late: set[str] = set()
        self._sent: dict[str, LocalModel] = {}
        self._senders: dict[str, str] = {}
        self._closed = False

    def accept(self, sender: str, payload: bytes) -> bool:
        """Take an answer, if it can be taken.

        Parameters
        ----------
        sender : str
            Who sent it, as the transport knows. A model that does not name its site gets this name.
        payload : bytes
            What `pack` made.

        Returns
        -------
        bool
            Whether it counts so far; if not, `refused` or `late` names the sender.
        """
        if self._closed:
            self.late.add(sender)
            return False
        if sender in self._sent:
            return self.refuse(sender, "a second answer; the first one counts")
        if sender in self.refused:
            return False
        try:
            model = unpack(payload, _show_name(sender))
            site = model.site or limits.check_name(sender, "a site")
        except InputError as wrong:
            return self.refuse(sender, str(wrong).removeprefix(f"{_show_name(sender)!r}: "))
        except Exception as wrong:  # whatever one site sends, the answers of the others must not be lost
            return self.refuse(sender, f"it cannot be read: {type(wrong).__name__}, {limits.first_line(wrong)}")
        if self.expected is not None and site not in self.expected:
            return self.refuse(sender, f"it calls itself {site!r}, and no such site is expected")
        if self.expected is not None and sender in self.expected and site != sender:
            return self.refuse(sender, f"it calls itself {site!r}, but speaks for itself alone")
        if site in self._senders:
            other = self._senders[site]
            self._sent.pop(other, None)
            self.refuse(other, f"{sender} calls itself {site!r} as well; which is the site cannot be known")
            return self.refuse(sender, f"{other} calls itself {site!r} as well; which is the site cannot be known")
        self._senders[site] = sender
        self._sent[sender] = model.with_(site=site)
        return True

    def refuse(self, sender: str, why: str) -> bool:
        """Note that something a sender sent (or a failure that it reports) does not count."""
        self.refused[sender] = printable(shorten(why))
        return False

    @property
    def models(self) -> dict[str, LocalModel]:
        """What counts: site -> model, in the order of names."""
        return {model.site: model for model in sorted(self._sent.values(), key=lambda model: model.site)}

    @property
    def senders(self) -> set[str]:
        """Who sent what counts."""
        return set(self._sent)

    @property
    def missing(self) -> list[str]:
        """Expected sites that sent nothing, in the order of names."""
        return sorted((self.expected or frozenset()) - {*self._senders, *self.refused, *self.late})

    def fuse(
        self,
        minimum: int = FEWEST_SITES_OF_A_ROUND,
        use: Callable[[Fusion], object] = lambda fusion: None,
        **options: Any,
    ) -> Fusion:
        """Fuse what counts, in the order of names; answers that come later are late.

        Sites that describe something else than more than half of all do (other features, another kind) are refused,
        and so are those without which the others can be fused and with which they cannot.

        Parameters
        ----------
        minimum : int
            Sites that must have answered.
        use : function of a Fusion
            What is to be done with it (to return it, to write it): sites with which that fails are refused too.
        **options
            For `modelweld.fuse`.

        Raises
        ------
        InputError
            If fewer did; the message says who is missing, and whose answers were refused and why.
        """
        self._check_enough(minimum)
        fusion, refused = fuse_others(list(self.models.values()), use, **options)
        for site, why in refused.items():
            self.refuse(self._senders[site], why)
            del self._sent[self._senders[site]]
        self._check_enough(minimum)
        self._closed = True
        return fusion

    def _check_enough(self, minimum: int) -> None:
        if len(self._sent) < minimum:
            raise InputError(f"{minimum} sites are needed to fuse, and {len(self._sent)} can be used: {self}.")

    def as_dict(self) -> dict[str, Any]:
        """Who answered, who is missing or late, and what was refused, as JSON has it."""
        return {
            "answered": list(self.models),
            "missing": self.missing,
            "late": [_show_name(sender) for sender in sorted(self.late)],
            "refused": {_show_name(sender): why for sender, why in sorted(self.refused.items())},
        }

    def __str__(self) -> str:
        parts = self.as_dict()
        parts["answered"] = parts["answered"] or ["none"]
        parts["refused"] = [f"{sender} ({why})" for sender, why in parts["refused"].items()]
        return "; ".join(f"{what}: {', '.join(names)}" for what, names in parts.items() if names)


def _show_name(sender: str) -> str:
    """The name of a sender, fit for logs: a transport forwards any name that a sender uses."""
    name = printable(sender)
    return name if len(name) <= limits.LONGEST_NAME else f"{name[: limits.LONGEST_NAME]}..."


def pack_fused(fusion: Fusion, how: str | None = None, **options: Any) -> bytes:
    """What goes back to the sites: the fused model, packed, and nothing of any one site's.

    Parameters
    ----------
    fusion : Fusion
        Of the round. It holds every site's parameters and must stay with the server.
    how, **options
        As in `Fusion.fused`.

    Examples
    --------
    >>> from modelweld import fuse
    >>> sites = [LocalModel({"v": [[1.0, 2.0]]}, {"v": ("atom", None)}, site=site) for site in ("north", "south")]
    >>> unpack(pack_fused(fuse(sites)), "server").arrays["v"].round(3).tolist()
    [[1.0, 2.0]]
    """
    return pack(fusion.parameters(how, **options) if fusion._fit.models[0].kind else _plain(fusion))


def _plain(fusion: Fusion) -> LocalModel:
    """The fused arrays of models without a kind: global values of what was matched, and sums of counts."""
    first = fusion._fit.models[0]
    matched = {name for m in fusion.matchings.values() for key in m.families for name in arrays_of(key)}
    names = [name for name in first.arrays if name in matched or is_count(name)]
    return LocalModel(
        arrays={
            name: fusion.parameters.estimate(name) if name in matched else fusion.parameters.total(name)
            for name in names
        },
        axes={name: axes for name, axes in name_axes(first).items() if name in names},
        auxiliary=[name for name in names if name not in matched],
        coordinates=first.coordinates,
        partial=first.partial,
    )


FUSION, PAGE, ROUND = "fusion.safetensors", "report.html", "round.json"
"""What the folder holds: the fusion, a page to look at, who took part."""


def check_writable(fusion: Fusion, has_report: bool = True) -> None:
    """Fail if the fusion or its report could not be written."""
    content_of(fusion._fit)
    if has_report:
        text_of(fusion, draws=False)


class Outcome:
    """A folder for the outcome of a round, looked at before the round so that nothing is lost after it.

    Parameters
    ----------
    folder : path
        Is made if it is not there; the folder it lies in must be.
    force : bool
        Whether to replace what an earlier round has left.

    Examples
    --------
    >>> import modelweld, tempfile
    >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcome = Outcome(folder + "/first")
    ...     outcome.keep(fusion)
    ...     outcome.tell(Answers())
    ...     sorted(path.name for path in outcome.folder.iterdir())
    ['fusion.safetensors', 'report.html', 'round.json']
    """

    def __init__(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        self.folder, self.force = Path(folder).absolute(), force
        for name in (FUSION, PAGE, ROUND):
            if self.folder.is_dir():
                limits.check_free(self.folder / name, force=force)
        if not self.folder.parent.is_dir():
            raise InputError(f"'{self.folder}': there is no folder '{self.folder.parent}' to make it in.")
        self.folder.mkdir(exist_ok=True)

    def keep(self, fusion: Fusion) -> None:
        """Write the fusion and the page about it."""
        save(fusion, self.folder / FUSION, force=self.force)
        fusion.report(self.folder / PAGE, force=self.force)

    def tell(self, answers: Answers) -> None:
        """Write who answered, who is missing or late, and what was refused."""
        text = json.dumps(answers.as_dict(), indent=2, ensure_ascii=False) + "\n"
        with limits.whole_file(self.folder / ROUND, force=True) as part:
            part.write_text(text, encoding="utf-8")


def finish_round(
    answers: Answers, outcome: Outcome | None, minimum: int, how: str | None, options: Mapping[str, Any]
) -> tuple[Fusion, bytes]:
    """Fuse the answers of a round and keep the outcome: the fusion, and the packed model that goes back to the sites.

    Sites without which the others can be fused, packed and written, and with which they cannot, are refused.
    """

    def check(fusion: Fusion) -> None:
        pack_fused(fusion, how)
        if outcome is not None:
            check_writable(fusion)

    fusion = answers.fuse(minimum, check, **options)
    if outcome is not None:
        outcome.keep(fusion)
    return fusion, pack_fused(fusion, how)
