"""Settings written into an operator's file: all else in it stays, whatever it looks like."""

import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.errors import ConfigError
from gatewayfilter.use_cases.settings_writer import with_settings, write_settings

LISTEN = {"proxy.listen": "192.0.2.1:8080"}
LINE = 'listen = "192.0.2.1:8080"'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"[proxy]\n{LINE}\n"),
        ("# mine\n[log]\nlevel = 'debug'\n", f"# mine\n[log]\nlevel = 'debug'\n\n[proxy]\n{LINE}\n"),
        ("[proxy]\n# a comment\nworkers = 2\n", f"[proxy]\n# a comment\nworkers = 2\n{LINE}\n"),
        ('proxy = { listen = "a:1" }\n', f"proxy = {{ {LINE} }}\n"),
        ('[proxy]\nlisten = """a:1\n"""\n', f"[proxy]\n{LINE}\n"),
        ('[proxy]\nlisten = "a:1"   # why\nworkers = 2\n', f"[proxy]\n{LINE}   # why\nworkers = 2\n"),
        ("[proxy]\n  listen='a:1'\n[log]\n", f"[proxy]\n  {LINE.replace(' = ', '=')}\n[log]\n"),
        ('proxy.listen = "a:1"\n', 'proxy.listen = "192.0.2.1:8080"\n'),
        ("[ proxy ] # here\r\nworkers = 2\r\n", f"[ proxy ] # here\r\nworkers = 2\r\n{LINE}\r\n"),
        ('[log]\nlisten = "a:1"\n[proxy]\n', f'[log]\nlisten = "a:1"\n[proxy]\n{LINE}\n'),
        ('[proxy]\nbrand_name = "[proxy] # \\" x"\n', f'[proxy]\nbrand_name = "[proxy] # \\" x"\n{LINE}\n'),
        ("[proxy]", f"[proxy]\n{LINE}\n"),
    ],
)
def test_only_the_line_of_the_setting_changes(before: str, after: str) -> None:
    assert with_settings(before, LISTEN) == after
    assert with_settings(after, LISTEN) == after


@pytest.mark.parametrize(
    "text",
    [
        "proxy = 3\n",
    ],
)
def test_what_cannot_be_changed_alone_is_refused_with_the_line_to_write(text: str) -> None:
    with pytest.raises(ConfigError, match=r'set them by hand: proxy.listen = "192.0.2.1:8080"'):
        with_settings(text, LISTEN)


def test_a_file_that_is_no_toml_is_refused() -> None:
    with pytest.raises(ConfigError, match="the file is not valid TOML"):
        with_settings("[proxy\n", LISTEN)


@given(st.dictionaries(st.sampled_from(["a", "b", "listen"]), st.text(max_size=20), max_size=3), st.text(max_size=40))
def test_any_text_is_written_and_read_back(others: dict[str, str], value: str) -> None:
    lines = "".join(f"{key} = {_literal(text)}\n" for key, text in others.items())
    changed = with_settings(f"[proxy]\n{lines}", {"proxy.listen": value})
    assert tomllib.loads(changed)["proxy"] == {**others, "listen": value}


def _literal(text: str) -> str:
    return '"' + "".join(f"\\U{ord(mark):08x}" for mark in text if not 0xD800 <= ord(mark) < 0xE000) + '"'


def test_a_new_file_is_private_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "new" / "config.toml"
    write_settings(file, LISTEN)
    assert [path.stat().st_mode & 0o777 for path in (file, file.parent)] == [0o600, 0o700]
    file.chmod(0o640)
    link = tmp_path / "link.toml"
    link.symlink_to(file)
    write_settings(link, {"proxy.listen": "127.0.0.1:1"})
    assert file.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert tomllib.loads(file.read_text())["proxy"]["listen"] == "127.0.0.1:1"
    assert [path.name for path in file.parent.iterdir()] == ["config.toml"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.toml"
    file.write_text("# mine\n")

    def full(descriptor: int) -> None:
        assert os.fstat(descriptor).st_size > 10, "what is made durable was written before"
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("gatewayfilter.use_cases.settings_writer.os.fsync", full)
    with pytest.raises(ConfigError, match=r"cannot write the configuration .*: No space left on device"):
        write_settings(file, LISTEN)
    assert file.read_text() == "# mine\n"
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]
