"""The data directory: making it, clearing what a crash left in it, and where its server listens."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from grandbo.errors import EmbeddedServerError
from grandbo.storage.embedded.files import FileLock, sync_folder, write_private
from grandbo.storage.embedded.install import Account, can_enter, run_as
from grandbo.storage.embedded.supervisor import DATA, postmaster_pid, serves_here

SUPERUSER = "postgres"
PASSWORD_FILE = "superuser.pw"  # noqa: S105  # a file's name
ENDPOINT_FILE = "server.json"

DEFAULT_SETTINGS: Mapping[str, str] = {
    # A tenant of five thousand entries has 40 MB of vectors; what a rebuild writes anew stands beside what it replaces.
    "shared_buffers": "256MB",
    "max_connections": "100",
    "jit": "off",
    # Parallel workers talk through /dev/shm, which is 64 MB in many containers.
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    # An import is answered from at once; what a vacuum has not seen yet is read twice.
    "autovacuum_naptime": "15s",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Keeps stored texts out of postgres.log, where erasing them would not reach.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
FAST_AND_UNSAFE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
# Clients find the server and are kept away from it by these, so they are not open to settings.
RESERVED = {"data_directory", "listen_addresses", "port", "unix_socket_directories", "unix_socket_permissions"}

# A socket's path has 107 bytes on Linux and 103 on macOS, and `/.s.PGSQL.65535` takes 15 of them.
LONGEST_SOCKET_FOLDER = 80
# libpq takes a comma in `host` for a list.
PLAIN_PATH = re.compile(r"[\w./+ -]+")


@dataclass(frozen=True)
class Endpoint:
    """Where the server listens; kept in server.json for the processes that attach."""

    host: str
    port: int
    user: str = SUPERUSER

    def save(self, home: Path) -> None:
        """Publish it."""
        write_private(home / ENDPOINT_FILE, json.dumps(asdict(self)) + "\n")

    @classmethod
    def load(cls, home: Path) -> Endpoint | None:
        """Read what the starter published; None if there is nothing that can be read."""
        try:
            found = json.loads((home / ENDPOINT_FILE).read_text(encoding="utf-8"))
            return cls(str(found["host"]), int(found["port"]), str(found["user"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None


def prepare_home(home: Path, account: Account | None) -> None:
    """Make the home and what is missing above it; the folders that are there already keep their modes."""
    mode = 0o755 if account else 0o700
    for folder in reversed([home, *home.parents]):
        if folder.exists():
            continue
        try:
            folder.mkdir(mode=mode)
        except FileExistsError:
            continue  # another process was faster
        folder.chmod(mode)  # past the umask, which might keep the server's account out


def check_is_ours(home: Path) -> None:
    """Refuse a folder that holds something else: a mistyped home must not be filled with locks and a database."""
    if any(home.iterdir()) and not any((home / name).exists() for name in ("owner.lock", "users.lock", DATA)):
        raise EmbeddedServerError(
            f"{home} is not empty and is no home of Grandbo; set GRANDBO_HOME to a new or an empty folder."
        )


def check_reachable(home: Path, account: Account | None) -> None:
    """Refuse a home that the server's account cannot enter."""
    if account and not can_enter(account, home):
        raise EmbeddedServerError(
            f"{home} cannot be reached by the account {account.name!r}, under which the server runs because PostgreSQL "
            "refuses to run as root. Set GRANDBO_HOME to a folder such as one under /var/lib, or run Grandbo as an "
            "ordinary user."
        )


def read_password(home: Path) -> str:
    """Read the superuser's password."""
    try:
        return (home / PASSWORD_FILE).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise EmbeddedServerError(
            f"{home / PASSWORD_FILE} cannot be read ({error.strerror}), and the database in {home / DATA} does not "
            "open without it. Restore it from a backup of the same home."
        ) from None


def initialise(home: Path, bin_folder: Path, account: Account | None, owner: FileLock, durable: bool) -> None:
    """Make the cluster if there is none. It gets its name when complete: a killed initdb leaves no half of one."""
    data = home / DATA
    if (data / "PG_VERSION").exists():
        return
    if data.exists() and any(data.iterdir()):
        raise EmbeddedServerError(
            f"{data} is not empty and is not a PostgreSQL data directory. Move it away, or set GRANDBO_HOME to another "
            "folder."
        )
    new = home / "pg.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700)
    if account:
        os.chown(new, account.uid, account.gid)
    password = secrets.token_urlsafe(24)
    _run_initdb(new, bin_folder, account, owner, password, durable)
    write_private(home / PASSWORD_FILE, password + "\n")
    new.rename(data)
    sync_folder(home)


def _run_initdb(
    new: Path, bin_folder: Path, account: Account | None, owner: FileLock, password: str, durable: bool
) -> None:
    reader, writer = os.pipe()
    try:
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            pipe.write(password + "\n")
        if account:
            os.fchown(reader, account.uid, account.gid)  # else opening /dev/fd/N is refused after the change of account
        command: list[str | Path] = [bin_folder / "initdb", "-D", new, "-U", SUPERUSER, "-A", "scram-sha-256"]
        command += [f"--pwfile=/dev/fd/{reader}", "-E", "UTF8", "--data-checksums"]
        # The same order of texts on every machine and with every wheel.
        command += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        command += [] if durable else ["--no-sync"]
        # With owner.lock in hand an initdb whose starter was killed keeps others out until it has ended.
        result = run_as(account, command, descriptors=(reader, owner.fileno()), timeout=600)
    except subprocess.TimeoutExpired:
        raise EmbeddedServerError(f"initdb did not finish within ten minutes; is the disk of {new} working?") from None
    finally:
        os.close(reader)
    if result.returncode != 0:
        raise EmbeddedServerError(f"initdb failed in {new}: {result.stderr.strip()[-2000:]}")


def socket_folder(home: Path, account: Account | None) -> Path:
    """Choose where the socket lies: with the data, or in a private temporary folder if that path would not do."""
    data = home / DATA
    if PLAIN_PATH.fullmatch(str(data)) and len(os.fsencode(data)) <= LONGEST_SOCKET_FOLDER:
        return data
    name = f"grandbo-{os.getuid()}-{hashlib.sha256(os.fsencode(data.resolve())).hexdigest()[:16]}"
    for parent in dict.fromkeys((Path(tempfile.gettempdir()), Path("/tmp"))):  # noqa: S108  # checked right below
        folder = parent / name
        fits = PLAIN_PATH.fullmatch(str(folder)) and len(os.fsencode(folder)) <= LONGEST_SOCKET_FOLDER
        if fits and (account is None or can_enter(account, parent)):
            return _private_folder(folder, account)
    raise EmbeddedServerError(
        f"No temporary folder will do for the server's socket; set GRANDBO_HOME to a shorter path than {home}."
    )


def _private_folder(folder: Path, account: Account | None) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    ours = found.st_uid in ({os.getuid(), account.uid} if account else {os.getuid()})
    # Anyone may have made a folder of that name in the temporary folder, and would then own our socket.
    if not (ours and stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) & 0o077 == 0):
        raise EmbeddedServerError(
            f"{folder} is not a private folder of the server's account. Remove it, or set GRANDBO_HOME shorter."
        )
    if account:
        os.chown(folder, account.uid, account.gid)
    return folder


def drop_stale_files(data: Path, sockets: Path) -> None:
    """
    Remove what a killed server left; PostgreSQL does not start if the number in it is a live process by now.

    Only the holder of owner.lock may call this: then no server of ours lives. That process is never signalled.
    """
    pid = postmaster_pid(data)
    if pid is not None and serves_here(pid, data):
        raise EmbeddedServerError(
            f"A PostgreSQL server that Grandbo did not start (process {pid}) uses {data}. Stop it, or set "
            "GRANDBO_DATABASE_URL to connect to it."
        )
    for path in (data / "postmaster.pid", *sockets.glob(".s.PGSQL.*")):
        path.unlink(missing_ok=True)


def server_command(
    bin_folder: Path, data: Path, sockets: Path, tcp_port: int | None, settings: Mapping[str, str]
) -> list[str]:
    """Give the command line of the server. There is no shell in it, so a path may hold anything."""
    quoted = str(sockets).replace('"', '""')
    forced = {
        "listen_addresses": "127.0.0.1" if tcp_port else "",
        "port": str(tcp_port or 5432),
        "unix_socket_permissions": "0700",
        "unix_socket_directories": f'"{quoted}"',
    }
    command = [str(bin_folder / "postgres"), "-D", str(data)]
    for name, value in {**settings, **forced}.items():
        command += ["-c", f"{name}={value}"]
    return command
