"""What is particular to directions: the normaliser, weights, what is refused, and what is found."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

import modelweld
from cases.directions import CASES, about, directions, unit
from modelweld import InputError, LocalModel
from modelweld.core.family import sum_by_atom
from modelweld.demo.metrics import adjusted_rand
from modelweld.families.directions import Directions
from modelweld.families.math.bessel import log_uniform, slope, tilt
from modelweld.families.math.sphere import CONCENTRATIONS
from modelweld.inputs.stacks import stack_arrays

# D, kappa, log C_D(kappa), I_{D/2}(kappa) / I_{D/2-1}(kappa): by series and Hankel's expansion to 60 digits
REFERENCE = [
    (1, 1, -1.1269280110429725, 0.7615941559557649),
    (1, 1e6, -1000000.0, 1.0),
    (2, 1e-3, -1.8378773164093298, 0.0004999999375000105),
    (2, 1, -2.073791424916524, 0.4463899658965345),
    (2, 30, -29.22257849958128, 0.983189555365336),
    (2, 1e3, -997.4651859562788, 0.9994998748748044),
    (2, 1e6, -999994.0111833792, 0.9999994999998749),
    (3, 1e-3, -2.531024413635952, 0.00033333331111111327),
    (3, 30, -28.43667968474719, 0.9666666666666667),
    (3, 1e6, -999988.0223665085, 0.999999),
    (10, 1, -3.2885364065453557, 0.09917838239971256),
    (10, 30, -22.698452476620837, 0.8590136882923947),
    (10, 1e6, -999946.100641413, 0.999995500007875),
    (42, 1e-3, 17.603141665451375, 2.380952379663987e-05),
    (42, 30, 8.585717383723601, 0.5236912920435202),
    (42, 1e3, -895.8675282822334, 0.9797000551242487),
    (50, 1, 25.463336993445264, 0.019992313385191793),
    (50, 30, 17.58920256228552, 0.4705275896954859),
    (50, 1e6, -999706.5476915818, 0.9999755002878754),
    (300, 1, 427.6051738398886, 0.003333296542381502),
    (300, 30, 426.1141945636657, 0.09902576026659916),
    (300, 1e3, -230.9677383050559, 0.8615503155185645),
    (300, 1e6, -998209.332692632, 0.999850511100386),
    (1000, 1e-3, 2032.0577602559738, 9.99999999999002e-07),
    (1000, 30, 2031.607962111138, 0.02997310209414856),
    (1000, 1e3, 1654.5508377313324, 0.6181868129101049),
    (1000, 1e6, -994017.0475705337, 0.9995006245004917),
]


@pytest.mark.parametrize(("D", "kappa", "log_c", "cosine"), REFERENCE)
def test_normaliser_and_mean_cosine_are_exact(D, kappa, log_c, cosine):
    assert float(log_uniform(D) - tilt(D, np.array(kappa**2))) == pytest.approx(log_c, rel=1e-12)
    assert float(slope(D, np.array(kappa**2))) * kappa == pytest.approx(cosine, rel=1e-12)


def test_turning_all_directions_turns_the_answer():
    case, rng = CASES["many dimensions"], np.random.default_rng(2)
    drawn, turn = case.draw([3, 2, 4], rng), np.linalg.qr(rng.normal(size=(60, 60)))[0]
    turned = replace(case.family, mean=case.family.mean @ turn)
    sums, turned_sums = drawn.sums(case.family), sum_by_atom(turned.rows(drawn.values @ turn), drawn.labels)
    assert np.allclose(case.family.log_evidence(sums), turned.log_evidence(turned_sums))
    assert np.allclose(case.family.estimate(sums) @ turn, turned.estimate(turned_sums))
    before, after = case.family.update(sums), turned.update(turned_sums)
    assert before.concentration == pytest.approx(after.concentration, rel=1e-4)
    assert np.allclose(before.mean @ turn, after.mean, atol=1e-3)


def test_scaling_all_weights_scales_the_concentration():
    rng = np.random.default_rng(5)
    atoms = unit(rng.normal(size=(6, 8)))
    sites = [about(atoms[rng.permutation(6)[:4]], 200.0, rng) for _ in range(5)]
    weights = [np.repeat(rng.gamma(3.0, 1.0, (4, 1)), 8, axis=1) for _ in sites]

    def fused(scale):
        models = [
            LocalModel({"topics": v}, {"topics": ("topic", None)}, weight={"topics": scale * w})
            for v, w in zip(sites, weights, strict=True)
        ]
        return modelweld.fuse(models, Directions())

    one, thousand = fused(1.0), fused(1000.0)
    assert adjusted_rand(one.labels, thousand.labels) == 1.0
    (a,), (b,) = (f.matchings["topic"].families.values() for f in (one, thousand))
    assert a.concentration == pytest.approx(1000 * b.concentration, rel=1e-2)


def test_without_two_values_at_an_atom_the_concentration_stays():
    case = CASES["sphere"]
    drawn = case.draw([1] * 20, np.random.default_rng(6))
    learned = case.family.update(drawn.sums(case.family))
    assert learned.concentration == case.family.concentration
    assert learned.base_concentration != case.family.base_concentration


def test_values_that_coincide_have_a_largest_concentration():
    values = np.repeat(unit(np.random.default_rng(7).normal(size=(5, 4))), 3, axis=0)
    family = Directions(unit(np.ones(4)), 10.0, 0.0)
    learned = family.update(sum_by_atom(family.rows(values), np.repeat(np.arange(5), 3)))
    assert learned.concentration == pytest.approx(4 * CONCENTRATIONS[1], rel=1e-6)


def test_estimate_of_nothing_is_the_mean():
    family = CASES["even base"].family
    assert np.array_equal(family.estimate(np.zeros((2, 6))), np.tile(family.mean, (2, 1)))


def test_signs_are_directions_in_one_dimension():
    family = Directions([1.0], 2.0, 0.0)
    rows = family.rows(np.array([[1.0], [-1.0]]))
    assert np.allclose(np.exp(family.log_evidence(rows)), 0.5)
    together = np.exp(family.log_evidence(2 * rows[0]))  # both values of either sign: (p^2 + (1 - p)^2) / 2
    p = np.exp(2.0) / (2 * np.cosh(2.0))
    assert float(together) == pytest.approx((p**2 + (1 - p) ** 2) / 2)


@pytest.mark.parametrize("D", [3, 50, 300])
@pytest.mark.parametrize("base", [1e-9, 1.0])
def test_atoms_are_found(D, base):
    rng = np.random.default_rng(D)
    atoms = about(np.tile(unit(rng.normal(size=D)), (12, 1)), base * D, rng)
    truth = [np.sort(rng.permutation(12)[:8]) for _ in range(8)]
    sites = [about(atoms[held], 2000.0 if D == 3 else 4.0 * D, rng) for held in truth]
    fusion = modelweld.fuse(sites, Directions())
    assert adjusted_rand(truth, fusion.labels) > (0.85 if D == 3 else 0.99)
    assert np.allclose(np.linalg.norm(fusion.atoms, axis=1), 1.0)


def test_splits_are_found_where_noise_is_most_of_the_scatter():
    rng = np.random.default_rng(11)
    atoms = unit(rng.normal(size=(20, 300)))
    truth = [np.sort(rng.permutation(20)[:12]) for _ in range(20)]
    fusion = modelweld.fuse([about(atoms[held], 140.0, rng) for held in truth], Directions())
    assert adjusted_rand(truth, fusion.labels) > 0.9


def test_a_start_stands_near_values_in_a_narrow_cone():
    rng = np.random.default_rng(12)
    atoms = about(np.tile(unit(np.ones(20)), (10, 1)), 1e5, rng)
    family = Directions().starts(stack_arrays([about(atoms, 1e7, rng) for _ in range(3)]))[0]
    assert 3e6 < family.concentration < 3e7
    assert 3e4 < family.base_concentration < 3e5


@pytest.mark.parametrize(
    ("values", "beside", "says"),
    [
        ([[0.6, 0.8], [3.0, 4.0]], {}, r"site 0, array 'x', row 1: .*length one; found 5: divide .* or use Gaussian"),
        ([[0.6, 0.8], [0.0, 0.0]], {}, "row of zeros, which has no direction"),
        ([[0.6, 0.8], [0.0, 1.0]], {"weight": [[1.0, 1.0], [0.0, 2.0]]}, "one weight per row.*from 0 to 2"),
        ([[0.6, 0.8], [0.0, 1.0]], {"variance": [[0.0, 0.0], [0.1, 0.1]]}, "come without variance"),
    ],
)
def test_what_is_no_direction_is_refused(values, beside, says):
    model = LocalModel(
        {"x": np.array(values)}, {"x": ("atom", None)}, **{name: {"x": np.array(x)} for name, x in beside.items()}
    )
    with pytest.raises(InputError, match=says):
        modelweld.fuse([model], Directions())


def test_rows_that_were_not_seen_may_have_any_length():
    weight = np.array([[1.0, 1.0], [0.0, 0.0]])
    stack = replace(stack_arrays([np.array([[0.6, 0.8], [3.0, 4.0]])]), weight=weight)
    assert Directions().misfit(stack) is None


def test_mean_of_another_dimension_is_refused():
    with pytest.raises(InputError, match="mean has 2 entries but the values have 3"):
        modelweld.fuse([np.eye(3)], Directions(mean=[1.0, 0.0]))


def at_own_concentrations(rng, J=10, D=30):
    """Atoms half of which sites agree on a hundred times as closely as on the others."""
    atoms, kappa = unit(rng.normal(size=(12, D))), np.where(np.arange(12) % 2, 100.0, 10_000.0)
    truth = [np.sort(rng.permutation(12)[:8]) for _ in range(J)]
    return truth, [about(atoms[held], kappa[held], rng) for held in truth]


def test_atoms_of_different_concentrations_are_found():
    truth, sites = at_own_concentrations(np.random.default_rng(0))
    shared, own = modelweld.fuse(sites, Directions(own=False)), modelweld.fuse(sites, Directions())
    assert adjusted_rand(truth, own.labels) == 1.0 > adjusted_rand(truth, shared.labels)
    assert own.diagnosis.family.diversity > 1.0
    assert own.objective > shared.objective + 100


def test_atoms_that_are_alike_have_one_concentration():
    rng = np.random.default_rng(1)
    atoms = unit(rng.normal(size=(10, 20)))
    truth = [np.sort(rng.permutation(10)[:6]) for _ in range(8)]
    fusion = modelweld.fuse([about(atoms[held], 100.0, rng) for held in truth], Directions())
    assert adjusted_rand(truth, fusion.labels) == 1.0
    assert fusion.diagnosis.family.diversity == 0.0
    assert 70 < fusion.diagnosis.family.concentration < 140


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("members", [1, 2, 5, 40, 400])
@pytest.mark.parametrize("D", [3, 40])
@pytest.mark.parametrize("diversity", [0.3, 1.0, 2.0])
def test_evidence_is_an_integral_over_concentrations(diversity, D, members, weighted):
    """However narrow an atom's likelihood is: twenty thousand points say the same."""
    rng = np.random.default_rng([D, members])
    family = replace(directions(D, 5.0 * D, 0.3 * D, own=True), diversity=diversity)
    weight = rng.uniform(0.5, 3.0, members) if weighted else np.ones(members)
    kappa = family.concentration * np.exp(diversity * rng.normal())
    values = about(np.tile(unit(rng.normal(size=D)), (members, 1)), kappa * weight, rng)
    z = np.linspace(-8.0, 8.0, 20_001)
    kappas, S = family.concentration * np.exp(diversity * z), weight @ values
    pull = (
        family.base_concentration**2 + 2 * family.base_concentration * kappas * (S @ family.mean) + kappas**2 * (S @ S)
    )
    logs = tilt(D, pull) - tilt(D, np.asarray(family.base_concentration**2)) - 0.5 * z**2
    for w, number in zip(*np.unique(weight, return_counts=True), strict=True):
        logs += number * (log_uniform(D) - tilt(D, (kappas * w) ** 2))
    dense = logsumexp(logs) + np.log((z[1] - z[0]) / np.sqrt(2 * np.pi))
    found = family.log_evidence(family.rows(values, None, np.repeat(weight[:, None], D, axis=1)).sum(0))
    coarse = weighted and diversity > 1  # columns of c are then far apart
    assert float(found) == pytest.approx(dense, abs=5e-3 * members if coarse else 2e-3)


def test_few_sites_that_overlap_do_not_make_the_concentration_many_times_too_high():
    shared, own = [], []
    for seed in range(2):
        rng = np.random.default_rng([21, seed])
        atoms = unit(rng.normal(size=(12, 4)))
        sites = [about(atoms[rng.random(12) < 0.5], 11.0, rng) for _ in range(5)]
        for found, family in ((shared, Directions(own=False)), (own, Directions())):
            found.append(modelweld.fuse(sites, family, search="plain").diagnosis.family.concentration / 11)
    assert max(own) < 3.5
    assert np.log(own).mean() < np.log(shared).mean()


def signed(sites, rng):
    """The sites' values with signs of no meaning, and these."""
    signs = [rng.choice([-1.0, 1.0], len(site)) for site in sites]
    return [s[:, None] * site for s, site in zip(signs, sites, strict=True)], signs


def axes_and_sites(seed, kappa=120.0, D=12):
    rng = np.random.default_rng(seed)
    atoms = unit(rng.normal(size=(10, D)))
    truth = [np.sort(rng.permutation(10)[:6]) for _ in range(8)]
    sites, signs = signed([about(atoms[held], kappa, rng) for held in truth], rng)
    return atoms, truth, sites, signs


def test_values_without_signs_are_matched_and_turned():
    atoms, truth, sites, signs = axes_and_sites(4)
    fusion = modelweld.fuse(sites, Directions(axial=True))
    assert adjusted_rand(truth, fusion.labels) == 1.0
    assert adjusted_rand(truth, modelweld.fuse(sites, Directions()).labels) < 0.8
    for held, given, found, labels in zip(truth, signs, fusion.parameters.signs, fusion.labels, strict=True):
        turned = np.sign(np.einsum("ld,ld->l", atoms[held], fusion.atoms[labels]))
        assert (found * given == turned).all()
    largest = np.abs(fusion.atoms).argmax(1)
    assert (fusion.atoms[np.arange(len(largest)), largest] > 0).all()


def test_answers_do_not_depend_on_signs():
    _, _, sites, _ = axes_and_sites(5, kappa=25.0)
    fusion = modelweld.fuse(sites, Directions(axial=True))
    other = modelweld.fuse(signed(sites, np.random.default_rng(0))[0], Directions(axial=True))
    assert [x.tolist() for x in fusion.labels] == [x.tolist() for x in other.labels]
    assert np.array_equal(fusion.atoms, other.atoms)
    assert fusion.objective == other.objective
    assert (np.diff(fusion.diagnosis.history) > -1e-6).all()


def test_signs_of_values_that_have_them_are_ones():
    _, _, sites, _ = axes_and_sites(7)
    assert all((s == 1).all() for s in modelweld.fuse(sites, Directions()).parameters.signs)


def test_axial_sites_are_added_removed_and_saved(tmp_path):
    _, truth, sites, _ = axes_and_sites(8)
    fusion = modelweld.fuse(sites[:7], Directions(axial=True)).add(sites[7])
    assert adjusted_rand(truth, fusion.labels) == 1.0
    fusion.save(tmp_path / "axial.safetensors")
    loaded = modelweld.load(tmp_path / "axial.safetensors")
    assert all(map(np.array_equal, loaded.parameters.signs, fusion.parameters.signs))
    assert min(c.min() for c in fusion.confidence(how="conditional")) > 0.9
    fewer = fusion.remove(0)
    assert adjusted_rand(truth[1:], fewer.labels) == 1.0
    slim = fusion.slim()
    assert np.allclose(np.abs(slim.atoms), np.abs(fusion.atoms))


@pytest.mark.slow
def test_axial_atoms_are_drawn_one_way_round():
    fusion = modelweld.fuse(axes_and_sites(8)[2][:4], Directions(axial=True))
    where = fusion.posterior.atom_intervals()
    assert ((where.low <= fusion.atoms) & (fusion.atoms <= where.high)).mean() > 0.98
    assert (where.high - where.low).max() < 0.5  # no atom is one way round here and the other there
    assert abs(np.median(fusion.posterior.draws().K) - fusion.K) <= 1


def test_three_sites_do_not_tell_whether_atoms_differ():
    rng = np.random.default_rng(7)
    atoms = unit(rng.normal(size=(15, 16)))
    sites = [about(np.concatenate([atoms, unit(rng.normal(size=(15, 16)))]), 200.0, rng) for _ in range(4)]
    assert modelweld.fuse(sites[:3], Directions()).diagnosis.family.diversity == 0.0
    case = CASES["own"]
    few, enough = (case.draw([n] * 40, np.random.default_rng(1)) for n in (3, 4))
    taught = [replace(case.family, diversity=0.5).update(drawn.sums(case.family)) for drawn in (few, enough)]
    assert taught[0].diversity == 0.5 != taught[1].diversity
