"""The two apps of a Flower round without a network: messages are mocks, as in Flower's own tests."""

import json
import logging
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import modelweld
from modelweld import InputError
from modelweld.federate import pack, unpack
from modelweld.kinds.mixture import mixture

pytestmark = pytest.mark.flower

EXAMPLE = Path(__file__).parents[1] / "examples" / "flower"
NODES = {11: "south", 7: "north", 5: "east"}


def model_of(site):
    rng = np.random.default_rng(sum(map(ord, site)))
    means = np.array([[0.0, 0.0], [9.0, 9.0]]) + rng.normal(0, 0.1, (2, 2))
    return mixture(means, np.ones((2, 2)), [30.0, 50.0], counted=True, site=site)


def reply(node, content=None, error=None, to=""):
    from flwr.app import Message

    message = Mock(spec=Message)
    message.metadata = Mock(src_node_id=node, reply_to_message_id=to)
    message.has_error.return_value = error is not None
    message.has_content.return_value = error is None
    message.content, message.error = content, error
    return message


def sent(node, payload):
    from flwr.app import RecordDict

    from modelweld.federate.flower import RECORD, as_record

    return reply(node, RecordDict({RECORD: as_record(payload)}))


@pytest.fixture
def messages(monkeypatch):
    """Messages need a run; here they are kept as what they were made of."""
    from modelweld.federate import flower

    def message(content, dst_node_id=None, message_type=None, reply_to=None):
        return Mock(content=content, node=dst_node_id, type=message_type, reply_to=reply_to)

    monkeypatch.setattr(flower, "Message", message)


class Grid:
    """Nodes that are connected and, unless they are called None, say their names."""

    def __init__(self, names):
        self.names = names

    def get_node_ids(self):
        return list(self.names)

    def push_messages(self, messages):
        return [f"question {m.node}" for m in messages]

    def pull_messages(self, ids):
        from modelweld.federate.flower import as_name

        asked = {f"question {node}": node for node, name in self.names.items() if name is not None}
        return [reply(asked[i], as_name(self.names[asked[i]]), to=i) for i in ids if i in asked]


class SlowGrid(Grid):
    """One of the nodes says its name only when it is asked for the third time whether it has."""

    def __init__(self, names, slow):
        super().__init__(names)
        self.slow, self.looks = slow, 0

    def pull_messages(self, ids):
        self.looks += 1
        return super().pull_messages([i for i in ids if self.looks >= 3 or i != f"question {self.slow}"])


def asked(names=NODES, gather=0.0, grid=None, **options):
    """A strategy whose sites have been asked to train."""
    from flwr.app import ArrayRecord, ConfigRecord

    from modelweld.federate.flower import OneRound

    strategy = OneRound(gather=gather, search="plain", **options)
    strategy.messages = strategy.configure_train(1, ArrayRecord(), ConfigRecord(), grid or Grid(names))
    return strategy


def same(one, other):
    return pack(one.parameters()) == pack(other.parameters()) and one.objective == other.objective


def test_all_named_sites_are_asked_and_fused_in_the_order_of_names(messages):
    strategy = asked()
    assert sorted(m.node for m in strategy.messages) == [5, 7, 11]
    assert {m.type for m in strategy.messages} == {"train"}
    record, _ = strategy.aggregate_train(1, [sent(node, pack(model_of(NODES[node]))) for node in (11, 5, 7)])
    flat = modelweld.fuse([model_of(site) for site in ("east", "north", "south")], search="plain")
    assert strategy.fusion.sites == ["east", "north", "south"]
    assert same(strategy.fusion, flat)
    assert record["safetensors"].data == pack(flat.parameters())


def test_failures_and_nonsense_are_named_and_the_rest_fused(messages):
    from flwr.app import RecordDict

    names = {**NODES, 1: "west", 2: "centre", 3: "gone"}
    strategy = asked(names)
    replies = [sent(node, pack(model_of(site))) for node, site in NODES.items()]
    replies += [
        reply(1, error=Mock(reason="/data/secret.csv of patient Smith")),
        reply(2, RecordDict()),
        reply(0, error=Mock(reason="Flower says that a node is gone")),
    ]
    strategy.aggregate_train(1, replies)
    told = strategy.answers.as_dict()
    assert told["answered"] == ["east", "north", "south"]
    assert told["missing"] == ["gone"]
    assert set(told["refused"]) == {"west", "centre"}
    assert "secret" not in str(strategy.answers)


def test_two_nodes_of_one_name_are_not_asked(messages):
    strategy = asked({**NODES, 12: "south"})
    assert sorted(m.node for m in strategy.messages) == [5, 7]
    assert "several nodes" in strategy.answers.refused["south"]


def test_nodes_that_are_not_expected_are_not_asked(messages):
    strategy = asked(expected=["north", "south", "west"])
    assert sorted(m.node for m in strategy.messages) == [7, 11]
    strategy.aggregate_train(1, [sent(node, pack(model_of(NODES[node]))) for node in (7, 11)])
    assert strategy.answers.missing == ["west"]
    assert "expected" in strategy.answers.refused["east"]


def test_who_is_slow_to_say_its_name_is_heard(messages, monkeypatch):
    """A race for a name has no winner, and a stranger is named, whoever is quicker."""
    from modelweld.federate import flower

    monkeypatch.setattr(flower, "BETWEEN_LOOKS", 0.0)
    for slow in (11, 12):
        names = {**NODES, 12: "south"}
        strategy = asked(gather=60.0, grid=SlowGrid(names, slow), expected=["north", "south", "east"])
        assert sorted(m.node for m in strategy.messages) == [5, 7]
        assert "several nodes" in strategy.answers.refused["south"]
    strategy = asked(gather=60.0, grid=SlowGrid(NODES, 5), expected=["north", "south"])
    assert strategy.answers.refused == {"east": "no site of that name is expected"}


def test_names_are_bound_to_nodes(messages):
    """What a node calls itself does not matter: node 12 takes nobody's place, and nobody is shut out by it."""
    for taken in ("south", "west"):
        strategy = asked({**NODES, 12: taken}, expected={"east": 5, "north": 7, "south": 11, "west": 13})
        assert strategy.nodes == NODES
        assert strategy.answers.refused == {"node 12": "its key is none of the expected sites'"}
        assert strategy.answers.missing == ["east", "north", "south", "west"]
    with pytest.raises(InputError, match="one node to several"):
        asked(expected={"east": 5, "north": 5})


def test_an_answer_under_another_name_is_refused(messages):
    strategy = asked()
    replies = [sent(5, pack(model_of("north"))), sent(7, pack(model_of("west")))]
    with pytest.raises(InputError, match="1 can be used"):
        strategy.aggregate_train(1, [*replies, sent(11, pack(model_of("south")))])
    assert "'north'" in strategy.answers.refused["east"]
    assert "'west'" in strategy.answers.refused["north"]


def test_nodes_that_say_nothing_are_not_asked_further(messages):
    strategy = asked({**NODES, 9: None})
    assert sorted(m.node for m in strategy.messages) == [5, 7, 11]
    strategy.aggregate_train(1, [sent(node, pack(model_of(site))) for node, site in NODES.items()])
    assert strategy.answers.missing == ["node 9"]


def test_names_that_cannot_be_shown_are_replaced(messages):
    assert asked({**NODES, 9: "\x1b[31m"}).nodes[9] == "node 9"


def test_too_few_sites_end_the_round_in_one_line(messages, tmp_path):
    from modelweld.federate.round import Outcome

    with pytest.raises(InputError, match=r"4 sites are needed .* are there: east, north, south; missing: none"):
        asked(minimum=4)
    with pytest.raises(InputError, match=r"these are there: south; missing: west; refused: east \(no site"):
        asked({11: "south", 5: "east"}, expected=["south", "west"])
    with pytest.raises(InputError, match="only 2 sites are expected"):
        asked(minimum=3, expected=["south", "west"])
    strategy = asked(minimum=3, outcome=Outcome(tmp_path / "out"))
    with pytest.raises(InputError, match=r"3 sites are needed to fuse, and 2 can be used: .*missing: south"):
        strategy.aggregate_train(1, [sent(node, pack(model_of(NODES[node]))) for node in (5, 7)])
    assert json.loads((tmp_path / "out" / "round.json").read_text())["missing"] == ["south"]
    assert not (tmp_path / "out" / "fusion.safetensors").exists()


def test_the_fused_model_goes_to_those_who_are_there_and_late_ones_are_named(messages):
    from flwr.app import ConfigRecord

    from modelweld.federate.flower import as_name, bytes_of

    names = {**NODES, 1: "late", 2: "gone", 3: "broken"}
    strategy = asked(names)
    replies = [sent(node, pack(model_of(site))) for node, site in NODES.items()]
    record, _ = strategy.aggregate_train(1, [*replies, replies[0], reply(3, error=Mock())])
    assert strategy.answers.missing == ["gone", "late"]
    there = Grid({node: site for node, site in names.items() if site != "gone"})
    evaluate = strategy.configure_evaluate(1, record, ConfigRecord(), there)
    assert sorted(m.node for m in evaluate) == [1, 5, 7, 11]
    assert {bytes_of(m.content) for m in evaluate} == {pack(strategy.fusion.parameters())}
    metrics = strategy.aggregate_evaluate(1, [reply(m.node, as_name(names[m.node])) for m in evaluate])
    assert metrics["received"] == 4
    assert (strategy.answers.missing, strategy.answers.late) == (["gone"], {"late"})


def test_outcome_is_written_and_never_replaced(messages, tmp_path):
    from modelweld.federate.flower import one_round
    from modelweld.federate.round import Outcome

    strategy = asked(outcome=Outcome(tmp_path / "out"))
    strategy.aggregate_train(1, [sent(node, pack(model_of(site))) for node, site in NODES.items()])
    assert same(modelweld.load(tmp_path / "out" / "fusion.safetensors"), strategy.fusion)
    assert (tmp_path / "out" / "report.html").exists()
    with pytest.raises(InputError, match="is there already"):
        one_round(Mock(spec=[]), out=tmp_path / "out")  # before anything is asked of any site


def handled(app, kind, content=None, **node_config):
    """What a ClientApp replies to a message."""
    message = Mock(content=content)
    message.metadata.message_type = kind
    return app(message, Mock(node_config=node_config, node_id=3)).content


def test_clients_train_send_and_receive(messages):
    from flwr.app import RecordDict
    from sklearn.mixture import GaussianMixture

    from modelweld.federate.flower import RECORD, as_record, bytes_of, client_app, name_in

    X = np.random.default_rng(0).normal(size=(50, 2))
    taken = []
    app = client_app(
        lambda context: (GaussianMixture(1).fit(X), {"X": X}),
        receive=lambda model, context: taken.append(model),
        features=["age", "pressure"],
    )
    assert name_in(handled(app, "query", site="north")) == "north"
    assert name_in(handled(app, "query", **{"partition-id": 2})) == "partition 2"
    assert name_in(handled(app, "query")) == "node 3"
    model = unpack(bytes_of(handled(app, "train", site="north")), "north")
    assert (model.site, model.coordinates["feature"]) == ("north", ("age", "pressure"))
    assert model.arrays["counts"].tolist() == [50.0]
    handled(app, "evaluate", RecordDict({RECORD: as_record(pack(model))}), site="north")
    assert pack(taken[0]) == pack(model)


@pytest.mark.parametrize("wrong", [RuntimeError, SystemExit, KeyError])
def test_exceptions_stay_at_the_site(messages, wrong, caplog):
    from modelweld.federate.flower import NEUTRAL, client_app

    def train(context):
        raise wrong("/data/secret.csv of patient Smith")

    logging.getLogger("flwr").propagate = True
    error = handled(client_app(train), "train", site="north")
    assert error.reason == NEUTRAL
    assert "secret" in caplog.text


def test_small_components_do_not_leave(messages):
    from flwr.app import Error

    from modelweld.federate.flower import bytes_of, client_app

    few = mixture([[0.0]], [[1.0]], [3.0], counted=True)
    assert isinstance(handled(client_app(lambda context: few), "train", site="north"), Error)
    allowed = client_app(lambda context: few, allow_small=True)
    assert unpack(bytes_of(handled(allowed, "train", site="north")), "").arrays["counts"].tolist() == [3.0]


def test_the_example_sends_what_the_demo_fuses(messages, monkeypatch):
    from importlib import import_module

    from modelweld.demo.hospitals import load_hospital, train
    from modelweld.federate.flower import bytes_of, name_in

    monkeypatch.syspath_prepend(EXAMPLE)
    app = import_module("hospitals.client").app
    assert name_in(handled(app, "query", hospital="va")) == "Long Beach"
    model = train(*load_hospital("va"), site="Long Beach")
    assert bytes_of(handled(app, "train", hospital="va")) == pack(model)
    assert type(import_module("hospitals.server").app).__name__ == "ServerApp"
