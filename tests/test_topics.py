"""Topic models: vocabularies that differ, copies, empty topics, and what written models can do."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from adapted import collected
from adapted.sklearn_lda import WORDS, Sklearn, Topics, planted
from modelweld import InputError, fuse, read
from modelweld.families.counts import Counts
from modelweld.families.directions import Directions
from modelweld.kinds.topics import embedding_topics, topics
from modelweld.libraries import write

CASES = {name: case for name, case in collected().items() if isinstance(case, Topics)}
SKLEARN = Sklearn()


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def some_words(rng, number=20):
    """Columns of the words a site knows."""
    return np.sort(rng.permutation(len(WORDS))[:number])


@pytest.fixture(scope="module")
def sites():
    """Topics of four sites over all words."""
    rng = np.random.default_rng(3)
    return [read(SKLEARN.fit(SKLEARN.data(rng)), features=WORDS, site=f"s{j}") for j in range(4)]


def with_columns(local, columns, order=None):
    """The same topics over these words only, in this order, the topics in that one."""
    order = np.arange(len(local.arrays["words"])) if order is None else order
    names = local.coordinates.get("word")
    return topics(
        local.arrays["words"][order][:, columns],
        names and [names[i] for i in columns],
        alpha=local.arrays["alpha"][order],
        eta=local.arrays["eta"][columns],
        site=local.site,
        facts=local.facts,
    )


def permuted(local, rng, columns=None):
    """The same topics in another order, words too if columns are given."""
    K, V = local.arrays["words"].shape
    return with_columns(local, np.arange(V) if columns is None else columns, rng.permutation(K))


def probabilities(local):
    """Words in topics, topics in the order of the words they are planted with."""
    words = np.zeros((len(local.arrays["words"]), len(WORDS)))
    words[:, [WORDS.index(word) for word in local.coordinates["word"]]] = local.arrays["words"]
    words = words / words.sum(axis=1, keepdims=True)
    return words[np.argsort(words @ np.arange(len(WORDS)))]


@pytest.mark.filterwarnings("ignore::modelweld.DuplicateWarning")  # copies are what the law is about
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[getattr(pytest.mark, c.marker)] if c.marker else []) for n, c in CASES.items()],
)
def test_splits_fuse_into_the_model_of_as_many_times_the_documents(name, rng):
    case = CASES[name]
    X = case.data(rng)
    local = read(case.fit(X))
    fused = fuse([permuted(local, rng) for _ in range(4)])
    more = local.with_(arrays={**local.arrays, "words": 4 * local.arrays["words"]})
    assert np.allclose(case.answers(fused.model(), X), case.answers(write(more), X), rtol=1e-6, atol=1e-6)
    for how in ("counts", "atoms"):
        total = fused.parameters(how).arrays["words"].sum(axis=0)
        assert total.sum() == pytest.approx(4 * local.arrays["words"].sum())


def test_vocabularies_may_differ(rng):
    kept = [some_words(rng) for _ in range(4)]
    data = [SKLEARN.data(rng)[:, keep] for keep in kept]
    fitted = [SKLEARN.fit(X) for X in data]
    fusion = fuse([read(m, features=[WORDS[i] for i in keep]) for m, keep in zip(fitted, kept, strict=True)])
    assert fusion.K == 3
    known = sorted({int(i) for keep in kept for i in keep})
    assert fusion.parameters().coordinates["word"] == tuple(WORDS[i] for i in known)
    model = fusion.model()
    X = SKLEARN.data(rng)[:, known]
    shares = model.transform(X)
    assert shares.shape == (len(X), 3)
    assert np.allclose(shares.sum(axis=1), 1)
    assert np.isfinite([model.perplexity(X), model.score(X)]).all()
    apart = np.abs(planted()[0] - planted()[1]).sum()
    for how in ("counts", "atoms"):
        assert np.abs(probabilities(fusion.parameters(how)) - planted()).sum(axis=1).max() < apart / 4


def test_atoms_know_that_a_word_a_site_lacks_could_not_be_seen_there(rng):
    kept = [some_words(rng) for _ in range(4)]
    fusion = fuse([topics(3000 * planted()[:, keep], [WORDS[i] for i in keep]) for keep in kept])
    off = {
        how: np.abs(probabilities(fusion.parameters(how)) - planted()).sum(axis=1).max() for how in ("counts", "atoms")
    }
    assert off["atoms"] < off["counts"] / 2


def test_counts_of_words_are_added_over_the_sites_that_have_them(sites, rng):
    cut = [with_columns(s, some_words(rng)) for s in sites]
    fused = fuse(cut).parameters()
    for i, word in enumerate(fused.coordinates["word"]):
        own = [s.arrays["words"][:, s.coordinates["word"].index(word)] for s in cut if word in s.coordinates["word"]]
        assert fused.arrays["words"][:, i].sum() == pytest.approx(np.sum(own))


@pytest.mark.parametrize("number", [24, 20])
def test_order_of_words_and_sites_does_not_matter(sites, rng, number):
    cut = [with_columns(s, some_words(rng, number)) for s in sites]
    turned = [permuted(s, rng, rng.permutation(number)) for s in cut]
    a, b = fuse(cut), fuse([turned[j] for j in (2, 0, 3, 1)])
    assert b.objective == pytest.approx(a.objective, rel=1e-9)
    assert np.allclose(probabilities(b.parameters()), probabilities(a.parameters()), rtol=1e-9, atol=1e-12)


def drawn_sites(held, V=300, seed=1):
    """Sites of these topics out of 18 that share three tenths of their words' mass; sites differ beyond chance."""
    rng = np.random.default_rng(seed)
    pool = 0.3 * rng.dirichlet(np.full(V, 0.3)) + 0.7 * rng.dirichlet(np.full(V, 0.05), 18)
    sites = []
    for own in held:
        theta = [rng.dirichlet(600 * pool[k] + 1e-3) for k in own]
        words = np.array([rng.multinomial(rng.integers(1500, 6000), p) for p in theta], dtype=float)
        sites.append(topics(words, [f"w{i}" for i in range(V)], eta=0.15))
    return sites


APART = [range(6), range(6, 12), range(12, 18)]
SHARED = [[0, 1, 2, 3, 4, 5], [5, 4, 3, 6, 7, 8], [8, 0, 4, 9, 10, 11]]


@pytest.mark.parametrize("V", [300, 1000])
@pytest.mark.parametrize("held", [APART, SHARED], ids=["apart", "shared"])
def test_topics_that_few_sites_share_are_found_and_others_stay_apart(held, V):
    labels = np.concatenate(fuse(drawn_sites(held, V)).labels)
    assert adjusted_rand_score(np.concatenate(held), labels) == 1.0


def test_what_a_row_is_worth_does_not_slide_where_words_are_worth_less_than_one_observation():
    assert fuse(drawn_sites(APART), {"words": Counts()}).K >= 15  # six if it may fall to half of its first value


def test_pseudo_counts_decide_and_are_not_counted(sites):
    fusion = fuse(sites)
    assert list(fusion.matching.families) == ["smoothed"]
    one = fusion._fit.models[0].arrays
    wanted = (one["words"] + one["eta"]) / (one["words"] + one["eta"]).sum(axis=1, keepdims=True)
    assert np.allclose(one["smoothed"], wanted * one["counts"][:, None])
    assert fusion.parameters().arrays["words"].sum() == pytest.approx(sum(s.arrays["words"].sum() for s in sites))


def test_without_names_words_must_be_as_many(sites):
    a, b = (topics(s.arrays["words"], site=s.site) for s in sites[:2])
    assert fuse([a, b]).K == 3
    with pytest.raises(InputError, match="fixed coordinates must agree"):
        fuse([a, with_columns(b, np.arange(20))])
    with pytest.raises(InputError, match=r"site s1 does not name its words.*features=words"):
        fuse([sites[0], b])


def test_a_topic_without_words_says_nothing(sites):
    words = np.vstack([sites[0].arrays["words"], np.full(24, 1e-9)])
    more = [topics(words, WORDS), *sites[1:]]
    fusion = fuse(more)
    assert len(fusion.labels[0]) == 4
    found = fusion.parameters().arrays["words"]
    assert np.allclose(found[found.sum(axis=1) > 1], fuse(sites).parameters().arrays["words"], atol=1e-6)


def test_probabilities_are_enough_but_do_not_mix_with_counts(sites):
    shares = [topics(s.arrays["words"] / s.arrays["counts"][:, None], WORDS, counted=False) for s in sites]
    fusion = fuse(shares)
    expected = np.mean([probabilities(s) for s in shares], axis=0)
    assert np.allclose(probabilities(fusion.parameters()), expected)
    with pytest.raises(InputError, match="site 0 sends probabilities of words, others numbers"):
        fuse([shares[0], *sites[1:]]).parameters()


def test_priors_keep_their_sums(sites):
    uneven = [s.with_(arrays={**s.arrays, "alpha": np.array([0.2, 0.3, 0.5])}) for s in sites]
    fused = fuse(uneven).parameters()
    assert fused.arrays["alpha"].sum() == pytest.approx(1.0)
    assert np.allclose(fused.arrays["eta"], 1 / 3)


def test_models_learned_online_are_written_as_they_are(rng):
    X = SKLEARN.data(rng)
    model = LatentDirichletAllocation(3, learning_method="online", random_state=0, max_iter=3).fit(X)
    assert np.allclose(write(read(model)).transform(X), model.transform(X), rtol=1e-9)


def test_partial_fit_needs_the_number_of_words(rng):
    X = SKLEARN.data(rng)
    model = LatentDirichletAllocation(3, random_state=0).partial_fit(X)
    with pytest.raises(InputError, match=r"partial_fit.*tokens=X.sum\(\)"):
        read(model)
    for told in ({"tokens": X.sum()}, {"X": X}):
        assert read(model, **told).arrays["words"].sum() == pytest.approx(X.sum())


def test_written_models_go_on_learning_and_name_their_columns(sites, rng):
    local = with_columns(sites[0], np.arange(20))
    model = write(local, "LatentDirichletAllocation")
    texts = [" ".join(rng.choice(WORDS[:20], 30)) for _ in range(10)]
    X = CountVectorizer(vocabulary=model.vocabulary_).transform(texts)
    assert model.transform(X).shape == (10, 3)  # without a warning on names
    assert model.partial_fit(X).components_.shape == (3, 20)
    named = write(local.with_(facts={**local.facts, "named_columns": True}), "LatentDirichletAllocation")
    assert named.feature_names_in_.tolist() == WORDS[:20]


def test_embedded_topics_fuse_by_angle(rng):
    D = 20
    directions = rng.normal(size=(4, D))
    sites = []
    for held in ([0, 1, 2], [1, 2, 3], [0, 3]):
        vectors = np.repeat(directions[held], 60, axis=0) + 0.4 * rng.normal(size=(60 * len(held), D))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        model = KMeans(len(held), n_init=5, random_state=0).fit(vectors)
        sites.append(embedding_topics(model.cluster_centers_, np.bincount(model.labels_)))
    fusion = fuse(sites, families={"means": Directions()})
    assert fusion.K == 4
    model = fusion.model("atoms")
    assert type(model) is KMeans
    assert np.allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1)
    assert len(set(model.predict(directions / np.linalg.norm(directions, axis=1, keepdims=True)))) == 4
    with pytest.raises(InputError, match="length zero"):
        embedding_topics([[0.0, 0.0]], [1])


@pytest.mark.topics
def test_libraries_with_their_own_vocabularies_fuse_in_one_call(rng):
    gensim, tomotopy = CASES["gensim_lda: LdaModel"], CASES["tomotopy_lda: LDAModel"]
    X = [SKLEARN.data(rng) for _ in range(4)]
    sites = [read(gensim.fit(X[0])), read(gensim.fit(X[1])), read(tomotopy.fit(X[2]))]
    sites.append(read(SKLEARN.fit(X[3][:, :20]), features=WORDS[:20]))
    fusion = fuse(sites)
    assert fusion.K == 3
    model = fusion.model()
    assert type(model).__name__ == "LdaModel"
    bag = model.id2word.doc2bow(["w00", "w05", "w06", "w05", "never"])
    assert len(bag) == 3
    assert sum(p for _, p in model.get_document_topics(bag, minimum_probability=0)) == pytest.approx(1, abs=1e-5)
    assert type(fusion.model(like="tomotopy.LDAModel")).__name__ == "LatentDirichletAllocation"


@pytest.mark.topics
def test_words_without_names_are_columns_to_gensim(rng):
    from gensim.models import LdaModel

    from adapted.gensim_lda import bags

    sites = [read(LdaModel(bags(SKLEARN.data(rng)), 3, random_state=0, passes=10)) for _ in range(3)]
    assert all("word" not in s.coordinates for s in sites)
    model = fuse(sites).model()
    assert model.dtype == np.float32
    assert model.id2word[3] == "3"


@pytest.mark.topics
def test_other_models_of_tomotopy_are_refused():
    tomotopy = pytest.importorskip("tomotopy")
    with pytest.raises(InputError, match="LDAModel and HDPModel are read; found PAModel"):
        read(tomotopy.PAModel())


def test_a_count_vectorizer_says_what_the_words_are():
    texts = ["tea milk tea", "milk bread", "bread tea honey", "honey milk"] * 5
    pipeline = make_pipeline(CountVectorizer(), LatentDirichletAllocation(2, random_state=0)).fit(texts)
    assert read(pipeline).coordinates["word"] == ("bread", "honey", "milk", "tea")


def test_a_late_site_with_new_words_is_told_to_fuse_again():
    rng = np.random.default_rng(0)
    known = [topics(rng.gamma(1.0, 9.0, (3, 4)), list("abcd")) for _ in range(3)]
    with pytest.raises(InputError, match=r"no earlier one has.*Fuse all sites again"):
        fuse(known).add(topics(rng.gamma(1.0, 9.0, (3, 4)), list("abce")))
