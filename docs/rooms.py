"""The picture of the rooms on the page of the architecture, made from the code when the site is
built: rows of rooms are the layers of the import contracts, arrows are imports that are there. An
import that a chain of others implies has no arrow, and files that all rooms use are left out.
"""

import io
import tomllib
from pathlib import Path

import grimp
import matplotlib.pyplot as plt
from properdocs.structure.files import File

ROOT = Path(__file__).parents[1]
WIDTH, HEIGHT = 1.0, 0.5  # of a room, in inches; a row is twice as high
USED_BY_ALL = {"koco_stream.errors", "koco_stream.types", "koco_stream.version"}
COLOURS = {"flows": "#4477aa", "storage": "#228833", "cluster": "#997700", "koco_stream": "#aa3377"}


def on_files(files, config):
    """The builder calls this with the files that it has found."""
    files.append(File.generated(config, "rooms.svg", content=picture()))
    return files


def layers_of(contracts, package):
    """The names of a package's rooms, a list for each layer, the upper ones first."""
    found = [c for c in contracts if c.get("containers") == [package]]
    rows = found[0]["layers"] if found else [package]
    return [[name.strip() for name in row.split("|")] for row in rows]


def positions(contracts):
    """The position (x, y) of each room: flows above storage and cluster, above koco_stream."""
    where, y = {}, 0.0
    for package in ("flows", "storage", "koco_stream"):
        layers = layers_of(contracts, package)
        for row in layers:
            row = [name for name in row if f"{package}.{name}" not in USED_BY_ALL]
            for k, name in enumerate(row):
                x = 1.7 * WIDTH * (k - (len(row) - 1) / 2)
                where[f"{package}.{name}"] = (x, y)
            y -= 2 * HEIGHT
        if package == "storage":
            where["cluster"] = (-4.2 * WIDTH, y + HEIGHT * (len(layers) + 1))
        y -= HEIGHT
    return where


def imports_between(rooms):
    """The pairs of rooms of which one imports a module of the other, and no third lies between."""
    graph = grimp.build_graph("flows", "storage", "cluster", "koco_stream")

    def room_of(module):
        names = module.split(".")
        return next((room for room in (".".join(names[:2]), names[0]) if room in rooms), None)

    uses = {room: set() for room in rooms}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            importer, room = room_of(module), room_of(imported)
            if importer and room and importer != room:
                uses[importer].add(room)

    def reached(room):
        return uses[room].union(*map(reached, uses[room]))

    return [
        (importer, room)
        for importer, rooms_used in uses.items()
        for room in sorted(rooms_used - set().union(*map(reached, rooms_used)))
    ]


def picture():
    """The rooms and who imports whom, as SVG."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    where = positions(contracts["contracts"])
    figure, axes = plt.subplots(figsize=(8, 12))
    for importer, imported in imports_between(where):
        (x, y), (to_x, to_y) = where[importer], where[imported]
        axes.annotate(
            "",
            (to_x, to_y + HEIGHT / 2 if to_y < y else to_y),
            (x, y - HEIGHT / 2 if to_y < y else y),
            arrowprops={
                "arrowstyle": "-|>",
                "color": COLOURS[importer.split(".")[0]],
                "alpha": 0.6,
                "linewidth": 1.1,
                "connectionstyle": "arc3,rad=0.05",
            },
        )
    for room, (x, y) in where.items():
        package, _, name = room.partition(".")
        axes.text(
            x,
            y,
            name or package,
            ha="center",
            va="center",
            fontsize=10,
            bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": COLOURS[package]},
        )
    for package, colour in COLOURS.items():
        inside = [y for room, (_, y) in where.items() if room.split(".")[0] == package]
        axes.text(-5.2, max(inside) + HEIGHT, package, fontsize=13, color=colour, weight="bold")
    axes.set_xlim(-5.3, 5.3)
    axes.set_ylim(min(y for _, y in where.values()) - HEIGHT, 2 * HEIGHT)
    axes.axis("off")
    out = io.StringIO()
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "rooms"}):
        figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    return out.getvalue()
