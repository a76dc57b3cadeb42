import json
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


def write_dev_file(folder: Path, url: str, token: str) -> None:
    (folder / ".exclave").mkdir()
    text = json.dumps({"control_url": url, "token": token})
    (folder / ".exclave" / "dev.json").write_text(text)


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
    assert "warning: the token travels unencrypted" in ran.err
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
