"""Kernels compiled for the processor."""
