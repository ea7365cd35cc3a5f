import pytest

from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import FingerprintStore
from gatewayfilter.model import Classification, ContentId, ContentKind, Evidence, Fingerprint
from gatewayfilter.store import Store
from gatewayfilter.store.repositories import fingerprints as fingerprints_module
from gatewayfilter.store.repositories.fingerprints import SqlFingerprintStore
from gatewayfilter.store.sql.database import Area
from tests.scaleout.redis.shared_state import cached_fingerprints

HARMFUL = Classification(
    "gambling", 42.5, 20.0, {"gambling": 42.5}, (Evidence("赌场", "gambling", 12.0, "title", 4),), "Casino", "gb18030", bytes(16)
)
HARMLESS = Classification("", 1.0, 20.0)
PAGE = ContentId(ContentKind.PAGE, b"k" * 16, b"p" * 16)


def fingerprint(
    content: ContentId = PAGE, said: Classification = HARMFUL, *, judge: str = "", until: float = 200.0
) -> Fingerprint:
    return Fingerprint(content, said, judge, "" if judge else "words-1", "http://a.example/", 100.0, until)


@pytest.fixture(params=["own", "own, asked often", pytest.param("behind the shared cache", marks=pytest.mark.services)])
def fingerprints(store: Store, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FingerprintStore:
    if request.param == "own, asked often":
        monkeypatch.setattr(fingerprints_module, "_PREPARED_AFTER", 0)
    if request.param.startswith("own"):
        return store.fingerprints
    return cached_fingerprints(store, request.getfixturevalue("redis"), lambda: 100.0)


def test_content_is_known_again_with_its_evidence(fingerprints: FingerprintStore) -> None:
    assert fingerprints.find(PAGE, 100.0) is None
    fingerprints.put(fingerprint())
    assert fingerprints.find(PAGE, 199.9) == fingerprint()


@pytest.mark.parametrize(
    "other",
    [
        ContentId(ContentKind.TEXT, PAGE.digest, PAGE.proof),
        ContentId(ContentKind.PAGE, b"x" * 16, PAGE.proof),
        ContentId(ContentKind.PAGE, PAGE.digest, b"x" * 16),
    ],
    ids=["another kind", "another digest", "a collision of the digest"],
)
def test_other_content_is_not(fingerprints: FingerprintStore, other: ContentId) -> None:
    fingerprints.put(fingerprint())
    assert fingerprints.find(other, 100.0) is None


def test_several_are_found_at_once(fingerprints: FingerprintStore) -> None:
    contents = [ContentId(ContentKind.PAGE, number.to_bytes(2) * 8, b"p" * 16) for number in range(1200)]
    fingerprints.put_all([fingerprint(content) for content in contents[::2]])
    collision = ContentId(ContentKind.PAGE, contents[0].digest, b"x" * 16)
    found = fingerprints.find_all([*contents, collision], 199.0)
    assert found == {content: fingerprint(content) for content in contents[::2]}
    assert fingerprints.find_all(contents, 200.0) == fingerprints.find_all([], 100.0) == {}


def test_an_expired_one_is_none_and_is_swept(fingerprints: FingerprintStore) -> None:
    fingerprints.put(fingerprint())
    assert fingerprints.find(PAGE, 200.0) is None
    assert (fingerprints.sweep(199.0), fingerprints.sweep(200.0), fingerprints.sweep(200.0)) == (0, 1, 0)


def test_a_hit_puts_the_expiry_off_and_never_forward(fingerprints: FingerprintStore) -> None:
    fingerprints.put(fingerprint())
    fingerprints.touch({PAGE: 2}, 300.0)
    fingerprints.touch({PAGE: 1}, 250.0)
    fingerprints.touch({}, 900.0)
    found = fingerprints.find(PAGE, 299.0)
    assert found is not None
    assert (found.hits, found.expires_at) == (3, 300.0)


def test_the_newest_are_those_that_were_met_last(fingerprints: FingerprintStore) -> None:
    contents = [ContentId(ContentKind.PAGE, bytes([number]) * 16, b"p" * 16) for number in range(4)]
    for number, content in enumerate(contents):
        fingerprints.put(fingerprint(content, until=200.0 + number))
    fingerprints.touch({contents[0]: 1}, 300.0)
    assert [found.content for found in fingerprints.newest(2, 100.0)] == [contents[0], contents[3]]
    assert [found.content for found in fingerprints.newest(9, 202.0)] == [contents[0], contents[3]]
    assert fingerprints.newest(9, 300.0) == []


def test_whether_there_is_any_of_a_kind(fingerprints: FingerprintStore) -> None:
    fingerprints.put(fingerprint())
    assert [fingerprints.holds(kind) for kind in ContentKind] == [True, False, False]


def test_a_persons_word_is_replaced_by_a_persons_only(fingerprints: FingerprintStore) -> None:
    fingerprints.put(fingerprint())
    fingerprints.put(fingerprint(said=HARMLESS, judge="ada"))
    fingerprints.put(fingerprint(said=HARMFUL))
    assert fingerprints.find(PAGE, 100.0) == fingerprint(said=HARMLESS, judge="ada")
    fingerprints.put(fingerprint(said=HARMFUL, judge="bob"))
    assert fingerprints.find(PAGE, 100.0) == fingerprint(said=HARMFUL, judge="bob")


def test_one_can_be_forgotten(fingerprints: FingerprintStore) -> None:
    fingerprints.put(fingerprint(judge="ada"))
    assert fingerprints.remove(PAGE)
    assert not fingerprints.remove(PAGE)
    assert fingerprints.find(PAGE, 100.0) is None


def test_counts(fingerprints: FingerprintStore) -> None:
    assert set(fingerprints.stats().values()) == {0}
    fingerprints.put(fingerprint())
    fingerprints.put(fingerprint(ContentId(ContentKind.TEXT, b"t" * 16, b"u" * 16), HARMLESS, judge="ada"))
    image = ContentId(ContentKind.IMAGE, b"i" * 16, bytes(16))
    fingerprints.put(fingerprint(image))
    fingerprints.touch({PAGE: 7, image: 2}, 300.0)
    counts = {"page": 1, "text": 1, "image": 1, "harmful": 2, "by_people": 1, "hits": 9, "image_hits": 2}
    assert fingerprints.stats() == counts


def test_a_process_that_looks_up_many_has_a_connection_for_it(store: Store) -> None:
    known = store.fingerprints
    assert isinstance(known, SqlFingerprintStore)

    def connected() -> bool:
        return known._one._connection is not None

    known.put(fingerprint())
    for _ in range(fingerprints_module._PREPARED_AFTER):
        assert known.find(PAGE, 100.0) == fingerprint()
    assert not connected()
    assert known.find(PAGE, 100.0) == fingerprint()
    assert connected()
    with store.learning():
        known.put(fingerprint(said=HARMLESS, judge="ada"))
        assert known.find(PAGE, 100.0) == fingerprint(said=HARMLESS, judge="ada"), "not committed yet"
    assert known.find(PAGE, 200.0) is None


def test_a_fault_of_a_prepared_look_up_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints_module, "_PREPARED_AFTER", 0)
    assert store.fingerprints.find(PAGE, 100.0) is None
    with store._database.write(Area.FINGERPRINTS) as connection:
        connection.exec_driver_sql("ALTER TABLE fingerprints RENAME TO elsewhere")
    with pytest.raises(StoreError):
        store.fingerprints.find(PAGE, 100.0)
