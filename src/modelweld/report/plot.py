"""Figures of a fusion with matplotlib: ``fusion.plot.sharing()`` and others, each on axes of its own or on yours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import check_choice, load_extra
from modelweld.inputs.clock import Time, number_of, spell
from modelweld.report.coordinates import gather_values, order_by_likeness, plane
from modelweld.report.groups import find_small
from modelweld.report.text import DRAWN, NAMED, add_units, several
from modelweld.results.posterior.confidence import SURE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from modelweld.fusion import Fusion

ACCENT, MUTED, DOUBT = "#0a6a94", "#8a949b", "#a85400"
"""The report's colours, for what counts, what does not, and what is doubtful."""

COLOURS, ALONE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"), "#8A8A8A"
"""Colours of atoms, in turn (Okabe and Ito's, for any colour vision), and of those that one site alone holds."""


class Plot:
    """Figures of one fusion; every method takes axes to draw on (else it makes some) and returns them.

    Needs matplotlib: ``pip install "modelweld[plot]"``.

    Parameters
    ----------
    fusion : Fusion
        What to draw.
    """

    def __init__(self, fusion: Fusion) -> None:
        self.fusion = fusion

    def __call__(self, *, set_name: str | None = None) -> Figure:
        """All figures of a set on one sheet: who holds what, where atoms lie, how the run went, how sure it is.

        Where sites have times: who holds what, when atoms live, their paths, and how the run went.
        """
        figure = _axes(None).figure
        assert figure is not None
        figure.clear()
        figure.set_size_inches(11, 8)
        drawn = [self.sharing, self.atoms, self.objective]
        if self.fusion.timeline.times is not None:
            drawn = [self.sharing, self.lives, self.paths, self.objective]
        elif self.fusion._fit.find_set(set_name)[1].prior is not None:
            drawn += [self.confidence]
        for ax, draw in zip(figure.subplots(2, 2).flat, drawn, strict=False):
            draw(ax, set_name=set_name)
        return figure

    def sharing(self, ax: Axes | None = None, *, set_name: str | None = None, order: str = "likeness") -> Axes:
        """Which sites (rows) hold which atoms (columns); a number in a cell is how many fragments.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.
        set_name : str, optional
            Which set; needed when there are several.
        order : {"likeness", "given"}
            Sites and atoms that go together side by side, or as they are numbered.
        """
        check_choice("order", order, ("likeness", "given"))
        name, matching = self.fusion._fit.find_set(set_name)
        J, A = matching.presence.shape
        sites, atoms = (
            order_by_likeness(matching.presence, matching.K) if order == "likeness" else (np.arange(J), np.arange(A))
        )
        fragments = np.zeros((J, A))
        np.add.at(fragments, (np.repeat(np.arange(J), np.diff(matching.offsets)), matching.stacked_labels), 1)
        shade = np.where(np.arange(A) < matching.K, 1.0, 0.45) * (fragments > 0)
        ax = _axes(ax)
        from matplotlib import colors

        colours = colors.LinearSegmentedColormap.from_list("held", ["#f5f7f8", MUTED, ACCENT])
        ax.imshow(shade[np.ix_(sites, atoms)], cmap=colours, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        for j, k in zip(*np.nonzero(fragments[np.ix_(sites, atoms)] > 1), strict=True):
            ax.text(k, j, f"{int(fragments[sites[j], atoms[k]])}", ha="center", va="center", color="white", fontsize=7)
        if J <= NAMED:
            ax.set_yticks(range(J), [self.fusion.sites[j] for j in sites])
        if A <= NAMED:
            ax.set_xticks(range(A), [str(k) for k in atoms], fontsize=8)
        title = f"{several(matching.K, 'atom')} ({matching.shared:,} shared) at {several(J, 'site')}"
        ax.set(xlabel=f"global {name}", ylabel="site", title=title)
        return ax

    def atoms(self, ax: Axes | None = None, *, set_name: str | None = None) -> Axes:
        """Local parameters (dots) and atoms (rings, in their colour); what is excluded, or of few points, is left out.

        Two dimensions are shown as they are, more on two principal axes. Grey is what one site alone holds.
        """
        ax = _axes(ax)
        from matplotlib.collections import LineCollection

        name, matching = self.fusion._fit.find_set(set_name)
        labels, K = matching.stacked_labels, matching.K
        local, places, axes = self._map(name)
        small = find_small(self.fusion, name, allow_small=False)
        counted, large = (labels < K) & ~small.rows, np.flatnonzero(~small.atoms[:K])
        colours = np.array([COLOURS[k % len(COLOURS)] if n > 1 else ALONE for k, n in enumerate(matching.counts)])
        if counted.sum() <= DRAWN:
            ends = np.stack([local[counted], places[labels[counted]]], axis=1)
            ax.add_collection(LineCollection(list(ends), colors=MUTED, linewidths=0.5, alpha=0.5, zorder=1))
        own = colours[labels[counted]].tolist()
        ax.scatter(local[counted, 0], local[counted, 1], s=8, c=own, alpha=0.6, linewidths=0, zorder=2)
        size = 30 + 220 * matching.counts[large] / len(self.fusion.sites)
        ax.scatter(*places[large, :2].T, s=size, facecolors="white", edgecolors=colours[large].tolist(), zorder=3)
        if K <= NAMED:
            for k in large:
                ax.annotate(str(k), places[k], ha="center", va="center", fontsize=7, zorder=4)
        ax.set(xlabel=axes[0], ylabel=axes[1], title=several(K, f"global {name}"))
        return ax

    def lives(self, ax: Axes | None = None, *, set_name: str | None = None) -> Axes:
        """When atoms live, where sites have times: a line from first to last, a dot for every group that holds it."""
        name, matching = self.fusion._fit.find_set(set_name)
        lives = self.fusion.timeline.lifetimes(name)
        ax = _axes(ax)
        order = np.argsort([number_of(time) for time in lives.first], kind="stable")
        when = np.array(self.fusion.timeline.times)
        for row, k in enumerate(order):
            colour = COLOURS[k % len(COLOURS)]
            ax.plot([lives.first[k], lives.last[k]], [row, row], color=colour, lw=2, alpha=0.4)
            held = when[matching.presence[:, k]]
            ax.scatter(held, np.full(len(held), row), s=12, color=colour, linewidths=0)
        if len(order) <= NAMED:
            ax.set_yticks(range(len(order)), [str(k) for k in order], fontsize=8)
        alive = several(int((lives.alive > 0.5).sum()), "atom")
        ax.set(ylabel=f"global {name}", title=f"{alive} alive at {spell(lives.newest)}")
        _mark_times(ax, lives.newest)
        return ax

    def paths(self, ax: Axes | None = None, *, set_name: str | None = None, dimension: int = 0) -> Axes:
        """Paths of atoms in one dimension, where sites have times, with 90 % intervals, and the values of sites."""
        name, matching = self.fusion._fit.find_set(set_name)
        values = gather_values(self.fusion, name)
        ax = _axes(ax)
        times = np.repeat(np.array(self.fusion.timeline.times), np.diff(matching.offsets))
        small = find_small(self.fusion, name, allow_small=False)
        for k in np.flatnonzero(~small.atoms[: matching.K]).tolist():
            found, colour = self.fusion.timeline.path(k, set_name=name), COLOURS[k % len(COLOURS)]
            lived = found.alive > 0.5
            when = np.array(found.times)[lived]
            ax.plot(when, found.values[lived, dimension], color=colour, lw=1.5)
            ax.fill_between(
                when, found.low[lived, dimension], found.high[lived, dimension], color=colour, alpha=0.2, lw=0
            )
            own = (matching.stacked_labels == k) & ~small.rows
            ax.scatter(times[own], values.local[own, dimension], s=8, color=colour, linewidths=0)
        ax.set(ylabel=values.columns[dimension], title=several(matching.K, f"global {name}"))
        _mark_times(ax, self.fusion.timeline.lifetimes(name).newest)
        return ax

    def _map(self, name: str) -> tuple[Array, Array, list[str]]:
        """Where values and atoms of a set lie in the plane, and what its axes are, in the features' units."""
        matching, values = self.fusion.matchings[name], gather_values(self.fusion, name)
        if values.local.shape[1] == 2:
            return values.local, values.atoms, add_units(self.fusion, values.columns)
        local, places, explained = plane(values, matching.stacked_labels, matching.K)
        return local, places, [f"principal axis {i + 1} ({100 * share:.0f} %)" for i, share in enumerate(explained)]

    def objective(self, ax: Axes | None = None, *, set_name: str | None = None) -> Axes:
        """The objective after every sweep and every update of hyperparameters."""
        _, matching = self.fusion._fit.find_set(set_name)
        ax = _axes(ax)
        ax.plot(range(len(matching.history)), matching.history, color=ACCENT, marker="o", markersize=3, lw=1.5)
        ax.set(xlabel="step", ylabel="objective (nats)", title=f"{matching.sweeps} sweeps")
        return ax

    def confidence(self, ax: Axes | None = None, *, set_name: str | None = None) -> Axes:
        """All matches by their confidence, least certain first; doubtful ones stand out."""
        name, matching = self.fusion._fit.find_set(set_name)
        sure = self.fusion.confidence(name)
        label = "confidence, if all others are right" if sure.how == "conditional" else "confidence"
        stated = np.sort(np.concatenate(sure)[matching.stacked_labels < matching.K])
        ax = _axes(ax)
        doubtful = int((stated < SURE).sum())
        ax.plot(np.arange(len(stated)), stated, color=ACCENT, lw=1.5, drawstyle="steps-mid")
        ax.scatter(np.arange(doubtful), stated[:doubtful], color=DOUBT, s=10, zorder=3)
        ax.set(xlabel="match, least certain first", ylabel=label, ylim=(0, 1.03))
        ax.set_title(f"{doubtful} of {len(stated)} matches below {SURE}")
        return ax


def _axes(ax: Axes | None) -> Axes:
    """Axes given, or new ones."""
    if ax is not None:
        return ax
    plt = load_extra("matplotlib.pyplot", "figures need", "modelweld[plot]")
    drawn: Axes = plt.subplots(layout="constrained")[1]
    return drawn


def _mark_times(ax: Axes, example: Time) -> None:
    """Name the axis of times; dates are written short, so that they do not run into each other."""
    ax.set(xlabel="time")
    if isinstance(example, np.datetime64):
        from matplotlib.dates import ConciseDateFormatter

        ax.xaxis.set_major_formatter(ConciseDateFormatter(ax.xaxis.get_major_locator()))
