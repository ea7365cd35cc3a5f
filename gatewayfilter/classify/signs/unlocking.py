"""Pages that hand out a program which unlocks what others sell or forbid, and which hides from what protects a computer.

Activators, cracks and cheats are described like any other program, so that words and reading may find them harmless. Three
things together tell their pages: something to download and run, what it unlocks, and how it gets past scanners or bans. A manual
has the first, a shop the second, security news all three: these speak of attacks, victims and weaknesses as often.

In English alone.
"""

import re

CATEGORY = "malware"
MAX_READ = 20_000
"""Characters of the visible text that count."""
LEAST_UNLOCKED, LEAST_NAMED = 2, 5
"""How often the page must say what is unlocked, and all three together."""
_EVADES = re.compile(
    r"\b(?:evasion|anti[- ]?detect\w*|undetect\w*|obfuscat\w*|bypass\w*|run anyway|false positives?)\b"
    r"|\b(?:disabl\w+|turn(?:ing)? off|switch(?:ing)? off|exclu\w+|whitelist\w*|add)\b[^.!?\n]{0,40}"
    r"\b(?:antivirus|anti-virus|windows security|defender|real[- ]?time|smartscreen|memory integrity|secure boot|exclusions?)\b"
    r"|\b(?:defender|antivirus|real[- ]?time protection)\b[^.!?\n]{0,20}\boff\b"
)
_UNLOCKS = re.compile(
    r"\b(?:activat(?:ion|or|ors|ing)|crack(?:s|ed)?|keygens?|licen[cs]e keys?|serial keys?|unban\w*|ban(?:ned|s)"
    r"|spoof(?:er|ers|ing)|hwid|cheats?|aimbot|wallhack|mod menu|injector|pre-?activated|nulled|modded)\b"
)
_RUNS = re.compile(
    r"\.(?:exe|bat|zip|rar|7z|msi|dll|ps1|apk)\b"
    r"|\b(?:as (?:an? )?admin(?:istrator)?|loaders?|extract|unzip|unpack|run the"
    r"|download (?:link|now|the latest|latest|here|free))\b"
)
_TOLD = re.compile(
    r"\b(?:malware|malicious|attack\w*|threat\w*|researchers?|victims?|criminals?|never|infect\w*|phishing|police|scams?"
    r"|vulnerab\w*|exploit\w*|cve|patch(?:ed)?|according|reported|risk\w*|legitimate|warn\w*)\b"
)
"""Of reports, advisories and advice."""


def unlocking_sign(text: str) -> str:
    """Returns what a page hands out, in words; `""` where nothing says so. Linear in the text.

    Args:
        text: what is visible, in its normal view.
    """
    text = text[:MAX_READ]
    evades = len(_EVADES.findall(text))
    if not evades or (unlocks := len(_UNLOCKS.findall(text))) < LEAST_UNLOCKED:
        return ""
    runs = len(_RUNS.findall(text))
    named = runs + unlocks + evades
    if not runs or named < LEAST_NAMED or named <= 2 * len(_TOLD.findall(text)):
        return ""
    return f"to run {runs}, unlocks {unlocks}, evades {evades} times"
