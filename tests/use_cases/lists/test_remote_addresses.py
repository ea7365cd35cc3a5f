"""Addresses of lists that may be named from elsewhere than the command line."""

import pytest

from gatewayfilter.errors import SourceError
from gatewayfilter.use_cases.lists.remote_addresses import check_remote

CATALOGUE = {"ads", "ftp"}


@pytest.mark.parametrize("address", ["ads", "ftp", "http://a.example/list", "https://a.example", "HTTPS://a.example/x"])
def test_lists_of_the_catalogue_and_of_the_web_may_be_named(address: str) -> None:
    check_remote(["ads", address], CATALOGUE)


@pytest.mark.parametrize(
    "address",
    [
        "/etc/passwd",
        "other",
        "file:///etc/passwd",
        "ftp://a.example/x",
        "https:///list",
        "http://",
        "//a.example/x",
        "http://[",
        "",
    ],
)
def test_files_and_other_protocols_may_not(address: str) -> None:
    with pytest.raises(SourceError, match="neither a list of the catalogue nor an http"):
        check_remote(["ads", address], CATALOGUE)
