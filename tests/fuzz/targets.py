"""All that is attacked, by name."""

import strange_archives
import strange_notes
import strange_readers

TARGETS = {**strange_archives.TARGETS, **strange_readers.TARGETS, **strange_notes.TARGETS}
