"""What `gatewayfilter review` prints of tasks, steps and proposals: `gatewayfilter.cli.review.review_reports`,
`gatewayfilter.cli.review.review_show`, `gatewayfilter.cli.review.review_commands`, `gatewayfilter.cli.review.review_decisions`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.cli.review.review_show import page
from gatewayfilter.errors import ReviewError
from gatewayfilter.interfaces import Page, UnblockRequest
from gatewayfilter.learn.review.phrase_suggestions import ProposedPhrase
from gatewayfilter.model import Classification, Evidence, ReviewKind, ReviewState, ReviewStep, ReviewTask, ScoreBreakdown
from gatewayfilter.use_cases.review.rejudging import JudgedToday
from gatewayfilter.use_cases.review.review_deciding import Because, Decided, DecidedTask, Decision, ReviewMove
from gatewayfilter.use_cases.review.review_tasks import ListedTask, TaskFacts, TaskPage, TaskQuery
from tests.cli.test_command_doubles import MOMENT, SETTINGS, Doubled, called, table, texts

AT = "2023-11-14 22:13:20"
JUDGED = Classification("gambling", 42.0, 20.0, {"gambling": 42.0}, (Evidence("casino", "gambling", 4.5, "main", 17),))
TASK = ReviewTask(3, ReviewKind.PAGE, "http://a.example/", "a.example/", "gambling", JUDGED, True, MOMENT, group_id=2)
BREAKDOWN = ScoreBreakdown("v1", "gambling", 42.0, 0.0, 0.0, 0.0, 0.0, 0.0, 42.0, 20.0, 3, 3)
STEPS = (
    ReviewStep(2, 3, MOMENT + 60, "kim", "reject", undone=True, detail={"note": "a museum"}),
    ReviewStep(1, 3, MOMENT, "lee", "approve"),
)
NO_FACTS = TaskFacts((), (), "", ())
TASK_LINES = ["task 3: http://a.example/", f"open, blocked, gambling, since {AT}"]


class Reviews:
    """Tasks and steps as the database has them."""

    def __init__(self, *tasks: ReviewTask, steps: tuple[ReviewStep, ...] = ()) -> None:
        self.all = {task.task_id: task for task in tasks}
        self.done = steps
        self.asked: list[object] = []

    @property
    def reviews(self) -> Reviews:
        return self

    def get(self, number: int) -> ReviewTask | None:
        return self.all.get(number)

    def steps(self, task: int = 0, *, limit: int = 0) -> tuple[ReviewStep, ...]:
        self.asked.append(limit)
        return tuple(step for step in self.done if task in {0, step.task_id})


def test_counts_are_a_table_and_two_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    level: dict[str, Any] = {"counts": [], "open": 0, "oldest_open_hours": None, "decided_in_7_days": 0}
    monkeypatch.setattr("gatewayfilter.cli.review.review_reports.review_counts", lambda _store, _now: level)
    assert texts(Doubled(), "review", "stats") == (0, "There are no tasks.\n", "")
    assert called(Doubled(), "review", "stats", "--json").json == level
    level["counts"] = [{"state": "open", "category": "ads", "tasks": 2, "oldest": 1.5}]
    _, out, _ = texts(Doubled(), "review", "stats")
    assert table(out) == [["state", "category", "tasks", "oldest, hours"], ["open", "ads", "2", "1.5"], ["0 tasks wait."]]
    assert out.endswith("1.5\n\n0 tasks wait.\n")
    level |= {"open": 1, "oldest_open_hours": 4.5, "decided_in_7_days": 1_000, "median_hours_to_decision": 3}
    assert texts(Doubled(), "review", "stats")[1].splitlines()[-2:] == [
        "1 task waits, the oldest for 4.5 hours.",
        "1,000 decided in the last 7 days, half of them within 3 hours.",
    ]


def test_the_log_names_each_step_with_its_page() -> None:
    assert texts(Doubled(Reviews()), "review", "log") == (0, "Nothing was decided yet.\n", "")
    store = Reviews(TASK, steps=(*STEPS, ReviewStep(4, 9, MOMENT, "kim", "undo")))
    _, out, _ = texts(Doubled(store), "review", "log")
    assert table(out) == [
        ["when", "who", "step", "task", "url", "note"],
        ["2023-11-14 22:14:20", "kim", "reject (undone)", "3", "http://a.example/", "a museum"],
        [AT, "lee", "approve", "3", "http://a.example/"],
        [AT, "kim", "undo", "9"],
    ]
    first, _, last = called(Doubled(store), "review", "log", "-n", "7", "--json").json
    assert first == {
        "at": MOMENT + 60,
        "who": "kim",
        "action": "reject",
        "undone": True,
        "task": 3,
        "url": "http://a.example/",
        "note": "a museum",
    }
    assert (last["url"], last["note"], last["undone"]) == ("", "", False)
    assert store.asked == [50, 7]


@pytest.fixture
def proposed(monkeypatch: pytest.MonkeyPatch) -> list[ProposedPhrase]:
    found = [ProposedPhrase("bet", "gambling", "alpha bet", 5), ProposedPhrase("slot", "gambling", "time slot's", 2)]
    asked: list[ProposedPhrase] = list(found)
    monkeypatch.setattr(
        "gatewayfilter.cli.review.review_reports.proposed_phrases", lambda _settings, _store, limit: asked[:limit]
    )
    return asked


def test_phrases_are_proposed_with_their_numbers(proposed: list[ProposedPhrase]) -> None:
    code, out, _ = texts(Doubled(), "review", "phrases")
    assert (code, table(out)) == (
        0,
        [
            ["number", "pages", "category", "word", "phrase"],
            ["1", "5", "gambling", "bet", "alpha bet"],
            ["2", "2", "gambling", "slot", "time slot's"],
            ["To take one over: gatewayfilter review phrases --take NUMBER"],
        ],
    )
    assert [row["phrase"] for row in called(Doubled(), "review", "phrases", "-n", "1", "--json").json] == ["alpha bet"]
    proposed.clear()
    none = "Nothing to propose: no rejected task has words of its own around the hits.\n"
    assert texts(Doubled(), "review", "phrases") == (0, none, "")


@pytest.mark.usefixtures("proposed")
def test_phrases_are_taken_over_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[tuple[str, str]] = []
    own = SimpleNamespace(add_exception=lambda category, phrase: added.append((category, phrase)))
    monkeypatch.setattr("gatewayfilter.wiring.custom_words", lambda _settings: own)
    arguments = ("review", "phrases", "--take", "2", "--take", "2", "--take", "1")
    assert texts(Doubled(), *arguments) == (
        0,
        (
            """"time slot's" covers 'slot' from now on: it does not count for gambling.\n"""
            "'alpha bet' covers 'bet' from now on: it does not count for gambling.\n"
            "A running filter applies this within a second and judges the blocked pages again.\n"
            "To take it back: gatewayfilter words remove --category gambling 'alpha bet'\n"
        ),
        "",
    )
    assert added == [("gambling", "time slot's"), ("gambling", "alpha bet")]
    missing = "gatewayfilter: there is no phrase 3: there are 2\n"
    assert texts(Doubled(), "review", "phrases", "--take", "3") == (1, "", missing)
    answer = called(Doubled(), "review", "phrases", "--take", "1", "--take", "3", "--json")
    assert (answer.code, answer.json["missing"], [row["word"] for row in answer.json["taken"]]) == (1, [3], ["bet"])
    assert answer.err == missing


def test_tasks_are_exported_whole_or_as_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    approved = replace(TASK, state=ReviewState.APPROVED, text="bet now")
    tasks = [
        approved,
        replace(TASK, task_id=4, state=ReviewState.REJECTED, text="a museum"),
        replace(TASK, task_id=5, text="open"),
        replace(TASK, task_id=6, state=ReviewState.APPROVED),
        replace(TASK, task_id=7, state=ReviewState.APPROVED, text="host", kind=ReviewKind.DOMAIN),
    ]
    monkeypatch.setattr("gatewayfilter.cli.review.review_reports.all_tasks", lambda _store, _state: iter(tasks))
    assert called(Doubled(), "review", "export", "--examples").lines == [
        {"text": "bet now", "label": "gambling", "url": "http://a.example/"},
        {"text": "a museum", "label": "", "url": "http://a.example/"},
    ]
    first, *others = called(Doubled(Reviews(steps=STEPS)), "review", "export").lines
    assert [row["task"] for row in others] == [4, 5, 6, 7]
    assert (first["text"], first["score_breakdown"], first["classification"]["score"]) == ("bet now", None, 42.0)
    assert [step["action"] for step in first["steps"]] == ["reject", "approve"]
    assert others[0]["steps"] == []


def shown(monkeypatch: pytest.MonkeyPatch, task: ReviewTask, *arguments: str, today: JudgedToday | None = None,
          facts: TaskFacts = NO_FACTS) -> list[str]:  # fmt: skip
    """Returns the lines of `review show`."""
    monkeypatch.setattr("gatewayfilter.use_cases.review.rejudging.judged_today", lambda _settings, _store, _task: today)
    monkeypatch.setattr("gatewayfilter.use_cases.review.review_tasks.task_facts", lambda _store, _task: facts)
    code, out, err = texts(Doubled(Reviews(task)), "review", "show", "3", *arguments)
    assert (code, err) == (0, "")
    return out.splitlines()


def test_a_task_is_shown_with_its_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = ["", "weight  word    zone  position", "+4.5    casino  main  17", "score 42.0; limit 20.0"]
    assert shown(monkeypatch, TASK) == [*TASK_LINES, *plain]
    full = replace(
        TASK,
        final_url="http://b.example/",
        blocked=False,
        doubtful=True,
        state=ReviewState.REJECTED,
        classification=replace(JUDGED, certainty=0.6, doubt="gambling", title="Win", evidence=()),
        text="The text.",
    )
    assert shown(monkeypatch, full) == [
        "task 3: http://a.example/",
        "leads to http://b.example/, which is decided with it",
        f"rejected, not blocked, gambling, since {AT}",
        "certainty that it is harmful: doubtful (60 %), so it was allowed",
        "title: Win",
        "",
        "The text.",
    ]
    certain = replace(TASK, classification=replace(JUDGED, certainty=0.6, evidence=()))
    assert shown(monkeypatch, certain)[2].startswith("certainty that it is harmful: ")
    assert "allowed" not in shown(monkeypatch, certain)[2]


def test_a_long_text_is_cut_unless_all_of_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    for size, arguments, end in ((600, (), "x" * 600), (601, (), "x" * 600 + "…"), (601, ("--text",), "x" * 601)):
        assert shown(monkeypatch, replace(TASK, text="x" * size), *arguments)[-1] == end


def test_what_is_known_beside_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    request = UnblockRequest("http://a.example/x", "tv", "learned", "", "", "", "please", MOMENT, times=2)
    facts = TaskFacts((), STEPS, "pages/3.gz", (request, replace(request, client="", comment="", times=1)))
    assert shown(monkeypatch, TASK, facts=facts)[6:] == [
        "archived: pages/3.gz",
        f"{AT}  tv  asked for http://a.example/x, 2x: please",
        f"{AT}  a visitor  asked for http://a.example/x, 1x",
        f"{AT}  lee  approve",
        "2023-11-14 22:14:20  kim  reject (undone): a museum",
    ]
    others = tuple(replace(TASK, task_id=number, url=f"http://{number}.example/") for number in range(10, 20))
    lines = shown(monkeypatch, TASK, facts=replace(NO_FACTS, alike=others))[6:]
    assert lines[:3] == ["", f"alike: {', '.join(map(str, range(10, 20)))}", "  10  open  nearly the same  http://10.example/"]
    assert len(lines) == 12
    same = ("page", b"1")
    alike = (*(replace(other, page=same) for other in others), TASK)  # type: ignore[arg-type]
    lines = shown(monkeypatch, replace(TASK, page=same), facts=replace(NO_FACTS, alike=alike))[6:]  # type: ignore[arg-type]
    assert lines[2] == "  10  open  the same page  http://10.example/"
    assert lines[-1] == "  and 1 more task: gatewayfilter review list --group 3 --state all"
    assert len(lines) == 13


def test_what_the_words_of_today_change(monkeypatch: pytest.MonkeyPatch) -> None:
    task = replace(TASK, score_breakdown=BREAKDOWN)
    assert [line.split()[0] for line in shown(monkeypatch, task)[2:] if line] == ["weight", "+4.5", "score", "words", "score"]
    words = (Evidence("casino", "gambling", 2.0, "main", 9), Evidence("poker", "gambling", 3.0, "title", 1),
             Evidence("gun", "weapons", 9.0, "title", 1))  # fmt: skip
    today = JudgedToday(Classification("", 5.0, 20.0, {}, words), replace(BREAKDOWN, strong=5.0, score=5.0), whole=True)
    lines = shown(monkeypatch, task, today=today)[2:]
    assert table("\n".join(lines)) == [
        ["weight then", "today", "word", "zone", "position"],
        ["+4.5", "+2.0", "casino", "main", "17"],
        ["+3.0", "poker", "title", "1"],
        ["score breakdown", "then", "by today's words"],
        ["words and combinations", "42.0", "5.0"],
        ["score of gambling", "= 42.0 limit 20.0", "= 5.0 limit 20.0"],
        ["The words have changed since: by today's it is harmless, score 5.0 (limit 20.0)."],
    ]
    alone = ", of the kept text alone, without its zones: the archive has the page no more."
    for found, words_ in ((Classification("ads", 6.0, 9.0), "ads, score 6.0 (limit 9.0)"),
                          (Classification("", 6.0, 9.0, doubt="ads"), "in doubt, score 6.0 (limit 9.0)")):  # fmt: skip
        last = shown(monkeypatch, task, today=JudgedToday(found, None, whole=False))[-1]
        assert last == f"The words have changed since: by today's it is {words_}{alone}"


def test_a_verdict_of_the_same_content_elsewhere_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "The verdict is that of the same content seen elsewhere, with a score of {}."
    for score, scores, line in (
        (42.0, {"gambling": 43.0}, told.format("43.0")),
        (42.0, {"gambling": 41.9}, told.format("41.9")),
        (50.0, {}, told.format("50.0")),
        (42.0, {"gambling": 42.04}, "score of gambling       = 42.0  limit 20.0"),
    ):
        task = replace(TASK, score_breakdown=BREAKDOWN, classification=replace(JUDGED, score=score, scores=scores))
        assert shown(monkeypatch, task)[-1] == line
    other = replace(TASK, score_breakdown=BREAKDOWN, classification=Classification("ads", 9.0, 1.0))
    assert shown(monkeypatch, other)[-1].startswith("score of gambling"), "its own score is of another category"


def test_a_task_is_an_object_for_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    task = replace(TASK, text="bet", score_breakdown=BREAKDOWN)
    monkeypatch.setattr("gatewayfilter.use_cases.review.rejudging.judged_today", lambda *_: JudgedToday(JUDGED, None, whole=True))
    facts = TaskFacts((replace(TASK, task_id=9),), STEPS, "p.gz", ())
    monkeypatch.setattr("gatewayfilter.use_cases.review.review_tasks.task_facts", lambda *_: facts)
    found = called(Doubled(Reviews(task)), "review", "show", "3", "--json").json
    assert (found["text"], found["alike"], found["archived"], found["asked"]) == ("bet", [9], "p.gz", [])
    assert (found["steps"][0]["who"], found["classification"]["limit"], found["today"]["whole"]) == ("kim", 20.0, True)
    assert (found["task"], found["group"], found["kind"], found["state"], found["blocked"]) == (3, 2, "page", "open", True)
    assert (found["url"], found["final_url"], found["score_breakdown"]["strong"]) == (
        "http://a.example/",
        "http://a.example/",
        42.0,
    )
    assert texts(Doubled(Reviews()), "review", "show", "3") == (1, "", "There is no task 3.\n")


def test_a_page_leaves_for_a_file_and_for_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Page | None] = [Page("", "", 200, {}, b"<p>\xff")]
    monkeypatch.setattr("gatewayfilter.use_cases.review.rejudging.archived_page", lambda *_: kept[0])
    answer = called(Doubled(Reviews(TASK)), "review", "page", "3")
    assert (answer.code, answer.result.stdout_bytes) == (0, b"<p>\xff")
    assert texts(Doubled(Reviews()), "review", "page", "3") == (1, "", "There is no task 3.\n")
    kept[0] = None
    assert texts(Doubled(Reviews(TASK)), "review", "page", "3") == (1, "", "The archive has no page of task 3 any more.\n")


def test_tasks_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[ListedTask] = []
    asked: list[object] = []

    def tasks(store: object, query: TaskQuery, limit: int) -> TaskPage:
        asked.append((store, query, limit))
        return TaskPage(tuple(listed), None)

    monkeypatch.setattr("gatewayfilter.use_cases.review.review_tasks.task_page", tasks)
    assert texts(Doubled("store"), "review", "list") == (0, "No task waits.\n", "")
    arguments = ("--state", "all", "--category", "ads", "--group", "3", "--asked", "--doubtful", "-n", "5")
    assert texts(Doubled("store"), "review", "list", *arguments) == (0, "There are no such tasks.\n", "")
    assert texts(Doubled("store"), "review", "list", "--state", "approved", "--blocked")[1] == "There are no such tasks.\n"
    assert asked == [
        ("store", TaskQuery(ReviewState.OPEN, "", 0, False, None), 50),
        ("store", TaskQuery(None, "ads", 3, True, True), 5),
        ("store", TaskQuery(ReviewState.APPROVED, "", 0, False, False), 50),
    ]
    listed += [ListedTask(TASK, 2), ListedTask(replace(TASK, task_id=4, blocked=False), 0)]
    assert table(texts(Doubled(), "review", "list")[1]) == [
        ["task", "group", "state", "blocked", "category", "score", "certainty", "since", "asked", "url"],
        ["3", "2", "open", "yes", "gambling", "42", AT, "2", "http://a.example/"],
        ["4", "2", "open", "no", "gambling", "42", AT, "http://a.example/"],
    ]
    assert [(row["task"], row["asked"]) for row in called(Doubled(), "review", "list", "--json").json] == [(3, 2), (4, 0)]


def test_decisions_are_told_recorded_and_end_with_their_code(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = SimpleNamespace(rule_id=8)
    decided = [Decided((DecidedTask(TASK, Because.NAMED, (rule,)), DecidedTask(replace(TASK, task_id=4, blocked=False),  # type: ignore[arg-type]
                                                                             Because.ALIKE, ())), (), False)]  # fmt: skip
    asked: list[Any] = []
    recorded: list[Any] = []

    def decide(settings: object, store: object, tasks: tuple[int, ...], decision: Decision, *, alike: bool) -> Decided:
        asked.append((settings, store, tasks, decision, alike))
        return decided[0]

    monkeypatch.setattr("gatewayfilter.cli.review.review_decisions.decide", decide)
    monkeypatch.setattr("gatewayfilter.cli.review.review_decisions.record", lambda *change: recorded.append(change))
    assert texts(Doubled("store"), "review", "approve", "3", "4", "--alike", "--by", "kim", "--note", "n") == (
        0,
        (
            "task 3: open, blocked: http://a.example/\n"
            "  your rule 8 allows it all the same; to remove it: gatewayfilter list remove 8\n"
            "task 4: open, not blocked: http://a.example/ (alike)\n"
        ),
        "",
    )
    assert asked.pop() == (SETTINGS, "store", (3, 4), Decision(ReviewMove.APPROVE, "kim", "n"), True)
    (store, action, url, detail, undo) = recorded.pop()
    assert (store, action, url, detail) == ("store", ReviewMove.APPROVE.audit_action, "http://a.example/", "task 3, 4")
    assert undo is not None
    for move, decision in (
        (("reject", "3", "--overturn"), Decision(ReviewMove.REJECT, "kim", "", overturn=True)),
        (("change", "3", "fraud"), Decision(ReviewMove.CHANGE, "kim", "", "fraud", False)),
        (("undo", "3"), Decision(ReviewMove.UNDO, "kim", "")),
        (("redo", "3"), Decision(ReviewMove.REDO, "kim", "")),
    ):
        answer = called(Doubled(), "review", *move, "--by", "kim", "--json")
        assert ([row["task"] for row in answer.json], answer.code) == ([3, 4], 0)
        assert asked.pop() == (SETTINGS, None, (3,), decision, False)
        assert (recorded.pop()[4] is None) is (move[0] in {"undo", "redo"})
    decided[0] = Decided(decided[0].tasks[1:], ("task 9: no",), False)
    assert texts(Doubled(), "review", "undo", "3")[::2] == (2, "gatewayfilter: task 9: no\n")
    recorded.clear()
    decided[0] = Decided((), ("there is no task 9",), True)
    assert texts(Doubled(), "review", "undo", "9", "--json") == (1, "", "gatewayfilter: there is no task 9\n")
    assert recorded == []


def test_a_page_is_kept_from_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: True))
    with pytest.raises(ReviewError, match=r"a page is not for a terminal: gatewayfilter review page 3 > page\.html"):
        page.main(["3"], standalone_mode=False, obj=Doubled(Reviews(TASK)))
