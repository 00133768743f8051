"""Tests of what `make docs` built: every public name, every link, every page in a real browser, every notebook.

Run ``python -m pytest docs/test_pages.py`` after a build. Without Chromium, the tests in a browser are skipped, or fail with
``IMGOPS_BROWSER=required``.
"""

from __future__ import annotations

import ast
import functools
import html.parser
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import imgops
from imgops import transforms
from imgops.transforms import functional

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS), str(DOCS.parent)]

import publish
import show
from imgops_docs import FAMILIES, MADE_OF, MODULES, NOT_MADE, public_of
from pictures import full_name

from tests.specs import SPECS

HTML = DOCS / "_build" / "html"
PAGES = sorted(str(p.relative_to(HTML)) for p in HTML.rglob("*.html") if "_static" not in p.parts)
TUTORIALS = {
    str(p.relative_to(DOCS.parent / "gallery").with_suffix("")): p
    for p in sorted((DOCS.parent / "gallery").glob("*/[0-9]_*.py"))
}
NOTEBOOKS = sorted(HTML.glob("_downloads/*/*.ipynb"))
#: The browser's tests, each with its share of the pages, for the workers of pytest-xdist.
PARTS = 4
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def test_something_was_built() -> None:
    assert len(PAGES) > 100, "run make docs first"
    assert len(NOTEBOOKS) == len(TUTORIALS) == 20


def test_the_gallery_has_sections_and_early_pictures() -> None:
    """Each folder is a section, each card has one sentence, and at most forty lines of code come before a picture."""
    index = html.unescape((HTML / "gallery" / "index.html").read_text())
    sections = [set(re.findall(r'href="(\w+/\w+)\.html', part)) for part in index.split("<section ")[2:]]
    folders = {name.partition("/")[0] for name in TUTORIALS}
    assert sorted(map(sorted, sections)) == [
        sorted(name for name in TUTORIALS if name.startswith(f"{folder}/")) for folder in sorted(folders)
    ]
    for name, source in TUTORIALS.items():
        _, sentence, *_ = str(ast.get_docstring(ast.parse(source.read_text()))).split("\n\n")
        assert re.fullmatch(r"[^.\n]+(\.\w[^.\n]+)*\.", sentence), name
        assert f'tooltip="{sentence.replace("``", "")}"' in index, name
        page = (HTML / "gallery" / f"{name}.html").read_text().partition("<article")[2]
        before, *pictures = re.split(r'class ?= ?"sphx-glr-(?:single|multi)-img', page, maxsplit=1)
        assert pictures, name
        blocks = re.findall(r'<div class="highlight-Python.*?</pre>', before, re.S)
        assert sum(block.count("\n") for block in blocks) <= 40, name


def public_names() -> list[str]:
    names = [f"imgops.{n}" for n in imgops.__all__]
    names += [f"imgops.extend.{n}" for n in imgops.extend.__all__ if n not in MODULES]
    names += [f"imgops.extend.{m}.{n}" for m in MODULES for n in public_of(getattr(imgops.extend, m))]
    annotations = ("annotations.Camera", "annotations.Disparity", "annotations.Flow", "annotations.Normals")
    more = ("from_albumentations", "seeded", *annotations)
    names += [f"imgops.transforms.{n}" for n in (*transforms.OURS, *transforms.ADDED, *more)]
    return names + [f"imgops.transforms.functional.{n}" for n in functional.OURS if n in functional.__all__]


@pytest.mark.parametrize("name", public_names())
def test_every_public_name_has_a_page(name: str) -> None:
    page = (HTML / "api" / f"{name}.html").read_text()
    assert f'id="{name}"' in page, "no documentation was found"
    operator = name.removeprefix("imgops.")
    if operator in imgops.__all__ and operator in SPECS:
        for fact in ("<math", "Reference", "Tolerance", "Measured", "Border", "Gradient"):
            assert fact in page, f"the page does not show: {fact}"


def test_every_operator_has_its_facts() -> None:
    functions = {n for n in imgops.__all__ if callable(getattr(imgops, n))}
    functions |= {f"extend.{n}" for n in imgops.extend.__all__ if n not in MODULES}
    assert functions == {name for names in FAMILIES.values() for name in names}
    for name in functions & set(SPECS):
        missing = [field for field in ("formula", "border") if not getattr(SPECS[name], field)]
        assert not missing, f"{name}: its spec has no {missing}"
    ours = {*transforms.OURS, *transforms.ADDED, *functional.OURS}
    assert {n for n in ours if MADE_OF[n]} == ours - NOT_MADE
    named = {name for spec in SPECS.values() for name in spec.transforms}
    assert named <= ours, "a spec names a transform that is not imgops' own"


@pytest.mark.parametrize("name", show.EXAMPLES)
def test_every_picture_is_on_its_page_and_in_the_index(name: str) -> None:
    index, page = (HTML / "pictures.html").read_text(), HTML / "api" / f"{full_name(name)}.html"
    picture = f"_images/{full_name(name)}.webp"
    assert f'href="api/{full_name(name)}.html"' in index
    assert picture in index
    assert picture in page.read_text()
    assert (HTML / picture).stat().st_size > 500


def test_operators_of_the_gallery_know_their_pages() -> None:
    for name in ("crop", "paste_", "resize", "warp_perspective", "extend.operator", "accumulate"):
        assert "In the gallery" in (HTML / "api" / f"imgops.{name}.html").read_text(), name


class _Page(html.parser.HTMLParser):
    """Collects the anchors of a page and the addresses that it links to or loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if found.get("id"):
            self.anchors.add(str(found["id"]))
        if tag == "a" and found.get("name"):
            self.anchors.add(str(found["name"]))
        for key in ("href", "src"):
            if found.get(key) and tag in ("a", "img", "script", "link"):
                self.addresses.append(str(found[key]))


@cache
def parsed(page: Path) -> _Page:
    parser = _Page()
    parser.feed(page.read_text())
    return parser


@pytest.mark.parametrize("page", PAGES)
def test_links_inside(page: str) -> None:
    dead = []
    for address in parsed(HTML / page).addresses:
        if ":" in address.split("/")[0] or address.startswith("//"):
            continue  # another site
        path, _, anchor = address.partition("#")
        path = path.partition("?")[0]
        target = (HTML / page).parent / unquote(path) if path else HTML / page
        if not target.exists() or (
            anchor and target.suffix == ".html" and unquote(anchor) not in parsed(target.resolve()).anchors
        ):
            dead.append(address)
    assert not dead


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None and os.environ.get("IMGOPS_BROWSER") != "required":
        pytest.skip("no Chromium on this machine")
    assert CHROMIUM, "no Chromium on this machine"
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


VERSION = publish.version_of(imgops.__version__)
OTHER = "0.0" if VERSION == publish.DEVELOPMENT else publish.DEVELOPMENT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the pages as they are published, and yield the address: this version and another one with the same pages."""
    folder = tmp_path_factory.mktemp("site")
    for name in (VERSION, OTHER):
        (folder / name).symlink_to(HTML)
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        publish.write_menu(folder, url)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield url
        server.shutdown()


_HAS_THEME = "scheme => document.documentElement.dataset.theme === scheme"
_BROKEN = "() => [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
#: The elements that are wider than the window, unless an element around them scrolls.
_TOO_WIDE = """() => {
  const scrolls = e => !e.matches(".bd-article-container")
    && (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  return [...document.querySelectorAll("article p, article h1, article h2, article li, article dt, article dd, article img, article table")]
    .filter(e => e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e))
    .map(e => e.tagName + " " + e.textContent.trim().slice(0, 40));
}"""

#: The tables and cells whose content is cut off, or would have to be scrolled.
_CUT = """() => {
  const wide = e => e.clientWidth && e.scrollWidth > e.clientWidth + 1;
  const hides = e => getComputedStyle(e).overflowX !== "visible";
  return [...document.querySelectorAll("article *")]
    .filter(e => e.getClientRects().length && wide(e))
    .filter(e => e.matches("td, th") || (hides(e) && (e.matches("table") || e.querySelector("table"))))
    .map(e => e.tagName + " " + e.textContent.trim().slice(0, 40));
}"""
_SCROLLS = "() => document.documentElement.scrollWidth - innerWidth"


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_in_a_browser(browser: Any, site: str, part: int) -> None:
    """A page has no error in the console, no failed request, no broken picture, and nothing wider than the window.

    A page never scrolls sideways, and at 1280 pixels no table is cut; in a narrow window a table may scroll.

    Each page is loaded once, every second one in a dark scheme; it is looked at in a wide window, in one as narrow as a
    telephone, and in the other scheme, to which it changes while it is open.
    """
    from playwright import sync_api

    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab, wrong, now = context.new_page(), [], [""]
    tab.on("console", lambda m: wrong.append((now[0], m.text)) if m.type == "error" else None)
    tab.on("pageerror", lambda e: wrong.append((now[0], str(e))))
    # Opening the next page aborts requests of this one, which is no failure. A missing file is an error in the console.
    ended = "net::ERR_ABORTED"
    tab.on("requestfailed", lambda r: wrong.append((now[0], r.url)) if r.failure != ended else None)
    for i, page in enumerate(PAGES[part::PARTS]):
        now[0] = page
        schemes = ("light", "dark") if i % 2 else ("dark", "light")
        tab.emulate_media(color_scheme=schemes[0])
        tab.goto(f"{site}/{VERSION}/{page}")
        tab.wait_for_load_state("load")
        for width in (1280, 390):
            tab.set_viewport_size({"width": width, "height": 900})
            for picture in tab.evaluate(_BROKEN):
                wrong.append((page, picture))
            for element in tab.evaluate(_TOO_WIDE)[:3]:
                wrong.append((page, f"out of a window of {width}: {element}"))
            if tab.evaluate(_SCROLLS) > 0:
                wrong.append((page, f"scrolls sideways in a window of {width}"))
            if width == 1280:
                wrong += [(page, f"cut: {element}") for element in tab.evaluate(_CUT)[:3]]
        tab.set_viewport_size({"width": 1280, "height": 900})
        for scheme in schemes:
            tab.emulate_media(color_scheme=scheme)
            try:
                tab.wait_for_function(_HAS_THEME, arg=scheme, timeout=5000)
            except sync_api.TimeoutError:
                wrong.append((page, f"not {scheme}"))
        for picture in tab.evaluate(_BROKEN):
            wrong.append((page, picture))
    context.close()
    assert not wrong


_ROWS = "() => [...document.querySelectorAll('table.filter tbody tr')].filter(r => !r.hidden).map(r => r.cells[0].innerText)"


def test_the_table_of_operators(browser: Any, site: str) -> None:
    """Words choose rows, with their families; a button chooses columns; the first column stays in a narrow window."""
    tab = browser.new_page(viewport={"width": 390, "height": 900})
    tab.goto(f"{site}/{VERSION}/operators.html")
    assert tab.evaluate(_ROWS)[:2] == ["Movement", "crop()"]
    tab.get_by_label("Filter rows").fill("edges cv2.canny")
    assert tab.evaluate(_ROWS) == ["Edges", "canny()"]
    tab.get_by_role("button", name="Where it runs").click()
    heads = [head for head in tab.locator("table.filter th").all() if head.is_visible()]
    assert [head.inner_text() for head in heads][:2] == ["operator", "CUDA"]
    before = [head.bounding_box()["x"] for head in heads[:2]]
    tab.evaluate("document.querySelector('table.filter').parentElement.scrollLeft = 100")
    first, second = (head.bounding_box()["x"] for head in heads[:2])
    assert abs(first - before[0]) <= 2
    assert abs(second - before[1] + 100) <= 1
    tab.close()


def test_the_menu_of_versions(browser: Any, site: str) -> None:
    """The menu names this version and leads to the same page of another one. Without other versions it is not shown."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    names = {e["version"]: e["name"] for e in json.loads(tab.goto(f"{site}/versions.json").text())}
    tab.goto(site)
    tab.wait_for_url(f"{site}/{next(iter(names))}/")
    tab.goto(f"{site}/{VERSION}/api/imgops.crop.html")
    button = tab.locator(".version-switcher__button").first
    button.get_by_text(names[VERSION], exact=True).wait_for()
    button.click()
    tab.locator(".version-switcher__menu a:visible", has_text=names[OTHER]).click()
    tab.wait_for_url(f"{site}/{OTHER}/api/imgops.crop.html")
    tab.goto((HTML / "index.html").as_uri())
    tab.wait_for_load_state("load")
    assert not tab.locator(".version-switcher__button:visible").count()
    tab.close()


def test_publish(tmp_path: Path) -> None:
    for name in ("0.9", "0.10", "dev", "0.9"):
        publish.publish(HTML, tmp_path, "https://example.org/imgops", name)
    entries = json.loads((tmp_path / "versions.json").read_text())
    assert [e["name"] for e in entries] == ["0.10 (stable)", "0.9", "dev"]
    assert entries[1]["url"] == "https://example.org/imgops/0.9/"
    assert "url=0.10/" in (tmp_path / "index.html").read_text()
    for wrong in ("0.1.2", "../x", "main"):
        with pytest.raises(ValueError, match=r"^publish: version must be "):
            publish.publish(HTML, tmp_path, "https://example.org", wrong)


def code_of(notebook: Path) -> str:
    """Return the cells of code without the commands of IPython, of which the first installs imgops."""
    cells = json.loads(notebook.read_text())["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    assert code[0].startswith("%pip install --quiet imgops ")
    lines = "\n\n".join(code).splitlines()
    return "\n".join("" if line.startswith("%") else line for line in lines)


def statements(code: str) -> list[str]:
    body = ast.parse(code).body
    texts = [s for s in body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)]
    return [ast.dump(s) for s in body if s not in texts]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_is_what_the_build_ran(notebook: Path) -> None:
    """Its statements are those of the file in the gallery, whose page shows what it printed in the build."""
    code = code_of(notebook)
    ((name, source),) = [item for item in TUTORIALS.items() if item[1].stem == notebook.stem]
    assert statements(code) == statements(source.read_text())
    assert "import imgops" in code or "from imgops" in code
    assert "sphx-glr-script-out" in (HTML / "gallery" / f"{name}.html").read_text()


@pytest.mark.skipif(
    "IMGOPS_NOTEBOOKS" not in os.environ, reason="the build ran their code; docs.yml runs them again"
)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs_by_itself(notebook: Path, tmp_path: Path) -> None:
    """Run a notebook in a process of its own, where no other notebook has imported anything."""
    script = tmp_path / "notebook.py"
    script.write_text(code_of(notebook))
    environment = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": str(DOCS.parent)}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
