"""Settings for all tests."""

import os
import signal

import pytest

# Threads that wait for work spin by default, and would take the cores from those that have it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Where there is no GPU, Triton's interpreter runs its kernels; it asks when Triton is imported.
if not os.path.exists("/dev/nvidiactl"):
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests that drive a browser need one, which the extra ``test`` does not install."""
    for item in items:
        if "driver" in item.fixturenames:
            item.add_marker("extra")


def pytest_configure():
    """Hear Ctrl-C also where a shell runs the tests in the background, and has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
