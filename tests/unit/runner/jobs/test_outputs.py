"""Outputs and inputs of a job are files with a strict form."""

import json
import os
from pathlib import Path

import pytest

from exclave.runner.jobs.outputs import merge_outputs, read_outputs, write_inputs
from exclave.runner.jobs.workspace import check_room, prepare_workspace
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import JsonValue, Reason
from exclave.wire.specs import NoopSpec
from tests.unit.runner.work_kit import make_dispatch


@pytest.mark.parametrize(
    ("text", "outputs"),
    [
        ("", {}),
        ("a=1\nb=x=y\n", {"a": "1", "b": "x=y"}),
        ("a=1\r\n\n  \nb=", {"a": "1", "b": ""}),
        ("a=1\na=2\n", {"a": "2"}),
        ('{"a": 1, "b": [true, null, {"c": "ü"}]}', {"a": 1, "b": [True, None, {"c": "ü"}]}),
        ("\n {}", {}),
    ],
)
def test_outputs_are_lines_or_one_json_object(
    tmp_path: Path, text: str, outputs: dict[str, JsonValue]
) -> None:
    file = tmp_path / "outputs"
    file.write_text(text)

    assert read_outputs(file) == outputs


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"a=1\nb\n", "line 2: it has a line without `=`"),
        (b"a=1\n\n1b=2\n", "line 3: it has a key"),
        (b"a=1\nb=\xff\n", "line 2: it is not UTF-8"),
        (b'{"a": 1,\n "b": }', "line 2: it is not one JSON object"),
        (b'{"a": 1}\n{"b": 2}', "line 2: it is not one JSON object"),
        (b'{"a b": 1}', "key that is not a name"),
        (b'{"a": NaN}', "`NaN`"),
        (b'{"a": 1e999}', "JSON cannot hold"),
        (b'{"a": "\\ud800"}', "half a character"),
        (b'{"a": "x\\u0000y"}', "null character"),
        (b"a=x\0y", "null character"),
        (b'{"a": ' + b"[" * 100_000, "nested too deep"),
        (b'{"a": ' + b"[" * 60 + b"]" * 60 + b"}", "deeper than 50"),
        (b'{"a": ' + b"9" * 5000 + b"}", "number too long"),
        (b"a=" + b"x" * (1 << 20), "larger than"),
        (b"".join(b"k%d=v\n" % at for at in range(1001)), "more than 1000 keys"),
    ],
)
def test_anything_else_fails_and_tells_where(tmp_path: Path, data: bytes, part: str) -> None:
    file = tmp_path / "outputs"
    file.write_bytes(data)

    with pytest.raises(WorkFailed) as failed:
        read_outputs(file)

    assert failed.value.reason is Reason.OUTPUTS_INVALID
    assert part in failed.value.message


def test_a_backslash_followed_by_u0000_is_only_text(tmp_path: Path) -> None:
    file = tmp_path / "outputs"
    file.write_text("a=\\u0000")

    assert read_outputs(file) == {"a": "\\u0000"}


def test_no_file_means_no_outputs(tmp_path: Path) -> None:
    assert read_outputs(tmp_path / "missing") == {}


def test_a_link_or_a_pipe_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("private=1")
    (tmp_path / "link").symlink_to(tmp_path / "key")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()

    for name in ("link", "pipe", "folder"):
        with pytest.raises(WorkFailed):
            read_outputs(tmp_path / name)


def test_later_outputs_win_and_the_limits_hold_for_all_together() -> None:
    assert merge_outputs({"a": 1, "b": 2}, {"b": 3}) == {"a": 1, "b": 3}
    with pytest.raises(WorkFailed):
        merge_outputs({f"a{at}": 1 for at in range(600)}, {f"b{at}": 1 for at in range(600)})
    with pytest.raises(WorkFailed):
        merge_outputs({"a": "x" * 700_000}, {"b": "x" * 700_000})


def test_inputs_are_laid_out_for_this_user_only(tmp_path: Path) -> None:
    workspace = prepare_workspace(tmp_path / "exe", keep_free_bytes=0)
    digest = "sha256:" + "a" * 64
    dispatch = make_dispatch(NoopSpec(), inputs={"x": {"y": "ü"}}, approved_digest=digest)

    env = write_inputs(workspace, dispatch)

    assert json.loads(Path(env["EXCLAVE_INPUTS"]).read_text()) == {"x": {"y": "ü"}}
    assert workspace.inputs.stat().st_mode & 0o777 == 0o600
    assert env["EXCLAVE_APPROVED_DIGEST"] == digest
    for folder in (workspace.folder, workspace.work, workspace.home, workspace.tmp):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_work_does_not_begin_on_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(WorkFailed) as failed:
        check_room(tmp_path, 1 << 60)

    assert failed.value.reason is Reason.DISK_FULL
    assert "free some space" in failed.value.message
