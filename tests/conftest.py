"""Settings for all tests."""

import os

# Threads that wait for work spin by default, and would take the cores from those that have it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
