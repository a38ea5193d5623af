"""PgBouncer in front of a cluster of the tests."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.real.cluster import Cluster
from tests.real.ports import free_port

_CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={upstream} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = any
pool_mode = {mode}
default_pool_size = 8
max_client_conn = 500
logfile = {folder}/log
pidfile = {folder}/pid
unix_socket_dir =
"""


@contextmanager
def pgbouncer(cluster: Cluster, mode: str = "transaction") -> Iterator[Callable[[], str]]:
    """A pooler with few connections; what it yields makes a new database and gives its address through the pooler."""
    folder, port = Path(tempfile.mkdtemp(prefix="fencepost-pool-")), free_port()
    file = folder / "pgbouncer.ini"
    file.write_text(_CONFIGURATION.format(upstream=cluster.port, port=port, mode=mode, folder=folder), encoding="ascii")
    owner = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
    if owner is not None:
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        os.chown(file, owner.pw_uid, owner.pw_gid)
    as_owner = {} if owner is None else {"user": owner.pw_uid, "group": owner.pw_gid}
    process = subprocess.Popen(
        ["/usr/sbin/pgbouncer" if Path("/usr/sbin/pgbouncer").exists() else "pgbouncer", "-q", str(file)],
        **as_owner,  # type: ignore[call-overload]
    )
    try:
        _await_port(port)
        yield lambda: cluster.database().replace(f":{cluster.port}/", f":{port}/")
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(folder, ignore_errors=True)


def _await_port(port: int) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, "the pooler did not start"
            time.sleep(0.05)
        else:
            return
