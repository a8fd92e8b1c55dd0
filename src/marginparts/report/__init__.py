"""A fitted model in, one self-contained HTML page out."""

from marginparts.report._examples import Extremes, find_examples
from marginparts.report._page import render
from marginparts.report._payload import headline_sentence, payload_of

__all__ = ["Extremes", "find_examples", "headline_sentence", "payload_of", "render"]
