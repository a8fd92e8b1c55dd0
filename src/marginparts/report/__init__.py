"""A fitted model in, one self-contained HTML page out."""

from marginparts.report._examples import Extremes, find_examples
from marginparts.report._page import render
from marginparts.report._payload import as_score, headline_sentence, payload_of

__all__ = ["Extremes", "as_score", "find_examples", "headline_sentence", "payload_of", "render"]
