"""Sentences that the library says to users of Python, in the words of the command."""

import re

from marginparts.app.options import Options, flag_of

_NAME = "|".join(Options._fields)

#: An option in a sentence of the estimators: with a value, at the beginning, or surely no word.
_IN_A_SENTENCE = re.compile(
    rf"(?<![\w(.-])(?:(?P<with_value>{_NAME})=|^(?P<first>{_NAME})(?= (?:must|needs|has|is)\b)|"
    rf"(?P<surely>{'|'.join(name for name in Options._fields if '_' in name)})\b)"
)


def spoken(sentence: str) -> str:
    """Return a sentence of the estimators with the options as the command has them.

    >>> spoken("scoring='f1' is for two classes; choose f1_macro or f1_micro.")
    "--scoring 'f1' is for two classes; choose f1_macro or f1_micro."
    >>> spoken("consensus must be 2 or larger; n_components leaves room for 3.")
    '--consensus must be 2 or larger; --components leaves room for 3.'
    """

    def flag(found: re.Match[str]) -> str:
        return flag_of(found[found.lastgroup or 0]) + (" " if found["with_value"] else "")

    return _IN_A_SENTENCE.sub(flag, sentence)
