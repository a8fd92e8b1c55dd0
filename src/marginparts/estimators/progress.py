"""Bars that show how a fit goes on, in a terminal and in a notebook."""

from __future__ import annotations

import sys
import time
from html import escape
from types import TracebackType
from typing import Any, Self

from marginparts._types import Progress

#: What the stages of a fit are called.
_STAGES = {"choosing": "choosing", "parts": "finding parts"}

#: A notebook is told no more often than this, in seconds.
_PAUSE = 0.1


class ProgressBar:
    """A callback that shows a bar for each stage of a fit, to be used in a ``with`` statement.

    In a notebook it is a line of HTML, which needs no widgets and stays when the notebook is saved.
    In a terminal it is a bar of rich on the error stream. Elsewhere, in a log file or a test,
    nothing is shown.

    Parameters
    ----------
    console : rich.console.Console or None
        Where bars are drawn; None is a notebook, or the error stream if it is a terminal.

    Examples
    --------
    >>> import numpy as np
    >>> from marginparts import NMFAlpha, ProgressBar
    >>> X = np.random.default_rng(0).random((40, 15))
    >>> with ProgressBar() as bar:
    ...     model = NMFAlpha(3, random_state=0, callback=bar).fit(X)
    >>> bar.stages
    ['parts']
    """

    def __init__(self, console: Any = None) -> None:
        self.console = console
        #: The stages that were seen, in their order.
        self.stages: list[str] = []
        self._shown: Any = None

    def __enter__(self) -> Self:
        self.stages = []
        self._shown = _in_notebook() if self.console is None else None
        if self._shown is None:
            self._shown = _InTerminal(self.console)
        return self

    def __call__(self, progress: Progress) -> bool:
        """Show where a fit is; it always goes on."""
        if self._shown is None:
            raise RuntimeError("A ProgressBar is used in a with statement: with ProgressBar() ...")
        if not self.stages or self.stages[-1] != progress.stage:
            self.stages.append(progress.stage)
        self._shown.tell(len(self.stages) - 1, progress)
        return False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._shown.end(done=kind is None)
        self._shown = None


def _told(progress: Progress) -> str:
    """Return what stands beside a bar."""
    count = f"{progress.iteration} of {progress.max_iter}"
    if progress.stage == "choosing":
        return f"{count} trials"
    return f"{count}, loss {progress.loss:.5g}"


class _InTerminal:
    """Progress bars of rich; none where the output is not a terminal."""

    def __init__(self, console: Any) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        console = Console(stderr=True) if console is None else console
        self.bars = Bars(
            TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(),
            TextColumn("{task.fields[told]}", markup=False),
            console=console, disable=not console.is_terminal,
        )  # fmt: skip
        self.bars.start()

    def tell(self, number: int, progress: Progress) -> None:
        if number == len(self.bars.tasks):
            self._fill()
            name = _STAGES.get(progress.stage, progress.stage)
            self.bars.add_task(name, told="")
        task = self.bars.tasks[number].id
        self.bars.update(
            task, completed=progress.iteration, total=progress.max_iter, told=_told(progress)
        )

    def _fill(self) -> None:
        """Fill the last bar: a fit that converges ends before its last iteration."""
        for task in self.bars.tasks[-1:]:
            self.bars.update(task.id, completed=task.total)

    def end(self, *, done: bool) -> None:
        if done:
            self._fill()
        if not self.bars.disable:  # rich before 14.3 ends bars that are off with an empty line
            self.bars.stop()


class _InNotebook:
    """A line of HTML for each stage, written anew where it stands."""

    def __init__(self, display: Any) -> None:
        self.handle = display({"text/html": "", "text/plain": ""}, raw=True, display_id=True)
        self.stages: list[Progress] = []
        self.last = 0.0

    def tell(self, number: int, progress: Progress) -> None:
        self.stages[number:] = [progress]
        if time.monotonic() - self.last > _PAUSE:
            self._show(full=number)

    def _show(self, full: int) -> None:
        """Show all stages, those before ``full`` as done."""
        self.last = time.monotonic()
        page, text = [], []
        for k, each in enumerate(self.stages):
            name, told = _STAGES.get(each.stage, each.stage), _told(each)
            value = each.max_iter if k < full else each.iteration
            page.append(
                f'<div style="font:12px system-ui,sans-serif"><progress max="{each.max_iter}" '
                f'value="{value}"></progress> {escape(name)}: {escape(told)}, '
                f"{each.seconds:.1f} s</div>"
            )
            text.append(f"{name}: {told}")
        bundle = {"text/html": "".join(page), "text/plain": "\n".join(text)}
        self.handle.update(bundle, raw=True)

    def end(self, *, done: bool) -> None:
        self._show(full=len(self.stages) if done else len(self.stages) - 1)


def _in_notebook() -> _InNotebook | None:
    """Return bars for a notebook if this is one: rich's own would need widgets there."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython  # type: ignore[import-not-found,unused-ignore]
    from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

    shell = get_ipython()
    kernel = shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
    return _InNotebook(display) if kernel else None
