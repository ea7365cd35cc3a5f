# ruff: noqa: RUF001  the texts are Chinese, and look-alikes are what is tested
import re
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.documents.encoding import charset
from gatewayfilter.documents.encoding.charset import Decoded, decode, decode_as_labelled
from tests.case_tables import all_cases

ZH = "中文网页的编码检测：今天天气很好，我们去公园散步，然后回家吃晚饭。新闻报道说经济继续增长。" * 3
TW = "繁體中文網頁的編碼檢測：今天天氣很好，我們去公園散步，然後回家吃晚飯。新聞報導說經濟繼續成長。" * 3
HK = "香港嘅網頁：佢哋喺度做嘢，啲人話唔知點算。" * 4
JA = "日本語のページです。今日は天気がいいので、公園を散歩して家に帰ります。ニュースを読みました。" * 3
FR = "Les élèves français étaient très contents du café crème et des gâteaux ; l'été dernier, à Paris, ça allait."


KO = "한국어 웹페이지의 인코딩을 확인합니다. 오늘은 날씨가 좋아서 공원을 산책하고 집에 돌아왔습니다."
RU = "Русская страница: сегодня хорошая погода, мы гуляли в парке, а потом вернулись домой."
OFFER = "注册送彩金，开户即送"
WRITTEN = {
    "gb18030": ZH, "gbk": ZH, "gb2312": ZH, "big5": TW, "big5hkscs": HK, "utf-8": ZH, "utf-16": ZH, "utf-16-le": ZH,
    "shift_jis": JA, "euc_jp": JA, "iso2022_jp": JA, "euc_kr": KO, "cp949": KO, "cp1252": FR, "cp1251": RU, "koi8_r": RU,
}  # fmt: skip
LABELS = (
    "", "utf-8", "gb2312", "gbk", "big5", "iso-8859-1", "windows-1252", "shift_jis", "euc-kr", "windows-1251", "euc-jp",
    "koi8-r",
    "no-such-charset",
)  # fmt: skip


def html(text: str, label: str = "") -> str:
    meta = f'<meta charset="{label}">' if label else ""
    return f"<html><head>{meta}<title>x</title></head><body><p>{text}</p></body></html>"


@all_cases(
    ("text", "codec", "meta", "header", "charset"),
    [
        (ZH, "utf-8", "", "", "utf-8"),
        (ZH, "utf-8", "gb2312", "text/html; charset=gbk", "utf-8"),  # both lie
        (ZH, "utf-8-sig", "gbk", "", "utf-8"),
        (ZH, "utf-16", "", "", "utf-16le"),
        (ZH, "utf-16-be", "", "", "utf-16be"),
        (ZH, "gb18030", "", "", "gb18030"),
        (ZH, "gb18030", "gb2312", "", "gb18030"),
        (ZH, "gb18030", "", "text/html; charset=GBK", "gb18030"),
        (ZH, "gb18030", "utf-8", "", "gb18030"),  # a lie
        (ZH, "gb18030", "", "text/html; charset=utf-8", "gb18030"),  # a lie
        (ZH, "gb18030", "gb2312", "text/html; charset=iso-8859-1", "gb18030"),  # a server's default
        (ZH + "𠮷㐂", "gb18030", "gb2312", "", "gb18030"),  # beyond GBK
        (TW, "big5", "", "", "big5"),
        (TW, "big5", "big5", "", "big5"),
        (TW, "big5", "", "text/html;charset=Big5", "big5"),
        (TW, "big5", "iso-8859-1", "", "big5"),  # a lie
        (HK, "big5hkscs", "big5", "", "big5"),
        (JA, "shift_jis", "", "", "shift_jis"),
        (JA, "shift_jis", "Shift_JIS", "", "shift_jis"),
        (JA, "shift_jis", "", "text/html; charset='x-sjis'", "shift_jis"),
        (JA, "euc_jp", "euc-jp", "", "euc-jp"),
        (JA, "iso2022_jp", "iso-2022-jp", "", "iso-2022-jp"),
        (FR, "cp1252", "", "", "windows-1252"),
        (FR, "cp1252", "windows-1252", "", "windows-1252"),
        (FR, "cp1252", "", "text/html; charset=ISO-8859-1", "windows-1252"),
        (FR, "cp1252", "utf-8", "", "windows-1252"),  # a lie
        (FR, "utf-8", "iso-8859-1", "", "utf-8"),  # a lie
        ("plain ascii", "ascii", "", "", "utf-8"),
    ],
)
def test_table_of_charsets(text: str, codec: str, meta: str, header: str, charset: str) -> None:
    decoded = decode(html(text, meta).encode(codec), header)
    assert text in decoded.text
    assert decoded.charset == charset


@all_cases("label", LABELS)
@all_cases("codec", WRITTEN)
def test_any_label_on_any_charset(codec: str, label: str) -> None:
    text = WRITTEN[codec]
    in_meta = decode(html(text, label).encode(codec)).text
    in_header = decode(html(text).encode(codec), f"text/html; charset={label}").text
    assert (text in in_meta, text in in_header) == (True, True)


@all_cases("label", ["", "gb2312", "gbk", "big5", "shift_jis", "utf-8"])
@all_cases("codec", ["euc_jp", "shift_jis"])
@all_cases(
    "text",
    [
        "会社概要｜採用情報｜お問い合わせ｜サイトマップ",
        "東京都渋谷区の不動産情報、賃貸マンション検索サイト。駅徒歩５分の物件を多数掲載しています。",
        "オンラインカジノで遊ぶ。無料ボーナス、スロット、ルーレット、ブラックジャック。今すぐ登録！",
        "ニュース スポーツ 天気予報 芸能",
    ],
)
def test_short_japanese_pages_that_say_they_are_something_else(text: str, codec: str, label: str) -> None:
    """EUC-JP and GB 18030 write kana at the same places."""
    assert text in decode(html(text, label).encode(codec)).text


@all_cases("label", ["", "gb2312", "gbk", "shift_jis", "euc-jp", "utf-8", "iso-8859-1"])
@all_cases(
    "text", ["动漫下载：《ハンター》最新话", "日语学习：こんにちは是你好的意思，ありがとう是谢谢的意思，さようなら是再见的意思。"]
)
def test_chinese_pages_with_kana_stay_chinese(text: str, label: str) -> None:
    assert text in decode(html(text, label).encode("gb18030")).text


@all_cases("label", ["", "gb2312", "big5", "utf-8", "iso-8859-1"])
@all_cases(("codec", "text"), [("gbk", OFFER), ("big5", "註冊送彩金，開戶即送")])
def test_ten_characters_tell_a_charset(codec: str, text: str, label: str) -> None:
    assert text in decode(html(text, label).encode(codec)).text


def test_a_meta_in_a_comment_does_not_count() -> None:
    body = b"<!-- <meta charset=big5> --><meta charset=gbk>" + ZH.encode("gbk")
    assert decode(body).charset == "gb18030"


def test_a_body_cut_in_a_character_stays_utf8() -> None:
    body = ZH.encode()
    for cut in (50, 51, 52):
        decoded = decode(body[:cut])
        assert (decoded.charset, decoded.text) == ("utf-8", ZH[: cut // 3])


@all_cases("label", ["utf-7", "idna", "unicode_escape", "hex", "undefined", "no-such", "punycode"])
def test_labels_that_are_no_charsets_choose_nothing(label: str) -> None:
    assert ZH in decode(html(ZH, label).encode("gb18030"), f"text/html; charset={label}").text


@pytest.mark.slow
@given(st.binary(max_size=3000), st.text(max_size=60))
def test_any_bytes_become_text(body: bytes, header: str) -> None:
    assert isinstance(decode(body, header).text, str)


NOISE = bytes(range(0x80, 0x100)) * 500


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        ("赌场".encode() + NOISE, "text/html; charset=utf-8", "utf-8"),
        ("赌场".encode("gb18030") + NOISE, "text/html; charset=big5", "big5"),
        (b"<meta charset=utf-8>" + "赌场".encode() + NOISE, "text/html", "utf-8"),
        ("赌场".encode() + NOISE, "text/html", ""),  # no label: browsers guess too
        ("赌场".encode(), "text/html; charset=big5", ""),  # strict UTF-8
        ("赌场".encode() + NOISE, "text/html; charset=unicode_escape", ""),
        (b"\xff\xfe" + "赌场".encode("utf-16-le"), "text/html; charset=big5", ""),  # a byte order mark goes before labels
    ],
)
def test_what_a_browser_reads_that_believes_the_label(body: bytes, content_type: str, expected: str) -> None:
    found = decode_as_labelled(body, content_type, decode(body, content_type).charset)
    assert (found.charset if found else "") == expected
    if found and expected == "utf-8":
        assert "赌场" in found.text


def test_a_label_that_was_chosen_is_no_second_reading() -> None:
    body = "赌场".encode("gb18030") + NOISE
    for label in ("gbk", "GB2312"):
        assert decode_as_labelled(body, f"text/html; charset={label}", "gb18030") is None
    assert decode_as_labelled(body, "text/html; charset=gbk", "big5") == Decoded(body.decode("gb18030", "replace"), "gb18030")


def test_utf16_that_no_browser_guesses_is_read_once_more_as_bytes() -> None:
    body = "gambling".encode("utf-16-le")
    assert decode(body) == Decoded("gambling", "utf-16le")
    assert decode_as_labelled(body, "", "utf-16le") == Decoded("gambling", "utf-8")
    assert decode_as_labelled(body, "text/html; charset=utf-16", "utf-16le") is None
    french = decode_as_labelled(FR.encode("utf-16-le"), "", "utf-16le")
    assert french == Decoded(FR, "windows-1252")


@all_cases(
    ("body", "label", "charset"),
    [
        (JA.encode("iso2022_jp") + b"\xa0", "iso-2022-jp", "iso-2022-jp"), (JA.encode("iso2022_jp") + b"\xa0", "", "other"),
        (JA.encode("iso2022_jp"), "", "iso-2022-jp"), (b"a \x1b b $", "", "utf-8"), (b"a \x1b$ b \xff", "gbk", "other"),
    ],
)  # fmt: skip
def test_escapes_of_japanese(body: bytes, label: str, charset: str) -> None:
    found = decode(body, f"text/html; charset={label}").charset
    assert found == charset or (charset == "other" and found != "iso-2022-jp")


@all_cases(
    ("body", "name"),
    [
        (b"a\0b\0", "utf-16le"), (b"\0a\0b", "utf-16be"), (b"a\0b", "utf-8"), (b"a\0" + b"xy" * 4, "utf-16le"),
        (b"a\0" + b"xy" * 9, "utf-8"),
        (b"a\0" * 5 + b"\0b", "utf-16le"), (b"a\0" * 4 + b"\0b", "utf-8"), (b"\0b" * 5 + b"a\0", "utf-16be"),
        (b"xy" * 200 + b"a\0" * 200, "utf-8"),
        (b"xy" * 199 + b"a\0" * 200, "utf-8"), (b"abcd", "utf-8"), (b"\0\0\0\0", "utf-8"),
        (b"\0b" * 20 + b"xy" * 180 + b"\0b", "utf-8"),
        (b"a\0" * 200 + b"xy" * 900, "utf-16le"),
    ],
)  # fmt: skip
def test_utf16_without_a_mark_is_told_by_its_zeros(body: bytes, name: str) -> None:
    assert decode(body).charset == name
    assert charset._unmarked_utf16(body) == {"utf-8": "", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be"}[name]


def chosen(monkeypatch: pytest.MonkeyPatch, body: bytes, labels: list[str], detected: list[str]) -> str:
    """Returns which codec is chosen where all texts look alike."""
    monkeypatch.setattr(charset, "plausibility", lambda *_: 0.0)
    monkeypatch.setattr(charset, "_detected", lambda _: detected)
    return charset._most_plausible(body, labels)


@pytest.mark.parametrize(
    ("labels", "detected", "codec"),
    [
        ([], [], "gb18030"), (["koi8-r"], [], "koi8-r"), ([], ["cp1251"], "cp1251"), ([], ["cp1257"], "cp1257"),
        (["cp1257"], ["cp1251"], "cp1257"),
        (["koi8-r"], ["cp1251", "cp1251"], "cp1251"), (["koi8-r", "koi8-r"], ["cp1251", "cp1251"], "cp1251"),
        (["cp1251"], ["cp1251"], "cp1251"),
    ],
)  # fmt: skip
def test_labels_and_the_detector_tip_the_balance(
    monkeypatch: pytest.MonkeyPatch, labels: list[str], detected: list[str], codec: str
) -> None:
    assert chosen(monkeypatch, b"\xc4\xe3", labels, detected) == codec


@pytest.mark.parametrize(
    ("odd", "letters", "out"), [(1, 0, False), (2, 0, True), (2, 197, False), (2, 196, True), (3, 197, True)]
)
def test_a_charset_that_damages_the_text_is_out(monkeypatch: pytest.MonkeyPatch, odd: int, letters: int, *, out: bool) -> None:
    """No character of Windows-1251 has the number 0x98."""
    body = b"\x98" * odd + b"\xc0" * letters
    assert (chosen(monkeypatch, body, ["cp1251"], []) != "cp1251") is out


def test_the_sample_is_of_the_first_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"ab\xe9 cd 1234 \xe8\xe7 ef\xe6 gh\xe5"
    assert charset._high_part(body) == b"ab\xe9 \xe8\xe7 ef\xe6 gh\xe5 "
    taken = list[bytes]()

    def runs(text: bytes) -> Iterator[re.Match[bytes]]:
        for match in found.finditer(text):
            taken.append(match[0])
            yield match

    found = charset._HIGH_RUN
    monkeypatch.setattr(charset, "_HIGH_RUN", SimpleNamespace(finditer=runs))
    for most, sample, count in ((7, b"ab\xe9 \xe8\xe7 ", 3), (6, b"ab\xe9 \xe8\xe7", 2), (3, b"ab\xe9", 1)):
        monkeypatch.setattr(charset, "_SAMPLE_BYTES", most)
        taken.clear()
        assert (charset._high_part(body), len(taken)) == (sample, count)


def test_the_text_of_a_long_page_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charset, "_MOST_KEPT", 10)
    for body, is_kept in ((b"x" * 10, True), (b"x" * 11, False)):
        decode(body)
        assert (charset._last[0] is body) is is_kept


@all_cases(
    ("body", "content_type", "labels"),
    [
        (b"", "text/html; Charset = 'Big5'", ["big5"]), (b"<meta charset=GBK>", "charset=utf-8", ["utf-8", "gbk"]),
        (b"<meta charset=utf-16le>", "", ["utf-8"]),
        (b"<?xml encoding='koi8-r'?>", "", ["koi8-r"]), (b"<!-- <meta charset=big5> --><meta charset=gbk>", "", ["gbk"]),
        (b"<!-- <meta charset=big5>", "", []), (b" " * 4_082 + b"<meta charset=gbk>", "", []),
        (b" " * 4_078 + b"<meta charset=gbk>", "", ["gbk"]),
        (b"", " " * 990 + "charset=gbk", ["gb"]), (b"<metacharset=gbk>", "", []), (b"<meta x=charset y>", "", []),
    ],
)  # fmt: skip
def test_labels_of_a_page(body: bytes, content_type: str, labels: list[str]) -> None:
    assert list(charset._labels(body, content_type)) == labels


def test_a_label_behind_many_blanks_takes_no_time() -> None:
    """No stopwatch: going back over the blanks would not end within the test's time limit."""
    assert decode(b"abc", f"text/html; charset={' ' * 200_000};").text == "abc"


def test_the_text_that_is_kept_is_that_of_the_same_bytes_and_label() -> None:
    body = "赌场".encode("gb18030") * 40
    first = decode(body, "text/html; charset=gbk")
    assert decode(body, "text/html; charset=gbk") is first
    assert decode(bytes(bytearray(body)), "text/html; charset=gbk") == first
    cyrillic = bytes(range(0xC0, 0x100)) * 2
    assert decode(cyrillic, "charset=windows-1251") != decode(cyrillic, "charset=koi8-r")
    large = b"x" * 500_001
    assert decode(large) is not decode(large)
