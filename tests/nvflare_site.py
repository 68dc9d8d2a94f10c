"""What the sites of tests/test_nvflare.py run: each does what its name says."""

import sys
import time

import numpy as np
from sklearn.mixture import GaussianMixture

import modelweld

SILENCE = 30
"""Seconds in which a silent site says nothing."""

MEANS = {"north": [0, 9], "south": [9, -9], "east": [0, -9]}


def rows(site):
    rng = np.random.default_rng(len(site))
    return np.concatenate([rng.normal(m, 1.0, (40, 2)) for m in MEANS[site]])


def train(site):
    if site == "failing":
        raise RuntimeError("row 17 of /home/alice/patients.csv is Bob's")
    if site == "silent":
        time.sleep(SILENCE)
    X = rows(site if site in MEANS else "north")
    model = modelweld.read(GaussianMixture(2, random_state=0).fit(X), X=X)
    if site == "hostile":
        model.arrays["means"][0, 0] = np.nan  # a model is checked when it is made; a hostile site changes it then
    return model


def main():
    from modelweld.federate import nvflare, pack

    nvflare.flare.init()
    site = nvflare.flare.get_site_name()
    if site == "broken":
        raise RuntimeError("the script itself is broken, in /home/alice")
    if site == "hostile":
        nvflare.export_packed = lambda model, site, options: (pack(model), "")
    if site == "impostor":
        nvflare.export_packed = lambda model, site, options: (pack(model.with_(site="north")), "")
    if site == "babbling":
        nvflare.export_packed = lambda model, site, options: (np.random.default_rng(0).bytes(100_000), "")
    fused = nvflare.take_part(train)
    if fused is not None:
        modelweld.files.save(fused, f"{sys.argv[1]}/{site}.safetensors")


if __name__ == "__main__":
    main()
