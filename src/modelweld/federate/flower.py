"""One round with Flower: sites train where they are, the server fuses, every site gets the fused model.

    app = client_app(train, receive=receive)       # in the module of the ClientApp
    app = server_app(minimum=2, out="fused")       # in the module of the ServerApp

Needs the extra `flower`. See docs/federate.md, and examples/flower for an app that runs. The server's side of a
round: who is there, one model from each, the fused one back to all.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from logging import ERROR, INFO, WARNING
from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.logger import log
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import Strategy

from modelweld.errors import InputError
from modelweld.federate.round import FEWEST_SITES_OF_A_ROUND, Answers, Outcome, export_packed, finish_round, unpack
from modelweld.files.limits import check_name
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import LocalModel

RECORD, MODEL = "model", "safetensors"
"""Names of the record and of the only array in it: the bytes of a file, which Flower passes on in fragments."""


def as_record(data: bytes) -> ArrayRecord:
    """A packed model as a record of arrays."""
    return ArrayRecord({MODEL: Array(dtype="uint8", shape=(len(data),), stype=MODEL, data=data)})


def bytes_of(content: RecordDict) -> bytes:
    """The packed model among these records; no bytes if there is none."""
    record = content.get(RECORD)
    array = record.get(MODEL) if isinstance(record, ArrayRecord) else None
    return bytes(array.data) if isinstance(array, Array) else b""


def as_name(site: str) -> RecordDict:
    """A site's name as records."""
    return RecordDict({"site": ConfigRecord({"name": site})})


def name_in(content: RecordDict) -> str:
    """The name among these records; empty if there is none, or none that can be shown."""
    record = content.get("site")
    name = record.get("name") if isinstance(record, ConfigRecord) else None
    try:
        return check_name(name, "a site") if isinstance(name, str) else ""
    except InputError:
        return ""


BETWEEN_LOOKS = 1.0
"""Seconds between two looks at who is connected."""

FAILED = "it failed; its own log says why"


class OneRound(Strategy):
    """Fuse in one round: ``OneRound().start(grid, ArrayRecord(), num_rounds=1, timeout=600)``.

    First every connected site registers its name, so that sites without an answer can be named. Then each trains
    and sends its model; these are fused in the order of names. Last, the fused model goes to all whose answers were
    not refused, also to those that were too slow.

    Parameters
    ----------
    minimum : int
        Sites without whose models nothing is fused.
    expected : sequence of str, or mapping of str to int, optional
        Names of the sites to wait for; others are refused. A mapping binds each name to a node's number, which is its
        key's for as long as it is registered (`flwr supernode list`): without it, any registered node may call itself
        by the name of an absent site, or shut out a present one by using its name. Default: all sites connected once
        `minimum` are.
    gather : float
        Seconds to wait until they are connected and have registered their names.
    how : str, optional
        How the fused model is made: see `Fusion.fused`.
    outcome : Outcome, optional
        Where to write fusion, page and who answered.
    **options
        For `modelweld.fuse`.

    Attributes
    ----------
    answers : Answers
        Who answered, who is missing or late, what was refused.
    fusion : Fusion or None
        What came of it.
    """

    def __init__(
        self,
        *,
        minimum: int = FEWEST_SITES_OF_A_ROUND,
        expected: Sequence[str] | Mapping[str, int] | None = None,
        gather: float = 60.0,
        how: str | None = None,
        outcome: Outcome | None = None,
        **options: Any,
    ) -> None:
        if expected is not None and len(set(expected)) < minimum:
            raise InputError(f"minimum is {minimum}, but only {len(set(expected))} sites are expected. Lower it.")
        self.minimum, self.expected, self.gather = minimum, None if expected is None else list(expected), gather
        self.bound = _by_node(expected) if isinstance(expected, Mapping) else None
        self.how, self.outcome, self.options = how, outcome, options
        self.answers = Answers(expected)
        self.fusion: Fusion | None = None
        self.nodes: dict[int, str] = {}

    def summary(self) -> None:
        """Log what the round waits for."""
        whom = "any sites" if self.expected is None else ", ".join(sorted(self.expected))
        log(INFO, "\t└──> modelweld: at least %s of %s", self.minimum, whom)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Find out which sites are connected, and ask them for their models."""
        names, silent = self._gather(grid)
        known = [*names.values(), *(f"node {node}" for node in silent)]
        self.answers = Answers(known if self.expected is None else self.expected)
        self.nodes = {node: name for node, name in names.items() if self._welcome(node, name, names)}
        if len(self.nodes) < self.minimum:
            there = sorted(self.nodes.values())
            absent = sorted((self.answers.expected or set()) - {*there, *self.answers.refused})
            refused = [f"{site} ({why})" for site, why in sorted(self.answers.refused.items())]
            raise InputError(
                f"{self.minimum} sites are needed to fuse, and after {self.gather:g} seconds these are there: "
                f"{', '.join(there) or 'none'}; missing: {', '.join(absent) or 'none named'}; refused: "
                f"{', '.join(refused) or 'none'}. Start the others, or wait longer (gather)."
            )
        return self._messages(self.nodes, MessageType.TRAIN, RecordDict({"config": config}))

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Fuse what the sites sent."""
        for reply in replies:
            site = self.nodes.get(reply.metadata.src_node_id)
            if site is None:  # Flower's own word that a node is gone: the site stays missing
                continue
            if reply.has_error():
                self.answers.refuse(site, FAILED)
            else:
                self.answers.accept(site, bytes_of(reply.content))
        try:
            self.fusion, back = finish_round(self.answers, self.outcome, self.minimum, self.how, self.options)
        finally:
            self._report()
        return as_record(back), MetricRecord({name: len(those) for name, those in self.answers.as_dict().items()})

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send the fused model to the sites that are still there and were not refused."""
        there, refused = set(grid.get_node_ids()), self.answers.refused.keys() - self.answers.senders
        whom = [node for node, site in self.nodes.items() if node in there and site not in refused]
        return self._messages(whom, MessageType.EVALUATE, RecordDict({"model": arrays, "config": config}))

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Note who has the fused model; a site that answers only now was late."""
        replied = {self.nodes[r.metadata.src_node_id]: r for r in replies if r.metadata.src_node_id in self.nodes}
        self.answers.late.update(replied.keys() - self.answers.senders)
        for site, reply in sorted(replied.items()):
            if reply.has_error():
                log(WARNING, "modelweld: %s could not take the fused model; its own log says why", site)
        self._report()
        return MetricRecord({"received": sum(not reply.has_error() for reply in replied.values())})

    def _gather(self, grid: Grid) -> tuple[dict[int, str], set[int]]:
        """Nodes that are connected and how they call themselves, and nodes that do not say."""
        names: dict[int, str] = {}
        queried: set[int] = set()
        waiting: set[str] = set()
        until = time.monotonic() + self.gather
        while True:
            new = sorted(set(grid.get_node_ids()) - queried)
            queried.update(new)
            waiting.update(grid.push_messages(self._messages(new, MessageType.QUERY, RecordDict())))
            for reply in grid.pull_messages(waiting) if waiting else ():
                waiting.discard(reply.metadata.reply_to_message_id)
                node = reply.metadata.src_node_id
                if reply.has_content() and node in queried:
                    names[node] = self._name(node, name_in(reply.content))
            if self._enough(names, waiting) or time.monotonic() >= until:
                return names, queried - names.keys()
            time.sleep(BETWEEN_LOOKS)

    def _name(self, node: int, said: str) -> str:
        """What a node is called: what its number is bound to, whatever name it states; else the stated one."""
        known = said if self.bound is None else self.bound.get(node)
        return known or f"node {node}"

    def _enough(self, names: Mapping[int, str], waiting: Collection[str]) -> bool:
        """Whether no further site needs to be waited for.

        Every queried node is waited for, even if all expected names are known: a second node may use one of them.
        """
        there = len(names) >= self.minimum if self.expected is None else set(self.expected) <= set(names.values())
        return there and not waiting

    def _welcome(self, node: int, name: str, names: Mapping[int, str]) -> bool:
        """Whether a node takes part: its name is expected, and no other node has it."""
        if self.bound is not None and node not in self.bound:
            return self.answers.refuse(name, "its key is none of the expected sites'")
        if self.expected is not None and name not in self.expected:
            return self.answers.refuse(name, "no site of that name is expected")
        if sum(other == name for other in names.values()) > 1:
            return self.answers.refuse(name, "several nodes have this name; which is the site cannot be known")
        return True

    @staticmethod
    def _messages(nodes: Iterable[int], message_type: str, content: RecordDict) -> list[Message]:
        return [Message(content, dst_node_id=node, message_type=message_type) for node in sorted(nodes)]

    def _report(self) -> None:
        """Log who answered, and write it to the folder if there is one."""
        complete = not (self.answers.missing or self.answers.late or self.answers.refused)
        log(INFO if complete else WARNING, "modelweld: %s", self.answers)
        if self.outcome is not None:
            self.outcome.tell(self.answers)


def _by_node(expected: Mapping[str, int]) -> dict[int, str]:
    """Names of sites by the numbers of their nodes."""
    found = {int(node): name for name, node in expected.items()}
    if len(found) < len(expected):
        raise InputError("expected gives one node to several sites: each has its own (`flwr supernode list`).")
    return found


CLIENT_APP_RAISED = 2
"""Flower's code of an error for an exception in a ClientApp."""

NEUTRAL = "The site could not complete its task; its own log says why."
"""All that leaves a site about an exception: its text may hold paths, names or values."""


def client_app(
    train: Callable[[Context], object],
    *,
    receive: Callable[[LocalModel, Context], None] | None = None,
    site: Callable[[Context], str] | None = None,
    **options: Any,
) -> ClientApp:
    """A Flower ClientApp that trains on request and sends parameters, once.

    What leaves is what `modelweld.export` would write to a file, checked as there: components of fewer than five
    points are refused, and so are tables whose rows may be people's (say ``centres=True`` if they are not). What leaves
    is listed in the site's own log. If anything fails, the exception stays there too.

    Parameters
    ----------
    train : function of the Context
        Gives the fitted model, or a LocalModel; or a pair of it and options of `modelweld.export` that are known only
        now, as in ``return mixture, {"X": X}``.
    receive : function of a LocalModel and the Context, optional
        Takes the fused model; `modelweld.libraries.write` makes a fitted one of it.
    site : function of the Context, optional
        The site's name. Default: `site` in the node's configuration, else the number of its partition or node.
    **options
        For `modelweld.export`: `features`, `units`, `noise`, `allow_small`, ...

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> app = client_app(lambda context: KMeans(2).fit([[0.0], [1.0]]), features=["age"])
    >>> type(app).__name__
    'ClientApp'
    """
    named = site or site_of

    def who(message: Message, context: Context) -> RecordDict:
        return as_name(named(context))

    def answer(message: Message, context: Context) -> RecordDict:
        content, report = export_packed(train(context), named(context), options)
        log(INFO, "%s", report)
        return RecordDict({RECORD: as_record(content)})

    def take(message: Message, context: Context) -> RecordDict:
        model = unpack(bytes_of(message.content), "the server")
        if receive is not None:
            receive(model, context)
        return as_name(named(context))

    app = ClientApp()
    app.query()(_guard(who))
    app.train()(_guard(answer))
    app.evaluate()(_guard(take))
    return app


def site_of(context: Context) -> str:
    """A site's name from its node's configuration: ``--node-config "site='north'"``, or a number."""
    config = context.node_config
    if "site" in config:
        return str(config["site"])
    return f"partition {config['partition-id']}" if "partition-id" in config else f"node {context.node_id}"


def _guard(handle: Callable[[Message, Context], RecordDict]) -> Callable[[Message, Context], Message]:
    """The reply of a handler; if it fails, why stays in the site's log and a neutral sentence travels."""

    def reply(message: Message, context: Context) -> Message:
        try:
            return Message(handle(message, context), reply_to=message)
        except (Exception, SystemExit) as wrong:
            log(ERROR, "modelweld: %s", NEUTRAL, exc_info=wrong)
            return Message(Error(CLIENT_APP_RAISED, NEUTRAL), reply_to=message)

    return reply


def server_app(**options: Any) -> ServerApp:
    """A Flower ServerApp that runs `one_round` with these options.

    Examples
    --------
    >>> app = server_app(minimum=3, timeout=600, expected=["north", "south", "east"], out="fused", search="thorough")
    >>> type(app).__name__
    'ServerApp'
    """
    app = ServerApp()

    def main(grid: Grid, context: Context) -> None:
        one_round(grid, **options)

    app.main()(main)
    return app


def one_round(
    grid: Grid,
    *,
    timeout: float = 3600.0,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    **options: Any,
) -> OneRound:
    """Have every site train, fuse what they send, and send the fused model back: the main function of a ServerApp.

    Parameters
    ----------
    grid : Grid
        Flower's way to the sites.
    timeout : float
        Seconds that sites have to train; those that take longer are late. They then have as long to take the fused
        model.
    out : path, optional
        A folder for the fusion, a report, and who answered. Checked before the round: no file there is replaced.
    force : bool
        Replace files in that folder.
    **options
        `minimum`, `expected`, `gather` and `how`, as in `OneRound`; others are for `modelweld.fuse`.

    Returns
    -------
    OneRound
        With `fusion` and `answers`.

    Raises
    ------
    InputError
        If fewer than `minimum` sites sent what can be used; the message names the others.
    """
    outcome = None if out is None else Outcome(out, force=force)
    strategy = OneRound(outcome=outcome, **options)
    strategy.start(grid, ArrayRecord(), num_rounds=1, timeout=timeout)
    return strategy
