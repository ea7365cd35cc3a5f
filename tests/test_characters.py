"""Characters that stand for others."""

from gatewayfilter.characters import HOMOGLYPHS, INVISIBLE, simplified


def test_traditional_characters_have_their_simplified_ones() -> None:
    table = simplified()
    assert "賭場開戶 妳週迴".translate(table) == "赌场开户 你周回"
    assert 4_000 < len(table) < 5_000
    assert all(len(other) == 1 and ord(other) != one for one, other in table.items())
    for plain in "a1 你赌":
        assert ord(plain) not in table


def test_characters_of_other_alphabets_have_the_letters_that_they_look_like() -> None:
    assert "\u0441\u0430\u0455\u0456n\u043e É\u00f1".translate(HOMOGLYPHS) == "casino En"
    assert all(len(letter) == 1 and letter.isascii() and letter.isalpha() for letter in HOMOGLYPHS.values())
    assert not any(chr(one).isascii() for one in HOMOGLYPHS)


def test_invisible_characters_are_beyond_ascii() -> None:
    assert {0xAD, 0x200B, 0x200D, 0xFEFF, 0x301} <= set(INVISIBLE)
    assert min(INVISIBLE) > 0x7F
