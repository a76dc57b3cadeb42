"""Archives: the same content is the same bytes, and a hostile archive leaves nothing behind."""

import io
import os
import stat
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exclave.base.archives import (
    ArchiveLimits,
    ArchiveProblem,
    digest_folder,
    pack_folder,
    unpack_archive,
)

SMALL = ArchiveLimits(total_bytes=1000, file_bytes=600, files=4, depth=3, path_bytes=60)


def write_tree(root: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def read_tree(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def pack(root: Path, limits: ArchiveLimits | None = None) -> bytes:
    out = io.BytesIO()
    pack_folder(root, out, limits=limits or ArchiveLimits())
    return out.getvalue()


def member(
    name: str, content: bytes = b"", *, kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, len(content), link
    return info, content


def build_tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def assert_refused(
    data: bytes, folder: Path, words: str | None = None, limits: ArchiveLimits = SMALL
) -> None:
    target = folder / "target"

    with pytest.raises(ArchiveProblem, match=words):
        unpack_archive(io.BytesIO(data), target, limits=limits)

    assert not target.exists()
    assert [path.name for path in folder.iterdir() if path.name.startswith(".unpacking")] == []


def test_the_same_content_packs_to_the_same_bytes_on_every_machine(tmp_path: Path) -> None:
    files = {"main.tf": b"a", "b/c.txt": b"b" * 1500, "b-/x": b"", "ü/é.tf": b"c"}
    one = write_tree(tmp_path / "one", files)
    before = os.umask(0o077)
    try:
        two = write_tree(tmp_path / "two", dict(reversed(files.items())))
    finally:
        os.umask(before)
    os.utime(two / "main.tf", (1, 1))
    (two / "empty").mkdir()

    assert pack(one) == pack(two)
    assert digest_folder(one) == pack_folder(two, io.BytesIO())


def test_a_changed_mode_name_or_byte_changes_the_digest(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "one", {"run.sh": b"a"})
    seen = {digest_folder(root)}

    (root / "run.sh").chmod(0o755)
    seen.add(digest_folder(root))
    (root / "run.sh").rename(root / "go.sh")
    seen.add(digest_folder(root))
    (root / "go.sh").write_bytes(b"b")
    seen.add(digest_folder(root))

    assert len(seen) == 4


def test_what_tools_keep_for_themselves_is_left_out(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "one", {"main.tf": b"a"})
    plain = digest_folder(root)

    write_tree(root, {".git/config": b"x", "sub/.git": b"gitdir: x", ".terraform/p/x": b"y"})

    assert digest_folder(root) == plain


def test_unpacking_gives_back_files_modes_and_inner_links(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "one", {"a/run.sh": b"x", "b/c/d.tf": b"y"})
    (root / "a/run.sh").chmod(0o700)
    (root / "b/link").symlink_to("../a/run.sh")
    (root / "top").symlink_to("b/c")

    unpack_archive(io.BytesIO(pack(root)), tmp_path / "two")

    two = tmp_path / "two"
    assert read_tree(two) == {"a/run.sh": b"x", "b/c/d.tf": b"y"}
    assert stat.S_IMODE((two / "a/run.sh").stat().st_mode) == 0o755
    assert stat.S_IMODE((two / "b/c/d.tf").stat().st_mode) == 0o644
    assert (two / "b/link").read_bytes() == b"x"
    assert (two / "top/d.tf").read_bytes() == b"y"
    assert digest_folder(two) == digest_folder(root)


def test_an_empty_folder_is_taken_as_target_and_a_full_one_is_not(tmp_path: Path) -> None:
    data = pack(write_tree(tmp_path / "one", {"a": b"x"}))
    (tmp_path / "two").mkdir()

    unpack_archive(io.BytesIO(data), tmp_path / "two")

    with pytest.raises(ArchiveProblem, match="not an empty folder"):
        unpack_archive(io.BytesIO(data), tmp_path / "two")
    assert read_tree(tmp_path / "two") == {"a": b"x"}


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../x", "a/../../x", "..", "sub/..", "a/b/c/l/../x"]
)
def test_links_that_could_lead_outside_are_not_packed(tmp_path: Path, target: str) -> None:
    root = write_tree(tmp_path / "one", {"a": b"x"})
    (root / "link").symlink_to(target)

    with pytest.raises(ArchiveProblem):
        pack(root)


UNFIT: list[Callable[[Path], object]] = [
    lambda root: os.mkfifo(root / "pipe"),
    lambda root: (root / "a\nb").touch(),
    lambda root: os.close(os.open(os.fsencode(root) + b"/\xff", os.O_CREAT)),
]


@pytest.mark.parametrize("make", UNFIT)
def test_pipes_and_strange_names_are_not_packed(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    make(tmp_path)

    with pytest.raises(ArchiveProblem):
        pack(tmp_path)


@pytest.mark.parametrize(
    "files",
    [
        {"a": b"x" * 601},
        {"a": b"x" * 600, "b": b"x" * 401},
        dict.fromkeys("abcde", b""),
        {"a/b/c/d": b""},
        {"n" * 61: b""},
    ],
)
def test_limits_hold_in_both_directions(tmp_path: Path, files: dict[str, bytes]) -> None:
    root = write_tree(tmp_path / "one", files)
    data = pack(root)

    with pytest.raises(ArchiveProblem):
        pack(root, SMALL)
    if len(files) != 5:  # folders count like files there, so there is some room
        assert_refused(data, tmp_path)


HOSTILE: dict[str, Callable[[], bytes]] = {
    "absolute": lambda: build_tar(member("/etc/x", b"x")),
    "climbing": lambda: build_tar(member("a/../../x", b"x")),
    "hard link": lambda: build_tar(member("a", b"x"), member("b", kind=tarfile.LNKTYPE, link="a")),
    "device": lambda: build_tar(member("null", kind=tarfile.CHRTYPE)),
    "pipe": lambda: build_tar(member("pipe", kind=tarfile.FIFOTYPE)),
    "link outside": lambda: build_tar(member("l", kind=tarfile.SYMTYPE, link="../x")),
    "absolute link": lambda: build_tar(member("l", kind=tarfile.SYMTYPE, link="/etc")),
    "empty link": lambda: build_tar(member("l", kind=tarfile.SYMTYPE, link="")),
    "winding link": lambda: build_tar(
        member("a/l", kind=tarfile.SYMTYPE, link=".."),
        member("m", kind=tarfile.SYMTYPE, link="a/l/../x"),
    ),
    "through a link": lambda: build_tar(
        member("l", kind=tarfile.SYMTYPE, link="a"), member("l/x", b"x")
    ),
    "folder over link": lambda: build_tar(
        member("l", kind=tarfile.SYMTYPE, link="a"), member("l", kind=tarfile.DIRTYPE)
    ),
    "twice": lambda: build_tar(member("a", b"x"), member("a", b"y")),
    "file as folder": lambda: build_tar(member("a", b"x"), member("a/b", b"y")),
    "folder as file": lambda: build_tar(member("a/b", b"x"), member("a", b"y")),
    "newline": lambda: build_tar(member("a\nb", b"x")),
    "too many": lambda: build_tar(*(member(f"f{n}") for n in range(9))),
    "cut in a file": lambda: build_tar(member("a", b"x" * 600))[:700],
    "cut after a file": lambda: build_tar(member("a", b"x" * 512))[:1024],
    "half an end": lambda: build_tar(member("a", b"x" * 512))[: 1024 + 512],
    "more after the end": lambda: build_tar(member("a", b"x")) + b"more",
    "two in one": lambda: build_tar(member("a", b"x")) + build_tar(member("b", b"x")),
    "empty": lambda: b"",
    "no tar": lambda: b"PK\x03\x04" * 500,
    "compressed": lambda: b"\x1f\x8b" + b"\0" * 1024,
    "huge": lambda: b"x" * (4 << 20),
}


@pytest.mark.parametrize("case", sorted(HOSTILE))
def test_a_hostile_archive_leaves_nothing_behind(tmp_path: Path, case: str) -> None:
    assert_refused(HOSTILE[case](), tmp_path)
    assert not (tmp_path / "x").exists()


def test_a_header_that_announces_a_giant_header_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, 200 << 20
    head = info.tobuf(tarfile.USTAR_FORMAT)

    assert_refused(head + b"0" * 4096, tmp_path, "oversized header")


def test_a_tower_of_long_names_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1
    block = info.tobuf(tarfile.GNU_FORMAT) + b"a".ljust(512, b"\0")

    assert_refused(block * 5000 + b"\0" * 1024, tmp_path, limits=ArchiveLimits())


def test_an_archive_made_by_git_unpacks(tmp_path: Path) -> None:
    data = io.BytesIO()
    with tarfile.open(
        fileobj=data, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "c" * 40}
    ) as tar:
        tar.addfile(*_folder("./"))
        tar.addfile(*_folder("sub"))
        tar.addfile(tarfile.TarInfo("./sub/file"))

    unpack_archive(io.BytesIO(data.getvalue()), tmp_path / "target")

    assert read_tree(tmp_path / "target") == {"sub/file": b""}


def _folder(name: str) -> tuple[tarfile.TarInfo, io.BytesIO]:
    return member(name, kind=tarfile.DIRTYPE)[0], io.BytesIO()


names = st.text(
    st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="/"), min_size=1
).filter(lambda name: name not in {".", "..", ".git", ".terraform"} and len(name.encode()) <= 100)
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(paths, st.binary(max_size=1200), max_size=6))
def test_every_folder_survives_the_journey(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("journey")
    root = folder / "one"
    root.mkdir()
    for name, content in files.items():
        try:
            write_tree(root, {name: content})
        except (NotADirectoryError, IsADirectoryError, FileExistsError):
            continue

    data = pack(root)
    unpack_archive(io.BytesIO(data), folder / "two")

    assert read_tree(folder / "two") == read_tree(root)
    assert pack(folder / "two") == data


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_archive_is_unpacked_whole_or_not_at_all(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damage")
    good = bytearray(
        build_tar(
            member("a/file", b"x" * 700),
            member("a/link", kind=tarfile.SYMTYPE, link="file"),
            member("n" * 200, b"y"),
        )
    )
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(good)))

    try:
        unpack_archive(io.BytesIO(bytes(good[:cut])), folder / "target")
    except ArchiveProblem:
        assert list(folder.iterdir()) == []
    else:
        assert [path.name for path in folder.iterdir()] == ["target"]
        for path in (folder / "target").rglob("*"):
            assert path.resolve().is_relative_to(folder / "target")
