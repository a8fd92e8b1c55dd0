"""Untrusted JSON, whose values may take many times the memory of their text."""

import json
import re
from typing import Any

#: Bytes of a text, lists and objects in it, and items. The text of 100,000 words has 1 to 10 MB.
_BYTES, _LISTS, _ITEMS = 2**26, 10**6, 4 * 10**6


def read_json(text: bytes, **options: Any) -> Any:
    """Return the value of a text whose size, depth and number of items are within bounds.

    Examples
    --------
    >>> read_json(b'{"words": ["red", "green"]}')
    {'words': ['red', 'green']}
    """
    # brackets and commas within strings count as well: that is quick, and the bound is generous
    lists, items = text.count(b"[") + text.count(b"{"), text.count(b",")
    if len(text) > _BYTES or lists > _LISTS or items > _ITEMS:
        raise ValueError("the text has too many items")
    try:
        return json.loads(text, **options)
    except RecursionError as error:
        raise ValueError("the text is nested too deeply") from error


def plain_word(value: Any) -> str:
    """Return a short word of an untrusted text as it is, and "?" for anything else.

    Examples
    --------
    >>> plain_word("1.2.0"), plain_word("no such version")
    ('1.2.0', '?')
    """
    return value if isinstance(value, str) and re.fullmatch(r"[\w.+-]{1,40}", value) else "?"
