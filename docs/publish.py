"""Add the built pages to a site that has the pages of other versions: ``python docs/publish.py SITE URL``.

SITE is the folder that is served at URL. It has a folder for each version, an ``index.html`` that redirects to the newest
release, and a ``versions.json``, which the menu of versions on every page reads.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
from pathlib import Path

HTML = Path(__file__).parent / "_build" / "html"
DEVELOPMENT = "dev"


def version_of(release: str) -> str:
    """Return the folder of a release: its first two numbers, because a change of the third number only fixes errors."""
    return os.environ.get("IMGOPS_DOCS_VERSION") or ".".join(release.split(".")[:2])


def versions(site: Path) -> list[str]:
    """Return the versions on the site: the releases, newest first, and then the development version."""
    found = [p.name for p in site.iterdir() if (p / "index.html").exists()]
    numbers = [tuple(map(int, name.split("."))) for name in found if re.fullmatch(r"\d+\.\d+", name)]
    releases = [".".join(map(str, n)) for n in sorted(numbers, reverse=True)]
    return releases + [DEVELOPMENT] * (DEVELOPMENT in found)


def write_menu(site: Path, url: str) -> None:
    """Write ``versions.json`` and ``index.html``."""
    found = versions(site)
    entries = [
        {
            "name": f"{name} (stable)" if i == 0 and name != DEVELOPMENT else name,
            "version": name,
            "url": f"{url.rstrip('/')}/{name}/",
            "preferred": i == 0,
        }
        for i, name in enumerate(found)
    ]
    (site / "versions.json").write_text(json.dumps(entries, indent=1) + "\n")
    (site / "index.html").write_text(
        f'<!doctype html><title>imgops</title><meta http-equiv="refresh" content="0; url={found[0]}/">'
        f'<a href="{found[0]}/">imgops {found[0]}</a>\n'
    )
    (site / ".nojekyll").touch()  # so that GitHub Pages also serves folders that begin with _


def publish(html: Path, site: Path, url: str, version: str) -> None:
    if not re.fullmatch(rf"\d+\.\d+|{DEVELOPMENT}", version):
        raise ValueError(f"publish: version must be like 0.1, or {DEVELOPMENT}, got {version!r}")
    if not (html / "index.html").exists():
        raise ValueError(f"publish: html must be a folder of built pages, got {html}")
    site.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(site / version, ignore_errors=True)
    shutil.copytree(html, site / version)
    write_menu(site, url)


def main() -> None:
    import imgops

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("site", type=Path)
    parser.add_argument("url")
    o = parser.parse_args()
    version = version_of(imgops.__version__)
    publish(HTML, o.site, o.url, version)
    print(f"{version} is in {o.site}, beside {', '.join(versions(o.site))}")


if __name__ == "__main__":
    main()
