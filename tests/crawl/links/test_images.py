from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.crawl.links.images import page_pictures
from gatewayfilter.interfaces import Page
from tests.case_tables import all_cases
from tests.crawl.crawl_origin import loopback_settings

URL = "http://www.site.test/dir/page"


def pictures_of(body: str, most: int = 10, content_type: str = "text/html") -> list[str]:
    page = Page(URL, URL, 200, {"content-type": content_type}, body.encode())
    return [url.text for url in page_pictures(page, "", loopback_settings(page_images=most))]


@all_cases(
    ("body", "found"),
    [
        ("<img src=a.gif>", ["http://www.site.test/dir/a.gif"]),
        ("<IMG SRC='/b.png?x=1#f'>", ["http://www.site.test/b.png?x=1"]),
        ("<img src=https://cdn.test/c.jpg>", ["https://cdn.test/c.jpg"]),
        ("<base href=http://cdn.test/x/><img src=d.gif>", ["http://cdn.test/x/d.gif"]),
        ("<img src=a.gif><img src=a.gif><img src='a.gif#2'>", ["http://www.site.test/dir/a.gif"]),
        ("<img src=data:image/gif;base64,R0lGODlh>", []),
        ("<img src=''><img alt=x><img src='page'>", []),
        ("<img src=/logout.gif?token=1>", []),
        ("<img src=http://[>", []),
        ("<!-- <img src=a.gif> -->", []),
    ],
)
def test_pictures_are_found_where_a_browser_loads_them_from(body: str, found: list[str]) -> None:
    assert pictures_of(body) == found


def test_their_number_is_bounded_and_other_kinds_have_none() -> None:
    body = "".join(f"<img src={number}.gif>" for number in range(50))
    assert len(pictures_of(body, most=3)) == 3
    assert pictures_of(body, most=0) == []
    assert pictures_of(body, content_type="text/plain") == []


@settings(max_examples=30)
@given(st.text(alphabet="<img src='\"=/a.:#?&>\\ \n", max_size=80))
def test_any_markup_is_read(body: str) -> None:
    assert all(url.startswith("http") for url in pictures_of(body))
