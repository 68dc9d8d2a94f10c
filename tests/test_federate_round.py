"""One round of answers: order of arrival decides nothing, nonsense is named, and the rest fuses as if it were alone."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import modelweld
from modelweld import InputError, LocalModel
from modelweld.federate import Answers, pack, pack_fused, round, unpack
from modelweld.federate.round import Outcome, difference, largest_working
from modelweld.files import save
from modelweld.kinds.mixture import mixture


def site(name, D=2, **more):
    """A site's mixture, the same for the same name."""
    rng = np.random.default_rng(sum(map(ord, name)))
    means = np.array([[0.0] * D, [9.0] * D]) + rng.normal(0, 0.1, (2, D))
    return mixture(means, np.ones((2, D)), [30.0, 50.0], counted=True, site=name, **more)


NAMES = ["north", "south", "east"]


def answered(*models, expected=None):
    answers = Answers(expected)
    for model in models:
        answers.accept(model.site, pack(model))
    return answers


def test_a_message_is_the_file(tmp_path):
    model = site("north", features=["age", "pressure"])
    assert pack(model) == save(model, tmp_path / "north.safetensors").read_bytes()
    assert pack(unpack(pack(model), "north")) == pack(model)


def test_what_was_read_can_be_written_to():
    found = unpack(pack(site("north")), "north").arrays["means"]
    found[0, 0] = 1.0  # a view of the message would refuse


@pytest.mark.parametrize("order", list(itertools.permutations(NAMES)))
def test_arrival_decides_nothing(order):
    fusion = answered(*map(site, order)).fuse()
    flat = modelweld.fuse([site(name) for name in sorted(NAMES)])
    assert fusion.sites == sorted(NAMES)
    assert (pack_fused(fusion), fusion.objective) == (pack(flat.parameters()), flat.objective)


def hostile():
    good = pack(site("bad"))
    nan, huge = site("bad"), site("bad")
    nan.arrays["means"][0, 0], huge.arrays["means"][0, 0] = np.nan, 1e300
    from modelweld.files.tensors import as_bytes

    yield "nothing", b""
    yield "half", good[: len(good) // 2]
    yield "more", good + b"x"
    yield "changed", good[:-1] + bytes([good[-1] ^ 1])
    yield "header", (2**40).to_bytes(8, "little") + good[8:]
    yield "pickle", b"\x80\x04\x95" + good
    yield "nan", pack(nan)
    yield "huge", pack(huge)
    yield "words", "a model"
    yield "no manifest", as_bytes({"means": np.ones((2, 2))}, "{}")


@pytest.mark.parametrize(("what", "payload"), list(hostile()))
def test_hostile_answers_are_named_and_change_nothing(what, payload):
    answers = answered(*map(site, NAMES), expected=[*NAMES, "bad"])
    assert not answers.accept("bad", payload)
    assert set(answers.refused) == {"bad"}
    assert "\n" not in answers.refused["bad"]
    assert answers.missing == []
    assert pack_fused(answers.fuse()) == pack_fused(answered(*map(site, NAMES)).fuse())


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=9))
def test_any_damage_is_noticed(at, damage):
    good = pack(site("north"))
    at %= len(good)
    bad = good[:at] + damage + good[at + len(damage) :]
    answers = Answers()
    if answers.accept("north", bad):  # then it says the same
        found = next(iter(answers.models.values()))
        for name, values in site("north").arrays.items():
            assert np.array_equal(found.arrays[name], values)
    else:
        assert set(answers.refused) == {"north"}


def test_a_sender_answers_once():
    answers = answered(*map(site, NAMES))
    assert not answers.accept("east", pack(site("west").with_(site="east")))
    assert "second" in answers.refused["east"]
    assert np.array_equal(answers.models["east"].arrays["means"], site("east").arrays["means"])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_name_that_two_claim_counts_for_neither(order):
    answers = Answers()
    sent = [("a", site("north")), ("b", site("west").with_(site="north")), ("c", site("south"))]
    for i in order:
        answers.accept(sent[i][0], pack(sent[i][1]))
    assert list(answers.models) == ["south"]
    assert set(answers.refused) == {"a", "b"}


def test_nobody_speaks_for_another():
    answers = Answers(expected=NAMES)
    assert not answers.accept("east", pack(site("north")))
    assert answers.accept("north", pack(site("north")))
    assert not answers.accept("node 7", pack(site("west")))
    assert set(answers.refused) == {"east", "node 7"}


def test_a_model_without_a_name_is_called_after_its_sender():
    answers = Answers()
    assert answers.accept("north", pack(site("north").with_(site="")))
    assert list(answers.models) == ["north"]


def test_too_few_answers_end_in_one_line_that_names_the_others():
    answers = answered(site("north"), expected=NAMES)
    answers.accept("south", b"")
    with pytest.raises(InputError) as wrong:
        answers.fuse(minimum=2)
    text = str(wrong.value)
    assert "2 sites are needed to fuse, and 1 can be used" in text
    assert "missing: east" in text
    assert "refused: south" in text
    assert "\n" not in text


def test_late_answers_are_named_and_change_nothing():
    answers = answered(site("north"), site("south"), expected=NAMES)
    fusion = answers.fuse()
    assert not answers.accept("east", pack(site("east")))
    assert fusion.sites == ["north", "south"]
    told = {"answered": ["north", "south"], "missing": [], "late": ["east"], "refused": {}}
    assert answers.as_dict() == told


@pytest.mark.parametrize(
    "odd",
    [
        site("odd", D=3),
        site("odd", features=["pressure", "size"]),
        LocalModel({"means": [[0.0, 0.0]]}, {"means": ("component", None)}, site="odd"),
        site("odd", features=["age", "pressure"], facts={"units": {"age": "days"}}),
    ],
    ids=["features", "names", "kind", "units"],
)
def test_a_site_that_describes_something_else_is_refused(odd):
    facts = {"units": {"age": "years"}}
    others = [site(name, features=["age", "pressure"], facts=facts) for name in NAMES]
    answers = answered(odd, *others)
    fusion = answers.fuse()
    assert set(answers.refused) == {"odd"}
    assert pack_fused(fusion) == pack_fused(answered(*others).fuse())
    with pytest.raises(InputError, match="no majority"):
        answered(odd, others[0]).fuse()


def test_sites_get_the_fused_model_and_nothing_of_each_other():
    fusion = answered(*map(site, NAMES)).fuse()
    model = unpack(pack_fused(fusion), "server")
    assert model.sizes == {"component": fusion.K}
    assert model.arrays["counts"].sum() == 240.0
    local = np.concatenate([site(name).arrays["means"].ravel() for name in NAMES])
    assert not np.isin(local, model.arrays["means"]).any()
    assert not any(name in pack_fused(fusion).decode("latin-1") for name in NAMES)


def test_models_without_a_kind_come_back_with_what_was_matched_and_counts():
    def plain(name):
        like = site(name)
        return LocalModel(
            {"means": like.arrays["means"], "counts": [30.0, 50.0], "secret": [1.0, 2.0]},
            {"means": ("component", "feature"), "counts": ("component",), "secret": ("component",)},
            auxiliary=["counts", "secret"],
            coordinates={"feature": ["age", "pressure"]},
            site=name,
        )

    fusion = answered(*map(plain, NAMES)).fuse()
    model = unpack(pack_fused(fusion), "server")
    assert set(model.arrays) == {"means", "counts"}
    assert model.coordinates["feature"] == ("age", "pressure")
    assert np.array_equal(model.arrays["means"], fusion.atoms)
    assert model.arrays["counts"].sum() == 240.0


def test_outcomes_are_never_replaced(tmp_path):
    answers = answered(*map(site, NAMES))
    outcome = Outcome(tmp_path / "out")
    outcome.keep(answers.fuse())
    outcome.tell(answers)
    assert json.loads((tmp_path / "out" / "round.json").read_text())["answered"] == sorted(NAMES)
    with pytest.raises(InputError, match="is there already"):
        Outcome(tmp_path / "out")
    Outcome(tmp_path / "out", force=True).keep(answers.fuse())
    with pytest.raises(InputError, match="there is no folder"):
        Outcome(tmp_path / "no" / "out")


def plain(name, weight=None, facts=None):
    rng = np.random.default_rng(sum(map(ord, name)))
    values = np.array([[0.0, 0.0], [9.0, 9.0]]) + rng.normal(0, 0.1, (2, 2))
    beside = {} if weight is None else {"v": weight}
    return LocalModel({"v": values}, {"v": ("atom", None)}, weight=beside, site=name, facts=facts or {})


@pytest.mark.parametrize("culprit", ["aaa", "mmm", "zzz"])
def test_who_alone_sends_a_weight_is_refused_and_the_others_are_fused(culprit):
    answers = answered(plain(culprit, 7.0), *(plain(name) for name in NAMES))
    assert answers.fuse().sites == sorted(NAMES)
    assert list(answers.refused) == [culprit]
    assert "send a weight" in answers.refused[culprit]


def test_a_site_with_which_the_outcome_cannot_be_used_is_refused():
    def use(fusion):
        if "east" in fusion.sites:
            raise ZeroDivisionError("never mind")

    answers = answered(*map(site, NAMES))
    assert answers.fuse(2, use).sites == ["north", "south"]
    assert answers.refused == {"east": "with it nothing can be fused (ZeroDivisionError: never mind)"}


def test_where_no_majority_works_the_round_says_why():
    def use(fusion):
        raise ZeroDivisionError("never mind")

    with pytest.raises(ZeroDivisionError, match="never mind"):
        answered(*map(site, NAMES)).fuse(2, use)


@given(st.integers(2, 9), st.sets(st.integers(0, 8)), st.tuples(st.integers(0, 8), st.integers(0, 8)))
@settings(max_examples=60, deadline=None)
def test_culprits_are_left_out_and_nobody_else(number, bad, pair):
    """Some never work, and one pair not together: one of the pair is left out at most."""

    def works(some):
        return bool(some) and not bad & set(some) and not (pair[0] != pair[1] and set(pair) <= set(some))

    members = list(range(number))
    kept = largest_working(members, works)
    good = [i for i in members if i not in bad]
    assert kept == sorted(kept)
    assert set(kept) <= set(good)
    together = pair[0] != pair[1] and set(pair) <= set(good)
    assert len(kept) == len(good) - together


def test_a_number_beyond_all_numbers_is_refused():
    payload = pack(plain("north", facts={"scale": 1.5}))
    assert b"1.5" in payload
    length = int.from_bytes(payload[:8], "little")
    header = payload[8 : 8 + length].replace(b"1.5", b"1e999")
    header += b" " * (-len(header) % 8)
    changed = len(header).to_bytes(8, "little") + header + payload[8 + length :]
    fresh = answered(plain("south"), plain("east"))
    assert not fresh.accept("north", changed)
    assert "too large" in fresh.refused["north"]


def test_whatever_a_sender_calls_himself_logs_stay_readable():
    answers = answered(*map(site, NAMES))
    for name in ("a\x1b[2J\nb", "x" * 100_000):
        assert not answers.accept(name, b"what is this")
    answers.fuse()
    answers.accept("c\x07", b"late")
    text = str(answers) + "".join(json.dumps(answers.as_dict(), ensure_ascii=False))
    assert text.isprintable()
    assert len(text) < 2_000
    assert "a\\x1b[2J\\nb (it is no safetensors file" in text


def test_sites_are_compared_with_their_like_first(monkeypatch):
    """Thousands of sites of one table were each compared with every odd one: minutes, where one of these was wide."""
    sites = [LocalModel({"v": np.zeros((1, d))}, {"v": ("atom", None)}, site=f"odd{d}") for d in range(2, 12)]
    features = {"feature": ["a", "b", "c"]}
    sites += [
        LocalModel({"v": np.zeros((1, 3))}, {"v": ("atom", "feature")}, coordinates=features, site=f"s{j}")
        for j in range(50)
    ]
    asked = []
    monkeypatch.setattr(round, "difference", lambda models: asked.append(1) or difference(models))
    assert sorted(round.find_disagreeing(sites)) == sorted(f"odd{d}" for d in range(2, 12))
    assert len(asked) < 150  # 10 odd ones with each other, 50 with their like; not 50 with 10
