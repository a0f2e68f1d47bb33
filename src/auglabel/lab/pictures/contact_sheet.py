"""A contact sheet of every bucket with its learned confidence: the paper's Figure 1b."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from PIL import Image, ImageDraw
from torch import Tensor, nn

from auglabel.augment.adversarial import Adversarial
from auglabel.augment.base import Augmentation
from auglabel.errors import UserError
from auglabel.lab.pictures.drawing import BLACK, GREY, PALE, WHITE, Colour, shortened, tint, width_of, write
from auglabel.util.checks import (
    require_images,
    require_range,
    require_same_length,
    require_unit,
    require_whole,
)

TITLE, LABEL, CAPTION = 20, 15, 13  # font sizes
LINE, GAP, MARGIN = 17, 8, 16
WIDEST = 130  # of a label or a caption
WEAKEST_RED = 0.9  # the fullest red means this confidence or a lower one, so that small losses look small


@dataclass(frozen=True)
class Note:
    """What is said of a bucket: a line on a coloured ground below its picture, and plain lines below that."""

    text: str
    fill: Colour
    ink: Colour = BLACK
    lines: tuple[str, ...] = ()
    lines_ink: Colour = GREY
    begins: tuple[Colour, ...] = ()  # of a bar before the picture: what begins there


@dataclass(frozen=True)
class Heading:
    """What stands above a sheet, and beside its rows."""

    title: str
    under: str
    legend: tuple[tuple[str, Colour], ...] = ()
    remarks: tuple[tuple[str, ...], ...] = ()  # lines below the name of each kind


@dataclass(frozen=True)
class _Cell:
    picture: Image.Image
    lines: tuple[str, ...]
    note: Note | None = None


def contact_sheet(
    augment: Augmentation,
    images: Tensor,
    labels: Tensor,
    classes: Sequence[str],
    *,
    table: Tensor | None = None,
    model: nn.Module | None = None,
    seed: int = 0,
    tile: int = 64,
) -> Image.Image:
    """A row per kind and a column per level, each cell a picture of that bucket.

    A row shows one image with the same random draws all along, so that the distortion alone grows; rows
    show images of different classes where there are any. Under a picture stands the confidence in
    `table` (num_buckets,), and for mixed pictures the share of either class. Small images are enlarged
    by a whole factor to at most `tile` pixels, large ones reduced to it. Only attacks need `model`.
    """
    if table is not None:
        require_unit("table", table)
        if len(table) != len(augment.grid):
            raise UserError(f"the grid has {len(augment.grid)} buckets, but the table has {len(table)}.")
    lowest = WEAKEST_RED if table is None else min(float(table.min()), WEAKEST_RED)
    values = [] if table is None else table.tolist()
    notes = [Note(f"{100 * value:.1f} %", tint(value, lowest)) for value in values]
    under = f"{len(augment.grid)} buckets, from weak to strong" if len(augment.grid) > 1 else "1 bucket"
    under += "; learned label confidence below each" * (table is not None)
    heading = Heading(type(augment).__name__, under)
    return annotated_sheet(augment, images, labels, classes, notes, heading, model, seed, tile)


def annotated_sheet(
    augment: Augmentation,
    images: Tensor,
    labels: Tensor,
    classes: Sequence[str],
    notes: Sequence[Note],
    heading: Heading,
    model: nn.Module | None = None,
    seed: int = 0,
    tile: int = 64,
) -> Image.Image:
    """The same pictures with a note on each bucket, if there are any, under a heading."""
    images = require_images("images", images)
    require_same_length("contact_sheet", images=images, labels=labels)
    require_range("labels", labels, len(classes), "classes")
    require_whole("tile", tile, 16)
    if len(images) == 0 or images.shape[1] not in (1, 3):
        raise UserError(
            f"a contact sheet takes images of 1 or 3 channels, but they have shape {tuple(images.shape)}."
        )
    if isinstance(augment, Adversarial) and model is None:
        raise UserError("pictures of attacks need the model that is attacked: pass model=...")
    rows = _rows(augment, images, labels, classes, notes, model, seed, tile)
    return _draw(augment.grid.kinds, rows, heading)


def _rows(
    augment: Augmentation,
    images: Tensor,
    labels: Tensor,
    classes: Sequence[str],
    notes: Sequence[Note],
    model: nn.Module | None,
    seed: int,
    tile: int,
) -> list[list[_Cell]]:
    """Per kind, the image as it is and then its buckets."""
    device = images.device if model is None else next(model.parameters(), images).device
    chosen = _spread(labels, max(2, len(augment.grid.levels)))
    images, labels = images[chosen].to(device), labels[chosen].to(device)
    rows, start = [], 0
    for row, levels in enumerate(augment.grid.levels):
        main = row % len(images)
        cells: list[_Cell] = []
        for bucket in range(start, start + levels):
            source = torch.Generator().manual_seed(seed)  # the same draws in every bucket of a row
            every = torch.full((len(images),), bucket, device=device)
            view = augment(images, labels, model, bucket=every, generator=source)
            if not cells:
                if view.partner is not None:
                    main = _mixed_with_another(main, view.labels, view.partner)
                cells.append(_Cell(_picture(images[main], tile), (classes[int(labels[main])],)))
            note = notes[bucket] if notes else None
            lines = note.lines if note else ()
            if view.partner is not None and view.share is not None:
                share, other = float(view.share[main]), classes[int(view.partner[main])]
                lines += (_part(1 - share, classes[int(labels[main])]), _part(share, other))
            cells.append(_Cell(_picture(view.images[main], tile), lines, note))
        rows.append(cells)
        start += levels
    return rows


def _part(share: float, name: str) -> str:
    return f"{100 * share:.0f} % {name}"


def _spread(labels: Tensor, count: int) -> Tensor:
    """Which images to show: the first of every class, then the second of every class, and so on."""
    seen: dict[int, int] = {}
    turns = []
    for index, label in enumerate(labels.tolist()):
        seen[label] = seen.get(label, 0) + 1
        turns.append((seen[label], index))
    return torch.tensor([index for _, index in sorted(turns)[:count]])


def _mixed_with_another(first: int, labels: Tensor, partner: Tensor) -> int:
    """The first image, from `first` on and around, whose partner is of another class; else `first`."""
    order = [(first + step) % len(labels) for step in range(len(labels))]
    return next((i for i in order if labels[i] != partner[i]), first)


def _picture(image: Tensor, tile: int) -> Image.Image:
    """One image (C, H, W) at the size it is shown in."""
    if image.is_floating_point():
        image = (255 * image).round().to(torch.uint8)
    array = image.permute(1, 2, 0).cpu().numpy()
    picture = Image.fromarray(array.squeeze(2) if array.shape[2] == 1 else array).convert("RGB")
    longest = max(picture.size)
    if longest > tile:
        width, height = (max(1, round(edge * tile / longest)) for edge in picture.size)
        return picture.resize((width, height), Image.Resampling.LANCZOS)
    factor = tile // longest
    return picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)


def _draw(kinds: Sequence[str], rows: list[list[_Cell]], heading: Heading) -> Image.Image:
    names = ["" if tuple(kinds) == ("1",) else shortened(kind, LABEL, WIDEST) for kind in kinds]
    cells = [cell for row in rows for cell in row]
    widths = [min(width_of(line, CAPTION), WIDEST) for cell in cells for line in cell.lines]
    wide = max(*map(_box_width, cells), *widths)
    tall = max(cell.picture.height for cell in cells)
    lines = max(len(cell.lines) + (cell.note is not None) for cell in cells)
    beside = [width_of(name, LABEL) for name in names]
    beside += [width_of(line, CAPTION) for remark in heading.remarks for line in remark]
    left = MARGIN + max(beside) + (GAP if any(beside) else 0)
    top = MARGIN + TITLE + GAP + LINE * (1 + bool(heading.legend)) + GAP + LINE + GAP // 2
    step_x, step_y = wide + GAP, tall + LINE * lines + GAP + 4
    above = max(width_of(heading.under, CAPTION), sum(map(_legend_width, heading.legend)))
    width = max(left + step_x * max(map(len, rows)), MARGIN + above, 240) + MARGIN
    sheet = Image.new("RGB", (width, top + step_y * len(rows) + MARGIN - GAP), WHITE)
    draw = ImageDraw.Draw(sheet)
    _draw_heading(draw, heading)
    for column in range(max(map(len, rows))):
        head = "image" if column == 0 else str(column)
        write(draw, (left + column * step_x + wide / 2, top - GAP), head, CAPTION, "ms", GREY)
    for number, (name, row) in enumerate(zip(names, rows, strict=True)):
        y = top + number * step_y
        write(draw, (left - GAP, y + tall / 2), name, LABEL, "rm")
        for line, remark in enumerate(heading.remarks[number] if heading.remarks else ()):
            write(draw, (left - GAP, y + tall / 2 + LINE * (line + 1)), remark, CAPTION, "rm", GREY)
        for column, cell in enumerate(row):
            _draw_cell(sheet, draw, cell, (left + column * step_x, y), (wide, tall))
    return sheet


def _draw_heading(draw: ImageDraw.ImageDraw, heading: Heading) -> None:
    write(draw, (MARGIN, MARGIN), heading.title, TITLE)
    x, y = MARGIN, MARGIN + TITLE + GAP
    write(draw, (x, y), heading.under, CAPTION, colour=GREY)
    for entry in heading.legend:
        text, fill = entry
        draw.rectangle((x, y + LINE + 1, x + CAPTION, y + LINE + 1 + CAPTION), fill=fill, outline=PALE)
        write(draw, (x + LINE + 1, y + LINE + 2), text, CAPTION)
        x += _legend_width(entry)


def _legend_width(entry: tuple[str, Colour]) -> int:
    return LINE + width_of(entry[0], CAPTION) + 3 * GAP


def _box_width(cell: _Cell) -> int:
    """Width of a picture and of its note; short notes are all as wide as the longest confidence."""
    if cell.note is None:
        return cell.picture.width
    return max(cell.picture.width, width_of("100.0 %", CAPTION), width_of(cell.note.text, CAPTION) + GAP)


def _draw_cell(
    sheet: Image.Image,
    draw: ImageDraw.ImageDraw,
    cell: _Cell,
    place: tuple[int, int],
    size: tuple[int, int],
) -> None:
    (x, y), (wide, tall) = place, size
    corner = x + (wide - cell.picture.width) // 2, y + (tall - cell.picture.height) // 2
    draw.rectangle(
        (corner[0] - 1, corner[1] - 1, corner[0] + cell.picture.width, corner[1] + cell.picture.height),
        outline=PALE,
    )
    sheet.paste(cell.picture, corner)
    bars, high = cell.note.begins if cell.note else (), tall + LINE * (1 + len(cell.lines)) + 4
    for number, bar in enumerate(bars):
        above, below = (y - 2 + high * part // len(bars) for part in (number, number + 1))
        draw.rectangle((x - 6, above, x - 3, below), fill=bar)
    y += tall + 2
    if cell.note is not None:
        inset = (wide - _box_width(cell)) // 2
        box = (x + inset, y, x + wide - inset - 1, y + LINE - 1)
        draw.rectangle(box, fill=cell.note.fill, outline=PALE)
        write(draw, (x + wide / 2, y + LINE / 2), cell.note.text, CAPTION, "mm", cell.note.ink)
        y += LINE
    for line in cell.lines:
        ink = cell.note.lines_ink if cell.note else GREY
        write(draw, (x + wide / 2, y + 14), shortened(line, CAPTION, wide), CAPTION, "ms", ink)
        y += LINE
