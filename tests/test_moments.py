"""Bad moments, once each and 20 times each: ``pytest -m slow tests/test_moments.py``."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource")


def ran(times):
    command = [sys.executable, str(Path(__file__).with_name("moments.py")), str(times)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3_000)
    return done.stdout, done.stderr


@pytest.mark.slow  # it takes minutes
def test_bad_moments_leave_nothing_half_done():
    said, wrong = ran(1)
    assert said.count("1 of 1") == 17, said + wrong


@pytest.mark.slow
def test_bad_moments_twenty_times_each():
    said, wrong = ran(20)
    assert said.count("20 of 20") == 17, said + wrong
