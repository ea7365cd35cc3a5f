"""What the settings point to is checked before anything starts."""

from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import ConfigError, StartupError
from gatewayfilter.use_cases.settings_files import check_categories, check_files


@pytest.mark.parametrize(
    ("section", "name"),
    [
        ("proxy", "auth_file"),
        ("proxy", "upstream_auth_file"),
        ("proxy", "block_template"),
        ("proxy", "upstream_ca"),
        ("crawl", "upstream_ca"),
        ("learn", "trusted_hosts"),
    ],
)
def test_a_missing_file_is_named(section: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / "missing"
    settings = Settings.model_validate({"data_dir": tmp_path, section: {name: [file] if name == "trusted_hosts" else file}})
    with pytest.raises(StartupError, match=r"cannot read .*missing: No such file"):
        check_files(settings)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = Path("/proc/self/mem")  # opens, and has nothing at its beginning
    settings = Settings.model_validate({"data_dir": tmp_path, "learn": {"trusted_hosts": [file]}})
    with pytest.raises(StartupError, match=r"cannot read learn\.trusted_hosts /proc/self/mem: Input/output error"):
        check_files(settings)


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    file = tmp_path / "cert.pem"
    file.write_text("no certificate")
    with pytest.raises(StartupError, match=r"proxy\.upstream_ca"):
        check_files(Settings.model_validate({"data_dir": tmp_path, "proxy": {"upstream_ca": file}}))


def test_defaults_are_good(tmp_path: Path) -> None:
    check_files(Settings(data_dir=tmp_path))
    check_categories(Settings(data_dir=tmp_path))


def test_a_misspelt_category(tmp_path: Path) -> None:
    settings = Settings.model_validate({"data_dir": tmp_path, "filter": {"disabled_categories": ["ads", "gamez"]}})
    with pytest.raises(ConfigError, match=r"filter\.disabled_categories.*'gamez'; did you mean 'games'"):
        check_categories(settings)
