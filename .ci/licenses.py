"""Print the licenses of what the package needs; one that binds its users fails."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, distribution

#: Licenses that ask something of programs which only import a package.
BINDING = re.compile(r"\b(A?GPL|GNU (Affero )?General Public)", re.I)
LESSER = re.compile(r"LGPL|Lesser", re.I)


def needed(name: str, found: dict[str, str]) -> None:
    """Add a package and all that it needs, without extras."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in found:
        return
    try:
        about = distribution(name)
    except PackageNotFoundError:
        return  # for another system, or not asked for
    said = about.metadata
    classifiers = said.get_all("Classifier") or []
    kinds = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License ::")]
    text = (said.get("License") or "").strip().splitlines()[:1]
    found[key] = said.get("License-Expression") or ", ".join(kinds) or "".join(text) or "not said"
    for line in about.requires or ():
        if "extra ==" not in line:
            needed(re.split(r"[\s;<>=!~\[(]", line, maxsplit=1)[0], found)


def main() -> int:
    """Print a line for each package."""
    found: dict[str, str] = {}
    needed("marginparts", found)
    bad = [k for k, said in found.items() if BINDING.search(said) and not LESSER.search(said)]
    for name, said in sorted(found.items()):
        print(f"{name:24} {said[:70]}{'  <- not to be used' if name in bad else ''}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
