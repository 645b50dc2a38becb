"""Files that readers see as a whole or not at all."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ttcodegen.foundation.whole_files import write_whole


def test_readers_see_one_content_or_another(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    contents = [str(digit) * 200_000 for digit in range(4)]
    write_whole(path, contents[0])

    def write(content: str) -> None:
        for _ in range(50):
            write_whole(path, content)

    with ThreadPoolExecutor() as threads:
        writers = [threads.submit(write, content) for content in contents]
        seen: set[str] = set()
        while not all(writer.done() for writer in writers):
            seen.add(path.read_text())
    assert seen <= set(contents)
    assert os.listdir(tmp_path) == ["results.json"]


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "taken", "text")
    assert os.listdir(tmp_path) == ["taken"]


def test_links_are_replaced_rather_than_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "link").symlink_to("kept")
    write_whole(tmp_path / "link", b"new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "kept").read_text() == "kept"


@pytest.mark.parametrize(("private", "mode"), [(False, 0o644), (True, 0o600)])
def test_files_have_the_mode_of_the_umask_or_are_private(
    tmp_path: Path, private: bool, mode: int
) -> None:
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "new" / "file", "text", private=private)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new" / "file").stat().st_mode) == mode
    assert (tmp_path / "new" / "file").read_text() == "text"
