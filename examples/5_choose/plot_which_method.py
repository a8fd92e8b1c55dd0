"""
Which method when
=================

Ten rivals and NMF-alpha on twelve collections, with 5 and with 20 labels a class. This example
draws what a race found out, whose records are in the repository (``results/few_labels.json``); run
it in a clone. :doc:`/few-labels` says how the race was run, and :doc:`/which-method` what follows
from it.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

race = json.loads(Path("../../results/few_labels.json").read_text())
cells = race["cells"]
print(race["missing"].split(";")[0])

# %%
# For each collection the best of all rivals, in either way to weigh the words, against NMF-alpha.
# Bars to the right are points that NMF-alpha has more. The best rival was picked after the
# race, on the test rows, which flatters it: nobody knows beforehand which one that will be.

ours = "NMF-alpha, log"
rows = []
for name, cell in cells.items():
    rivals = {m: v for m, v in cell.items() if not m.startswith("NMF-alpha")}
    best = max(rivals, key=lambda m: rivals[m]["mean"])
    draws = cell[ours]["draws"]
    error = np.sqrt((cell[ours]["std"] ** 2 + rivals[best]["std"] ** 2) / draws)
    rows.append((cell[ours]["mean"] - rivals[best]["mean"], error, name, best))

figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for axis, labels in zip(axes, ("5", "20"), strict=True):
    chosen = sorted(row for row in rows if row[2].endswith(f", {labels} a class"))
    gains, errors, names, best = zip(*chosen, strict=True)
    place = np.arange(len(chosen))
    axis.barh(
        place, gains, xerr=errors, color=["C0" if g > 0 else "C3" for g in gains], ecolor="0.4"
    )
    axis.set_yticks(
        place, [f"{n.split(',')[0]}  ({b.split(',')[0]})" for n, b in zip(names, best, strict=True)]
    )
    axis.axvline(0, color="k", linewidth=0.8)
    axis.set_title(f"{labels} labels a class")
figure.supxlabel("points above the best rival, whose name is in brackets")
plt.show()

# %%
# Which rivals are worth a try? The mean gain over a linear SVM on the same rows, and its standard
# error over the cells.

entries = sorted(race["summary"]["entries"], key=lambda e: e["gain"])
figure, axis = plt.subplots(figsize=(8, 5.5), layout="constrained")
gains = [e["gain"] for e in entries]
colors = ["C0" if e["title"].startswith("NMF-alpha") else "0.65" for e in entries]
axis.barh(
    range(len(entries)), gains, xerr=[e["error"] for e in entries], color=colors, ecolor="0.4"
)
axis.set_yticks(range(len(entries)), [e["title"] for e in entries])
axis.axvline(0, color="k", linewidth=0.8)
axis.set_xlabel("points above a linear SVM on the same rows")
plt.show()
