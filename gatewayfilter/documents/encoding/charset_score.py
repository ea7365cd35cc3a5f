# ruff: noqa: RUF001  the marks of Chinese and Japanese texts are meant
"""Score of decoded text, from noise to prose: chooses among charsets that can all decode the same bytes."""

_HAN = frozenset(
    "的一是不了在人有我他这这個个们们来来到时時大地为為子中你说說生国國年着著就那和要她出也得里裡后後自以会會家可下而过過天去能对對小多然于於心学學么麼之都好看起发發当當"
    "没沒成只如事把还還用第样樣道想作种種开開美总總从從无無情己面最女但现現前些所同日手又行意动動方期它头頭经經长長儿兒回位分爱愛老因很给給名法间間斯知世什两兩次使身者被高已亲親其进進此话話常"
    "与與活正感见見明问問力理尔爾点點文几幾定本公特做外孩相西果走将將月十实實向声聲车車全信重三机機工物气氣每并並别別真打太新比才便夫再书書部水像眼等体體却卻加电電主界门門利海受听聽表"
    "德少克代员員许許先口由死安写寫性马馬光白或住难難望教命花结結乐樂色更拉东東神记記处處让讓母父应應直字场場平报報友关關放至张張认認接告入笑内內英军軍候民岁歲往何度山觉覺路带帶万萬男边邊"
    "风風解叫任金快原吃变變通师師立象数數四失满滿战戰远遠格士音轻輕目条條呢注册送费費免网網站线線视視频頻下载載在线免费"
)
_HANGUL = frozenset(
    "이다는에의가을를고하지로은도서한사기리인그자시나어일해대아들부정있었습니과와수제전상장국경주신보여요것만원면성"
)
_SAMPLE = 6_000


def plausibility(text: str, kana: float = 1.0) -> float:
    """Returns from below -1 (noise) to 1 (prose) what the characters above ASCII look like; 0.0 where there are none.

    Looks at the first `_SAMPLE` of them. Frequent characters of Chinese and Korean, kana, and letters beside letters of their
    own kind raise the score; rare ideographs, marks and replacements lower it.

    Args:
        text: the text.
        kana: what one is worth: less where the charset is not a Japanese one, as Chinese ones write kana at the same places.
    """
    total = 0.0
    count = 0
    before = " "
    for character in text:
        if character >= "\x80":
            total += _worth(character, before, kana)
            count += 1
            if count >= _SAMPLE:
                break
        before = character
    return total / count if count else 0.0


def _worth(character: str, before: str, kana: float) -> float:
    if "\u4e00" <= character <= "\u9fff":
        return 1.5 if character in _HAN else -0.1
    if "\u3040" <= character <= "\u30ff":
        return kana
    if "\uac00" <= character <= "\ud7a3":
        return 1.5 if character in _HANGUL else 0.2
    if character in "，。、：；？！「」『』《》（）“”‘’…—　・～":
        return 0.3
    if "\u0400" <= character <= "\u04ff":
        if character.islower():
            return 1.0 if before.isalpha() and not before.isascii() else 0.5
        return -0.8 if before.isalpha() else 0.3
    if "\xc0" <= character <= "\u017f" and character.isalpha():
        beside = before.isascii() and before.isalpha()
        return (1.0 if character.islower() else 0.2) if beside or before in " \n>" else -0.7
    return -2.0 if character == "\ufffd" else -0.5
