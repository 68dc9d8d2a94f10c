"""What a fusion's verdicts say, for `modelweld verdict`: in plain words, and as plain data."""

from __future__ import annotations

from modelweld.diagnostics.sites import FALSE_ALARMS, TOO_FEW
from modelweld.fusion import Fusion
from modelweld.report.doubts import stated_confidence
from modelweld.report.rounding import Content, exact
from modelweld.report.verdicts import CAVEAT, judge_matches


def judge(fusion: Fusion, level: float, seed: int) -> Content:
    """All verdicts about a fusion."""
    found = fusion.worth_merging(level=level, seed=seed)
    sets = {}
    notes: list[str] = []
    for name in fusion.matchings:
        diagnosed = fusion.diagnose(name)
        sets[name] = {
            "judged": all(d.judged for d in diagnosed),
            "warnings": [d.warning for d in diagnosed if d.warning],
            "certainty": judge_matches(fusion, name, stated_confidence(fusion, name, notes)),
        }
    return {
        "p_value": exact(found.p_value),
        "worth": found.worth,
        "level": found.level,
        "gain": exact(found.gain),
        "sentence": found.sentence,
        "sites": [
            {
                "site": s.site,
                "p_value": exact(s.p_value),
                "worth": s.worth,
                "gain": exact(s.gain),
                "sentence": s.sentence,
            }
            for s in found.sites
        ],
        "false_alarms": FALSE_ALARMS,
        "sets": sets,
        "notes": notes,
    }


def spell_verdict(content: Content) -> str:
    """The same for people."""
    lines = [content["sentence"]]
    if content["worth"]:
        lines += [CAVEAT, *(site["sentence"] for site in content["sites"] if site["worth"] is False)]
    for name, found in content["sets"].items():
        of = f"{name}: " if len(content["sets"]) > 1 else ""
        lines += [f"{of}{line}" for line in (found["certainty"] or {"sentences": []})["sentences"]]
        if not found["judged"]:
            lines.append(f"{of}{TOO_FEW}")
        elif found["warnings"]:
            lines += [f"{of}{warning}" for warning in found["warnings"]]
        else:
            rate = f"{100 * content['false_alarms']:g} %"
            lines.append(f"{of}no site stands out (of fusions of honest sites {rate} have a warning by chance).")
    lines += content["notes"]
    return "\n".join(line[:1].upper() + line[1:] for line in lines)
