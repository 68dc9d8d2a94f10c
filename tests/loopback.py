"""A SuperLink and SuperNodes on this machine, with TLS and registered keys, for tests; all end with the test."""

import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

PROGRAMS = Path(sys.executable).parent


class Loopback:
    """A SuperLink; `start` adds sites, `run` runs an app on them, `stop` ends everything."""

    def __init__(self, folder):
        self.folder, self.started = folder, []
        self.nodes = {}
        self.home = folder / "home"
        self.home.mkdir()
        self.port = free_port()
        self.ca, certificate, key = certificates(folder)
        (self.home / "config.toml").write_text(
            f'[superlink.lab]\naddress = "127.0.0.1:{self.port}"\nroot-certificates = "{self.ca}"\n'
        )
        self.environment = {
            **os.environ,
            "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
            "FLWR_HOME": str(self.home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "OMP_NUM_THREADS": "1",
        }
        files = [f"--ssl-ca-certfile={self.ca}", f"--ssl-certfile={certificate}", f"--ssl-keyfile={key}"]
        rest = ["--enable-supernode-auth", "--disable-runtime-dependency-installation", f"--port={self.port}"]
        self._popen("superlink", "flower-superlink", *files, *rest)
        answers_at(self.port)

    def start(self, site, *, registered=True, ca=None, called=None):
        """A SuperNode with a key for a site, which it calls itself unless it is `called` otherwise."""
        private, public = key_pair(self.folder, site)
        if registered:
            told = self._flwr("supernode", "register", str(public), "lab", "--format", "json")
            self.nodes[site] = int(json.loads(told)["node-id"])
        return self._popen(
            site,
            "flower-supernode",
            f"--superlink=127.0.0.1:{self.port}",
            f"--port={free_port()}",
            f"--root-certificates={ca or self.ca}",
            f"--auth-supernode-private-key={private}",
            f"--node-config=site='{called or site}'",
            "--max-retries=2",
        )

    def run(self, app, **config):
        """Submit an app's run, and give the process that streams its log."""
        words = " ".join(f"{k}='{v}'" if isinstance(v, (str, Path)) else f"{k}={v}" for k, v in config.items())
        return subprocess.Popen(
            [f"{PROGRAMS}/flwr", "run", str(app), "lab", "--stream", "--run-config", words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def log(self, name):
        """What a program has written."""
        return (self.folder / f"{name}.log").read_text()

    def kill(self, process):
        """End a program and all that it has started, at once."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self):
        """End everything; programs of ours are known by their home."""
        for process in self.started:
            if process.poll() is None:
                self.kill(process)
        for pid in self.left():
            os.kill(pid, signal.SIGKILL)

    def left(self):
        """Programs that still run."""
        mark = f"FLWR_HOME={self.home}\0".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if int(entry.name) != os.getpid() and mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:  # it has ended, or is somebody else's
                continue
        return found

    def _popen(self, name, program, *arguments):
        with (self.folder / f"{name}.log").open("w") as log:
            command = [f"{PROGRAMS}/{program}", *arguments]
            process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, start_new_session=True)
        self.started.append(process)
        return process

    def _flwr(self, *arguments):
        command = [f"{PROGRAMS}/flwr", *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def free_port():
    """A port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def answers_at(port, seconds=60):
    """Wait until somebody listens at a port."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError(f"nobody listens at {port}")


def key_pair(folder, site):
    """The files of a site's keys, as ssh-keygen writes them."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP384R1())
    form, ssh = serialization.Encoding, serialization.PrivateFormat.OpenSSH
    private, public = folder / f"{site}.key", folder / f"{site}.pub"
    private.write_bytes(key.private_bytes(form.PEM, ssh, serialization.NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(form.OpenSSH, serialization.PublicFormat.OpenSSH))
    return private, public


def certificates(folder):
    """The files of a new authority's certificate, of one it has signed for this machine, and of the latter's key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    pem, now = serialization.Encoding.PEM, datetime.now(UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer, host = (x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, n)]) for n in ("authority", "localhost"))

    def certificate(subject, public_key, *extensions):
        unsigned = (
            x509.CertificateBuilder(issuer, subject, public_key, x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
        )
        for extension, critical in extensions:
            unsigned = unsigned.add_extension(extension, critical)
        return unsigned.sign(ca_key, hashes.SHA256()).public_bytes(pem)

    signs = x509.KeyUsage(False, False, False, False, False, True, True, False, False)  # certificates, revocations
    authority = certificate(
        issuer,
        ca_key.public_key(),
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (signs, True),
        (x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), False),
    )
    server = certificate(
        host,
        key.public_key(),
        (x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), False),
    )
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files = {folder / "ca.pem": authority, folder / "server.pem": server, folder / "server.key": private}
    for file, content in files.items():
        file.write_bytes(content)
    return tuple(files)
