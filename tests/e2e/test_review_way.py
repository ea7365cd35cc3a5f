"""Visit, judge, review, reject, allowed again, not blocked a second time: with the processes that users run."""

from tests.e2e.e2e_gateway import Answer, GatewayProcess, Origin, until


def blocked(gateway: GatewayProcess, url: str) -> Answer:
    """Visits until the filter answers itself."""

    def visit() -> Answer | None:
        answer = gateway.get(url)
        return answer if answer.reason else None

    return until("block page", visit, 5.0)


def task_of(gateway: GatewayProcess, url: str) -> dict[str, object]:
    tasks = [task for task in gateway.json("review", "list") if task["url"] == url]
    assert len(tasks) == 1
    found: dict[str, object] = gateway.json("review", "show", str(tasks[0]["task"]))
    return found


def test_a_person_has_the_last_word(gateway: GatewayProcess, http_site: Origin) -> None:
    url = f"{http_site.base}/casino/7"
    assert gateway.get(url).status == 200
    assert blocked(gateway, url).reason == "learned"

    task = task_of(gateway, url)
    assert (task["state"], task["blocked"], task["category"]) == ("open", True, "gambling")
    assert "golden reef" in str(task["text"])
    rejected = gateway.cli("review", "reject", str(task["task"]), "--note", "a museum")
    assert rejected.returncode == 0, rejected.stderr
    until("page again", lambda: gateway.get(url).status == 200, 1.0)
    assert gateway.json("check", url)["verdict"]["reason"] == "person-allow"

    # The same content under another address is fetched, known, and not blocked; nobody is asked again.
    again = f"{http_site.base}/casino/8"
    assert gateway.get(again).status == 200
    until("verdict", lambda: gateway.json("check", again)["verdict"]["reason"] == "whitelist")
    assert gateway.get(again).status == 200
    assert [item["url"] for item in gateway.json("review", "list") if item["url"] == again] == []

    undone = gateway.cli("review", "undo", str(task["task"]))
    assert undone.returncode == 0, undone.stderr
    assert blocked(gateway, url).reason == "learned"
