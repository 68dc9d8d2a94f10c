"""What the words of the page mean, for readers who have not read the paper."""

from __future__ import annotations

from html import escape

from modelweld.report.rounding import Content

MEANINGS = {
    "fused": (
        "fused value (atom)",
        "The value of a {word} that all its sites together point to, the posterior mean: what a further site is "
        "expected to have. It leans towards the mean of all {word}s, the more so the less is known of the {word}.",
    ),
    "confidence": (
        "confidence",
        "Of a match: the probability that a site's {word} belongs to the fused {word} it was given. Of a {word}: that "
        "of its least certain match.",
    ),
    "noise": (
        "site to site (noise)",
        "The standard deviation by which the same {word} differs between sites, beyond the errors that sites state; "
        "learned, in each feature's unit.",
    ),
    "spread": (
        "{word} to {word} (spread)",
        "The standard deviation by which {word}s differ from each other; learned, in each feature's unit. Sites' "
        "{word}s can be told apart where it is much larger than the noise.",
    ),
    "aside": (
        "set aside",
        "Kept in the file but counted as no {word}: far outside all others, or alone and more probably an artefact of "
        "one site's fit.",
    ),
    "lives": (
        "lives",
        "Where sites have times: the probability that a {word} still lives at the newest time, given how often sites "
        "held it while it lived, and how long it has not been seen.",
    ),
    "size": ("{word}s of a site", "How many it sent."),
    "unshared": ("only here", "How many of them no other site has."),
    "nats": (
        "nats",
        "The unit of log probability: 1 nat makes something 2.7 times, 10 nats 22,000 times as probable.",
    ),
    "gain": ("gain", "Nats that matching the site to the others brings, beside leaving it on its own."),
    "p": (
        "p",
        "The probability that a site with nothing in common with the others comes as close to them as this one does.",
    ),
    "score": (
        "score",
        "Nats per {word} by which the others predict the site's {word}s better than if they were new ones.",
    ),
    "surprise": ("surprise", "How far that score is from the typical site's, in robust deviations; negative is worse."),
    "shift": (
        "shift",
        "The largest mean offset of its values from the others', in deviations of the noise: beyond about 2 it is "
        "worth asking how that is measured.",
    ),
    "influence": ("influence", "How far the fused {word}s would move without the site, in deviations of the noise."),
}
"""Key, as the page's `data-help` names it, to the word and what it means; {word} is that of the kind."""


def glossary(found: Content) -> str:
    """A list of words, of which the page shows single ones on hover and focus."""
    word = found["sets"][0]["groups"]["word"]
    entries = "".join(
        f'<dt>{escape(name.format(word=word))}</dt><dd id="word-{key}">{escape(meaning.format(word=word))}</dd>'
        for key, (name, meaning) in MEANINGS.items()
    )
    return f'<dl id="glossary">{entries}</dl>'
