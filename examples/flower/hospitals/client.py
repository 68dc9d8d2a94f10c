"""At a hospital: train on its own patients, send parameters, take the fused model."""

from logging import INFO

from flwr.app import Context
from flwr.common.logger import log

from modelweld import LocalModel
from modelweld.demo import hospitals
from modelweld.federate.flower import client_app


def train(context: Context) -> LocalModel:
    """A mixture of this hospital's patients."""
    return hospitals.train(*hospitals.load_hospital(str(context.node_config["hospital"])))


def receive(model: LocalModel, context: Context) -> None:
    """Look at the groups of patients that all hospitals have between them."""
    for patients, means in zip(model.arrays["counts"], model.arrays["means"], strict=True):
        log(INFO, "%4.0f patients: %s", patients, dict(zip(hospitals.COLUMNS, means.round(1).tolist(), strict=True)))


app = client_app(train, receive=receive, site=lambda context: hospitals.HOSPITALS[str(context.node_config["hospital"])])
