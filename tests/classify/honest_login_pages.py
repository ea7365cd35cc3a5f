"""Honest pages with credential fields, and clones, for the check of login pages. All of them were written for it."""

# ruff: noqa: E501, RUF001  pages and their titles read best as they are
from typing import NamedTuple

PASSWORD = '<input type="text" name="user"><input type="password" name="pass"><button>Log in</button>'
CARD = '<input name="card_number"><input name="cvv"><input name="exp">'
FILLER = "<p>" + "The council met on Tuesday and spoke of the new bridge over the river. " * 120 + "</p>"


class Case(NamedTuple):
    """A page: what it is, its URL, its markup."""

    name: str
    url: str
    html: str


def page(title: str, body: str, head: str = "") -> str:
    """Returns a page."""
    return f"<!DOCTYPE html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"


def form(action: str | None, fields: str = PASSWORD) -> str:
    """Returns a form; without an action for `None`."""
    return f'<form method="post"{"" if action is None else f" action={chr(34)}{action}{chr(34)}"}>{fields}</form>'


def canonical(url: str, name: str = "") -> str:
    """Returns the head of a page that declares its address, and its site's name."""
    named = f'<meta property="og:site_name" content="{name}">' if name else ""
    return f'<link rel="canonical" href="{url}"><meta property="og:url" content="{url}">{named}'


_OAUTH = (
    '<a href="https://accounts.google.com/o/oauth2/v2/auth?client_id=1">Sign in with Google</a>'
    '<a href="https://www.facebook.com/v12.0/dialog/oauth?client_id=1">Facebook</a>'
    '<a href="https://github.com/login/oauth/authorize?client_id=1">GitHub</a>'
)
_SOCIAL = "".join(
    f'<a href="https://www.{host}/firm">x</a>' for host in ("facebook.com", "instagram.com", "twitter.com", "youtube.com")
)
_CAPTCHA = (
    '<script src="https://www.google.com/recaptcha/api.js"></script><a href="https://policies.google.com/privacy">Privacy</a>'
    '<a href="https://policies.google.com/terms">Terms</a><link rel="stylesheet" href="https://fonts.googleapis.com/css?family=A">'
)
_SAVED = "<!-- saved from url=(0027)https://www.paypal.com/signin -->"

HONEST = (
    Case("own domain", "https://www.paypal.com/signin", page("Log in to your PayPal account", form("/signin"), canonical("https://www.paypal.com/signin", "PayPal"))),
    Case("own domain of a country", "https://www.amazon.co.jp/ap/signin", page("Amazon Sign In", form("signin.php"), canonical("https://www.amazon.com/", "Amazon"))),
    Case("second domain of a service", "https://login.live.com/", page("Sign in to your Microsoft account", form("ppsecure/post.php"), canonical("https://www.microsoft.com/"))),
    Case("sign in with", "https://app.tool.example/login", page("Log in - Tool", form("/login") + _OAUTH)),
    Case("sign in with, by a script", "https://tool.example/login.php", page("Sign in with Google or Facebook", form("login.php") + _OAUTH + _SOCIAL)),
    Case("captcha and fonts", "https://small.example/login.php", page("Member area", form("login.php") + _CAPTCHA)),
    Case("links to its own profiles", "https://club.example/login.php", page("Members", form("login.php") + _SOCIAL)),
    Case("donations by PayPal", "https://charity.example/give.php", page("Give to the charity", form("give.php", CARD) + '<a href="https://www.paypal.com/donate"><img src="https://www.paypalobjects.com/en_US/i/btn/btn_donate_LG.gif"></a>')),
    Case("card page of a shop", "https://shop.example/pay.php", page("Checkout - Shop", form("pay.php", CARD) + "<p>Or pay with your PayPal account</p>")),
    Case("self-hosted GitLab", "https://git.firm.example/users/sign_in", page("Sign in · GitLab", form("/users/sign_in") + '<a href="https://about.gitlab.com/help">About GitLab</a>', '<meta property="og:site_name" content="GitLab">')),
    Case("Roundcube of a firm", "https://mail.firm.example/", page("Firm Webmail :: Welcome to Firm Webmail", form("./?_task=login") + '<a href="https://roundcube.net">Roundcube</a>')),
    Case("Outlook Web App of a firm", "https://owa.firm.example/owa/auth/logon.aspx", page("Outlook", form("/owa/auth.owa") + "<p>Microsoft Corporation</p>")),
    Case("ADFS", "https://sts.firm.example/adfs/ls/", page("Sign In", form("/adfs/ls/?SAMLRequest=x") + "<p>© 2018 Microsoft</p>")),
    Case("Azure B2C of a firm", "https://id.firm.example/", page("Sign in to your account", form("/t/SelfAsserted") + '<script src="https://aadcdn.msftauth.net/a.js"></script><link rel="stylesheet" href="https://aadcdn.msftauth.net/b.css"><img src="https://aadcdn.msftauth.net/c.png">')),
    Case("portal of a school", "https://portal.school.example/", page("Office 365 | School", form("/login") + '<a href="https://login.microsoftonline.com/">Office 365</a>')),
    Case("Moodle", "https://moodle.school.example/login/index.php", page("School: Log in to the site", form("https://moodle.school.example/login/index.php") + '<a href="https://moodle.org/">Moodle</a>')),
    Case("Shibboleth", "https://idp.uni.example/idp/profile", page("Web Login Service", form("/idp/profile/SAML2/Redirect/SSO?execution=e1s1"))),
    Case("WordPress", "https://blog.example/wp-login.php", page("Log In ‹ Blog — WordPress", form("https://blog.example/wp-login.php") + '<a href="https://wordpress.org/">Powered by WordPress</a>')),
    Case("phpMyAdmin", "https://db.firm.example/index.php", page("phpMyAdmin", form("index.php"))),
    Case("Nextcloud", "https://cloud.family.example/login", page("Login – Nextcloud", form("/login"), '<meta name="application-name" content="Nextcloud">')),
    Case("router", "http://192.168.1.1/login.php", page("Orange", form("login.php") + "<p>Log in to Orange</p>", canonical("https://www.orange.fr/"))),
    Case("router by its name", "http://fritz.box/", page("FRITZ!Box", form(None, '<input type="password" name="uiPass">'))),
    Case("local name", "http://intranet/login.php", page("Google", form("login.php"), canonical("https://www.google.com/", "Google"))),
    Case("local IPv6 address", "http://[fd00::1]/login.php", page("Vodafone", form("login.php"), canonical("https://www.vodafone.de/"))),
    Case("newspaper with a login box", "https://news.example/bridge", page("Bridge - News", form("login.php") + FILLER + _SOCIAL, canonical("https://www.other-news.example/bridge"))),
    Case("post about login forms", "https://blog.example/login-form", page("How to write a login form | Blog", form("#") + "<pre>&lt;form action='login.php'&gt;</pre><p>As in the form of Facebook: log in to Facebook, your PayPal account.</p>" + FILLER)),
    Case("short post about login forms", "https://blog.example/demo.html", page("A login form like that of Facebook", form("#") + "<p>Log in to Facebook</p>")),
    Case("password manager", "https://vault.example/", page("Web vault | Vault", form(None, '<input type="password" name="masterPassword">') + "<p>Your Google account, your PayPal account, your Amazon account</p>")),
    Case("account of an agency", "https://agency.example/facebook-login.php", page("Agency: tools for Facebook pages", form("login.php") + '<a href="https://www.facebook.com/help/1">Help</a>')),
    Case("firm of two domains", "https://login.firm-portal.example/login.php", page("Firm", form("login.php"), canonical("https://www.firm.com/", "Firm"))),
    Case("archived page", "https://web.archive.org/web/2020/https://www.linkedin.com/", page("LinkedIn: Log In or Sign Up", form("/web/2020/https://www.linkedin.com/uas/login-submit"), canonical("https://www.linkedin.com/", "LinkedIn"))),
    Case("gateway of a library", "https://www-linkedin-com.ezproxy.uni.example/", page("LinkedIn: Log In or Sign Up", form("/uas/login-submit"), canonical("https://www.linkedin.com/", "LinkedIn"))),
    Case("copy that posts to its owner", "https://copy.example/", page("GitHub", form("https://github.com/session"), canonical("https://github.com/login", "GitHub"))),
    Case("wallet tool", "https://bip39.example/", page("Mnemonic code converter", '<textarea name="phrase" placeholder="BIP39 mnemonic"></textarea>')),
    Case("activation at a bank", "https://ebank.bank.example/activate.do", page("Activate online banking", form("/activate.do", '<input name="cardNumber"><input name="cardPin" type="password">'))),
    Case("search box", "https://shop.example/", page("Amazon", form("search.php", '<input type="search" name="q">'))),
    Case("newsletter", "https://fans.example/", page("Fans of Netflix", form("subscribe.php", '<input type="email" name="email">') + '<a href="https://www.netflix.com/help">Netflix</a>')),
    Case("resale of a service", "https://bestcrm.com/login.php", page("WhatsApp | BestCRM", form("login.php"))),
    Case("abbreviation", "https://staff.firm.example/login.php", page("EMS Login", form("login.php"))),
    Case("German word", "https://verein.example/login.php", page("Über | Verein", form("login.php"))),
    Case("Spanish word", "https://correo.firma.example/login.php", page("Correos - Iniciar sesión", form("login.php"))),
    Case("surname", "https://chase-family.example/login.php", page("Chase: log in", form("login.php"))),
    Case("no form", "https://wiki.example/paypal", page("PayPal", "<p>A company.</p>", canonical("https://www.paypal.com/"))),
)  # fmt: skip

CLONES = (
    Case("title and script", "http://site.example/a", page("Log in to your PayPal account", form("./login.php"))),
    Case("letters that look alike", "http://site.example/a", page("Log in to your \u03a1ay\u03a1al account", form("login.php"))),
    Case("subdomain of somebody else", "https://paypal.com.site.example/", page("PayPal: Log in", form("next.php"))),
    Case("declared address", "http://site.example/a", page("Welcome", form("post.php"), canonical("https://www.netflix.com/login"))),
    Case("relay of the whole page", "https://site.example/", page("LinkedIn Login, Sign in", form("/uas/login-submit"), canonical("https://www.linkedin.com/login", "LinkedIn"))),
    Case("public address", "http://93.184.216.34/", page("DHL Express", form("login.php"))),
    Case("saved by a browser", "https://site.example/x.html", _SAVED + page("Log in", form("save.php"))),
    Case("saved from a site on no list", "https://site.example/", "<!-- saved from url=(0020)https://login.bank-of-nowhere.org/ -->" + page("Online banking", form("x.php"))),
    Case("one-time code", "http://site.example/otp.html", page("Uber", form("postss.php", '<input name="verificationCode">') + '<a href="https://help.uber.com/">Help</a>')),
    Case("card in the name of a mail service", "http://site.example/", page("Gmail", form("a.php", CARD))),
    Case("recovery phrase", "http://site.example/", page("Connect your wallet", form("send.php", '<textarea name="mnemonic"></textarea>'))),
    Case("chat bot", "http://site.example/", page("Document", form("https://api.telegram.org/bot1:x/sendMessage"))),
    Case("service that mails forms", "http://site.example/", page("Sign in - Google Accounts", form("https://formspree.io/f/x"))),
    Case("card with its PIN", "http://site.example/", page("Refund", form("", CARD + '<input name="atm_pin">'))),
    Case("its files and links alone", "http://site.example/", page("Authorization", form("login.php") + "".join(f'<a href="https://passport.yandex.com/{path}">x</a>' for path in ("restore/login", "registration", "help")))),
    Case("Chinese shop", "http://site.example/", page("淘宝网 - 登录", form("login.php"))),
    Case("Chinese bank", "http://site.example/", page("中国工商银行个人网上银行", form("save.asp", '<input name="卡号" placeholder="银行卡号"><input type="password">'))),
    Case("odd case of tags", "http://site.example/", "<TITLE>PayPal</TITLE><FoRm AcTiOn=login.php><iNpUt TyPe=PassWord>"),
)  # fmt: skip
