"""Four hospitals in FLARE's simulator: each trains on its own patients, the server fuses. Run ``python job.py``."""

from pathlib import Path

from nvflare.recipe import SimEnv

import modelweld
from modelweld.federate.nvflare import FUSION, REPORT, FuseRecipe

HOSPITALS = ["cleveland", "hungarian", "switzerland", "va"]


def main():
    """Run the round and say what came out."""
    recipe = FuseRecipe(train_script="hospital.py", name="hospitals", sites=HOSPITALS, minimum=3)
    run = recipe.execute(SimEnv(clients=HOSPITALS, workspace_root=str(Path("workspace").resolve())))
    server = Path(run.get_result()) / "server" / "simulate_job"
    fusion = modelweld.load(server / FUSION)
    print(fusion)
    print(f"look at {server / REPORT}")


if __name__ == "__main__":
    main()
