"""What every hospital runs: train on its own patients, send parameters, take the fused model."""

from modelweld.demo.hospitals import load_hospital, train
from modelweld.federate.nvflare import take_part


def own_model(site):
    """Model of one hospital. In earnest, its own data are read here; the name is the one FLARE knows it by."""
    measured, ill = load_hospital(site)
    return train(measured, ill)


fused = take_part(own_model)
if fused is not None:
    print(f"the fused model has {len(fused.arrays['means'])} groups of patients")
