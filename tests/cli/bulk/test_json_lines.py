import io
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.cli.bulk.json_lines import Batch, JsonLines, read_batches
from tests.case_tables import all_cases


class _Echo(JsonLines):
    """Adds the length of `text`."""

    added = frozenset({"length", "error"})
    max_line = 100

    def answer(self, record: dict[str, Any]) -> tuple[tuple[str, str], str]:
        return ("answered", ""), f'"length": {len(record.get("text", ""))}}}\n'


@all_cases(
    ("line", "answer"),
    [
        (b'{"text": "abc"}', {"text": "abc", "length": 3}),
        ('{"text": "赌场"}'.encode(), {"text": "赌场", "length": 2}),
        (b"\xef\xbb\xbf{}", {"length": 0}),
        (b"{ }", {"length": 0}),
        (b'{"length": 7}', {"length": 0}),
        (b'{"length": 7, "n": 1} \r', {"n": 1, "length": 0}),
        (b'{"text": "' + b"x" * 100 + b'"}', None),
    ],
)
def test_the_answer_is_spliced_into_the_line(line: bytes, answer: dict[str, Any] | None) -> None:
    answers = _Echo().decide(Batch(1, [line], len(line)))
    found = json.loads(answers.text)
    assert answers.text.endswith(b"\n")
    assert found == answer if answer is not None else found["error"] == "line too long"


@settings(max_examples=30)
@given(st.lists(st.binary(max_size=30).map(lambda data: data.replace(b"\n", b"")), max_size=20), st.booleans())
def test_batches_are_the_lines(lines: list[bytes], ends: bool) -> None:  # noqa: FBT001  hypothesis gives it
    data = b"\n".join(lines) + (b"\n" if ends else b"")
    batches = list(read_batches(io.BufferedReader(io.BytesIO(data), 7)))
    read = [(batch.first + place, line) for batch in batches for place, line in enumerate(batch.lines) if line]
    assert read == [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line]
    assert sum(batch.size for batch in batches) == len(data)
