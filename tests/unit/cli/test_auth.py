import json
import os
import stat
from pathlib import Path

import pytest

from exclave.base.errors import InvalidInput
from exclave.base.secrets import Secret
from exclave.cli.config import Login, NotLoggedIn, find_config_file, find_login, store_login
from tests.unit.cli import samples
from tests.unit.cli.fake_control import TOKEN, URL, Cli, FakeControl

HERE = "http://127.0.0.1:8700"


def store(home: Path, url: str, token: str) -> dict[str, str]:
    env = {"HOME": str(home)}
    store_login(find_config_file(env), url, Secret(token))
    return env


def write_dev_file(folder: Path, url: str, token: str) -> Path:
    (folder / ".exclave").mkdir()
    text = json.dumps({"control_url": url, "token": token})
    file = folder / ".exclave" / "dev.json"
    file.write_text(text)
    file.chmod(0o600)
    return file


def test_the_environment_wins_over_all(tmp_path: Path) -> None:
    env = store(tmp_path, "http://stored.test", "stored")
    write_dev_file(tmp_path, HERE, "dev")

    found = find_login(env | {"EXCLAVE_URL": URL, "EXCLAVE_TOKEN": "given"}, tmp_path)

    assert found == Login(URL, Secret("given"), "environment")


def test_the_stored_login_wins_over_a_dev_folder(tmp_path: Path) -> None:
    env = store(tmp_path, "http://stored.test/", "stored")
    write_dev_file(tmp_path, HERE, "dev")

    found = find_login(env, tmp_path)

    assert (found.url, found.token) == ("http://stored.test", Secret("stored"))


def test_a_dev_folder_is_found_last(tmp_path: Path) -> None:
    write_dev_file(tmp_path, HERE, "dev")

    found = find_login({"HOME": str(tmp_path)}, tmp_path)

    assert found == Login(HERE, Secret("dev"), str(tmp_path / ".exclave" / "dev.json"))


def test_a_token_alone_goes_to_the_stored_server_or_the_default_one(tmp_path: Path) -> None:
    assert find_login({"HOME": str(tmp_path), "EXCLAVE_TOKEN": "t"}, tmp_path).url == HERE
    env = store(tmp_path, "http://stored.test", "stored")
    assert find_login(env | {"EXCLAVE_TOKEN": "t"}, tmp_path).url == "http://stored.test"


def test_a_token_alone_never_goes_to_the_address_in_a_dev_file(
    cli: Cli, fake: FakeControl, tmp_path: Path
) -> None:
    write_dev_file(tmp_path, "http://127.0.0.1:6666", "xcl_attacker")

    ran = cli("auth", "whoami", env={"EXCLAVE_TOKEN": TOKEN})

    assert (ran.code, fake.requests) == (2, [])
    assert "EXCLAVE_TOKEN is set without EXCLAVE_URL" in ran.err
    assert "hint: Set EXCLAVE_URL too, or unset EXCLAVE_TOKEN" in ran.err


def test_a_stored_login_tells_where_a_token_goes_even_beside_a_dev_file(tmp_path: Path) -> None:
    env = store(tmp_path, "http://stored.test", "stored")
    write_dev_file(tmp_path, "http://127.0.0.1:6666", "xcl_attacker")

    found = find_login(env | {"EXCLAVE_TOKEN": "t"}, tmp_path)

    assert found == Login("http://stored.test", Secret("t"), "environment")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o602, 0o601])
def test_a_dev_file_that_others_can_reach_is_not_used(tmp_path: Path, mode: int) -> None:
    write_dev_file(tmp_path, HERE, "dev").chmod(mode)

    with pytest.raises(NotLoggedIn, match=f"is not used: other users have rights .* {mode:04o}"):
        find_login({"HOME": str(tmp_path)}, tmp_path)


def test_a_dev_file_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_dev_file(tmp_path, HERE, "dev")
    owner = file.stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)

    with pytest.raises(NotLoggedIn, match=rf"belongs to another user \(uid {owner}\)"):
        find_login({"HOME": str(tmp_path)}, tmp_path)


def test_a_dev_file_that_is_a_link_or_a_pipe_is_not_used(tmp_path: Path) -> None:
    file = write_dev_file(tmp_path, HERE, "dev")
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(NotLoggedIn, match="it is a symbolic link"):
        find_login({"HOME": str(tmp_path)}, tmp_path)

    file.unlink()
    os.mkfifo(file, 0o600)
    with pytest.raises(NotLoggedIn, match="it is not a regular file"):
        find_login({"HOME": str(tmp_path)}, tmp_path)


@pytest.mark.parametrize(
    "url",
    ["http://evil.example", "http://10.0.0.1:8700", "http://127.0.0.1.evil.example", "http://127.0.0.1@evil.example",
     "http://[", "file:///x", "//127.0.0.1@evil"],
)  # fmt: skip
def test_a_dev_file_for_another_machine_is_not_used(tmp_path: Path, url: str) -> None:
    write_dev_file(tmp_path, url, "dev")

    with pytest.raises(NotLoggedIn, match="is not on this machine"):
        find_login({"HOME": str(tmp_path)}, tmp_path)


@pytest.mark.parametrize("url", ["http://localhost:1", "http://[::1]:1", "http://127.0.0.2:1"])
def test_a_dev_file_for_this_machine_is_used(tmp_path: Path, url: str) -> None:
    write_dev_file(tmp_path, url, "dev")

    assert find_login({"HOME": str(tmp_path)}, tmp_path).url == url


def test_a_dev_file_is_not_looked_at_where_another_login_applies(tmp_path: Path) -> None:
    env = store(tmp_path, "http://stored.test", "stored")
    write_dev_file(tmp_path, "http://evil.example", "dev").chmod(0o666)

    assert find_login(env, tmp_path).url == "http://stored.test"


def test_a_stored_token_is_never_sent_to_another_address(tmp_path: Path) -> None:
    env = store(tmp_path, "http://stored.test", "stored")

    with pytest.raises(NotLoggedIn, match="there is no token for it"):
        find_login(env | {"EXCLAVE_URL": "http://elsewhere.test"}, tmp_path)


def test_an_address_picks_the_login_that_was_made_for_it(tmp_path: Path) -> None:
    env = store(tmp_path, "http://stored.test", "stored")
    write_dev_file(tmp_path, HERE, "dev")

    assert find_login(env | {"EXCLAVE_URL": HERE + "/"}, tmp_path).token == Secret("dev")
    assert find_login(env | {"EXCLAVE_URL": "http://stored.test"}, tmp_path).token == Secret(
        "stored"
    )


def test_without_any_login_the_ways_to_get_one_are_told(cli: Cli) -> None:
    ran = cli("runners", "list", env={})

    assert ran.code == 1
    assert ran.err.startswith(
        "error: not logged in to any server\n\nhint: Run `exclave auth login`"
    )


@pytest.mark.parametrize("text", ["url = 1\ntoken = 2", "not toml", 'url = "http://x"'])
def test_a_broken_file_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)

    with pytest.raises(InvalidInput, match=r"cannot use .*config\.toml"):
        find_login({"EXCLAVE_CONFIG": str(file)}, tmp_path)


def test_a_login_is_checked_then_stored_for_this_user_only(
    cli: Cli, fake: FakeControl, tmp_path: Path
) -> None:
    fake.answer("GET", "/v1/whoami", samples.whoami())
    file = tmp_path / "deep" / "config.toml"

    ran = cli(
        "auth", "login", "--url", URL + "/", "--token", TOKEN, env={"EXCLAVE_CONFIG": str(file)}
    )

    assert ran.code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == f'url = "{URL}"\ntoken = "{TOKEN}"\n'
    assert "warning: the token is sent unencrypted" in ran.err
    assert TOKEN not in ran.out + ran.err


def test_a_refused_token_is_not_stored(cli: Cli, fake: FakeControl, tmp_path: Path) -> None:
    fake.refuse("GET", "/v1/whoami", 401, "unauthenticated", "unknown token")
    file = tmp_path / "config.toml"

    ran = cli("auth", "login", "--token", TOKEN, env={"EXCLAVE_CONFIG": str(file)})

    assert ran.code == 1
    assert not file.exists()


def test_an_older_file_with_loose_rights_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("old")
    file.chmod(0o644)

    store_login(file, URL, Secret(TOKEN))

    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_logging_out_forgets_the_token(cli: Cli, tmp_path: Path) -> None:
    store(tmp_path, URL, TOKEN)

    ran = cli("auth", "logout", env={})

    assert ran.code == 0
    assert not find_config_file({"HOME": str(tmp_path)}).exists()


def test_whoami_names_where_the_login_came_from(
    cli: Cli, fake: FakeControl, tmp_path: Path
) -> None:
    fake.answer("GET", "/v1/whoami", samples.whoami())
    write_dev_file(tmp_path, HERE, TOKEN)

    ran = cli("auth", "whoami", env={})

    assert ran.out.splitlines()[-2:] == [
        f"server   {HERE}",
        f"from     {tmp_path}/.exclave/dev.json",
    ]
