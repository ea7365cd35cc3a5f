"""What monitoring reads."""

from pathlib import Path

from tests.web.web_fakes import VIEWER, dashboard


def test_counters_need_a_log_in_and_say_so_to_programs(tmp_path: Path) -> None:
    with dashboard(tmp_path, None) as web:
        refused = web.client.get("/metrics")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert refused.headers["content-type"].startswith("text/plain")
        web.who.identity = VIEWER
        assert "gatewayfilter_build_info" in web.client.get("/metrics").text


def test_whether_it_answers_and_serves_is_open_to_all(tmp_path: Path) -> None:
    with dashboard(tmp_path, None) as web:
        assert web.client.get("/healthz").text == "ok\n"
        assert web.client.get("/readyz").status_code == 503  # no filter runs here
