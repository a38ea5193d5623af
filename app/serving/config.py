"""gunicorn's settings, each with its reason. Ours come from app.settings; nothing else is configurable."""

import os
import resource
import sys
from pathlib import Path
from typing import Any

from app.settings import Settings

# Connections beside the waits and sockets: requests under way and idle keep-alives.
_HEADROOM = 1024
_SPARE_DESCRIPTORS = 256


def gunicorn_settings(settings: Settings) -> dict[str, Any]:
    """Name to value, for gunicorn's Config.set."""
    return {
        "bind": settings.listens_on,
        "workers": settings.workers,
        "worker_class": "app.serving.worker.Worker",
        "worker_connections": settings.limit_waiters + _HEADROOM,
        "backlog": 2048,
        # The loop beats every second; a worker that is silent for this long is stuck and is replaced.
        "timeout": 30,
        "graceful_timeout": 8,
        "keepalive": max(1, int(settings.keepalive_seconds)),  # 0 would take away every deadline on heads
        "worker_tmp_dir": _heartbeat_folder(),
        "preload_app": False,  # the arbiter must not hold the database, nor import what gevent has to patch
        "control_socket_disable": True,
        "umask": 0o077,
        "limit_request_line": 4094,
        "limit_request_fields": 64,
        "limit_request_field_size": 8190,
        # Forwarding headers are judged in one place, by FENCEPOST_TRUSTED_PROXIES; gunicorn trusts nobody.
        "forwarded_allow_ips": "",
        "secure_scheme_headers": {},
        "proxy_protocol": "off",
        "accesslog": None,  # its lines hold paths and queries; ours are in app/web/log.py
        "errorlog": "-",
        "loglevel": "warning",  # until our own form and level are on (log.py): at debug it would print its settings
        "proc_name": "fencepost-server",
    }


def raise_descriptor_limit(settings: Settings) -> None:
    """Ask for as many descriptors as there may be connections; say so where the system does not give them."""
    wanted = settings.limit_waiters + _HEADROOM + _SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
    if granted < wanted:
        sys.stderr.write(
            f"At most {granted} descriptors are allowed here; FENCEPOST_LIMIT_WAITERS={settings.limit_waiters} "
            f"needs {wanted}. Raise the limit (ulimit -n, LimitNOFILE=) or lower the setting.\n"
        )


def _heartbeat_folder() -> str | None:
    """A folder in memory for the heartbeat file, so that a stuck disk does not look like a stuck worker."""
    folder = Path("/dev/shm")  # noqa: S108 - gunicorn makes the file with mkstemp and unlinks it
    return str(folder) if folder.is_dir() and os.access(folder, os.W_OK) else None
