"""Characters that stand for others: traditional for simplified, look-alikes for Latin letters, and invisible ones."""

import unicodedata

_TRADITIONAL = (
    "專专 業业 絲丝 丟丢 兩两 嚴严 個个 臨临 麗丽 舉举 樂乐 書书 買买 亂乱 爭争 亞亚 產产 親亲 崙仑 們们 會会 傳传 "
    "倫伦 偽伪 債债 償偿 兌兑 關关 興兴 內内 冊册 寫写 軍军 決决 凍冻 淨净 鳳凤 憑凭 擊击 則则 別别 劑剂 劇剧 辦办 "
    "務务 動动 勵励 區区 醫医 華华 協协 單单 賣卖 衛卫 廳厅 歷历 壓压 廚厨 雙双 發发 葉叶 號号 嚇吓 嗎吗 員员 響响 "
    "噴喷 團团 圍围 國国 場场 壇坛 墊垫 牆墙 聲声 壺壶 處处 頭头 奮奋 獎奖 奧奥 婦妇 媽妈 娛娱 學学 寶宝 實实 對对 "
    "導导 將将 盡尽 歲岁 島岛 幣币 師师 帶带 幫帮 廣广 庫库 應应 開开 彈弹 強强 歸归 當当 錄录 憶忆 憂忧 態态 慘惨 "
    "戲戏 戰战 戶户 掃扫 護护 報报 擬拟 擇择 擋挡 損损 換换 擺摆 搖摇 敵敌 數数 斬斩 斷断 無无 時时 術术 殺杀 權权 "
    "條条 來来 槍枪 標标 欄栏 樹树 樣样 檔档 檢检 樓楼 殘残 毆殴 畢毕 匯汇 湯汤 淚泪 測测 瀏浏 漲涨 滾滚 滿满 滅灭 "
    "靈灵 點点 煙烟 煩烦 愛爱 獵猎 豬猪 貓猫 瑪玛 現现 電电 畫画 療疗 癮瘾 監监 盜盗 盤盘 礦矿 碼码 禮礼 禍祸 禿秃 "
    "積积 稅税 穩稳 競竞 籌筹 類类 糧粮 纖纤 約约 級级 紀纪 純纯 納纳 紙纸 線线 組组 織织 經经 結结 繞绕 繪绘 絡络 "
    "統统 續续 維维 綠绿 緝缉 繳缴 罌罂 羥羟 職职 聯联 聰聪 膚肤 膠胶 腦脑 腳脚 藝艺 節节 蕩荡 藥药 獲获 營营 虛虚 "
    "補补 襪袜 裝装 見见 觀观 規规 視视 覽览 譽誉 計计 認认 討讨 訓训 議议 記记 論论 證证 識识 詐诈 診诊 詞词 試试 "
    "話话 詢询 語语 誤误 誘诱 說说 調调 謎谜 謹谨 財财 賬账 貨货 購购 貸贷 費费 資资 賭赌 賠赔 賺赚 賽赛 贏赢 車车 "
    "轉转 輪轮 軟软 轟轰 輕轻 載载 輔辅 輸输 達达 過过 運运 進进 遠远 連连 跡迹 選选 遞递 郵邮 釣钓 鈔钞 鐘钟 鋼钢 "
    "鑰钥 錢钱 鑽钻 鉛铅 銃铳 銨铵 銀银 鏈链 銷销 鎖锁 鐧锏 錦锦 鍵键 鏢镖 長长 門门 閃闪 閉闭 問问 閒闲 隊队 陽阳 "
    "陰阴 階阶 險险 隱隐 難难 霧雾 靜静 預预 領领 頻频 題题 顏颜 額额 風风 飛飞 館馆 馬马 驅驱 驗验 騙骗 騷骚 魚鱼 "
    "鮮鲜 雞鸡 鴉鸦 鷹鹰 麥麦 黃黄 龍龙 後后 裡里 裏里 麵面 臺台 遊游 係系 繫系 復复 複复 鍾钟 範范 迴回 誌志 製制 "
    "註注 傭佣 鬆松 聽听 徵征 幾几 雲云 萬万 據据 髮发 帳账 繮缰 隻只 乾干 幹干 準准 錶表 嚐尝 祕秘 菸烟 籤签 妳你 "
    "閑闲 眾众 圖图 請请 樁桩 還还 這这 讓让 與与 網网 給给 從从 紅红 為为 變变 備备 兒儿 極极 價价 東东 聖圣 氣气 "
    "體体 讀读 屍尸 絕绝 彙汇 週周 飯饭 錯错 傷伤 訂订 貼贴 "
)
SIMPLIFIED = {ord(pair[0]): pair[1] for pair in _TRADITIONAL.split()}
"""Traditional character → simplified, for the characters that the bundled lexicon uses."""

_ALIKE = {
    "a": "\u0430\u03b1\u0251",
    "b": "\u044c\u0432\u03b2",
    "c": "\u0441\u03f2",
    "d": "\u0501",
    "e": "\u0435\u0454\u03b5",
    "h": "\u04bb\u043d",
    "i": "\u0456\u0457\u03b9\u0131",
    "j": "\u0458",
    "k": "\u043a\u03ba",
    "l": "\u04cf",
    "m": "\u043c",
    "n": "\u043f\u03b7",
    "o": "\u043e\u03bf\u03c3\u04e9",
    "p": "\u0440\u03c1",
    "r": "\u0433\u044f",
    "s": "\u0455",
    "t": "\u0442\u03c4",
    "u": "\u03c5\u0446",
    "v": "\u0475\u03bd",
    "w": "\u051d\u0448\u03c9",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3\u04af",
    "z": "\u0437",
}
_ACCENTED = {
    code: base
    for code in range(0xC0, 0x250)
    if (base := unicodedata.normalize("NFKD", chr(code))[0]).isascii() and base.isalpha()
}
HOMOGLYPHS = {ord(alike): letter for letter, all_alike in _ALIKE.items() for alike in all_alike} | _ACCENTED
"""Greek, Cyrillic and accented letters → the Latin letter that they look like; for words that mix scripts only."""

INVISIBLE = (
    0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFEFF, 0xFFA0,
    *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0x300, 0x370), *range(0x20D0, 0x2100),
    *range(0xFE00, 0xFE10),
)  # fmt: skip
"""Characters without width, and marks that stand over others."""
