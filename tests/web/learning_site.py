"""A small news site on loopback, whose pages extraction rules are edited with."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ARTICLE = """<!doctype html><html lang=en><head><title>A bridge for the harbour · Harbour News</title>
<meta property="og:title" content="A bridge for the harbour"><meta name="author" content="Kim Lee">
<style>body{display:none}</style><script>document.title = "changed"</script></head>
<body onload="alert(1)"><header class="top"><nav><a href="/">Home</a> <a href="/sport">Sport</a>
<a href="/weather">Weather</a></nav></header>
<main><article class="story"><h1 class="headline">A bridge for the harbour</h1>
<p class="lead">After ten years of plans the town builds its <b>third</b> bridge.</p>
<p>Work begins in spring. The ferry stays until the bridge is open to traffic, the council said on Monday.</p>
<p>“It was about time”, said the baker at the quay, who has crossed by boat each morning since 1998.</p>
<img src="/bridge.jpg" alt="Drawing of the bridge"><time datetime="2026-11-02">2 November</time></article>
<aside><h2>More news</h2><ul class="more"><li><a href="/story/2">Market moves to the square</a></li>
<li><a href="/story/3">Library opens on Sundays</a></li><li><a href="/story/4">New trains for the coast line</a></li></ul></aside>
</main>
<footer><a href="/about">About us</a> <a href="https://elsewhere.example/">Elsewhere</a></footer></body></html>"""


@contextmanager
def site(html: str = ARTICLE) -> Iterator[str]:
    """Serves a page under every path; yields the site's address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"" if self.path == "/robots.txt" else html.encode()
            self.send_response(404 if self.path == "/robots.txt" else 200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
