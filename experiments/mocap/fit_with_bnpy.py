"""A sticky HDP-HMM of bnpy: frames from a file, the path through its states to another. Runs in a Python of its own.

bnpy 0.1.7 wants numpy below 1.24 and Cython below 3, so Python 3.8 or so; `beside_bnpy.py` calls this there:

    python3.8 -m venv bnpy-env
    bnpy-env/bin/pip install "numpy<1.24" "cython<3" setuptools wheel scipy scikit-learn pandas
    bnpy-env/bin/pip install matplotlib munkres numexpr psutil memory_profiler
    bnpy-env/bin/pip install --no-build-isolation --no-deps bnpy
    bnpy-env/bin/python experiments/mocap/fit_with_bnpy.py frames.npz path.npz
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import tempfile
import time
import warnings

import numpy as np

PRIOR = {"gamma": 5.0, "transAlpha": 0.5, "startAlpha": 10.0, "hmmKappa": 10.0, "sF": 1.0, "ECovMat": "eye"}
"""As the paper sets them, where it says; covariances about the identity."""

FIT = {"nLap": 100, "nTask": 1, "nBatch": 1, "convergeThr": 1e-4, "initname": "randexamples"}
"""No moves: bnpy's deletions do not know this model (NotImplementedError), its merges make a fit slow (README.md)."""


def fitted(X, lengths, K, seed):
    """The most likely path of every frame, and CPU seconds of the fit."""
    import bnpy
    from bnpy.allocmodel.hmm.HMMUtil import runViterbiAlg
    from bnpy.data.GroupXData import GroupXData

    data = GroupXData(X=X, doc_range=np.concatenate([[0], np.cumsum(lengths)]))
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as home:
        place = {"output_path": home, "doWriteStdOut": False, "taskid": 1, "algseed": seed, "dataorderseed": seed}
        model, _ = bnpy.run(data, "HDPHMM", "Gauss", "memoVB", K=K, **PRIOR, **FIT, **place)
    seconds = time.process_time() - begun
    scores = model.obsModel.calcLogSoftEvMatrix_FromPost(data)
    start, moves = np.log(model.allocModel.get_init_prob_vector()), np.log(model.allocModel.get_trans_prob_matrix())
    parts = np.split(scores, np.cumsum(lengths)[:-1])
    return np.concatenate([runViterbiAlg(part, start, moves) for part in parts]), seconds


def main():
    """Read, fit, write."""
    warnings.simplefilter("ignore")
    with np.load(sys.argv[1]) as held:
        path, seconds = fitted(held["X"], held["lengths"], int(held["K"]), int(held["seed"]))
    np.savez(sys.argv[2], path=path, seconds=seconds)


if __name__ == "__main__":
    main()
