"""Teachers: what the unlabeled rows are believed to be, by classifiers that have seen them.

With a few labels a class, the dual coefficients of an SVM are mostly noise. Teachers learn from all
rows and from the labels that are known; each is scored on labels that were hidden from it, and what
they say together is weighed by that. The margin components and the last SVM then learn from all
rows: from known labels, and from the teachers' in proportion to how sure they are.
"""

from marginparts.teaching.lesson import Lesson, lessons_of
from marginparts.teaching.seeded import hints_of
from marginparts.teaching.several import lessons_of_several
from marginparts.teaching.views import Views, joint_views, views_of

__all__ = [
    "Lesson",
    "Views",
    "hints_of",
    "joint_views",
    "lessons_of",
    "lessons_of_several",
    "views_of",
]
