"""Look for known vulnerabilities: in our code (bandit), in what it stands on (pip-audit), and make the list of that.

python .ci/audit.py                 # fails for what is found; says so where the vulnerability service is out of reach
python .ci/audit.py --sbom          # prints a CycloneDX list of modelweld and all it needs, as installed here
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata

UNREACHABLE = ("ConnectionError", "Max retries exceeded", "NameResolutionError", "could not be audited")
"""How pip-audit says that nobody answered, or that an index without advisories did."""


def needed(name: str = "modelweld") -> dict[str, metadata.Distribution]:
    """Distributions that a distribution needs, without extras, itself among them."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [name]
    while waiting:
        key = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if key in found:
            continue
        try:
            found[key] = metadata.distribution(key)
        except metadata.PackageNotFoundError:
            continue  # for another platform or version of Python
        requires = [line for line in found[key].requires or () if "extra ==" not in line]
        waiting += [re.match(r"[\w.-]+", line)[0] for line in requires]  # type: ignore[index]
    return dict(sorted(found.items()))


def sbom() -> dict[str, object]:
    """CycloneDX 1.5: name, version, licence and package URL of each; no dates, so that it is stable."""
    everything = needed()
    components = [
        {
            "type": "library",
            "name": key,
            "version": one.version,
            "bom-ref": f"pkg:pypi/{key}@{one.version}",
            "purl": f"pkg:pypi/{key}@{one.version}",
            "licenses": [{"license": {"name": one.metadata.get("License-Expression") or _licence(one)}}],
        }
        for key, one in everything.items()
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": next(c for c in components if c["name"] == "modelweld")},
        "components": [c for c in components if c["name"] != "modelweld"],
    }


def _licence(one: metadata.Distribution) -> str:
    """The first line of a licence, or its classifier, or that it is not said."""
    classifiers = [c.split("::")[-1].strip() for c in one.metadata.get_all("Classifier") or () if "License ::" in c]
    stated = (one.metadata.get("License") or "").strip().split("\n")[0]
    return (classifiers or [stated])[0] or "not stated"


def audit() -> int:
    """Exit code: not zero where something was found."""
    code = subprocess.run([sys.executable, "-m", "bandit", "--quiet", "-c", "pyproject.toml", "-r", "src"]).returncode
    print("bandit: nothing found" if code == 0 else "bandit: see above", flush=True)
    names = "\n".join(f"{key}=={one.version}" for key, one in needed().items() if key != "modelweld")
    command = ["-m", "pip_audit", "--progress-spinner", "off", "--timeout", "10", "--no-deps", "--disable-pip"]
    run = subprocess.run(
        [sys.executable, *command, "-r", "/dev/stdin"], input=names, capture_output=True, text=True, check=False
    )
    return code or judged(run.stdout + run.stderr, run.returncode)


def judged(said: str, code: int) -> int:
    """Exit code by what pip-audit said: what it found counts, also where it could not look up everything."""
    if not re.search(r"Found \d+ known", said) and any(words in said for words in UNREACHABLE):
        print("pip-audit: NOT LOOKED UP: the vulnerability service cannot be reached from here. Run this where it can.")
        return 0
    print(said, end="")
    return code


if __name__ == "__main__":
    if "--sbom" in sys.argv[1:]:
        print(json.dumps(sbom(), indent=1))
    else:
        sys.exit(audit())
