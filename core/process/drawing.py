"""Draw a terminal's screen as a PNG: a program of its own, which imports Pillow and nothing of ours.

It reads a drawing (`core.model.cells.drawing_of`) as JSON from standard input, and writes the PNG to standard output.
With `--font` it prints the file of the font that it would draw with; an empty line for Pillow's own.
Exit codes: 3 without Pillow, 1 with a reason on standard error. It gets no environment and has limits of memory and
time: what a terminal shows is not ours.
"""

import json
import os
import sys
from typing import Any

MOST_BYTES = 8 << 20  # of the PNG
NO_PILLOW = 3
_MEMORY, _SECONDS = 1 << 30, 20
_SIZE, _MARGIN = 17, 8  # pixels: of a letter, around the screen
_BACK, _FRONT, _MASK, _BAR = "#1d1f21", "#d7dae0", "#55585f", "#6d7079"
_FOLDERS = (
    "/usr/share/fonts", "/usr/local/share/fonts", "~/.local/share/fonts", "~/.fonts", "/System/Library/Fonts",
    "/Library/Fonts", "~/Library/Fonts", "/opt/homebrew/share/fonts", "/usr/share/texmf/fonts",
)  # fmt: skip
#: fixed-width fonts, regular and bold; the first that is there is used
_FIXED = (
    ("DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf"), ("NotoSansMono-Regular.ttf", "NotoSansMono-Bold.ttf"),
    ("Menlo.ttc", "Menlo.ttc"), ("LiberationMono-Regular.ttf", "LiberationMono-Bold.ttf"),
    ("UbuntuMono-R.ttf", "UbuntuMono-B.ttf"), ("FreeMono.ttf", "FreeMonoBold.ttf"),
)  # fmt: skip
#: for letters that it lacks
_OTHERS = (
    "NotoSansMonoCJK-Regular.ttc", "NotoSansCJK-Regular.ttc", "NotoSansCJKsc-Regular.otf", "wqy-zenhei.ttc",
    "wqy-microhei.ttc", "DroidSansFallbackFull.ttf", "DroidSansFallback.ttf", "PingFang.ttc", "Hiragino Sans GB.ttc",
    "unifont.ttf", "unifont.otf", "NotoSansSymbols2-Regular.ttf", "NotoSansSymbols-Regular.ttf", "Apple Symbols.ttf",
    "DejaVuSans.ttf", "FreeSans.ttf",
)  # fmt: skip
_MOST_FILES = 20_000  # that are looked through for fonts


def _fonts_there() -> dict[str, str]:
    """Return the paths of the fonts that are there, by the names of their files."""
    wanted = {name for pair in _FIXED for name in pair} | set(_OTHERS)
    found, looked = dict[str, str](), 0
    for folder in _FOLDERS:
        for root, _, files in os.walk(os.path.expanduser(folder)):
            looked += len(files)
            if looked > _MOST_FILES:
                return found
            for name in wanted.intersection(files):
                found.setdefault(name, os.path.join(root, name))
    return found


class Pen:
    """The fonts, and the letters that each of them has."""

    def __init__(self, image_font: Any) -> None:
        there = _fonts_there()
        pair = next((pair for pair in _FIXED if pair[0] in there), None)
        if pair is None:  # Pillow's own: letters of Latin-1 alone
            made = getattr(image_font, "load_default_imagefont", image_font.load_default)()
            self._fonts: dict[bool, list[Any]] = {False: [made], True: [made]}
            _, _, right, bottom = made.getbbox("M")
            self.width, self.height = int(right), int(bottom) + 2
        else:
            others = [image_font.truetype(there[name], _SIZE) for name in _OTHERS if name in there]
            regular = image_font.truetype(there[pair[0]], _SIZE)
            bold = image_font.truetype(there.get(pair[1], there[pair[0]]), _SIZE)
            self._fonts = {False: [regular, *others], True: [bold, regular, *others]}
            ascent, descent = regular.getmetrics()
            self.width, self.height = round(regular.getlength("M")), ascent + descent
        self._missing = dict[int, Any]()
        self._chosen = dict[tuple[str, bool], Any]()

    def of(self, text: str, bold: bool) -> Any:
        """Return the font that has the letter, None where none has."""
        key = (text[0], bold)
        if key not in self._chosen:
            self._chosen[key] = next((font for font in self._fonts[bold] if self._has(font, text[0])), None)
        return self._chosen[key]

    def _has(self, font: Any, letter: str) -> bool:
        if id(font) not in self._missing:
            self._missing[id(font)] = self._shape(font, "\U0010fffe")
        return self._shape(font, letter) not in (None, self._missing[id(font)])

    @staticmethod
    def _shape(font: Any, letter: str) -> Any:
        try:
            mask = font.getmask(letter)
        except (UnicodeError, ValueError, OSError):
            return None
        return mask.size, bytes(mask)


def _mixed(front: str, back: str) -> str:
    """Return the colour between two, for what is faint."""
    pairs = zip(bytes.fromhex(front[1:]), bytes.fromhex(back[1:]), strict=True)
    return "#" + "".join(f"{(3 * one + 2 * other) // 5:02x}" for one, other in pairs)


def draw(drawing: dict[str, Any]) -> bytes:
    """Return the PNG."""
    from io import BytesIO

    from PIL import Image, ImageDraw, ImageFont

    pen = Pen(ImageFont)
    width, height = pen.width, pen.height
    size = (drawing["columns"] * width + 2 * _MARGIN, max(1, len(drawing["rows"])) * height + 2 * _MARGIN)
    image = Image.new("RGB", size, _BACK)
    brush = ImageDraw.Draw(image)
    cursor = tuple(drawing["cursor"]) if drawing["cursor"] else None
    if cursor:
        _box(brush, cursor[0], cursor[1], 1, pen, _FRONT)
    own: dict[str, str | None] = {"": None, "back": _BACK, "front": _FRONT}
    for y, row in enumerate(drawing["rows"]):
        for x, text, columns, front, back, flags in row:
            at = (x, y) == cursor
            ground = own.get(back, back) or _BACK
            colour = own.get(front, front) or _FRONT
            if at:
                ground, colour = _FRONT, _BACK
            elif "faint" in flags:
                colour = _mixed(colour, ground)
            if ground != _BACK or at:
                _box(brush, x, y, columns, pen, ground)
            left, top = _MARGIN + x * width, _MARGIN + y * height
            if "masked" in flags:
                _box(brush, x, y, columns, pen, _MASK)
                brush.line([(left, top + height - 1), (left + columns * width - 1, top)], fill=_BAR)
                continue
            _letter(brush, pen, (left, top), text, columns, colour, "bold" in flags)
            if "underlined" in flags:
                brush.line([(left, top + height - 2), (left + columns * width - 1, top + height - 2)], fill=colour)
            if "struck" in flags:
                middle = top + height // 2
                brush.line([(left, middle), (left + columns * width - 1, middle)], fill=colour)
    stream = BytesIO()
    image.quantize(255).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _box(brush: Any, x: int, y: int, columns: int, pen: Pen, colour: str) -> None:
    left, top = _MARGIN + x * pen.width, _MARGIN + y * pen.height
    brush.rectangle([left, top, left + columns * pen.width - 1, top + pen.height - 1], fill=colour)


def _letter(brush: Any, pen: Pen, place: tuple[int, int], text: str, columns: int, colour: str, bold: bool) -> None:
    if text.isspace():
        return
    font = pen.of(text, bold)
    left, top = place
    if font is None:  # a box of its width: something stands there
        right, bottom = left + columns * pen.width - 3, top + pen.height - 4
        brush.rectangle([left + 2, top + 3, right, bottom], outline=colour)
        return
    room = columns * pen.width
    shift = max(0, (room - round(font.getlength(text))) // 2) if columns > 1 else 0
    brush.text((left + shift, top), text, font=font, fill=colour)


def main() -> int:
    """Draw what stands on standard input."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    if sys.platform.startswith("linux"):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    try:
        if sys.argv[1:] == ["--font"]:
            import PIL  # noqa: F401  - whether it is there

            there = _fonts_there()
            sys.stdout.write(next((there[first] for first, _ in _FIXED if first in there), "") + "\n")
            return 0
        made = draw(json.load(sys.stdin.buffer))
    except ImportError:
        return NO_PILLOW
    if len(made) > MOST_BYTES:
        sys.stderr.write("the picture is too large")
        return 1
    sys.stdout.buffer.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
