"""Models, fusions and verdicts as plain data and as text."""

from __future__ import annotations

import numpy as np

from modelweld.cli.messages import PRINTED, spell_options
from modelweld.core.values import arrays_of
from modelweld.fusion import Fusion
from modelweld.inputs.clock import spell
from modelweld.inputs.local_model import LocalModel
from modelweld.report.text import Content, several
from modelweld.report.verdicts import CAVEAT, judge_matches, list_gains, state_confidence
from modelweld.results.diagnostics.sites import FALSE_ALARMS, TOO_FEW
from modelweld.revision.slim_fusion import SlimFusion


def describe(thing: LocalModel | Fusion | SlimFusion) -> Content:
    """What is in a model or a fusion."""
    if isinstance(thing, SlimFusion):
        return _slim(thing)
    return _fusion(thing) if isinstance(thing, Fusion) else _model(thing)


def _model(model: LocalModel) -> Content:
    return {
        "what": "site",
        "site": model.site,
        "kind": model.kind,
        "sets": model.sizes,
        "arrays": {
            name: {
                "shape": list(np.shape(values)),
                "axes": [c or a for c, a in zip(model.along[name], model.axes[name], strict=True)],
                "auxiliary": name in model.auxiliary,
                "with": [word for word in ("variance", "weight") if name in getattr(model, word)],
            }
            for name, values in model.arrays.items()
        },
        "coordinates": {name: list(names) for name, names in model.coordinates.items()},
        "facts": dict(model.facts),
        "time": None if model.time is None else spell(model.time),
    }


def _fusion(fusion: Fusion) -> Content:
    return {
        "what": "fusion",
        "sites": fusion.sites,
        "objective": fusion.objective,
        "settings": fusion.diagnosis.settings,
        "converged": fusion.diagnosis.converged,
        "sets": {
            name: {
                "K": m.K,
                "shared": m.shared,
                "parameters": len(m.stacked_labels),
                "excluded": len(m.excluded),
                "sites at each atom": m.counts[: m.K].tolist(),
                "fragments": m.delta,
                "reasons": list(m.reasons),
            }
            for name, m in fusion.matchings.items()
        },
    }


def _slim(slim: SlimFusion) -> Content:
    (set_name,) = slim.pattern.sizes
    return {
        "what": "slim fusion",
        "sites": len(slim.sizes),
        "objective": slim.objective,
        "set": set_name,
        "K": slim.K,
        "shared": slim.shared,
        "parameters": int(slim.sizes.sum()),
        "sites at each atom": slim.counts.tolist(),
        "arrays": [name for key in slim.families for name in arrays_of(key)],
    }


def spell_content(content: Content) -> str:
    """What is in a model or a fusion, as text."""
    if content["what"] == "slim fusion":
        return (
            f"slim fusion of {several(content['sites'], 'site')}, without their values: "
            f"{several(content['K'], content['set'])} ({content['shared']:,} shared) from {content['parameters']:,}\n"
            f"arrays: {_some(content['arrays'])}\nobjective {content['objective']:.3f}"
        )
    if content["what"] == "fusion":
        lines = [f"fusion of {several(len(content['sites']), 'site')}: {_some(content['sites'])}"]
        for name, found in content["sets"].items():
            aside = f", {found['excluded']} excluded" if found["excluded"] else ""
            shared = f"{found['shared']:,} of them shared by several sites"
            lines.append(f"{several(found['K'], name)}, {shared}, from {found['parameters']:,}{aside}")
            reasons = [spell_options(reason) for reason in found["reasons"]]
            lines += [f"  {reason}" for reason in reasons if not any(line.startswith(reason) for line in PRINTED)]
        return "\n".join([*lines, f"objective {content['objective']:.3f}"])
    when = f", of {content['time']}" if content["time"] is not None else ""
    lines = [f"site {content['site'] or '(no name)'}: {content['kind'] or 'arrays'}{when}"]
    for name, array in content["arrays"].items():
        axes = ", ".join(str(axis) if axis is not None else "." for axis in array["axes"])
        more = ", ".join([*(f"with {w}" for w in array["with"]), *(["auxiliary"] if array["auxiliary"] else [])])
        shape = " x ".join(map(str, array["shape"]))
        lines.append(f"  {name} ({axes}): {shape}{'; ' + more if more else ''}")
    for name, names in content["coordinates"].items():
        lines.append(f"  {name}s: {_some(names)}")
    return "\n".join(lines)


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def spell_sizes(model: LocalModel) -> str:
    """How many values a model has of each set."""
    return ", ".join(several(size, name) for name, size in model.sizes.items())


def judge(fusion: Fusion, level: float, seed: int) -> Content:
    """All verdicts about a fusion."""
    found, notes = fusion.worth_merging(level=level, seed=seed), list[str]()
    content, sets = list_gains(found, range(len(found.sites))), {}
    for name in fusion.matchings:
        diagnosed = fusion.diagnosis.sites(name)
        sets[name] = {
            "judged": all(d.judged for d in diagnosed),
            "warnings": list(dict.fromkeys(finding for d in diagnosed for finding in d.findings)),
            "certainty": judge_matches(fusion, name, state_confidence(fusion, name, notes), found.worth),
        }
    sites = [
        {"site": s.site, "sentence": s.sentence, **own} for s, own in zip(found.sites, content["sites"], strict=True)
    ]
    return {**content, "sites": sites, "false_alarms": FALSE_ALARMS, "sets": sets, "notes": notes}


def spell_verdict(content: Content) -> str:
    """The verdicts as text."""
    lines = [content["sentence"]]
    if content["worth"]:
        lines += [CAVEAT, *(site["sentence"] for site in content["sites"] if site["worth"] is False)]
    for name, found in content["sets"].items():
        of = f"{name}: " if len(content["sets"]) > 1 else ""
        lines += [f"{of}{line}" for line in (found["certainty"] or {"sentences": []})["sentences"]]
        lines += [f"{of}{warning}" for warning in found["warnings"]]
        if not found["judged"]:
            lines.append(f"{of}{TOO_FEW}")
        elif not found["warnings"]:
            rate = f"{100 * content['false_alarms']:g} %"
            lines.append(f"{of}no site stands out (of fusions of honest sites {rate} have a warning by chance).")
    lines += content["notes"]
    return "\n".join(line[:1].upper() + line[1:] for line in lines)
