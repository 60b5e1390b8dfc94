"""The colours of the page have enough contrast, and are apart for colour-blind readers, too."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

CSS = (files("nodecopy.report") / "web" / "style.css").read_text(encoding="utf-8")
MEANINGS = ("copied", "error", "highlight")
CLASSES = tuple(f"class-{code}" for code in range(10))
# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
SIGHTS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
    ),
}
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def themes() -> dict[str, dict[str, str]]:
    """The variables of both themes."""
    blocks = re.findall(r":root(\[data-theme=\"dark\"\])? \{(.*?)\}", CSS, re.DOTALL)
    return {
        "dark" if mark else "light": dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", block))
        for mark, block in blocks
    }


THEMES = themes()


def linear(colour: str) -> NDArray[Any]:
    values = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(first: str, second: str) -> float:
    """The contrast ratio of WCAG 2."""
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


def distance(first: str, second: str, sight: str) -> float:
    """The distance in OKLab; 0.02 is just noticeable side by side."""
    seen = (np.clip(SIGHTS[sight] @ linear(colour), 0, 1) for colour in (first, second))
    a, b = (TO_OKLAB @ np.cbrt(TO_CONES @ colour) for colour in seen)
    return float(np.linalg.norm(a - b))


def test_the_formulas() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
    assert distance("#000000", "#ffffff", "normal") == pytest.approx(1, abs=0.001)
    assert distance("#ff0000", "#00ff00", "deuteranopia") < 0.6 * distance("#ff0000", "#00ff00", "normal")


def test_both_themes_have_the_same_variables() -> None:
    assert THEMES["light"].keys() == THEMES["dark"].keys() >= {*MEANINGS, *CLASSES}
    assert len(set(THEMES["light"].values())) == len(THEMES["light"])  # no colour has two meanings


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read(theme: str) -> None:
    colours = THEMES[theme]
    for text in ("ink", "quiet", *MEANINGS):
        for ground in ("paper", "panel", "soft"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    assert contrast(colours["ink"], colours["marker"]) >= 7


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_marks_can_be_seen(theme: str) -> None:
    colours = THEMES[theme]
    for mark in ("edge", *MEANINGS, *CLASSES):
        assert contrast(colours[mark], colours["panel"]) >= 3, mark


@pytest.mark.parametrize("sight", list(SIGHTS))
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_are_apart_for_every_reader(theme: str, sight: str) -> None:
    colours = THEMES[theme]
    for group, least in ((CLASSES, 0.08), (MEANINGS, 0.09), ((*MEANINGS, *CLASSES), 0.045)):
        for first, second in combinations(group, 2):
            assert distance(colours[first], colours[second], sight) >= least, (first, second)


def test_scripts_name_no_colour_of_their_own() -> None:
    """Colours come from the style alone, except for the ramp of uncertainty."""
    folder = files("nodecopy.report") / "web"
    for script in folder.iterdir():
        if script.name.endswith(".js"):
            text = re.sub(r"const RAMP = .*", "", script.read_text(encoding="utf-8"))
            assert not re.findall(r"#[0-9a-fA-F]{6}\b|#[0-9a-fA-F]{3}\b", text), script.name
