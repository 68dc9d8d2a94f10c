"""Start a SuperLink and four hospitals on this machine, until Ctrl-C. To try things out: nothing is encrypted."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from modelweld.demo.hospitals import HOSPITALS

HERE = Path(__file__).resolve().parent
PORT = 8400
"""Of the SuperLink; the hospitals take those after it."""

CONFIG = f"""\
[superlink]
default = "here"

[superlink.here]
address = "127.0.0.1:{PORT}"
insecure = true
"""


def main() -> None:
    """Start all, wait, end all."""
    home = HERE / ".flwr"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(CONFIG)
    programs = Path(sys.executable).parent
    link = [f"{programs}/flower-superlink", "--insecure", "--disable-runtime-dependency-installation", f"--port={PORT}"]
    node = [f"{programs}/flower-supernode", "--insecure", f"--superlink=127.0.0.1:{PORT}"]
    nodes = [
        [*node, f"--port={PORT + i}", "--node-config", f"hospital='{hospital}'"]
        for i, hospital in enumerate(HOSPITALS, start=1)
    ]
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"  # they start programs of their own
    environment = {**os.environ, "PATH": path, "FLWR_HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0"}
    started = [
        subprocess.Popen(command, env=environment, cwd=HERE, start_new_session=True) for command in (link, *nodes)
    ]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        started[0].wait()
    except KeyboardInterrupt:
        pass
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGTERM)  # and all that it has started
        for process in started:
            process.wait()


if __name__ == "__main__":
    main()
