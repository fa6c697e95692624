from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from docpager.files import replacing, write_output, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    target.write_bytes(b"old")
    with replacing(target) as stream:
        stream.write(b"new")
        stream.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt])
def test_an_error_within_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, error: type[BaseException]
) -> None:
    target = tmp_path / "a.json"
    target.write_bytes(b"old")
    with pytest.raises(error), replacing(target) as stream:
        stream.write(b"ne")
        raise error
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a.json"]


def test_a_folder_in_its_place_is_an_error_that_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    for write in (write_whole, write_output):
        with pytest.raises(IsADirectoryError):
            write(tmp_path / "a.json", b"new")
    assert names(tmp_path) == ["a.json"]


def test_permissions_are_those_of_the_old_file_or_of_any_new_one(tmp_path: Path) -> None:
    target, plain = tmp_path / "a.json", tmp_path / "plain"
    plain.touch()
    write_whole(target, b"1")
    assert target.stat().st_mode == plain.stat().st_mode
    target.chmod(0o640)
    write_whole(target, b"2")
    assert target.stat().st_mode & 0o777 == 0o640


def test_of_several_writers_one_wins_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    contents = [bytes([n]) * 50_000 for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda content: write_whole(target, content), contents))
    assert target.read_bytes() in contents
    assert names(tmp_path) == ["a.bin"]


def test_an_output_follows_links_also_dangling_ones(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "there")
    for content in (b"1", b"2"):
        write_output(link, content)
        assert link.is_symlink() and (tmp_path / "there").read_bytes() == content


def test_an_output_may_be_a_pipe(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_output(pipe, b"through")
    reader.join()
    assert got == [b"through"] and pipe.is_fifo()


def test_an_output_whose_place_takes_no_other_file_is_written_to_as_it_stands(
    tmp_path: Path,
) -> None:
    target = tmp_path / ("n" * 250)  # too long for a temporary name beside it
    target.write_bytes(b"old content")
    write_output(target, b"new")
    assert target.read_bytes() == b"new"
    with pytest.raises(OSError, match="too long"):
        write_whole(target, b"newer")
    assert names(tmp_path) == [target.name]


def test_an_output_in_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_output(tmp_path / "none" / "a.json", b"1")
