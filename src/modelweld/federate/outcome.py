"""What a round leaves at the server: a folder with the fusion, a page about it, and who answered."""

from __future__ import annotations

import json
import os
from pathlib import Path

from modelweld.errors import InputError
from modelweld.federate.round import Answers
from modelweld.files import save
from modelweld.files.fusion_file import content_of
from modelweld.files.new_file import check_free, whole_file
from modelweld.fusion import Fusion
from modelweld.report.page import text_of

FUSION, PAGE, ROUND = "fusion.safetensors", "report.html", "round.json"
"""What the folder holds: the fusion, a page to look at, who took part."""


class Outcome:
    """A folder for the outcome of a round, looked at before the round so that nothing is lost after it.

    Parameters
    ----------
    folder : path
        Is made if it is not there; the folder it lies in must be.
    force : bool
        Whether to replace what an earlier round has left.

    Examples
    --------
    >>> import modelweld, tempfile
    >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcome = Outcome(folder + "/first")
    ...     outcome.keep(fusion)
    ...     outcome.tell(Answers())
    ...     sorted(path.name for path in outcome.folder.iterdir())
    ['fusion.safetensors', 'report.html', 'round.json']
    """

    def __init__(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        self.folder, self.force = Path(folder).absolute(), force
        for name in (FUSION, PAGE, ROUND):
            if self.folder.is_dir():
                check_free(self.folder / name, force=force)
        if not self.folder.parent.is_dir():
            raise InputError(f"'{self.folder}': there is no folder '{self.folder.parent}' to make it in.")
        self.folder.mkdir(exist_ok=True)

    @staticmethod
    def check(fusion: Fusion) -> None:
        """Fail if the fusion or its page could not be made."""
        content_of(fusion)
        text_of(fusion, draws=False)

    def keep(self, fusion: Fusion) -> None:
        """Write the fusion and the page about it."""
        save(fusion, self.folder / FUSION, force=self.force)
        fusion.report(self.folder / PAGE, force=self.force)

    def tell(self, answers: Answers) -> None:
        """Write who answered, who is missing or late, and what was refused."""
        text = json.dumps(answers.told(), indent=2, ensure_ascii=False) + "\n"
        with whole_file(self.folder / ROUND, force=True) as part:
            part.write_text(text, encoding="utf-8")
