"""The ten simulated maps: terrain, palette, clutter, sprites and light of each."""

from dataclasses import dataclass

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class FormationMap:
    """How scenes of one map look.

    Attributes
    ----------
    ground, second : colours the terrain texture mixes
    texture : {"clouds", "stripes", "checks", "speckle"}
    grain : cells of the texture across the image
    clutter : {"rocks", "trees", "craters"}, and how many on average
    sprite : {"disc", "arrow", "square", "cross", "diamond"}, and its colour
    light : brightness
    slope : how much brighter one side is than the other
    noise : standard deviation of pixel noise, in grey levels
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
