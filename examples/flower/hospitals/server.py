"""At the centre: wait for the four hospitals, fuse what at least three of them send, give it back."""

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from modelweld.demo.hospitals import HOSPITALS
from modelweld.federate.flower import one_round

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """One round, with what `flwr run --run-config` says."""
    config = context.run_config
    one_round(grid, minimum=3, expected=list(HOSPITALS.values()), timeout=config["timeout"], out=config["out"])
