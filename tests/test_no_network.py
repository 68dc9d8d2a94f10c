"""Nothing is sent anywhere: everything runs in a process that may not open a connection nor look up a name."""

import subprocess
import sys

PROGRAM = """
import os, sys

def refuse(event, arguments):
    if event.startswith(("socket.connect", "socket.bind", "socket.send", "socket.get", "urllib.", "http.", "ftplib.")):
        raise RuntimeError(f"network: {event} {arguments}")

sys.addaudithook(refuse)
import socket

for attempt in (lambda: socket.create_connection(("127.0.0.1", 9), 1), lambda: socket.getaddrinfo("localhost", 80)):
    try:
        attempt()
    except RuntimeError as error:
        assert str(error).startswith("network: ")
    else:
        sys.exit("the network was not refused")

import numpy as np
from sklearn.mixture import GaussianMixture
import modelweld
from modelweld.cli import main

os.chdir(sys.argv[1])
rng = np.random.default_rng(0)
places = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
for name in ("north", "south", "east", "west"):
    X = np.concatenate([rng.normal(place, 1, (50, 2)) for place in places])
    model = GaussianMixture(3, random_state=0).fit(X)
    modelweld.export(model, f"{name}.safetensors", site=name, features=["a", "b"], X=X)
fusion = modelweld.fuse([f"{name}.safetensors" for name in ("north", "south", "east", "west")])
fusion.confidence(), fusion.diagnosis.sites(), fusion.worth_merging(), fusion.model()
fusion.report("page.html")
fusion.save("python.safetensors")
modelweld.load("python.safetensors")
for words in (
    ["inspect", "north.safetensors"],
    ["validate", "north.safetensors"],
    ["fuse", *(f"{x}.safetensors" for x in ("north", "south", "east")), "--out", "f.safetensors", "--report", "f.html"],
    ["verdict", "f.safetensors"],
    ["add", "f.safetensors", "west.safetensors", "--out", "g.safetensors"],
    ["report", "g.safetensors", "--out", "g.html"],
):
    try:
        sys.argv = ["modelweld", *words]
        main()
    except SystemExit as ended:
        assert not ended.code, words
print("nothing was sent")
"""


def test_nothing_is_sent(tmp_path):
    run = subprocess.run([sys.executable, "-c", PROGRAM, tmp_path], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.endswith("nothing was sent\n")
    assert (tmp_path / "g.html").exists()
