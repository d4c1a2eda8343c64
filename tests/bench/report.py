"""The results of a run as Markdown and as pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import getitem
from typing import Any

from .pictures import Chart, Scale, Series, decades, svg

OURS, RIVAL = "meaning-lsp", "semble"
LARGE_REPOSITORY = 100
"""Files from which a repository counts for the ratio."""

LEAST = 1e-3
"""What a logarithmic scale shows nothing below of."""

Figures = dict[str, Any]
Row = Sequence[str]


def markdown(results: Mapping[str, Figures]) -> str:
    """Everything that was measured, a section for each part."""
    sections = {
        "quality": _quality,
        "repositories": _repositories,
        "sizes": _sizes,
        "checkout": _checkout,
        "live": _live,
    }
    parts = ["# Speed, size and quality\n"]
    for name, section in sections.items():
        if name in results and results[name]["figures"]:
            parts += [f"## {name.capitalize()}\n", _measured_on(results[name]), *section(results), ""]
    return "\n".join(parts)


def pictures(results: Mapping[str, Figures]) -> dict[str, str]:
    """File name -> SVG, as far as there is something to draw."""
    drawn = {}
    if (charts := list(_quality_chart(results))) and charts[0].series:
        drawn["quality.svg"] = svg(charts)
    if charts := list(_size_charts(results)):
        drawn["sizes.svg"] = svg(charts)
    return drawn


# -- Markdown


def _measured_on(part: Figures) -> str:
    machine, load = part["machine"], part["load"]
    versions = "; ".join(f"{name}: {version}" for name, version in part["versions"].items())
    return (
        f"{machine['cores']} cores ({machine['cpu']}), {machine['memory_gb']} GB, {machine['system']}, "
        f"Python {machine['python']}; load {load[0]} before and {load[1]} after. {versions}.\n"
    )


def _quality(results: Mapping[str, Figures]) -> Iterator[str]:
    figures = results["quality"]["figures"]
    firsts = _first_results(results)
    rows = [
        [name, f"{each['ndcg']:.3f}", _seconds(firsts[name]) if name in firsts else "not measured", each["source"]]
        for name, each in figures.items()
    ]
    yield _table(["", "NDCG@10", "first result, s (median repository)", "the figure is"], rows)


def _repositories(results: Mapping[str, Figures]) -> Iterator[str]:
    figures = results["repositories"]["figures"]
    yield "From nothing to the first answer, whole process, median (least to most) in seconds.\n"
    rows = []
    for name, tree in sorted(figures.items(), key=lambda item: -int(item[1]["files"])):
        cold = {peer: each["cold"]["seconds"] for peer, each in tree["peers"].items()}
        rows.append([name, str(tree["files"]), *map(_spread, cold.values()), _ratio(cold)])
    peers = list(next(iter(figures.values()))["peers"])
    yield _table(["", "files", *peers, f"{OURS} / {RIVAL}"], rows)
    for text, chosen in (
        ("all", list(figures.values())),
        (f"over {LARGE_REPOSITORY} files", [tree for tree in figures.values() if tree["files"] > LARGE_REPOSITORY]),
    ):
        sums = {
            peer: {"median": sum(tree["peers"][peer]["cold"]["seconds"]["median"] for tree in chosen)} for peer in peers
        }
        told = ", ".join(f"{peer} {_seconds(each['median'])} s" for peer, each in sums.items())
        yield f"\nSum, {text}: {told}; ratio {_ratio(sums)}.\n"
    yield _scenario_table({name: tree["peers"] for name, tree in figures.items()})


def _sizes(results: Mapping[str, Figures]) -> Iterator[str]:
    figures = results["sizes"]["figures"]
    yield _scenario_table({f"{int(units):,} units": tree["peers"] for units, tree in figures.items()})
    rows = []
    for tree in figures.values():
        ours = tree["peers"][OURS]
        units, cold, warm = ours["units"], ours["cold"], ours["warm"]
        rows.append(
            [
                f"{units:,}",
                f"{1e6 * cold['seconds']['median'] / units:,.0f}",
                f"{1e6 * cold['cpu_seconds'] / units:,.0f}",
                f"{1e6 * ours['index_mb'] / units:,.0f}",
                f"{1e6 * (warm['resident_mb'] - warm['imports_mb']) / units:,.0f}",
                f"{warm['query_ms']['p50']}",
            ]
        )
    yield "\nThe cost of a unit:\n"
    yield _table(["units", "µs", "µs of processor", "bytes on disk", "bytes resident", "query p50, ms"], rows)


def _checkout(results: Mapping[str, Figures]) -> Iterator[str]:
    figures = results["checkout"]["figures"]
    yield f"A search right after a checkout that changed {figures['files']} files, whole process:\n"
    yield _scenario_table({f"{figures['files']} files": figures["peers"]})


def _live(results: Mapping[str, Figures]) -> Iterator[str]:
    figures = results["live"]["figures"]
    rows: list[Row] = []
    if save := figures.get("save"):
        rows.append(["one function edited, found by itself, ms", _percentiles(save["renamed_ms"])])
        rows.append(["the same, told by didSave, ms", _percentiles(save["did_save_ms"])])
    if there := figures.get("checkout", {}).get("there"):
        rows.append([f"checkout of {figures['checkout']['files']} files to all found, s", str(there["true_s"])])
        rows.append(["searches meanwhile, ms", _percentiles(there["search_ms"])])
    if busy := figures.get("busy"):
        rows.append(["searches during the first index, ms", _percentiles(busy["search_ms"])])
        rows.append(["the same at rest, ms", _percentiles(busy["search_at_rest_ms"])])
        rows.append(["first index alone, and with searches, s", f"{busy['index_s']}, {busy['index_and_searches_s']}"])
    if start := figures.get("start"):
        rows.append(["start to first answer, ms", str(start["first_answer_ms"])])
        rows.append(["memory then, MB", str(start["mb_after_first"]["rss"])])
    yield _table(["a server while code changes", ""], rows)


def _scenario_table(trees: Mapping[str, Mapping[str, Figures]]) -> str:
    rows = []
    for tree, peers in trees.items():
        for peer, each in peers.items():
            warm = each.get("warm")
            rows.append(
                [
                    tree,
                    peer,
                    *(_seconds(each[key]["seconds"]["median"]) if key in each else "" for key in _SCENARIOS),
                    f"{warm['query_ms']['p50']}, {warm['query_ms']['p99']}" if warm else "",
                    str(max(each[key]["peak_mb"] for key in _SCENARIOS if key in each)),
                    str(warm["resident_mb"]) if warm else "",
                    str(each.get("index_mb", "")),
                ]
            )
    head = ["", "", *(f"{name}, s" for name in _SCENARIOS), "query p50, p99, ms", "peak MB", "resident MB", "disk MB"]
    filled = [place for place in range(len(head)) if place < 2 or any(row[place] for row in rows)]
    return _table([head[place] for place in filled], [[row[place] for place in filled] for row in rows])


_SCENARIOS = ("cold", "unchanged", "edited", "checkout")


def _table(head: Row, rows: Sequence[Row]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _seconds(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _spread(values: Mapping[str, float]) -> str:
    return f"{values['median']:.2f} ({values['min']:.2f} to {values['max']:.2f})"


def _percentiles(values: Mapping[str, float]) -> str:
    return f"p50 {values['p50']}, p99 {values['p99']}"


def _ratio(seconds: Mapping[str, Mapping[str, float]]) -> str:
    if not {OURS, RIVAL} <= seconds.keys():
        return ""
    return f"{seconds[OURS]['median'] / seconds[RIVAL]['median']:.2f}"


def _first_results(results: Mapping[str, Figures]) -> dict[str, float]:
    """Peer -> seconds from nothing to the first answer, of the repository in the middle."""
    taken: dict[str, list[float]] = {}
    for tree in results.get("repositories", {}).get("figures", {}).values():
        for peer, each in tree["peers"].items():
            taken.setdefault(peer, []).append(each["cold"]["seconds"]["median"])
    return {peer: sorted(times)[len(times) // 2] for peer, times in taken.items()}


# -- pictures


def _quality_chart(results: Mapping[str, Figures]) -> Iterator[Chart]:
    figures = results.get("quality", {}).get("figures", {})
    firsts = _first_results(results)
    series = [Series(name, [(firsts[name], each["ndcg"])]) for name, each in figures.items() if name in firsts]
    if series:
        times = [each.points[0][0] for each in series]
        yield Chart(
            "Quality against time to the first result",
            decades("seconds from nothing to the first answer (median repository)", times),
            Scale("NDCG@10", 0.0, 1.0, logarithmic=False),
            series,
        )


def _size_charts(results: Mapping[str, Figures]) -> Iterator[Chart]:
    trees = results.get("sizes", {}).get("figures", {})
    for title, label, scenario, *place in (
        ("Index and first answer", "seconds", "cold", "seconds", "median"),
        ("Most memory while indexing", "MB, all processes", "cold", "peak_mb"),
        ("A search, index warm", "ms, p50", "warm", "query_ms", "p50"),
    ):
        points: dict[str, list[tuple[float, float]]] = {}
        for units, tree in sorted(trees.items(), key=lambda item: int(item[0])):
            for peer, each in tree["peers"].items():
                if scenario in each:
                    value = reduce(getitem, place, each[scenario])
                    points.setdefault(peer, []).append((float(units), max(float(value), LEAST)))
        values = [point for each in points.values() for point in each]
        if values:
            yield Chart(
                title,
                decades("units", [x for x, _ in values]),
                decades(label, [y for _, y in values]),
                [Series(name, each) for name, each in points.items()],
            )
