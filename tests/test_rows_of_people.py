"""Rows of people do not leave: tables that may be theirs are refused, and parameters that are rows, whichever way."""

import csv

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans

import modelweld
from modelweld import InputError, LocalModel
from modelweld.errors import DisclosureWarning
from modelweld.files import read_any, read_sites
from modelweld.site.export import export
from test_tables import Table

PEOPLE = np.random.default_rng(0).normal([60, 130, 240], [9, 18, 50], (303, 3)).round(1)
NAMES = ["age", "pressure", "cholesterol"]
WHY = "rows of people would leave"


def frame(values, dtype=None):
    return Table(np.asarray(values, dtype=dtype), NAMES)


def other(name):
    def made(values):
        library = pytest.importorskip(name)
        return (library.table if name == "pyarrow" else library.DataFrame)(dict(zip(NAMES, values.T, strict=True)))

    return made


FORMS = {
    "array": np.asarray,
    "float32": np.float32,
    "fortran": np.asfortranarray,
    "list": np.ndarray.tolist,
    "masked": np.ma.masked_array,
    "frame": frame,
    "object frame": lambda values: frame(values, object),
    "pandas": other("pandas"),
    "polars": other("polars"),
    "pyarrow": other("pyarrow"),
}
"""What one may have rows in."""

DATA = {
    **FORMS,
    "object array": lambda values: values.astype(object),
    "sparse": sparse.csr_matrix,
    "sparse array": sparse.coo_array,
    "sequences": lambda values: [values[:100], values[100:]],
    "frame with another column": lambda values: Table(
        np.column_stack([np.full(len(values), "Smith", dtype=object), values[:, ::-1]]), ["name", *NAMES[::-1]]
    ),
    "frame with gaps": lambda values: frame(np.concatenate([values.astype(object), [[None, 1, 2]]])),
}
"""What one may have data in."""


def write_csv(path, values):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([NAMES, *values])


def write_parquet(path, values):
    pytest.importorskip("pyarrow.parquet").write_table(FORMS["pyarrow"](values), path)


def write_tensors(path, values):
    from safetensors.numpy import save_file

    save_file({"values": values}, path)


FILES = {
    "a.csv": write_csv,
    "a.parquet": write_parquet,
    "a.npy": np.save,
    "a.npz": lambda path, values: np.savez(path, values),
    "a.json": lambda path, values: path.write_text(f'{{"values": {values.tolist()}}}'),
    "a.safetensors": write_tensors,
}


@pytest.fixture(params=FILES)
def file(request, tmp_path):
    FILES[request.param](tmp_path / request.param, PEOPLE)
    return tmp_path / request.param


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore::modelweld.errors.DisclosureWarning")
def test_tables_in_memory_are_refused_unless_rows_are_said_to_be_centres(form, tmp_path):
    table = FORMS[form](PEOPLE)
    for leave in (modelweld.read, lambda table, **said: export(table, tmp_path / "a.safetensors", **said)):
        with pytest.raises(InputError, match=rf"^303 rows, .*{WHY}.*modelweld\.export\(.*centres=True"):
            leave(table)
    assert not list(tmp_path.iterdir())
    for said in ({"centres": True}, {"counts": np.full(303, 7.0)}):
        local = modelweld.read(table, site="north", **said)
        assert local.arrays["values"].shape == PEOPLE.shape
        export(table, tmp_path / "a.safetensors", force=True, **said)
        assert modelweld.load(tmp_path / "a.safetensors").arrays.keys() == local.arrays.keys()
    with pytest.raises(InputError, match="below 5"):
        export(table, None, counts=np.ones(303))


@pytest.mark.filterwarnings("ignore::modelweld.errors.DisclosureWarning")
def test_files_are_refused_unless_rows_are_said_to_be_centres(file):
    reading = (modelweld.load, read_any, lambda path, **said: read_sites(path, **said)[0], export_nothing)
    for read in reading:
        with pytest.raises(InputError, match=rf"a\.\w+': 303 rows, .*{WHY}.*modelweld\.load\(path, centres=True\)"):
            read(file)
        read(file, centres=True)
    with pytest.raises(InputError, match=WHY):
        modelweld.fuse([file, str(file.with_name("b.csv"))])
    assert modelweld.load(file, centres=True).arrays["values"].shape == PEOPLE.shape


def export_nothing(path, **said):
    return export(path, None, **said)


@pytest.mark.parametrize("beside", ["counts", "variance", "variances", "centres"])
def test_files_that_say_what_rows_are_need_no_word(tmp_path, beside):
    named = {"centres" if beside == "centres" else "values": PEOPLE, "counts": np.full(303, 7.0)}
    named |= {beside: np.ones_like(PEOPLE)} if beside.startswith("var") else {}
    if beside in ("centres", "variance"):
        del named["counts"]
    np.savez(tmp_path / "a.npz", **named)
    assert modelweld.load(tmp_path / "a.npz").sizes.popitem()[1] == 303


COMMANDS = [
    ("export", "a.csv", "--out", "new.safetensors"),
    ("validate", "a.csv"),
    ("inspect", "a.csv"),
    ("fuse", "a.csv", "b.csv", "--out", "new.safetensors"),
    ("add", "fusion.safetensors", "a.csv", "--out", "new.safetensors"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_commands_refuse_tables_unless_rows_are_said_to_be_centres(command, run, tmp_path):
    for j, name in enumerate("abc"):
        write_csv(tmp_path / f"{name}.csv", PEOPLE[j::15])
    modelweld.fuse([read_any(f"{name}.csv", centres=True) for name in "bc"]).save("fusion.safetensors")
    code, _, complained = run(*command)
    assert code == 1
    assert WHY in complained
    assert "--centres" in complained
    assert "centres=True" not in complained
    assert not (tmp_path / "new.safetensors").exists()
    assert run(*command, "--centres")[0] == 0
    assert (tmp_path / "new.safetensors").exists() == ("--out" in command)


def test_tables_are_left_out_where_it_goes_on_without(run, tmp_path):
    write_csv(tmp_path / "a.csv", PEOPLE)
    for name in ("b", "c"):
        np.savez(tmp_path / f"{name}.npz", values=PEOPLE[:3], counts=[9, 9, 9], features=NAMES)
    code, _, complained = run("fuse", ".", "--keep-going")
    assert code == 3
    assert "left out: a.csv: 303 rows" in complained
    assert "say so: --centres" in complained


def test_an_empty_name_is_not_the_folder_one_is_in(run, tmp_path):
    np.savez(tmp_path / "a.npz", values=PEOPLE[:3], counts=[9, 9, 9])
    for command in ("validate", "fuse"):
        code, _, complained = run(command, "")
        assert code == 1
        assert "the name of a file is empty" in complained


# -- parameters that are rows -----------------------------------------------------------------------------------------


def with_row(row):
    values = KMeans(3, n_init=1, random_state=0).fit(PEOPLE).cluster_centers_
    return LocalModel(
        {"values": np.concatenate([values, [row]]), "counts": [90.0, 80.0, 90.0, 7.0]},
        {"values": ("atom", "feature"), "counts": ("atom",)},
        auxiliary=["counts"],
        coordinates={"feature": NAMES},
    )


@pytest.mark.parametrize("moved", [0.0, 1e-8, -1e-6])
@pytest.mark.parametrize("form", DATA)
def test_a_parameter_that_is_a_row_is_refused(form, moved):
    if form == "float32" and moved:
        moved = 1e-7 * PEOPLE[7]
    with pytest.raises(InputError, match="'values' has a row of the data among its values"):
        export(with_row(PEOPLE[7] + moved), None, X=DATA[form](PEOPLE))
    assert export(with_row(PEOPLE[7] + 0.05), None, X=DATA[form](PEOPLE)).smallest == 7


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (PEOPLE[:, :2], "X has 2 columns, and no array of the model has as many"),
        (["Smith", "Jones"], "cannot be compared"),
        ([[1.0, "Smith", 3.0]], "cannot be compared"),
        (5, "cannot be compared"),
    ],
)
def test_data_that_cannot_be_compared_are_refused(X, message):
    with pytest.raises(InputError, match=message):
        export(with_row([1.0, 2.0, 3.0]), None, X=X)


def test_texts_of_topics_have_no_rows():
    from sklearn.decomposition import LatentDirichletAllocation
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline

    texts = ["tea and honey", "milk and bread", "honey bread"] * 9
    model = make_pipeline(CountVectorizer(), LatentDirichletAllocation(2, random_state=0)).fit(texts)
    assert export(model, None, X=texts).kind == "topics"


def test_means_of_many_rows_of_one_feature_are_no_rows():
    X = np.random.default_rng(1).normal(size=(100_000, 1))
    means = KMeans(5, n_init=1, random_state=0).fit(X).cluster_centers_
    local = LocalModel({"values": means, "counts": np.full(5, 9.0)}, {"values": ("atom", None), "counts": ("atom",)})
    assert export(local, None, X=X).smallest == 9
    with pytest.raises(InputError, match="a row of the data"):
        export(local.with_(arrays={**local.arrays, "values": X[:5]}), None, X=X)


def test_unknown_counts_of_centres_are_a_concern():
    with pytest.warns(DisclosureWarning, match="how many points stand behind"):
        export(PEOPLE[:5], None, centres=True)


# -- rounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [PEOPLE, PEOPLE.tolist(), (with_row(PEOPLE[7]), {"X": PEOPLE.tolist()})])
def test_what_a_round_sends_is_checked_as_files_are(made):
    from modelweld.federate.round import export_packed

    with pytest.raises(InputError, match="row"):
        export_packed(made, "north", {})


@pytest.mark.flower
def test_flower_clients_send_no_rows(monkeypatch):
    from unittest.mock import Mock

    from flwr.app import Error

    from modelweld.federate import flower, unpack
    from modelweld.federate.flower import bytes_of

    monkeypatch.setattr(flower, "Message", lambda content, reply_to=None: Mock(content=content))

    def sent(**options):
        message = Mock()
        message.metadata.message_type = "train"
        client = flower.client_app(lambda context: PEOPLE, **options)
        return client(message, Mock(node_config={"site": "north"}, node_id=3)).content

    assert isinstance(sent(), Error)
    with pytest.warns(DisclosureWarning):
        assert unpack(bytes_of(sent(centres=True)), "north").sizes == {"atom": 303}


@pytest.mark.nvflare
@pytest.mark.filterwarnings("ignore::modelweld.errors.DisclosureWarning")
def test_nvflare_clients_send_no_rows():
    from modelweld.federate import nvflare

    assert nvflare._answer(lambda site: PEOPLE, "north", {}) == {nvflare.FAILED: "InputError"}
    assert nvflare.MODEL in nvflare._answer(lambda site: PEOPLE, "north", {"centres": True})
