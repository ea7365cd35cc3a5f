"""A device without a log-in can be set up: the filter's own pages are served to it over HTTPS, and nothing else."""

import ssl
from pathlib import Path

import aiohttp
import pytest

from gatewayfilter.proxy.auth.user_file import PasswordHash, write_users
from tests.e2e.e2e_gateway import GatewayProcess


@pytest.mark.slow
async def test_the_set_up_page_is_served_without_a_login(state: Path, tmp_path: Path) -> None:
    users = tmp_path / "users"
    write_users(users, {"kim": PasswordHash.of("a password")})
    with GatewayProcess(state, proxy__auth_file=str(users)) as gateway:
        trusted = ssl.create_default_context(cafile=str(state / "ca" / "mitmproxy-ca-cert.pem"))
        async with aiohttp.ClientSession() as client:
            proxy = f"http://{gateway.address}"
            async with client.get("https://gatewayfilter.internal/trusted.svg", proxy=proxy, ssl=trusted) as answer:
                assert answer.status == 200
            other = {"Host": "elsewhere.test"}
            async with client.get("https://gatewayfilter.internal/", proxy=proxy, ssl=trusted, headers=other) as answer:
                assert answer.status == 407
            with pytest.raises(aiohttp.ClientHttpProxyError, match="407"):
                await client.get("https://elsewhere.test/", proxy=proxy, ssl=trusted)
