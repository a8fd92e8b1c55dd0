"""Imports point one way, heavy libraries are loaded late, and the library never prints."""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import marginparts

ROOT = Path(marginparts.__file__).parent

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"

#: The only modules that may import each heavy library, and there at the top.
NUMBA = {
    "_compiled",
    "solve._active_set",
    "svm._dual_cd",
    "svm._perceptrons",
    *(f"backends.cpu.{name}" for name in ("entries", "kernels", "semi_sweeps", "sweeps")),
    *(f"backends.cpu.{name}" for name in ("_emit", "_tiles", "_vectors")),
}
NEVER_AT_THE_TOP = {
    *("torch", "triton", "dask", "distributed", "matplotlib", "pandas", "polars"),
    *("pyarrow", "anndata", "h5py", "zarr", "PIL"),
}

MAY_PRINT = {"cli", "_version"}  # the latter is asked to


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


TREES = {
    module_name(path): ast.parse(path.read_text("utf-8")) for path in sorted(ROOT.rglob("*.py"))
}


GPU = {module for module in TREES if module.startswith("backends.gpu.")}


def layers() -> dict[str, int]:
    """Return the layers as docs/architecture.md has them, from the ground up."""
    if not PAGE.exists():
        pytest.skip("the page is in the repository, not in the package")
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", PAGE.read_text("utf-8"), flags=re.M)
    found = [
        (name, int(number)) for number, names in rows for name in re.findall(r"`(.+?)`", names)
    ]
    assert len(found) == len(dict(found)), "a module stands in two layers"
    return dict(found)


def layered(module: str, names: dict[str, int]) -> str | None:
    """Return the name in the layers that a module belongs to: its own or that of its package."""
    while module and module not in names:
        module = module.rpartition(".")[0]
    return module or None


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
    assert "labels" in own_imports("solve.start")
    assert "svm._dual_cd" in own_imports("svm.duals")  # inside a function
    assert own_imports("") == {"_version"}  # all else there is for type checkers
    assert "numba" in libraries("svm._dual_cd", into_functions=False)


def test_every_module_has_its_layer():
    names = layers()
    packages = {"", *(name.rpartition(".")[0] for name in names)}  # whose files are listed
    found = {module: layered(module, names) for module in TREES if module not in packages}
    assert None not in found.values(), {module for module in found if found[module] is None}
    assert set(names) == set(found.values()), "take what is gone out of the table"


@pytest.mark.parametrize("module", [name for name in TREES if name])
def test_imports_point_down(module):
    names = layers()
    own = layered(module, names)
    others = {other: layered(other, names) for other in own_imports(module)}
    upward = {
        other
        for other, home in others.items()
        if home is not None and home != own and names[home] >= names.get(own or "", 0)
    }
    assert not upward, f"{module} imports {upward}, which do not lie below it"


def test_the_loop_and_the_losses_do_not_know_each_other():
    assert own_imports("solve.loop") == {"_types"}
    losses = [module for module in TREES if module.startswith("losses.")]
    assert losses
    assert not [module for module in losses if "solve.loop" in own_imports(module)]


def test_no_module_imports_itself_over_others():
    graph = {module: own_imports(module) - {module} for module in TREES}
    # the registry imports the backends it gives out when it is asked for them
    graph["backends"] -= {"backends.cpu.backend", "backends.gpu.backend", "backends.reference"}
    assert list(TopologicalSorter(graph).static_order())


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
    late = {f"backends.cpu.{name}" for name in ("backend", "semi", "storage")}
    assert importers <= NUMBA | late


@pytest.mark.parametrize("module", [name for name in TREES if name not in MAY_PRINT])
def test_the_library_never_prints(module):
    calls = [
        node.lineno
        for node in ast.walk(TREES[module])
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
    ]
    assert not calls, f"{module} prints in lines {calls}; use logging or a callback"


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield all functions but constructors and compiled kernels."""
    for module, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name != "__init__":
                made_by = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
                if not re.search(r"compiled|intrinsic|jit", made_by):
                    yield f"{module}.{node.name}", node


def parameters(node: ast.FunctionDef) -> list[ast.arg]:
    args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [arg for arg in args if arg.arg not in ("self", "cls")]


def lines(node: ast.FunctionDef) -> int:
    """Return the length of a function without its docstring."""
    said = ast.get_docstring(node, clean=False)
    return node.end_lineno - node.lineno + 1 - (said.count("\n") + 1 if said else 0)


def test_functions_are_short():
    # the options of a command are what a person may say, and not steps
    long = {
        name: count
        for name, node in functions()
        if (count := lines(node) - name.startswith("commands.") * len(parameters(node))) > 50
    }
    assert not long, f"cut these into steps with names: {long}"
    lengths = sorted(lines(node) for _, node in functions())
    assert lengths[int(0.9 * len(lengths))] <= 22


def test_functions_have_few_parameters():
    counts = {name: len(parameters(node)) for name, node in functions()}
    options = {
        "commands.fit.fit", "commands.reproduce.reproduce", "commands.label.label",
        "commands.suggest.suggest_next", "commands.edit.edit",
    }  # fmt: skip
    many = {name for name, n in counts.items() if n > 12} - options
    assert not many, f"put what belongs together into one value: {many}"


def test_parameters_say_what_they_are():
    types = [ast.unparse(arg.annotation) for _, node in functions() for arg in parameters(node)
             if arg.annotation is not None]  # fmt: skip
    assert types.count("Any") < 0.15 * len(types)


def test_few_files_stand_at_the_top():
    assert len(list(ROOT.glob("*.py"))) <= 16
