"""All that is attacked, by name."""

import strange_archives
import strange_estimators
import strange_notes
import strange_options
import strange_readers

TARGETS = {
    **strange_archives.TARGETS,
    **strange_readers.TARGETS,
    **strange_notes.TARGETS,
    **strange_options.TARGETS,
    **strange_estimators.TARGETS,
}
