"""Learning from a stream: what is kept of it, and what one step does. See ``docs/online.md``."""

from marginparts.online._past import Past
from marginparts.online._rows import Rows
from marginparts.online._stream import Stream, StreamSpec, View

__all__ = ["Past", "Rows", "Stream", "StreamSpec", "View"]
