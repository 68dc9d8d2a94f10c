"""What `core.board.Board` does, for the Gaussian family on plain values, at matrix-product speed.

Per group: leave its values out of the atoms, score them against all atoms by one product, put them back
(`sweep`). If the best atoms of a group's values differ, they are the optimum; if two values want the same one, shortest
augmenting paths decide (`assignment`). Four things keep this fast and exact:

- products are float32; a group's answer counts only if every best score leads by more than rounding can be
  responsible for; otherwise the group is scored again in float64 (`scores`);
- arrays are taken out of named tuples before loops: each access within one counts references, which takes as long as
  ten numbers;
- from the second sweep on, a group whose values are far nearer to their own atoms than those are to each other is
  settled by the triangle inequality, without any product (`settle`);
- a sweep that changes nothing ends the run, and touches nothing.

Importing this package loads numba; `fuse` does so for large jobs only. Numba keeps compiled code on disk beside the
sources, but does not notice when a function in *another* file changes: tests keep theirs by a hash of all sources.

Internal: docs/public.md says what is not.
"""

from modelweld.fit.engines.compiled.compiled_board import CompiledBoard, pack

__all__ = ["CompiledBoard", "pack"]
