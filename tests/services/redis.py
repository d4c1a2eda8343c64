"""Real Redis servers for tests, from the system's package: plain, with a password, encrypted, or a cluster."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from .missing import free_port, missing

PATIENCE = 30.0
NODES = 3
SLOTS = 16384


class Redis:
    """One server on a port of 127.0.0.1; what it has is in memory, and lost with it."""

    def __init__(self, folder: Path, *options: str, tls: Path | None = None, password: str = "") -> None:
        self.port = free_port()
        self.password = password
        self.options: dict[str, Any] = {"password": password or None}
        listening = ["--port", str(self.port)]
        if tls:
            listening = ["--port", "0", "--tls-port", str(self.port), "--tls-auth-clients", "no"]
            files = {"cert-file": "server.crt", "key-file": "server.key", "ca-cert-file": "ca.crt"}
            listening += [word for option, name in files.items() for word in (f"--tls-{option}", str(tls / name))]
            self.options |= {"ssl": True, "ssl_ca_certs": str(tls / "ca.crt")}
        self._folder = folder
        secret = ["--requirepass", password] if password else []
        self._command = ["redis-server", "--bind", "127.0.0.1", *listening, *secret, "--save", "", *options]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        """Without the password."""
        return f"redis{'s' * ('ssl' in self.options)}://127.0.0.1:{self.port}"

    def client(self) -> Any:
        """A client, to look and to spoil."""
        import redis

        return redis.Redis(host="127.0.0.1", port=self.port, **self.options)

    def start(self) -> None:
        """Start it (again), and wait until it answers."""
        if self._process:
            return
        with (self._folder / f"log-{self.port}").open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C at the tests is not one at the server
            )
        end = time.monotonic() + PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"Redis does not start: {(self._folder / f'log-{self.port}').read_text()[-2000:]}")
            time.sleep(0.02)

    def kill(self) -> None:
        """kill -9."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        import redis

        with suppress(redis.ConnectionError), self.client() as client:
            return bool(client.ping())
        return False


@contextmanager
def folder() -> Iterator[Path]:
    """Where servers may work. The test is skipped where they cannot be had (in CI it fails)."""
    if shutil.which("redis-server") is None:
        missing("no redis-server here: apt-get install redis-server")
    if importlib.util.find_spec("redis") is None:
        missing("no redis for Python here: pip install redis")
    with tempfile.TemporaryDirectory(prefix="meaning-redis-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def running(*options: str, tls: Path | None = None, password: str = "") -> Iterator[Redis]:
    """A new server; `tls` is a folder that `certificates` filled."""
    with folder() as place:
        server = Redis(place, *options, tls=tls, password=password)
        try:
            yield server
        finally:
            server.kill()


@contextmanager
def cluster() -> Iterator[Sequence[Redis]]:
    """The nodes of a new cluster, all of them masters."""
    with folder() as place, ExitStack() as nodes:
        servers = []
        for number in range(NODES):
            here = place / str(number)
            here.mkdir()
            servers.append(Redis(here, "--cluster-enabled", "yes", "--cluster-port", str(free_port())))
            nodes.callback(servers[-1].kill)
        _join(servers)
        yield servers


def _join(servers: Sequence[Redis]) -> None:
    clients = [server.client() for server in servers]
    edges = [SLOTS * number // len(servers) for number in range(len(servers) + 1)]
    for client, first, after in zip(clients, edges, edges[1:], strict=False):
        client.execute_command("CLUSTER ADDSLOTSRANGE", first, after - 1)
        bus = clients[0].config_get("cluster-port")["cluster-port"]
        client.execute_command("CLUSTER MEET", "127.0.0.1", servers[0].port, bus)
    end = time.monotonic() + PATIENCE
    while not all(
        info["cluster_state"] == "ok" and info["cluster_known_nodes"] == str(len(servers))
        for info in (client.execute_command("CLUSTER INFO") for client in clients)
    ):
        if time.monotonic() > end:
            raise TimeoutError("the cluster does not come together")
        time.sleep(0.05)


def certificates(folder: Path) -> Path:
    """A certificate authority and a server's certificate for 127.0.0.1, made in the folder."""
    if shutil.which("openssl") is None:
        missing("no openssl here: apt-get install openssl")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    new = "req -newkey rsa:2048 -nodes -subj /CN=tests"
    for command in (
        f"{new} -x509 -days 2 -keyout ca.key -out ca.crt",
        f"{new} -keyout server.key -out server.csr",
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.crt",
    ):
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    """One server for all tests."""
    with running() as server:
        yield server
