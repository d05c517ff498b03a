#!/usr/bin/env python3
"""
Copy what the pages are made with out of npm packages: named files, their licences, and a manifest of SHA-256.

Needs npm, and only when a version in src/grandbo/web/package.json changes. `scripts/vendor.py --check` compares what is
committed with the registry's packages and changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WEB = ROOT / "src" / "grandbo" / "web"
SHIPPED = WEB / "static" / "vendor"
TESTS = ROOT / "tests" / "vendor"

ICONS = [
    "activity",
    "archive",
    "ban",
    "bell",
    "biohazard",
    "book-open",
    "bot",
    "calendar",
    "chart-line",
    "circle-alert",
    "circle-check",
    "circle-slash",
    "circle-x",
    "clipboard-check",
    "clock",
    "eye",
    "file-text",
    "flag",
    "history",
    "hourglass",
    "inbox",
    "key",
    "keyboard",
    "layers",
    "link",
    "lock",
    "log-out",
    "repeat",
    "replace",
    "rewind",
    "rotate-ccw",
    "scale",
    "search",
    "settings",
    "shield-alert",
    "shield-check",
    "shield-x",
    "sun-moon",
    "triangle-alert",
    "user",
    "users",
    "webhook",
]
# Package, file in it, file here.
FILES = {
    SHIPPED: [
        ("@picocss/pico", "css/pico.min.css", "pico/pico.min.css"),
        ("@picocss/pico", "LICENSE.md", "pico/LICENSE"),
        ("htmx.org", "dist/htmx.min.js", "htmx/htmx.min.js"),
        ("htmx.org", "LICENSE", "htmx/LICENSE"),
        ("uplot", "dist/uPlot.iife.min.js", "uplot/uPlot.iife.min.js"),
        ("uplot", "dist/uPlot.min.css", "uplot/uPlot.min.css"),
        ("uplot", "LICENSE", "uplot/LICENSE"),
        ("lucide-static", "LICENSE", "lucide/LICENSE"),
        *(("lucide-static", f"icons/{name}.svg", f"lucide/{name}.svg") for name in ICONS),
    ],
    TESTS: [
        ("axe-core", "axe.min.js", "axe-core/axe.min.js"),
        ("axe-core", "LICENSE", "axe-core/LICENSE"),
        ("axe-core", "LICENSE-3RD-PARTY.txt", "axe-core/LICENSE-3RD-PARTY.txt"),
    ],
}


def main() -> int:
    """Give 0, or with --check 1 where something differs."""
    checking = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not checking:
        print("usage: scripts/vendor.py [--check]", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        packages = _install(Path(folder))
        wanted = {place: _contents(packages, files) for place, files in FILES.items()}
    if not checking:
        for place, contents in wanted.items():
            _write(place, contents)
        return 0
    wrong = [f"{place / name}" for place, contents in wanted.items() for name in _differing(place, contents)]
    for path in wrong:
        print(f"differs: {path}", file=sys.stderr)
    return 1 if wrong else 0


def _install(folder: Path) -> Path:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(WEB / name, folder / name)
    subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)
    return folder / "node_modules"


def _contents(packages: Path, files: list[tuple[str, str, str]]) -> dict[str, bytes]:
    contents = {here: (packages / package / there).read_bytes() for package, there, here in files}
    manifest = [
        {
            "file": here,
            "package": package,
            "version": (described := json.loads((packages / package / "package.json").read_text()))["version"],
            "license": described["license"],
            "sha256": hashlib.sha256(contents[here]).hexdigest(),
        }
        for package, _, here in files
    ]
    return contents | {"manifest.json": (json.dumps(manifest, indent=1) + "\n").encode()}


def _write(place: Path, contents: dict[str, bytes]) -> None:
    shutil.rmtree(place, ignore_errors=True)
    for name, content in contents.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)


def _differing(place: Path, contents: dict[str, bytes]) -> list[str]:
    here = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    changed = [name for name, content in contents.items() if name in here and (place / name).read_bytes() != content]
    return sorted({*changed, *(here ^ contents.keys())})


if __name__ == "__main__":
    sys.exit(main())
