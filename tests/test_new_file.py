"""One writer: the old file or the new one, never half; for its owner alone; what killed writers left is removed."""

import os
import stat
import time

import pytest

from modelweld import InputError
from modelweld.files.limits import LEFT, PART, whole_file


def _write(path, text="new", **options):
    with whole_file(path, **{"force": True, **options}) as part:
        part.write_text(text)


def test_a_writer_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "page.html"
    _write(path, "old")

    def fill_the_disk():
        with whole_file(path, force=True) as part:
            part.write_text("ne")
            raise OSError(28, "no space left on disk")

    with pytest.raises(InputError, match="disk"):
        fill_the_disk()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_files_follow_the_umask_and_keep_the_mode_they_were_given(tmp_path, mask):
    path = tmp_path / "page.html"
    before = os.umask(mask)
    try:
        _write(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o640)
    _write(path, "newer")
    assert path.read_text() == "newer"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("target", ["there", "nowhere"])
def test_a_link_is_replaced_and_never_followed(tmp_path, target):
    (tmp_path / "there").write_text("mine")
    path = tmp_path / "page.html"
    path.symlink_to(tmp_path / target)
    with pytest.raises(InputError, match="already"):
        _write(path, force=False)
    _write(path)
    assert not path.is_symlink()
    assert path.read_text() == "new"
    assert (tmp_path / "there").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(("age", "gone"), [(0.9 * LEFT, False), (1.1 * LEFT, True)])
def test_what_a_killed_writer_left_is_removed_after_an_hour(tmp_path, age, gone):
    left = tmp_path / f"{PART}0123.html"
    left.write_text("half")
    os.utime(left, (time.time() - age,) * 2)
    _write(tmp_path / "page.html")
    assert left.exists() is not gone
