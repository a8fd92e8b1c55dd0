"""A fit of data on disk keeps within its memory limit: peaks of real processes, not promises."""

import csv
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read the Linux way")


@pytest.fixture
def benchmark(monkeypatch):
    """The script that writes large matrices and fits them in processes of their own."""
    if not (ROOT / "benchmarks" / "out_of_core.py").exists():
        pytest.skip("the benchmarks are not beside the tests")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("out_of_core")


@pytest.mark.wide
def test_a_fit_on_disk_keeps_within_its_limit_and_one_in_memory_does_not(benchmark, tmp_path):
    limit = 520 * 10**6  # of which 420 are for Python and the libraries
    nonzeros = benchmark.write_matrix(tmp_path, 160 * 10**6)["nonzeros"]
    on_disk = benchmark.in_a_child(tmp_path, tmp_path, limit, 0, 16, 2)
    in_memory = benchmark.in_a_child(tmp_path, tmp_path, "", nonzeros, 16, 2)
    assert on_disk["nonzeros"] == in_memory["nonzeros"] == nonzeros
    assert on_disk["loss_fell"]
    assert on_disk["peak_bytes"] < limit < in_memory["peak_bytes"]


@pytest.mark.slow
def test_six_gigabytes_are_fitted_in_one_and_a_half(benchmark, tmp_path):
    """The log of a run is in ``benchmarks/results/out_of_core_campaign.txt``."""
    options = "--size 6GiB --limit 1.5GiB --rank 32 --iterations 5 --in-memory 100000000"
    command = [sys.executable, benchmark.__file__, *options.split(), "--folder", str(tmp_path)]
    done = subprocess.run(
        [*command, "--name", "out_of_core_campaign"], stdout=subprocess.PIPE, text=True, check=True
    )
    with (ROOT / "benchmarks" / "results" / "out_of_core_campaign.csv").open() as file:
        row = list(csv.DictReader(file))[-1]
    print(done.stdout)  # with -s this is the log
    assert int(row["bytes_on_disk"]) >= 6 << 30
    assert int(row["peak_bytes"]) < 3 << 29
    assert row["loss_fell"] == "True"
