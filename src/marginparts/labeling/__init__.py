"""Labels from a person, sample by sample: what to ask, what is known, and when to stop.

`Labeling` is the loop; ``marginparts label`` shows it as a page. Every answer is on the disk, in a
journal beside the file, before the next sample is shown.
"""

from marginparts.labeling.pool import Pool
from marginparts.labeling.session import Labeling

__all__ = ["Labeling", "Pool"]
