"""Networks of convolutions and residual blocks: what is read is what is written, what is matched, what is taught."""

import json
from pathlib import Path

import numpy as np
import pytest

from modelweld import InputError, LocalModel, fuse, load, read
from modelweld.core.beta_bernoulli import BetaBernoulli
from modelweld.families import Gaussian
from modelweld.files.manifest import check_kind, save_site
from modelweld.kinds.deep_network import HOWS
from modelweld.kinds.drawn_inputs import describe, draw
from modelweld.kinds.layer_graph import is_graph, layer, name_sets
from modelweld.kinds.network_channels import average, deep_network, plain_arrays, shares
from modelweld.libraries import write
from programs import printed_by

APART = {
    "families": Gaussian(noise=1e-9, spread=1.0, shape="scalar", learning="nothing"),
    "prior": BetaBernoulli(),
    "screens": [],
}
"""Under these nothing that is not a copy is matched."""

SMALL = [layer("Input"), layer("Conv2d", 0), layer("ReLU", 1), layer("Flatten", 2), layer("Linear", 3)]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def small(rng, channels=4, classes="ab", **more):
    arrays = {
        "W1": rng.normal(size=(channels, 1, 3, 3)),
        "b1": rng.normal(size=channels),
        "W4": rng.normal(size=(len(classes), channels * 4)),
        "b4": rng.normal(size=len(classes)),
    }
    counts = rng.integers(1, 9, len(classes))
    return deep_network(SMALL, arrays, classes=list(classes), counts=counts, **{"shape": (1, 4, 4), **more})


# what travels


def test_graphs_of_files_are_known_layers_fed_by_earlier_ones():
    assert is_graph(SMALL)
    for odd in (
        None,
        SMALL[:1],
        [layer("Input"), layer("Linear", 1)],
        [layer("Input"), layer("Linear", 0, 0)],
        [layer("Input"), layer("Linear", True)],
        [layer("Input"), layer("Linear", 0), layer("Input")],
        [layer("Input"), layer("Linear", 0, weight=[1.0])],
        [layer("Input"), layer("ReLU", 0, inplace=True)],
        [layer("Input"), layer("__import__", 0)],
        [layer("Input"), layer("AdaptiveAvgPool2d", 0, output_size=[10**6, 10**6]), layer("Linear", 1)],
        [layer("Input"), layer("Linear", 0), layer("Add", 1)],
        [layer("Input"), "Linear"],
    ):
        assert not is_graph(odd), odd


def test_channels_that_are_added_are_one_set():
    graph = [
        layer("Input"),
        layer("Conv2d", 0),
        layer("Conv2d", 1, depthwise=True),
        layer("BatchNorm2d", 2),
        layer("Conv2d", 3),
        layer("Conv2d", 4),
        layer("Add", 5, 3),
        layer("Flatten", 6),
        layer("Linear", 7),
        layer("Softmax", 8),
    ]
    assert name_sets(graph) == [None, "h0", "h0", "h0", "h1", "h0", "h0", "h0", "class", "class"]


def test_what_is_no_such_network_is_refused_in_a_file(rng):
    model = small(rng)
    check_kind(model)
    for wrong, words in (
        (
            model.with_(facts={**model.facts, "graph": [layer("Input"), layer("os.system", 0)]}),
            "'graph'.*makes no sense",
        ),
        (model.with_(facts={}), "states 'graph'"),
        (model.with_(facts={**model.facts, "shape": [1, 10**9, 10**9]}), "'shape'.*makes no sense"),
        (
            LocalModel(
                {"W1": np.ones((2, 3))}, {"W1": ("h0", None)}, kind="deep-network", facts={"graph": SMALL, "labels": {}}
            ),
            "array W4",
        ),
    ):
        with pytest.raises(InputError, match=words):
            check_kind(wrong)


# averages


def test_of_channels_that_are_copies_the_average_is_the_network_itself(rng):
    one = small(rng)
    order = rng.permutation(4)
    moved = {name: np.asarray(values) for name, values in one.arrays.items()}
    moved |= {"W1": moved["W1"][order], "b1": moved["b1"][order], "W4": moved["W4"][:, order]}
    fusion = fuse([one, one.with_(arrays=moved)], **APART)
    assert fusion.K == 4
    fused, own = plain_arrays(fusion.parameters("mean")), plain_arrays(one)
    place = np.argsort(fusion.labels[0])
    assert np.allclose(fused["W1"], own["W1"][place])
    assert np.allclose(fused["W4"].reshape(2, 4, 4), own["W4"].reshape(2, 4, 4)[:, place])


def test_running_moments_are_those_of_all_rows_together(rng):
    graph = [layer("Input"), layer("Linear", 0), layer("BatchNorm1d", 1), layer("ReLU", 2), layer("Linear", 3)]
    W, data, sites = rng.normal(size=(3, 2)), [], []
    for n in (30, 70):
        data.append(rng.normal(size=(n, 3)) * rng.uniform(0.5, 2, 3) + rng.normal(size=3))
        arrays = {"W1": W, "mean2": data[-1].mean(axis=0), "var2": data[-1].var(axis=0), "W4": np.ones((2, 3))}
        sites.append(deep_network(graph, arrays | {"W1": W.repeat(1, 0)}, counts=n))
    fusion = fuse(sites, **APART)
    assert fusion.K == 3
    fused, rows = plain_arrays(fusion.parameters("mean")), np.concatenate(data)[:, np.argsort(fusion.labels[0])]
    assert np.allclose(fused["mean2"], rows.mean(axis=0))
    assert np.allclose(fused["var2"], rows.var(axis=0))


def test_a_bound_on_width_keeps_what_weighs_most(rng):
    fusion = fuse([small(rng, 4), small(rng, 5)], **APART)
    assert fusion.K == 9
    assert average(fusion._fit, 0.6).sizes == {"h0": 3}
    assert average(fusion._fit, {"h0": 5}).sizes == {"h0": 5}
    kept = average(fusion._fit, {"h0": 1}).arrays["W1"]
    norms = [np.linalg.norm(w) for m in fusion._fit.models for w in m.arrays["W1"]]
    assert np.isclose(np.linalg.norm(kept), max(norms))


def test_classes_that_a_site_lacks_have_no_say(rng):
    fusion = fuse([small(rng, classes="ab"), small(rng, classes="bc")], **APART)
    pi = shares(fusion._fit.models)
    assert pi[0, 2] == pi[1, 0] == 0
    assert np.allclose(pi.sum(axis=0), 1)


def test_networks_of_other_layers_do_not_fuse(rng):
    other = [*SMALL[:2], layer("Tanh", 1), *SMALL[3:]]
    model = small(rng)
    with pytest.raises(InputError, match=r"site 1: .*same layers.* layer 2 is Tanh\(\), the first site's ReLU\(\)"):
        fuse([model, model.with_(facts={**model.facts, "graph": other})])


# drawn inputs


def test_drawn_images_have_the_moments_that_sites_send(rng):
    waves = rng.normal(size=(800, 2, 16, 16))
    smooth = (waves + np.roll(waves, 1, 2) + np.roll(waves, 1, 3)) / np.sqrt(3)
    X = 5.0 + np.linspace(-1, 1, 16) + np.linspace(0.5, 2, 16)[:, None] * smooth
    sent = describe(X) | {"bounds": np.array([-9.0, 19.0])}  # so wide that nothing is cut off
    axes = {"inputs": (None, None), "bounds": (None,)}
    drawn = draw([LocalModel(sent, axes)], (2, 16, 16), 800, rng)
    again = describe(drawn)
    assert np.allclose(again["inputs"], sent["inputs"], atol=0.35)  # 5 standard errors of the largest deviation
    Z = (drawn - sent["inputs"][0].reshape(2, 16, 16)) / sent["inputs"][1].reshape(2, 16, 16)
    assert np.mean(Z[..., 1:] * Z[..., :-1]) > 0.6  # neighbours are alike
    cut = draw([LocalModel(sent | describe(X), axes)], (2, 16, 16), 100, rng)
    assert np.allclose([cut.min(), cut.max()], describe(X)["bounds"])


def test_every_input_is_drawn_as_one_site_describes_its_own(rng):
    sites = [describe(rng.normal(size=(50, 1, 4, 4)) * 0.1 + at) for at in (0.0, 7.0)]
    sent = [{**one, "counts": np.array([n])} for one, n in zip(sites, (30, 70), strict=True)]
    axes = {"inputs": (None, None), "bounds": (None,), "counts": (None,)}
    drawn = draw([LocalModel(one, axes) for one in sent], (1, 4, 4), 1000, rng)
    high = (drawn > 3.5).reshape(1000, -1)
    assert (high.all(axis=1) | ~high.any(axis=1)).all()
    assert abs(high[:, 0].mean() - 0.7) < 0.06


def test_moments_of_other_images_are_refused(rng):
    sent = describe(rng.normal(size=(50, 1, 4, 4)))
    axes = {"inputs": (None, None), "bounds": (None,)}
    with pytest.raises(InputError, match=r"16 numbers.*25"):
        draw([LocalModel(sent, axes)], (1, 5, 5), 3, rng)


def test_tables_are_drawn_by_means_and_deviations(rng):
    X = rng.normal(size=(500, 2)) * [1.0, 9.0] + [5.0, 0.0]
    sent = describe(X)
    drawn = draw([LocalModel(sent, {"inputs": (None, None)})], (2,), 4000, rng)
    assert np.allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.5)
    assert np.allclose(drawn.std(axis=0), X.std(axis=0), rtol=0.1)


# PyTorch


def nets():
    """Networks that use every layer that is read, some as functions and methods, with random weights."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.before, self.norm = nn.Conv2d(2, width, 3, padding="same", bias=False), nn.BatchNorm2d(width)
            self.up, self.each = (
                nn.Conv2d(width, 2 * width, 1, groups=2),
                nn.Conv2d(2 * width, 2 * width, 3, 1, 1, 1, 2 * width),
            )
            self.down, self.drop, self.last = nn.Conv2d(2 * width, width, 1), nn.Dropout(), nn.Linear(4 * width, 3)

        def forward(self, x):
            x = torch.relu(self.norm(self.before(x)))
            x = x + self.down(functional.leaky_relu(self.each(self.up(x)), 0.2))
            x = functional.max_pool2d(x, 2, stride=2)
            x = functional.adaptive_avg_pool2d(x.tanh(), (2, 2)).contiguous()
            x = functional.dropout(x.view(x.size(0), -1), training=self.training)
            return functional.log_softmax(self.last(self.drop(x)), dim=1)

    class Pooled(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.one, self.two = nn.Conv2d(2, width, 3, stride=2), nn.Conv2d(width, width, 1)
            self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, 3, bias=False)

        def forward(self, x):
            x = functional.gelu(self.one(x))
            x += self.two(x)
            return self.last(functional.silu(self.norm(x.mean(dim=(2, 3)))))

    class Table(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.one, self.two, self.three = nn.Linear(5, width), nn.Linear(width, width), nn.Linear(width, 3)

        def forward(self, x):
            x = functional.elu(self.one(x))
            return self.three(x + torch.sigmoid(self.two(x))).flatten(1)

    def signals(width):
        return nn.Sequential(
            nn.Conv1d(2, width, 3, dilation=2),
            nn.BatchNorm1d(width),
            nn.Softplus(),
            nn.AvgPool1d(2, ceil_mode=True),
            nn.Flatten(),
            nn.BatchNorm1d(width * 3),
            nn.Linear(width * 3, width),
            nn.LeakyReLU(0.3),
            nn.Sequential(nn.Dropout(), nn.Linear(width, 3)),
            nn.Softmax(1),
        )

    def layered(width):
        return nn.Sequential(
            nn.Conv2d(2, width, 3), nn.LayerNorm((width, 6, 6)), nn.Hardswish(), nn.Flatten(), nn.Linear(36 * width, 3)
        )

    def two_activations(width):
        return nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, 4), nn.Tanh(), nn.Linear(4, 3))

    image, table = (2, 8, 8), (5,)
    return {
        "residual, depthwise, grouped, batch norm": (Block, image),
        "residual, mean over places, layer norm": (Pooled, image),
        "table, residual": (Table, table),
        "signals, batch norm after Flatten": (signals, (2, 10)),
        "layer norm of images": (layered, image),
        "two kinds of activation": (two_activations, table),
    }


NETS = (
    "residual, depthwise, grouped, batch norm",
    "residual, mean over places, layer norm",
    "table, residual",
    "signals, batch norm after Flatten",
    "layer norm of images",
    "two kinds of activation",
)


def make(name, width, seed=0):
    """A network with weights and moments drawn anew, in evaluation mode, and the shape of its inputs."""
    import torch

    torch.manual_seed(seed)
    maker, shape = nets()[name]
    net = maker(width).double().eval()
    for module in net.modules():
        if getattr(module, "running_var", None) is not None:
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2.0)
            torch.nn.init.normal_(module.weight, 1.0, 0.3)
    return net, shape


def answers(net, X):
    import torch

    with torch.no_grad():
        return net(torch.from_numpy(X).to(next(net.parameters()).dtype)).double().numpy()


@pytest.mark.torch
@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("width", [4, 6])
def test_what_is_written_computes_what_was_read_also_through_a_file(name, width, rng, tmp_path):
    net, shape = make(name, width)
    X = rng.normal(size=(7, *shape))
    local = read(net, class_counts=[3, 4, 5], X=X)
    assert np.allclose(answers(write(local), X), answers(net, X), atol=1e-9)
    save_site(local, tmp_path / "site.safetensors", force=False)
    assert np.allclose(answers(write(load(tmp_path / "site.safetensors")), X), answers(net, X), atol=1e-9)
    again = read(write(local), class_counts=[3, 4, 5], X=X)
    assert again.facts["graph"] == local.facts["graph"]
    assert all(np.allclose(again.arrays[key], local.arrays[key]) for key in local.arrays)


@pytest.mark.torch
@pytest.mark.parametrize("name", NETS)
def test_networks_of_other_widths_fuse_and_answer(name, rng):
    made = [make(name, width, seed) for seed, width in enumerate((4, 6, 8))]
    shape = made[0][1]
    sites = [read(net, class_counts=rng.integers(1, 9, 3), shape=shape) for net, _ in made]
    fusion = fuse(sites)
    X = rng.normal(size=(5, *shape))
    assert list(HOWS) == ["distil", "mean"]
    for how, options in (("mean", {}), ("distil", {"steps": 2, "width": 1})):
        assert answers(fusion.model(how, **options), X).shape == (5, 3)


@pytest.mark.torch
def test_teaching_brings_a_network_nearer_to_the_ensemble_whatever_the_order_of_sites(rng):
    from modelweld.kinds.distillation import compare

    name = "residual, depthwise, grouped, batch norm"
    sites = [read(make(name, 4, seed)[0], class_counts=[3, 4, 5], shape=(2, 8, 8)) for seed in range(3)]
    fusion = fuse(sites)
    models, start = fusion._fit.models, fusion.parameters("mean")
    taught, again = (fuse(given).parameters("distil", steps=60, batch=32) for given in (sites, sites[::-1]))
    agreement = compare(models, taught).agreement
    assert agreement > compare(models, start).agreement
    assert np.isclose(compare(models, again).agreement, agreement, atol=0.1)
    X = rng.normal(size=(20, 2, 8, 8))
    found = compare(models, taught, X, np.zeros(20, int))
    assert all(0 <= share <= 1 for share in found)
    assert np.allclose(taught.arrays["mean2"], start.arrays["mean2"])


@pytest.mark.torch
@pytest.mark.parametrize("end", ["", "Softmax", "LogSoftmax"])
def test_the_ensemble_is_the_probabilities_of_sites_by_their_shares_of_each_class(end, rng):
    import torch
    from torch import nn

    from modelweld.kinds.distillation import Ensemble

    ends = [getattr(nn, end)(1)] if end else []
    made = [nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.Linear(5, 3), *ends) for _ in range(2)]
    counts = rng.integers(1, 9, (2, 3))
    sites = [read(net, class_counts=n, shape=(4,)) for net, n in zip(made, counts, strict=True)]
    X = torch.randn(20, 4)
    with torch.no_grad():
        given = torch.stack([net[:3](X).softmax(1) for net in made])
        wanted = (torch.from_numpy(counts / counts.sum(axis=0))[:, None].float() * given).sum(0)
    assert torch.allclose(Ensemble(sites)(X).exp(), wanted, atol=1e-6)


@pytest.mark.torch
def test_values_are_averaged_by_rows_and_taught_by_squares(rng):
    import torch
    from torch import nn

    from modelweld.kinds.distillation import Ensemble, compare

    made = [nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.Linear(5, 2)) for _ in range(2)]
    sites = [read(net, n=n, shape=(4,)) for net, n in zip(made, (30, 10), strict=True)]
    X = torch.randn(20, 4)
    with torch.no_grad():
        assert torch.allclose(Ensemble(sites)(X), 0.75 * made[0](X) + 0.25 * made[1](X), atol=1e-6)
    assert fuse(sites).parameters("distil", steps=3).arrays["W3"].shape[0] == 2
    with pytest.raises(InputError, match="name no class"):
        compare(sites, sites[0])


@pytest.mark.torch
def test_batch_norm_of_a_first_layer_says_how_bright_inputs_are(rng):
    import torch
    from torch import nn

    from modelweld.kinds.distillation import Ensemble

    X = torch.from_numpy(3 + 2 * draw([LocalModel({}, {})], (1, 8, 8), 500, rng)).float()
    sites = []
    for _ in range(3):
        first, norm = nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6, momentum=1.0)
        norm.train()(first(X))
        net = nn.Sequential(first, norm, nn.ReLU(), nn.Flatten(), nn.Linear(216, 3)).eval()
        sites.append(read(net, class_counts=[1, 2, 3], shape=(1, 8, 8)))
    found = Ensemble(sites)
    assert np.isclose(found.scale, 2, rtol=0.1)
    assert np.isclose(found.offset, 3, rtol=0.1)


REFUSED = {
    "layer '1', a GroupNorm, is not read. Layers that are: .*Conv2d": lambda nn: nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(4, 2)
    ),
    "layer '1', a PReLU, is not read": lambda nn: nn.Sequential(nn.Linear(3, 4), nn.PReLU(), nn.Linear(4, 2)),
    "layer '0', an Embedding, is not read": lambda nn: nn.Sequential(nn.Embedding(3, 4), nn.Linear(4, 2)),
    "'reflect' is not read": lambda nn: nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, padding_mode="reflect"), nn.Flatten(), nn.Linear(4, 2)
    ),
    "layer '1': a Linear layer after a convolution needs a Flatten": lambda nn: nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.Linear(4, 2)
    ),
    "gives an image": lambda nn: nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 1)),
    "a Softmax before the end": lambda nn: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Softmax(1), nn.Linear(4, 2)),
    "BatchNorm1d without running moments": lambda nn: nn.Sequential(
        nn.Linear(3, 4), nn.BatchNorm1d(4, track_running_stats=False), nn.ReLU(), nn.Linear(4, 2)
    ),
    "no channels to match": lambda nn: nn.Sequential(nn.Linear(3, 2), nn.Tanh()),
}


@pytest.mark.torch
@pytest.mark.parametrize("words", REFUSED)
def test_layers_that_are_not_known_are_refused_by_name(words):
    from torch import nn

    with pytest.raises(InputError, match=words):
        read(REFUSED[words](nn))


@pytest.mark.torch
def test_steps_that_are_not_known_are_refused_by_name():
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, step):
            super().__init__()
            self.one, self.two, self.step = nn.Linear(3, 4), nn.Linear(4, 2), step

        def forward(self, x):
            return self.two(self.step(self.one(x)))

    for step, words in (
        (lambda x: x * 2, r"mul\(...\), is not read"),
        (lambda x: torch.cat([x, x], 1)[:, :4], r"cat\(...\), is not read"),
        (lambda x: x if x.sum() > 0 else -x, "cannot be traced.*must take one tensor and not branch"),
        (lambda x: x + 1, r"add\(...\), is not read"),
        (lambda x: nn.functional.max_pool1d(x, 2, return_indices=True), "max_pool1d"),
    ):
        with pytest.raises(InputError, match=words):
            read(Net(step))


@pytest.mark.torch
def test_a_mean_over_some_places_is_refused():
    from torch import nn

    class Rows(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Conv2d(1, 4, 3), nn.Linear(24, 2)

        def forward(self, x):
            return self.two(self.one(x).mean(2).flatten(1))

    with pytest.raises(InputError, match=r"mean\(...\), is not read"):
        read(Rows(), class_counts=[1, 2], shape=(1, 8, 8))


@pytest.mark.torch
def test_classes_are_drawn_as_often_as_sites_count_them(rng):
    import torch
    from torch import nn

    from modelweld.kinds.distillation import Ensemble

    torch.manual_seed(0)
    made = [nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.Linear(5, 3)) for _ in range(2)]
    with torch.no_grad():
        for net in made:
            net[2].weight.mul_(20.0)  # sure of what they say
            net[2].bias.copy_(torch.tensor([3.0, 0.0, 0.0]))  # mostly the first class
    sites = [read(net, class_counts=[10, 20, 70], shape=(4,)) for net in made]
    ensemble = Ensemble(sites)
    far = [
        float((ensemble(X).softmax(1).mean(0) - torch.tensor([0.1, 0.2, 0.7])).abs().sum())
        for X in (ensemble.draw(2000, rng), ensemble._draw(2000, rng))
    ]
    assert far[0] < 0.8 * far[1]


@pytest.mark.torch
def test_without_the_shape_of_images_none_are_drawn():
    from torch import nn

    nets = [nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(4, 2)) for _ in range(2)]
    sites = [read(net, class_counts=[1, 2]) for net in nets]
    with pytest.raises(InputError, match=r"size of images is not known.*shape=\(1, 28, 28\)"):
        fuse(sites).model()


@pytest.mark.slow
@pytest.mark.torch
def test_the_experiment_runs(tmp_path):
    printed_by(Path(__file__).parents[1] / "experiments" / "images" / "run.py", "--smoke", "--out", tmp_path)
    record = json.loads((tmp_path / "results.json").read_text())
    assert record.pop("provenance")["settings"]["seeds"]
    assert len(record["claims"]) == 4
    for runs in record["cells"].values():
        assert all(0 <= share <= 1 for run in runs.values() for share in run["accuracy"].values())
