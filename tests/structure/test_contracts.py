"""The import contracts of pyproject.toml cover the whole tree. `make contracts` checks the imports themselves."""

import tomllib
from typing import Any

from tests.structure.source_tree import PACKAGE, ROOT, sub_packages

LINTER: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
CONTRACTS: list[dict[str, Any]] = LINTER["contracts"]


def covered() -> set[str]:
    """Sub-packages that stand in a contract of their own package."""
    found: set[str] = set()
    for contract in CONTRACTS:
        if contract["type"] == "layers":
            names = [name.strip(" ()") for layer in contract["layers"] for name in layer.split("|")]
            found |= {f"{container}.{name}" for container in contract["containers"] for name in names}
        elif contract["type"] == "protected":
            found |= set(contract["protected_modules"])
    return found


def test_each_sub_package_is_in_a_contract() -> None:
    assert set(sub_packages()) - covered() == set()
    assert len(sub_packages()) > 30


def test_contracts_name_what_there_is() -> None:
    """An optional layer, or one that was moved away, would be passed over in silence."""
    packages = {".".join(path.relative_to(ROOT).parts) for path in PACKAGE.rglob("*") if (path / "__init__.py").exists()}
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in PACKAGE.glob("*.py")}
    assert covered() - packages - modules == set()


def test_no_import_is_left_out() -> None:
    """Neither one by one nor because it stands under TYPE_CHECKING."""
    assert not LINTER.get("exclude_type_checking_imports", False)
    assert [contract["name"] for contract in CONTRACTS if contract.get("ignore_imports")] == []


def test_foreign_libraries_are_held_to_their_room() -> None:
    """Each room but one is in the contracts that forbid mitmproxy and SQLAlchemy."""
    rooms = {
        f"gatewayfilter.{path.stem}" for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    rooms.discard("gatewayfilter.__init__")
    for library, home in (("mitmproxy", "proxy"), ("sqlalchemy", "store")):
        contract = next(c for c in CONTRACTS if c["type"] == "forbidden" and c["name"].startswith(f"Only {home}/"))
        assert library in contract["forbidden_modules"]
        assert rooms - set(contract["source_modules"]) == {f"gatewayfilter.{home}"}
