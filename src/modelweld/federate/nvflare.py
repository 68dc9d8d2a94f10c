"""One round in NVIDIA FLARE: sites train by a script, the server fuses, every site gets the fused model back.

At the server, a recipe: ``FuseRecipe(train_script="hospital.py").execute(env)``. In the script that each site runs, one
call: ``take_part(train)``. FLARE carries the bytes; who the sites are, and who may talk to whom, is FLARE's as well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, TypeAlias

from nvflare import FedJob
from nvflare import client as flare
from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal
from nvflare.app_common.abstract.fl_model import FLModel
from nvflare.app_common.utils.fl_model_utils import FLModelUtils
from nvflare.client.config import ExchangeFormat
from nvflare.fuel.utils.constants import FrameworkType
from nvflare.job_config.script_runner import ScriptRunner
from nvflare.recipe.spec import Recipe

from modelweld.errors import InputError
from modelweld.federate.round import FEWEST_SITES_OF_A_ROUND, Answers, Outcome, export_packed, finish_round, unpack
from modelweld.federate.round import FUSION as FUSION
from modelweld.federate.round import PAGE as REPORT  # noqa: F401 - public
from modelweld.federate.round import ROUND as ROUND
from modelweld.files.limits import first_line
from modelweld.fuse import fuse
from modelweld.inputs.local_model import LocalModel

TRAIN, RETURN = "train", "fused"
"""Tasks: train and send a model; take the fused one."""

MODEL, FAILED, TAKEN = "model", "failed", "taken"
"""What a message holds: a packed model, the class of an error, or that the fused model has come."""

Plain: TypeAlias = bool | int | float | str
"""What a job's configuration can hold."""

PATIENCE = 60
"""Seconds that sites have to fetch the fused model: it is small, and absent sites should not delay the server."""

log = logging.getLogger(__name__)


class FuseRecipe(Recipe):
    """One round: sites train and send parameters, the server fuses, and the fused model goes back.

    The server's folder of the job then holds ``fusion.safetensors`` (for `modelweld.load`; it has every site's
    parameters and must stay there), ``report.html`` and ``round.json`` (who answered, is missing, or was refused why).

    Parameters
    ----------
    train_script : str
        Script that each site runs; it calls `take_part`. It travels with the job if its path is relative.
    name : str
        Name of the job.
    minimum : int
        Sites that must have joined for the job to begin, and must have sent a model for it not to fail, in which case
        it says who is missing.
    sites : sequence of str, optional
        Names of the sites that should take part. Those that have not joined are named as missing.
    timeout : int
        Seconds to wait for the sites' models, then go on with those that have come; 0 waits for all that have joined.
    train_args : str
        Arguments of the script.
    launch_external_process : bool
        Whether sites run the script in a process of its own.
    how : str, optional
        How the fused model is made: see `Fusion.fused`.
    **options
        For `modelweld.fuse`. They travel in the job's configuration: numbers, words, True and False.
    """

    def __init__(
        self,
        *,
        train_script: str,
        name: str = "fuse",
        minimum: int = FEWEST_SITES_OF_A_ROUND,
        sites: Sequence[str] = (),
        timeout: int = 0,
        train_args: str = "",
        launch_external_process: bool = False,
        how: str | None = None,
        **options: Plain,
    ) -> None:
        _check_options(options)
        job = FedJob(name=name, min_clients=minimum)
        job.set_app_packages(["modelweld"])  # it is installed at all sites: its sources need not travel
        job.to_server(FuseController(minimum=minimum, sites=list(sites), timeout=timeout, how=how, options=options))
        runner = ScriptRunner(
            script=train_script,
            script_args=train_args,
            launch_external_process=launch_external_process,
            framework=FrameworkType.RAW,
            server_expected_format=ExchangeFormat.RAW,
        )
        job.to_clients(runner, tasks=[TRAIN, RETURN])
        self.train_args = train_args
        super().__init__(job)


class FuseController(Controller):
    """What the server does: asks all sites for a model, fuses what comes, sends the fused model back.

    Parameters
    ----------
    minimum, sites, timeout, how
        As in `FuseRecipe`.
    options : dict, optional
        For `modelweld.fuse`.
    """

    def __init__(
        self,
        minimum: int = FEWEST_SITES_OF_A_ROUND,
        sites: Sequence[str] = (),
        timeout: int = 0,
        how: str | None = None,
        options: Mapping[str, Plain] | None = None,
    ) -> None:
        super().__init__()
        self.minimum, self.sites, self.timeout, self.how = minimum, list(sites), timeout, how
        self.options, self.answers = dict(options or {}), Answers()

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Nothing to prepare."""

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """The round."""
        engine = fl_ctx.get_engine()
        outcome = Outcome(engine.get_workspace().get_result_root(fl_ctx.get_job_id()), force=True)
        joined = [client.name for client in engine.get_clients()]
        self.answers = Answers(expected={*joined, *self.sites})
        ask = Task(TRAIN, _message({}), timeout=self.timeout, result_received_cb=self._take_answer)
        self.broadcast_and_wait(ask, fl_ctx, joined, min_responses=0, abort_signal=abort_signal)
        if abort_signal.triggered:
            return
        try:
            fusion, back = finish_round(self.answers, outcome, self.minimum, self.how, self.options)
            give = Task(RETURN, _message({MODEL: back}), timeout=PATIENCE)
        except Exception as wrong:
            self.system_panic(first_line(wrong), fl_ctx)
        else:
            self.log_info(fl_ctx, f"{fusion}. {self.answers}")
            self.broadcast_and_wait(give, fl_ctx, joined, min_responses=0, abort_signal=abort_signal)
        finally:
            outcome.tell(self.answers)

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Nothing to tidy up."""

    def process_result_of_unknown_task(
        self, client: Client, task_name: str, client_task_id: str, result: Shareable, fl_ctx: FLContext
    ) -> None:
        """An answer that came after its time."""
        if task_name == TRAIN:
            self.answers.late.add(client.name)

    def _take_answer(self, client_task: ClientTask, fl_ctx: FLContext) -> None:
        """Take one site's answer, or note why it cannot be used: it never stops the others."""
        sender, result = client_task.client.name, client_task.result
        code = result.get_return_code()
        try:
            params = {} if code != ReturnCode.OK else FLModelUtils.from_shareable(result).params or {}
        except Exception as wrong:  # whatever one site sends, the answers of the others must not be lost
            params, code = {}, f"an answer that is no message ({type(wrong).__name__})"
        if MODEL in params:
            self.answers.accept(sender, params[MODEL])
        elif FAILED in params:
            self.answers.refuse(sender, f"training failed there with {str(params[FAILED])[:100]}; its log says why")
        else:
            self.answers.refuse(sender, f"its script sent no model ({code}); its log says why")
        client_task.result = None


def take_part(train: Callable[[str], object], **options: Any) -> LocalModel | None:
    """What a site does, in the script that FLARE runs there: train, send parameters, wait for the fused model.

    What leaves is what `modelweld.export` would write to a file, checked as there: components of fewer than five
    points are refused, and so are tables whose rows may be people's (say ``centres=True`` if they are not). What leaves
    is listed in the site's own log.

    Parameters
    ----------
    train : function of the site's name
        Returns a fitted model, or a LocalModel (`modelweld.read`, with numbers of points); or a pair of it and options
        of `modelweld.export` that are known only now, as in ``return mixture, {"X": X}``. If it raises, only the
        class of the error is sent; its message stays in the site's log.
    **options
        For `modelweld.export`: `features`, `units`, `noise`, `allow_small`, ...

    Returns
    -------
    LocalModel or None
        The fused model, for `modelweld.libraries.write`; None if the round failed.
    """
    flare.init()
    site = flare.get_site_name()
    while flare.is_running():
        message = flare.receive()
        if message is None:
            break
        if flare.get_task_name() == RETURN:
            fused = unpack(message.params[MODEL], "the server")
            flare.send(FLModel(params={TAKEN: True}))
            return fused
        flare.send(FLModel(params=_answer(train, site, options)))
    return None


def _check_options(options: Mapping[str, object]) -> None:
    """Refuse what `fuse` does not know, or what a job's configuration cannot hold, before anyone trains."""
    unknown = sorted(options.keys() - signature(fuse).parameters.keys())
    if unknown:
        raise InputError(f"neither FuseRecipe nor modelweld.fuse has an option {unknown[0]!r}.")
    odd = sorted(name for name, value in options.items() if not isinstance(value, (bool, int, float, str)))
    if odd:
        raise InputError(
            f"options travel in the job's configuration and must be numbers, words, True or False; {odd} is not. "
            "For families or priors, take the sites' models from the fusion file and fuse them again."
        )


def _answer(train: Callable[[str], object], site: str, options: Mapping[str, Any]) -> dict[str, bytes | str]:
    try:
        content, report = export_packed(train(site), site, options)
        log.info("%s", report)
        return {MODEL: content}
    except Exception as wrong:
        log.exception("training failed")
        return {FAILED: type(wrong).__name__}  # its words may quote rows or paths


def _message(params: Mapping[str, object]) -> Shareable:
    return FLModelUtils.to_shareable(FLModel(params={"round": 0, **params}))
