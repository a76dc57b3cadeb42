"""Which addresses of repositories are taken, and what becomes of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.base.errors import InvalidInput
from exclave.runner.commands import git
from exclave.runner.git.failures import explain_git
from exclave.runner.git.urls import PROTOCOLS, Rewrite, parse_rewrites, resolve_address
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.source_credentials import Credential
from exclave.wire.jobs import Reason


@pytest.mark.parametrize(
    ("repo", "text", "protocol", "host", "port"),
    [
        ("acme/api.infra", "https://github.com/acme/api.infra", "https", "github.com", 443),
        ("https://git.example:8443/a/b.git", None, "https", "git.example", 8443),
        ("git@git.example:acme/api.git", None, "ssh", "git.example", 22),
        ("ssh://git@git.example:2222/acme/api", None, "ssh", "git.example", 2222),
        ("https://[2001:db8::1]/a", None, "https", "2001:db8::1", 443),
        ("file:///srv/git/a", None, "file", "", 0),
    ],
)
def test_the_usual_forms_are_taken(
    *, repo: str, text: str | None, protocol: str, host: str, port: int
) -> None:
    address = resolve_address(repo, (), PROTOCOLS)

    assert (address.text, address.protocol, address.host, address.port) == (
        text or repo,
        protocol,
        host,
        port,
    )


@pytest.mark.parametrize(
    "repo",
    [
        "", "-oProxyCommand=x", "--upload-pack=x", "a b/c", "https://", "https://git.example",
        "https://git.example/", "https://user:pw@git.example/a", "https://tok@git.example/a",
        "https://git.example/a?x=1", "https://git.example/a#b", "ext::sh -c x", "ext::x",
        "git://git.example/a", "ftp://git.example/a", "/srv/git/a", "./a", "../a", "file://host/a",
        "https://git.example:99999/a", "https://-x/a", "git@-x:a", "git@host:/../a\n", "https://[::1/a",
        "a/b/c", "acme", "https://git.example/a\\b", "ssh://git:pw@git.example/a",
    ],
)  # fmt: skip
def test_everything_else_is_refused(repo: str) -> None:
    with pytest.raises(WorkFailed) as caught:
        resolve_address(repo, (), PROTOCOLS)

    assert caught.value.reason is Reason.SOURCE_INVALID
    assert "pw" not in caught.value.message


@given(st.text(max_size=60))
def test_no_text_at_all_becomes_an_option_of_git(repo: str) -> None:
    try:
        address = resolve_address(repo, (), PROTOCOLS)
    except WorkFailed:
        return
    assert not address.text.startswith("-")
    assert not any(char.isspace() for char in address.text)


def test_rewrite_rules_are_read_and_the_longest_counts() -> None:
    rules = parse_rewrites(
        "https://github.com/=https://mirror.example/gh/ https://github.com/a/=https://other/"
    )

    found = [resolve_address(one, rules, PROTOCOLS) for one in ("a/b", "c/d", "git@x.example:y")]

    assert [one.text for one in found] == [
        "https://other/b",
        "https://mirror.example/gh/c/d",
        "git@x.example:y",
    ]
    assert [one.trusted for one in found] == [True, True, False]


@pytest.mark.parametrize("text", ["x", "https://a/=", "=https://a/", "https://a=https://b/", "a=b"])
def test_rules_that_could_catch_half_a_host_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_rewrites(text)


def test_a_rewrite_never_leads_past_the_allowed_protocols() -> None:
    rule = Rewrite("https://github.com/", "file:///srv/")

    with pytest.raises(WorkFailed, match="`file` is not allowed"):
        resolve_address("a/b", [rule], {"https", "ssh"})


@pytest.mark.parametrize(
    ("prefix", "url", "opens"),
    [
        ("https://git.example/acme/", "https://git.example/acme/api", True),
        ("https://git.example/acme", "https://git.example/acme/api", True),
        ("https://git.example/acme", "https://git.example/acme-evil/api", False),
        ("https://git.example", "https://git.example.evil/api", False),
        ("https://git.example/acme/api", "https://git.example/acme/api.git", True),
        ("git@git.example:", "git@git.example:acme/api", True),
        ("git@git.example:", "git@git.example.evil:acme/api", False),
    ],
)
def test_credentials_open_only_what_lies_under_their_prefix(
    *, prefix: str, url: str, opens: bool
) -> None:
    assert Credential(prefix=prefix, password="x").opens(url) is opens


def test_commands_are_data_and_separate_options_from_addresses() -> None:
    listed = git.list_refs("https://x/y", "main", pinned="x:443:1.2.3.4")
    fetched = git.fetch("https://x/y", "a" * 40)

    assert listed[-5:] == (
        "--",
        "https://x/y",
        "refs/heads/main",
        "refs/tags/main",
        "refs/tags/main^{}",
    )
    assert "http.curloptResolve=x:443:1.2.3.4" in listed
    assert fetched[-3:] == ("--", "https://x/y", "a" * 40)
    for argv in (listed, fetched):
        assert argv[1:3] == ("-c", "core.hooksPath=/dev/null")
        assert "http.followRedirects=false" in argv


def test_an_unknown_complaint_of_git_is_passed_on() -> None:
    failed = explain_git("fetch", 128, "hint: x\nfatal: the moon is full\n")

    assert failed.reason is Reason.SOURCE_UNAVAILABLE
    assert failed.message == "git fetch ended with exit code 128: fatal: the moon is full"
