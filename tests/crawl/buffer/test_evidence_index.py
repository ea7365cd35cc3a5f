from pathlib import Path

from gatewayfilter.crawl.buffer.evidence_index import EvidenceIndex


def test_what_another_process_writes_anew_takes_the_place_of_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "pins.jsonl"
    ours = EvidenceIndex(path)
    ours.pin("a:1", 100.0)
    ours.pin("a:2", 200.0)
    others = EvidenceIndex(path)
    others.drop_expired(150.0)
    aside = tmp_path / "new"
    aside.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "a:2" in line))
    aside.replace(path)
    ours.refresh()
    assert (len(ours), ours.in_segment("a")) == (1, ["a:2"])


def test_a_pin_that_says_nothing_new_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "pins.jsonl"
    index = EvidenceIndex(path)
    for until in (200.0, 200.0, 100.0, 300.0):
        index.pin("a:1", until)
    assert len(path.read_text().splitlines()) == 2
    index.drop_expired(300.0)
    assert len(index) == 0
