"""Independent components of many subjects: the groups of a fusion, written into every ICA of mne."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from modelweld.errors import InputError, some
from modelweld.fusion import Fusion


def label_components(fusion: Fusion, icas: Mapping[str, Any], *, label: str = "modelweld", least: int = 2) -> None:
    """Write into ``ica.labels_`` of every subject which of its components belong to which group.

    Parameters
    ----------
    fusion : Fusion
        Of these subjects: ``modelweld.fuse(icas)``.
    icas : mapping of str to mne.preprocessing.ICA
        By names of subjects.
    label : str
        What the labels begin with: group 3 is called "modelweld 3" at every subject. Those of before are replaced.
    least : int
        Subjects that a group needs to be written.

    Examples
    --------
    >>> import mne, modelweld, numpy as np
    >>> rng, icas = np.random.default_rng(0), {}
    >>> maps, names = rng.normal(size=(8, 4)), [f"EEG {i}" for i in range(8)]
    >>> for subject in ("a", "b", "c"):
    ...     recording = maps @ rng.laplace(size=(4, 2000)) + 0.1 * rng.normal(size=(8, 2000))
    ...     raw = mne.io.RawArray(1e-6 * recording, mne.create_info(names, 100.0, "eeg"), verbose="ERROR")
    ...     ica = mne.preprocessing.ICA(4, random_state=0, verbose="ERROR")
    ...     icas[subject] = ica.fit(raw, verbose="ERROR")
    >>> label_components(modelweld.fuse(icas), icas)
    >>> sorted(icas["b"].labels_)
    ['modelweld 0', 'modelweld 1', 'modelweld 2', 'modelweld 3']
    """
    sites = fusion.sites
    if set(sites) != set(map(str, icas)):
        raise InputError(
            f"the fusion is of subjects {some(sites)}, and these are {some(map(str, icas))}: give those it was made "
            "of, by their names."
        )
    for subject, ica in icas.items():
        kept = {name: found for name, found in ica.labels_.items() if not name.startswith(f"{label} ")}
        atoms = np.asarray(fusion.labels[sites.index(str(subject))])
        shared = [atom for atom in np.unique(atoms) if fusion.counts[atom] >= least]
        ica.labels_ = {**kept, **{f"{label} {atom}": np.flatnonzero(atoms == atom).tolist() for atom in shared}}
