"""A fitted model in, one self-contained HTML page out."""

from marginparts.app.report._examples import find_examples
from marginparts.app.report._page import render
from marginparts.app.report._payload import as_score, headline_sentence, payload_of

__all__ = ["as_score", "find_examples", "headline_sentence", "payload_of", "render"]
