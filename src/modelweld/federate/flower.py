"""One round with Flower: sites train where they are, the server fuses, every site gets the fused model.

    app = client_app(train, receive=receive)       # in the module of the ClientApp
    app = server_app(minimum=2, out="fused")       # in the module of the ServerApp

Needs the extra `flower`. See docs/federate.md, and examples/flower for an app that runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from logging import ERROR, INFO
from typing import Any

from flwr.app import ArrayRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.logger import log
from flwr.serverapp import Grid, ServerApp

from modelweld.federate.flower_round import RECORD, OneRound, as_name, as_record, bytes_of
from modelweld.federate.payload import exported, unpacked
from modelweld.federate.round import FEWEST_SITES_OF_A_ROUND, Outcome
from modelweld.inputs.local_model import LocalModel

CLIENT_APP_RAISED = 2
"""Flower's code of an error for an exception in a ClientApp."""

NEUTRAL = "The site could not do what was asked; its own log says why."
"""All that leaves a site about an exception: its text may hold paths, names or values."""


def client_app(
    train: Callable[[Context], object],
    *,
    receive: Callable[[LocalModel, Context], None] | None = None,
    site: Callable[[Context], str] | None = None,
    **options: Any,
) -> ClientApp:
    """A Flower ClientApp that trains when it is asked and sends parameters, once.

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
        content, report = exported(train(context), named(context), options)
        log(INFO, "%s", report)
        return RecordDict({RECORD: as_record(content)})

    def take(message: Message, context: Context) -> RecordDict:
        model = unpacked(bytes_of(message.content), "the server")
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

    def guarded(message: Message, context: Context) -> Message:
        try:
            return Message(handle(message, context), reply_to=message)
        except (Exception, SystemExit) as wrong:
            log(ERROR, "modelweld: %s", NEUTRAL, exc_info=wrong)
            return Message(Error(CLIENT_APP_RAISED, NEUTRAL), reply_to=message)

    return guarded


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
    minimum: int = FEWEST_SITES_OF_A_ROUND,
    timeout: float = 3600.0,
    expected: Sequence[str] | Mapping[str, int] | None = None,
    gather: float = 60.0,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    how: str | None = None,
    **options: Any,
) -> OneRound:
    """Have every site train, fuse what they send, and send the fused model back: the main function of a ServerApp.

    Parameters
    ----------
    grid : Grid
        Flower's way to the sites.
    minimum : int
        Sites without whose models nothing is fused.
    timeout : float
        Seconds that sites have to train; those that take longer are late. They then have as long to take the fused
        model.
    expected : sequence of str, or mapping of str to int, optional
        Names of the sites to wait for; others are refused. A mapping binds each name to a node's number, which is its
        key's for as long as it is registered (`flwr supernode list`): without it, any registered node may call itself
        by the name of an absent site, or shut out a present one by using its name. Default: whoever is connected once
        `minimum` are.
    gather : float
        Seconds to wait until they are connected and have said their names.
    out : path, optional
        A folder for the fusion, a page about it, and who answered. Looked at before the round: nothing that is there
        is replaced.
    force : bool
        Replaces it all the same.
    how : str, optional
        How the fused model is made: see `Fusion.fused`.
    **options
        For `modelweld.fuse`.

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
    strategy = OneRound(minimum=minimum, expected=expected, gather=gather, how=how, outcome=outcome, **options)
    strategy.start(grid, ArrayRecord(), num_rounds=1, timeout=timeout)
    return strategy
