"""Pages that take bets: by their terms, their boards of prices, odds compared, or the sale of a draw.

Rules, terms and bare boards of a betting site hardly advertise, so that words and reading find them harmless. What they do tells
them from texts about bets: sentence after sentence says what becomes of a bet, or names the account or the customer that it is
of, and a board repeats price and amount. Reports and warnings tell of bets, too, but of the police, courts and victims as well.

In Chinese alone: English sites are found without, and English news of betting companies speak of bets and customers.
"""

import re

CATEGORY = "gambling"
MAX_READ = 40_000
"""Characters of the visible text that count."""
LEAST_SENTENCES, LEAST_SHARE = 3, 20
"""Sentences that bind bettors, and one of how many of the page they are at least: what somebody quotes in a long page is less."""
LEAST_PRICES = 3
"""Prices with an amount beside them: a table of one match has one heading."""
_BET = re.compile("投注|赌注|注单")
_GAMING = re.compile("下注|博彩")
"""Business news speak of these, too: of the gaming industry, and of staking on something."""
_PARTY = re.compile("会员|户口|账户|账号|本公司|我司|本站|本网|本平台|您")
_BINDING = re.compile("客户|用户|玩家|我们|有效|无效|取消|作废|退还|派彩|派发|结算|确立")
_TOLD = re.compile("记者|警方|民警|公安|检察|法院|被告|嫌疑|涉案|犯罪|诈骗|骗子|骗局|受害|戒赌|求助|辅导|据悉|报道")
"""Of reports and warnings."""
_PRICE = re.compile(r"(?:赔率|水位)[\s:|]{0,6}(?:金额|下注|注额|投注)")
_DRAW = re.compile("开奖倒计时|距离?开奖|开奖时间")
_SALE = re.compile("(?:销售|投注|购买|代购|合买)截止|截止(?:时间|销售|投注)|正在销售|封盘")
"""Together: bets are taken until a draw. News name the time of a draw, or when sales of a year end, but not both."""
_COMPARED = re.compile("凯利指?数?|返还率|赔付率|欧赔|亚盘|初盘|终盘|即时盘|即时赔率|初赔|欧指|亚指|kelly")
"""What boards of odds are made of."""
LEAST_COMPARED = 3
_END = re.compile("[。!?;\n]")


def bet_taking_sign(text: str) -> str:
    """Returns by what a page takes bets, in words; `""` where nothing says so. Linear in the text.

    Args:
        text: what is visible, in its normal view.
    """
    text = text[:MAX_READ]
    prices = len(_PRICE.findall(text))
    if prices >= LEAST_PRICES:
        return f"a stake beside {prices} prices"
    if (draw := _DRAW.search(text)) and (sale := _SALE.search(text)):
        return f"{sale[0]} · {draw[0]}"
    compared = len(set(_COMPARED.findall(text)))
    if compared >= LEAST_COMPARED:
        return f"odds compared by {compared} terms"
    sentences = [sentence for sentence in _END.split(text) if sentence]
    bound = sum(map(_binds, sentences))
    told = len(_TOLD.findall(text))
    if bound >= LEAST_SENTENCES and bound * LEAST_SHARE >= len(sentences) and bound > 2 * told:
        return f"{bound} sentences bind bettors"
    return ""


def _binds(sentence: str) -> bool:
    if _PARTY.search(sentence):
        return bool(_BET.search(sentence) or _GAMING.search(sentence))
    return bool(_BINDING.search(sentence) and _BET.search(sentence))
