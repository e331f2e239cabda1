"""Draw one scene: terrain, clutter, units, things in front of them, light."""

import numpy as np
from PIL import Image, ImageDraw

from coolhead.datasets.formations.maps import Colour, FormationMap


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
