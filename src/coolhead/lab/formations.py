"""The ten simulated maps: terrain, palette, clutter, sprites and light of each."""

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from coolhead.io.archive import DomainArchive
from coolhead.io.reading import load_archive

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class FormationMap:
    """How scenes of one map look.

    Attributes
    ----------
    ground, second : Colour
        Colours of the terrain texture.
    texture : {"clouds", "stripes", "checks", "speckle"}
    grain : int
        Cells of the texture across the image.
    clutter : {"rocks", "trees", "craters"}
    n_clutter : int
        How many of them on average.
    sprite : {"disc", "arrow", "square", "cross", "diamond"}
    unit : Colour
        Of the sprite.
    light : float, default=1
        Brightness.
    slope : float
        How much brighter one side is than the other.
    noise : float
        Standard deviation of pixel noise, in grey levels.
    """

    ground: Colour
    second: Colour
    texture: str
    grain: int
    clutter: str
    n_clutter: int
    sprite: str
    unit: Colour
    light: float = 1.0
    slope: float = 0.0
    noise: float = 4.0


MAPS = (
    FormationMap(
        (96, 128, 64), (60, 96, 48), "clouds", 6, "trees", 5, "arrow", (210, 40, 40)
    ),
    FormationMap(
        (200, 176, 120), (170, 140, 90), "stripes", 9, "rocks", 4, "disc", (40, 60, 160)
    ),
    FormationMap(
        (70, 70, 80), (110, 110, 120), "checks", 8, "craters", 4, "square",
        (240, 200, 60), 0.8,
    ),
    FormationMap(
        (225, 232, 240), (190, 205, 225), "clouds", 10, "rocks", 6, "cross",
        (60, 60, 60), 1.0, 0.2,
    ),
    FormationMap(
        (120, 60, 40), (80, 40, 30), "speckle", 24, "craters", 6, "arrow",
        (240, 160, 60), 0.9, 0.3,
    ),
    FormationMap(
        (40, 90, 100), (30, 60, 80), "clouds", 4, "trees", 7, "diamond",
        (230, 240, 240), 0.7, 0.4, 8.0,
    ),
    FormationMap(
        (150, 150, 130), (110, 120, 90), "speckle", 32, "trees", 9, "disc",
        (140, 40, 120), 1.1, 0.0, 6.0,
    ),
    FormationMap(
        (50, 40, 70), (90, 50, 110), "stripes", 6, "rocks", 7, "arrow",
        (120, 230, 120), 0.6, 0.5, 10.0,
    ),
    FormationMap(
        (180, 120, 60), (230, 180, 100), "checks", 12, "rocks", 8, "diamond",
        (70, 40, 20), 1.0, 0.3, 8.0,
    ),
    FormationMap(
        (100, 110, 100), (140, 150, 140), "clouds", 16, "craters", 9, "cross",
        (200, 80, 60), 0.5, 0.6, 12.0,
    ),
)  # fmt: skip


FORMATIONS = ("line", "column", "wedge", "circle", "box", "scattered")


def place_units(formation: str, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return places (m, 2) in the square [-1, 1]² and the heading in radians.

    A formation of 8 to 14 units is drawn, some of them missing, with jitter, rotation
    (up to 25°, so that a line never turns into a column), scale and displacement.
    """
    n_units = int(rng.integers(8, 15))
    places = formation_shape(formation, n_units, rng)
    places = places[rng.random(n_units) > 0.08]
    places = places + rng.normal(0, 0.06, places.shape)
    heading = np.deg2rad(rng.uniform(-25, 25))
    turn = np.array(
        [[np.cos(heading), -np.sin(heading)], [np.sin(heading), np.cos(heading)]]
    )
    scale = rng.uniform(0.45, 0.75)
    return scale * places @ turn.T + rng.uniform(-0.2, 0.2, 2), float(heading)


def formation_shape(
    formation: str, n_units: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the (n_units, 2) ideal places, x to the right and y downwards."""
    along = np.linspace(-1, 1, n_units)
    if formation == "line":
        return np.stack([along, np.zeros(n_units)], axis=1)
    if formation == "column":
        return np.stack([np.zeros(n_units), along], axis=1)
    if formation == "wedge":
        return np.stack([along, 1.4 * np.abs(along) - 0.7], axis=1)
    if formation == "circle":
        angle = 2 * np.pi * np.arange(n_units) / n_units
        return 0.85 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if formation == "box":
        return box_outline(np.arange(n_units) / n_units)
    if formation == "scattered":
        return rng.uniform(-1, 1, (n_units, 2))
    raise ValueError(f"formation must be one of {FORMATIONS}; found {formation!r}")


def box_outline(share: np.ndarray) -> np.ndarray:
    """Return points on the outline of a square, by share of the way around."""
    side, rest = np.divmod(4 * share, 1)
    start = 2 * rest - 1
    x = np.select([side == 0, side == 1, side == 2], [start, 1, -start], -1)
    y = np.select([side == 0, side == 1, side == 2], [-1, start, 1], -start)
    return 0.8 * np.stack([x, y], axis=1)


def draw_scene(
    world: FormationMap,
    units: np.ndarray,
    heading: float,
    size: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return a (size, size, 3) uint8 image of units at places (m, 2) in [-1, 1]²."""
    big = 2 * size  # drawn twice as large: halving smooths the edges
    image = Image.fromarray(terrain(world, big, rng))
    pen = ImageDraw.Draw(image)
    for _ in range(rng.poisson(world.n_clutter)):
        draw_clutter(pen, world, rng.uniform(0, big, 2), big, rng)
    radius = big * rng.uniform(0.026, 0.036)
    for place in (units + 1) / 2 * big:
        draw_unit(pen, world, place, radius, heading + rng.normal(0, 0.15))
    for _ in range(rng.poisson(0.25 * world.n_clutter)):
        draw_clutter(pen, world, rng.uniform(0, big, 2), big, rng)
    small = image.resize((size, size), Image.Resampling.BOX)
    return lighting(np.asarray(small, np.float32), world, rng)


def terrain(world: FormationMap, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the (size, size, 3) uint8 ground, a mix of the map's two colours."""
    share = texture(world, size, rng)[:, :, None]
    ground, second = np.array([world.ground, world.second], np.float32)
    return (ground + share * (second - ground)).astype(np.uint8)


def texture(world: FormationMap, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the (size, size) float32 share of the second colour, 0 … 1."""
    cells = np.arange(size) * world.grain / size + rng.random()
    if world.texture == "checks":
        return ((cells[:, None].astype(int) + cells.astype(int)) % 2).astype("f4")
    if world.texture == "stripes":
        bend = smooth_noise(4, size, rng)
        wave = np.sin(2 * np.pi * (cells[:, None] / 2 + bend))
        return (0.5 + 0.5 * wave).astype("f4")
    fine = smooth_noise(world.grain, size, rng)
    if world.texture == "speckle":
        return (fine > 0.6).astype("f4")
    return 0.7 * fine + 0.3 * smooth_noise(3 * world.grain, size, rng)


def smooth_noise(n_cells: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return (size, size) float32 noise in 0 … 1 that changes over size / n_cells."""
    coarse = rng.random((n_cells + 1, n_cells + 1), dtype=np.float32)
    resized = Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC)
    return np.asarray(resized).clip(0, 1)


def draw_clutter(
    pen: ImageDraw.ImageDraw,
    world: FormationMap,
    place: np.ndarray,
    size: int,
    rng: np.random.Generator,
) -> None:
    """Draw one rock, tree or crater; some are as small as a unit."""
    radius = size * rng.uniform(0.02, 0.07)
    shade = rng.uniform(0.45, 0.8)
    dark = shaded(world.second, shade)
    if world.clutter == "rocks":
        angles = np.sort(rng.uniform(0, 2 * np.pi, 6))
        pen.polygon(around(place, radius, angles), fill=dark)
    elif world.clutter == "trees":
        pen.ellipse(circle(place, radius), fill=dark)
        inner = shaded(world.ground, 0.6 + shade / 2)
        pen.ellipse(circle(place - radius / 4, radius / 2), fill=inner)
    else:
        pen.ellipse(circle(place, radius), outline=dark, width=max(1, int(radius / 3)))


def draw_unit(
    pen: ImageDraw.ImageDraw,
    world: FormationMap,
    place: np.ndarray,
    radius: float,
    heading: float,
) -> None:
    """Draw one unit and its shadow; an arrow points where the unit is heading."""
    corners = {
        "arrow": np.array([-90, 40, 90, 140]),
        "square": np.array([-135, -45, 45, 135]),
        "diamond": np.array([-90, 0, 90, 180]),
    }
    shadow = place + 0.4 * radius
    if world.sprite in corners:
        angles = np.deg2rad(corners[world.sprite]) + heading
        pen.polygon(around(shadow, radius, angles), fill=shaded(world.ground, 0.4))
        pen.polygon(around(place, radius, angles), fill=world.unit)
    elif world.sprite == "cross":
        for turn in (0, np.pi / 2):
            angles = np.array([0, np.pi]) + heading + turn
            width = max(2, int(0.7 * radius))
            pen.line(around(place, radius, angles), fill=world.unit, width=width)
    else:
        pen.ellipse(circle(shadow, radius), fill=shaded(world.ground, 0.4))
        pen.ellipse(circle(place, radius), fill=world.unit)


def lighting(
    pixels: np.ndarray, world: FormationMap, rng: np.random.Generator
) -> np.ndarray:
    """Return the scene in the map's light, with pixel noise, as uint8."""
    across = np.linspace(-1, 1, len(pixels), dtype=np.float32)
    angle = rng.uniform(0, 2 * np.pi)
    side = np.cos(angle) * across[:, None] + np.sin(angle) * across
    gain = world.light * rng.uniform(0.85, 1.15) * (1 + 0.5 * world.slope * side)
    noise = rng.standard_normal(pixels.shape, dtype=np.float32) * world.noise
    return (pixels * gain[:, :, None] + noise).clip(0, 255).astype(np.uint8)


def around(place: np.ndarray, radius: float, angles: np.ndarray) -> list:
    """Return the points at `angles` on a circle, as Pillow wants them."""
    points = place + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return [tuple(point) for point in points]


def circle(place: np.ndarray, radius: float) -> list:
    """Return the box of a circle, as Pillow wants it."""
    return [tuple(place - radius), tuple(place + radius)]


def shaded(colour: Colour, share: float) -> Colour:
    """Return a darker (or, above 1, lighter) colour."""
    red, green, blue = (min(255, int(share * part)) for part in colour)
    return red, green, blue


NOTE = "simulated stand-in for the paper's StarCraft2 maps, not data of the game"
MAP_NAMES = tuple(f"map {number}" for number in range(len(MAPS)))


def formation_images(
    n_images: int, *, size: int = 96, random_state: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw formations on every map.

    Parameters
    ----------
    n_images : int
        Images per map; the six classes take turns.
    size : int
        Side of an image in pixels.

    Returns
    -------
    images : (10 · n_images, size, size, 3) uint8
    labels : (10 · n_images,) int, indices into ``FORMATIONS``
    maps : (10 · n_images,) int, 0 … 9
    """
    if n_images < 1 or size < 16:
        raise ValueError(
            f"n_images must be >= 1 and size >= 16; found {n_images}, {size}"
        )
    maps = np.repeat(np.arange(len(MAPS)), n_images)
    labels = np.tile(np.arange(n_images) % len(FORMATIONS), len(MAPS))
    images = np.empty((len(maps), size, size, 3), np.uint8)
    for row, code in enumerate(maps):
        images[row] = formation_image(
            int(code), row % n_images, size=size, random_state=random_state
        )
    return images, labels, maps


def formation_image(
    code: int, number: int, *, size: int = 96, random_state: int = 0
) -> np.ndarray:
    """Image `number` of map `code`, (size, size, 3) uint8."""
    # A generator per image: image i of a map is the same however many are asked.
    rng = np.random.default_rng([random_state, code, number])
    units, heading = place_units(FORMATIONS[number % len(FORMATIONS)], rng)
    return draw_scene(MAPS[code], units, heading, size, rng)


def contrast_features(images: np.ndarray, n_cells: int = 12) -> np.ndarray:
    """Return (n, n_cells²) float32: how much each cell departs from its surroundings.

    Parameters
    ----------
    images : (n, s, s, 3) uint8
    """
    grey = images.mean(axis=3, dtype=np.float32)
    side = grey.shape[1] // n_cells
    cut = grey[:, : side * n_cells, : side * n_cells]
    cells = cut.reshape(len(grey), n_cells, side, n_cells, side)
    spread = cells.std(axis=(2, 4)).reshape(len(grey), -1)
    return spread / (spread.mean(axis=1, keepdims=True) + 1e-6)


VERSION = 1


def load_formations(
    n_images: int = 600,
    backbone: str = "efficientnet-lite0",
    *,
    random_state: int = 0,
    cache: str | PathLike | None = None,
) -> DomainArchive:
    """Return features and labels of simulated formations.

    Parameters
    ----------
    n_images : int
        Images per map.
    backbone : str
        A network's name, or ``"contrast"`` for plain features without torch.
    cache : folder, optional
        Where the archive is kept; asked for again, it is read and not drawn.
    """
    name = f"formations-v{VERSION}-{n_images}-{backbone}-{random_state}.safetensors"
    place = None if cache is None else Path(cache) / name.replace(":", "_")
    if place is not None and place.exists():
        return load_archive(place)
    images, labels, maps = formation_images(n_images, random_state=random_state)
    archive = DomainArchive(
        features=_features(images, backbone),
        labels=labels,
        domains=maps,
        domain_names=MAP_NAMES,
        class_names=FORMATIONS,
        metadata={
            "dataset": "formations",
            "note": NOTE,
            "backbone": backbone,
            "n_images_per_map": n_images,
            "random_state": random_state,
        },
    )
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        archive.save(place)
    return archive


def _features(images: np.ndarray, backbone: str) -> np.ndarray:
    if backbone == "contrast":
        return contrast_features(images)
    from coolhead.lab.images.backbones import load_backbone
    from coolhead.lab.images.extraction import open_network

    network = load_backbone(backbone)
    # Scenes have no margin to cut off, and half the usual side costs a quarter.
    prepare = replace(network.transform, size=112, crop=1.0)
    parts = []
    with open_network(network) as run:
        for start in range(0, len(images), 64):
            batch = images[start : start + 64]
            pixels = np.stack([prepare(Image.fromarray(image)) for image in batch])
            parts.append(run(pixels)[0].numpy().astype(np.float16))
    return np.concatenate(parts)
