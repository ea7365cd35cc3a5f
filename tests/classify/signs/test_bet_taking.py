"""Pages that take bets, told from those that tell of bets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.classify.score_adjustment import SIGN_CERTAINTY
from gatewayfilter.classify.signs.bet_taking import LEAST_PRICES, LEAST_SENTENCES, LEAST_SHARE, MAX_READ, bet_taking_sign
from gatewayfilter.settings import Strictness
from tests.case_tables import all_cases
from tests.classify.bundled_classifiers import bundled

TERMS = (
    "比赛中断后,未结算的注单一律作废。会员须在开赛前投注,逾时不予受理。"
    "赛果有争议时,本公司保留取消投注的权利。派彩将存入您的户口,博彩记录保留三十天。"
)
BOARD = "第一球\n号码\n赔率\n金额\n第二球\n号码\n赔率\n金额\n第三球\n号码\n赔率:金额\n"
TOLD = (
    "警方通报一起网络赌博案。该平台会员通过账户投注,投注金额超过两亿元。民警查获投注记录,会员账户被冻结。法院判处被告人有期徒刑。",
    "公司第三季度博彩收入增长一成。客户贡献了四成,玩家的下注也有回升。我们认为博彩毛利更加稳定,董事会取消了下注新市场的计划。",
    "骗子把受害人拉进投注群。受害人账户里的投注收益起初可以提现,大额投注后客服要求会员缴纳保证金。这是典型的诈骗。",
    "您是否为了翻本而不断投注?您是否向家人隐瞒投注?您是否借钱投注?请拨打戒赌求助热线,辅导是免费的。",
    "体彩中心通知,本期开奖时间调整为九点一刻,节日期间照常。",
    "春节休市安排:销售截止后两周内不再开市,网点照常兑奖。",
    "彩民购票后请核对投注号码。他守着同一组投注号码三年,昨日中得二等奖。",
    "赔率和金额都写在同一张表里。",
    "图书馆的会员请在本平台预约,您的账户取消预约后有效期不变。" * 3,
)


def test_terms_and_boards_take_bets() -> None:
    assert bet_taking_sign(TERMS) == "4 sentences bind bettors"
    assert bet_taking_sign(BOARD) == "a stake beside 3 prices"
    assert bet_taking_sign("第 期 正在销售中\n剩余00:00:00\n开奖倒计时:00:00") == "正在销售 · 开奖倒计时"
    assert bet_taking_sign("主队 客队\n欧赔\n亚盘\n凯利指数") == "odds compared by 3 terms"
    assert not bet_taking_sign("赛前欧赔走低,赛后欧赔再谈亚盘。")


@all_cases("text", TOLD)
def test_what_tells_of_bets_takes_none(text: str) -> None:
    assert not bet_taking_sign(text)


def test_a_few_sentences_or_prices_are_no_sign() -> None:
    sentence = "会员投注后不得取消。"
    assert bet_taking_sign(sentence * LEAST_SENTENCES)
    assert not bet_taking_sign(sentence * (LEAST_SENTENCES - 1))
    assert not bet_taking_sign("号码\n赔率\n金额\n" * (LEAST_PRICES - 1))
    long = "阅览室开放到八点。" * (LEAST_SHARE * LEAST_SENTENCES)
    assert not bet_taking_sign(long + sentence * LEAST_SENTENCES)
    assert not bet_taking_sign("。" * MAX_READ + sentence * LEAST_SENTENCES)


def test_which_sentences_bind() -> None:
    for sentence, binds in (
        ("会员下注", True), ("会员投注", True), ("会员", False), ("投注有效", True), ("下注有效", False),
        ("有效", False), ("投注", False),
    ):  # fmt: skip
        assert bool(bet_taking_sign(f"{sentence}。" * LEAST_SENTENCES)) is binds, sentence


def test_enough_sentences_bind_and_few_words_tell() -> None:
    binding, other, told = "会员投注。", "图书馆。", "警方。"
    most = LEAST_SENTENCES * LEAST_SHARE
    assert bet_taking_sign(binding * LEAST_SENTENCES + other * (most - LEAST_SENTENCES)) == "3 sentences bind bettors"
    assert not bet_taking_sign(binding * LEAST_SENTENCES + other * (most - LEAST_SENTENCES + 1))
    assert bet_taking_sign(binding * 3 + told)
    assert not bet_taking_sign(binding * 4 + told * 2)
    assert bet_taking_sign(binding * 5 + told * 2) == "5 sentences bind bettors"


@pytest.mark.parametrize(
    ("strictness", "category", "doubt"),
    [(Strictness.STANDARD, "gambling", ""), (Strictness.STRICT, "gambling", ""), (Strictness.RELAXED, "", "gambling")],
)
def test_a_sign_decides_and_is_named(strictness: Strictness, category: str, doubt: str) -> None:
    found = bundled(strictness).classify_text(BOARD)
    assert (found.category, found.doubt, found.certainty) == (category, doubt, SIGN_CERTAINTY)
    assert (found.score > found.limit) == bool(category)
    if category:
        assert found.evidence[0].word == "takes bets: a stake beside 3 prices"


@given(st.text(st.sampled_from("投注赌会员您。\n赔率金额:a "), max_size=200))
def test_any_text_has_a_sign_or_none(text: str) -> None:
    assert isinstance(bet_taking_sign(text), str)
