"""Imports point one way, heavy libraries are loaded late, and the library never prints."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import marginparts

ROOT = Path(marginparts.__file__).parent

#: The modules from the ground up. A module may import from lower floors only.
FLOORS = [
    ["_types", "_version", "_compiled", "_files", "backends._emit"],
    ["backends._tiles", "backends._vectors", "weighting", "_by_rows", "_archive"],
    ["readers._layout", "readers._streams"],
    ["readers._labels", "readers._columns", "readers._matrix_market"],
    ["readers._arrays", "readers._delimited"],
    ["backends"],
    ["backends._common", "backends._blocks", "backends._unbroken"],
    ["backends._numba_kernels", "backends.blocked", "backends.dask_blocks"],
    ["backends._numba_sweep"],
    ["backends.reference", "backends.numba_cpu", "backends.triton_csr"],
    ["backends._torch_launch", "backends._torch_graphs"],
    ["backends._torch_dense", "backends._torch_sparse"],
    ["backends._torch_streams"],
    ["backends.torch_gpu"],
    ["models", "models.nmf_alpha", "models.least_squares", "geometry"],
    ["models.lee2010", "models.liu_wu2010", "models.stream"],
    ["solver", "labels", "scaling", "validation", "_dual_cd", "_newton_svm", "_online_duals"],
    ["checkpoint._fingerprint", "checkpoint._interruption", "checkpoint._position"],
    ["checkpoint._file", "checkpoint._policy"],
    ["checkpoint._logbook"],
    ["checkpoint"],
    ["cluster._lost_rows"],
    ["cluster._shard"],
    ["cluster._calls"],
    ["cluster._rows"],
    ["cluster._lazy"],
    ["cluster"],
    ["row_blocks._limits", "row_blocks._npy", "row_blocks._block_files"],
    ["row_blocks._sources", "row_blocks._stored"],
    ["row_blocks._npz_folder", "row_blocks._containers"],
    ["row_blocks._rows"],
    ["row_blocks._mapping"],
    ["row_blocks"],
    ["init", "dual_svm", "class_weights", "naive_bayes", "label_spreading"],
    ["transduction"],
    ["directions", "factorization", "linear_head"],
    ["partly_labeled", "scores", "calibration", "explanation", "recipe"],
    ["folds", "thresholds", "selection._settings", "online._rows", "online._classes"],
    ["rivals"],
    ["online._view", "online._learner"],
    ["online._past"],
    ["online._stream"],
    ["online"],
    ["selection._choice"],
    ["selection._notes"],
    ["selection._race"],
    ["selection._choosing"],
    ["selection"],
    ["evaluation"],
    ["estimators._base", "estimators._classifying"],
    ["estimators.nmf_alpha", "estimators.baselines", "estimators.transductive_svm"],
    ["estimators.classifier", "estimators.online"],
    ["estimators.cross_validated"],
    ["estimators"],
    ["preparation"],
    ["readers._label_files", "readers._json_lines", "readers._parquet"],
    ["readers._tables", "readers._svmlight", "readers._matrices", "readers._h5ad"],
    ["readers._images"],
    ["readers._source"],
    ["readers"],
    ["model"],
    ["fitting", "suggestion", "writers"],
    ["model_file._registry"],
    ["model_file._decode", "model_file._encode"],
    ["model_file"],
    ["report._page", "report._examples"],
    ["report._payload"],
    ["report"],
    ["datasets._errors", "datasets._formats", "datasets.embedded"],
    ["datasets._catalog"],
    ["datasets.paper"],
    ["datasets.download"],
    ["datasets"],
    ["experiments", "experiments.data", "experiments.preprocessing", "experiments.store"],
    ["experiments.protocol", "experiments.climbing", "experiments.cost_path"],
    ["experiments.bases", "experiments.scoring"],
    ["experiments.methods"],
    ["experiments.past_paper", "experiments.rivals"],
    ["experiments.registry"],
    ["experiments.plan", "experiments.page"],
    ["experiments.runner", "experiments.tables"],
    ["experiments.edges"],
    ["experiments.reproduce"],
    ["plots._look", "plots._fitted"],
    ["plots._figure2", "plots._figure3", "plots._figures45", "plots._fits"],
    ["plots._parts"],
    ["plots._path"],
    ["plots"],
    ["demo"],
    ["commands"],
    ["commands._console", "commands._agreement", "commands._fit_options"],
    ["commands._reproduce_output", "commands.data", "commands.demo", "commands.fit"],
    ["commands.reproduce", "commands.use", "commands.show"],
    ["cli"],
    [""],  # the package itself, which knows all public names
]
FLOOR = {module: floor for floor, modules in enumerate(FLOORS) for module in modules}

#: A registry imports the modules it gives out when it is asked for them.
LOOKS_UP = {
    ("backends", "backends.numba_cpu"),
    ("backends", "backends.reference"),
    ("backends", "backends.torch_gpu"),
}

#: The only modules that may import each heavy library, and there at the top.
NUMBA = {
    "_compiled",
    "_dual_cd",
    "_online_duals",
    "backends._numba_kernels",
    "backends._numba_sweep",
    "backends._emit",
    "backends._tiles",
    "backends._vectors",
}
NEVER_AT_THE_TOP = {
    *("torch", "triton", "dask", "distributed", "matplotlib", "pandas", "polars"),
    *("pyarrow", "anndata", "h5py", "zarr", "PIL"),
}

#: The files of the GPU backend, which is imported when it is asked for.
GPU = {
    *("backends.torch_gpu", "backends.triton_csr"),
    *("backends._torch_dense", "backends._torch_graphs", "backends._torch_launch"),
    *("backends._torch_sparse", "backends._torch_streams"),
}

MAY_PRINT = {"cli"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


TREES = {
    module_name(path): ast.parse(path.read_text("utf-8")) for path in sorted(ROOT.rglob("*.py"))
}


def walk(node: ast.AST, *, into_functions: bool) -> Iterator[ast.AST]:
    """Yield the nodes that run (at import, or at all), so not what is for type checkers only."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if not into_functions and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield child
        yield from walk(child, into_functions=into_functions)


def imports(module: str, *, into_functions: bool = True) -> set[str]:
    """Return the full names of the modules, or of things in them, that a module imports."""
    names = set()
    for node in walk(TREES[module], into_functions=into_functions):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: write imports in full, without dots"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def own_imports(module: str) -> set[str]:
    """Return the modules of the package that a module imports."""
    found = set()
    for name in imports(module):
        top, _, rest = name.partition(".")
        if top == "marginparts":
            # "labels.encode_labels" is a thing in labels, "backends.reference" is a module
            found.add(rest if rest in TREES else rest.rpartition(".")[0])
    return found


def libraries(module: str, *, into_functions: bool) -> set[str]:
    return {name.partition(".")[0] for name in imports(module, into_functions=into_functions)}


def test_the_sources_are_found():
    assert len(TREES) > 25
    assert "labels" in own_imports("init")
    assert "_dual_cd" in own_imports("dual_svm")  # inside a function
    assert own_imports("") == {"_version"}  # all else there is for type checkers
    assert "numba" in libraries("_dual_cd", into_functions=False)


@pytest.mark.parametrize("module", TREES)
def test_every_module_has_its_floor(module):
    assert module in FLOOR, f"add {module!r} to FLOORS in {__file__}, above all that it imports"


def test_every_floor_has_its_modules():
    assert set(FLOOR) <= set(TREES), "take what is gone out of FLOORS"


@pytest.mark.parametrize("module", TREES)
def test_imports_point_down(module):
    upward = {
        other
        for other in own_imports(module)
        if FLOOR.get(other, -1) >= FLOOR.get(module, 0) and (module, other) not in LOOKS_UP
    }
    assert not upward, f"{module} imports {upward}, which do not lie below it"


@pytest.mark.parametrize("module", TREES)
def test_heavy_libraries_are_imported_late(module):
    allowed = {"torch", "triton"} if module in GPU else set()
    assert not libraries(module, into_functions=False) & NEVER_AT_THE_TOP - allowed


@pytest.mark.parametrize("module", [name for name in TREES if name not in GPU])
def test_gpu_libraries_stay_in_their_files(module):
    allowed = {"torch"} if module == "backends" else set()  # it asks whether there is a GPU
    assert not libraries(module, into_functions=True) & {"torch", "triton"} - allowed


@pytest.mark.parametrize("module", TREES)
def test_numba_stays_in_the_compiled_modules(module):
    assert "numba" not in libraries(module, into_functions=True) or module in NUMBA


@pytest.mark.parametrize("module", sorted(NUMBA))
def test_compiled_modules_are_imported_late(module):
    importers = {
        name
        for name in TREES
        if any(
            other == f"marginparts.{module}" or other.startswith(f"marginparts.{module}.")
            for other in imports(name, into_functions=False)
        )
    }
    # its own backend is itself imported late, by the registry
    assert importers <= NUMBA | {"backends.numba_cpu"}


@pytest.mark.parametrize("module", [name for name in TREES if name not in MAY_PRINT])
def test_the_library_never_prints(module):
    calls = [
        node.lineno
        for node in ast.walk(TREES[module])
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
    ]
    assert not calls, f"{module} prints in lines {calls}; use logging or a callback"
