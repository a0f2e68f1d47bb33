import io
import itertools
import json

import numpy as np
import pytest
import torch
from rich.console import Console

from auglabel import RandAug
from auglabel.lab.pictures import history_chart as chart
from auglabel.lab.pictures.drawing import colour, shortened, tint, width_of, write
from auglabel.lab.pictures.history_chart import history_chart
from auglabel.lab.pictures.terminal import heat_map, sparkline, summary
from auglabel.lab.runs.label_tables import LabelTable, read_history


def history_of(kinds, epochs):
    """Kind k at level l loses (l + 1) hundredths, evenly over the epochs."""
    return [
        LabelTable(
            epoch,
            {
                kind: [1 - 0.01 * (level + 1) * epoch / epochs for level in range(n)]
                for kind, n in kinds.items()
            },
        )
        for epoch in range(1, epochs + 1)
    ]


def printed(renderable, width=120):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


def lines_of(history):
    return [json.dumps({"epoch": epoch, "confidence": confidence}) for epoch, confidence in history]


def test_a_history_is_read_as_it_was_written(tmp_path):
    history = history_of({"rotate": 3, "equalize": 1}, epochs=4)
    path = tmp_path / "tables.jsonl"
    path.write_text("\n".join(lines_of(history)) + "\n")
    assert read_history(path) == history


@pytest.mark.parametrize("kept", [1, 10, 30, -1])
def test_a_torn_last_line_is_left_out(tmp_path, kept):
    history = history_of({"rotate": 3}, epochs=3)
    first, second, torn = lines_of(history)
    path = tmp_path / "tables.jsonl"
    path.write_text(f"{first}\n{second}\n{torn[:kept]}")
    assert read_history(path) == history[:2]
    path.write_text(f"{first}\n{second}\n{torn}")  # only its line end is missing
    assert read_history(path) == history


def test_a_line_torn_in_the_middle_of_a_letter_is_left_out(tmp_path):
    whole = '{"epoch": 1, "confidence": {"färbung": [1.0]}}'
    path = tmp_path / "tables.jsonl"
    path.write_bytes(whole.encode() + b"\n" + whole.encode()[: whole.index("ä") + 1])
    assert read_history(path) == [(1, {"färbung": [1.0]})]


def test_an_epoch_told_again_replaces_itself_and_those_after(tmp_path):
    path = tmp_path / "tables.jsonl"
    told = [(1, 1.0), (2, 0.9), (3, 0.8), (2, 0.7)]
    path.write_text("".join(f'{{"epoch": {e}, "confidence": {{"1": [{c}]}}}}\n' for e, c in told))
    assert read_history(path) == [(1, {"1": [1.0]}), (2, {"1": [0.7]})]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"epoch": 2,', " is damaged: it is not JSON."),
        ("[1, 2]", " is damaged: an object was expected, got list [1, 2]."),
        (
            '{"epoch": 2, "confidence": {"rotate": [1, 1]}, "crc32": "0"}',
            " is damaged: its checksum does not fit its content.",
        ),
        (
            '{"epoch": "2", "confidence": {"rotate": [1, 1]}}',
            ': an object with a whole number as "epoch" was expected',
        ),
        ('{"epoch": 2, "confidence": [1, 1]}', ': "confidence" must hold a list of numbers per kind'),
        (
            '{"epoch": 2, "confidence": {"rotate": [1, 1.5]}}',
            ": every confidence must be a number in [0, 1], got float 1.5.",
        ),
        (
            '{"epoch": 2, "confidence": {"rotate": [1, NaN]}}',
            ": every confidence must be a number in [0, 1], got float nan.",
        ),
        (
            '{"epoch": 2, "confidence": {"rotate": [1, 1, 1]}}',
            ": it is a table for other distances than the lines before: {'rotate': 3} after {'rotate': 2}.",
        ),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(tmp_path, line, sentence):
    path = tmp_path / "tables.jsonl"
    good = '{"epoch": %d, "confidence": {"rotate": [1, 1]}}\n'
    path.write_text(good % 1 + line + "\n" + good % 3)
    with pytest.raises(ValueError, match="tables") as caught:
        read_history(path)
    assert str(caught.value).startswith(f"{path}, line 2{sentence}")


def test_a_bad_last_line_that_was_written_whole_is_named_too(tmp_path):
    path = tmp_path / "tables.jsonl"
    path.write_text('{"epoch": 1, "confidence": {"1": [1]}}\n{"epoch": 2}\n')
    with pytest.raises(ValueError, match=r'tables\.jsonl, line 2: "confidence" must hold'):
        read_history(path)


def test_an_empty_or_missing_file_is_told_in_one_sentence(tmp_path):
    path = tmp_path / "tables.jsonl"
    with pytest.raises(FileNotFoundError, match=r"tables\.jsonl does not exist: training writes it"):
        read_history(path)
    for content in ("", "\n", '{"epoch": 1, "conf'):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"tables\.jsonl holds no epoch yet\.$"):
            read_history(path)


def test_the_heat_map_has_a_row_per_kind_and_a_cell_per_level():
    shown = heat_map(
        ("rotate", "equalize"), (3, 1), torch.tensor([1.0, 0.75, 0.5, 0.999]), "title", "magnitude"
    )
    rows = [line.split() for line in printed(shown).splitlines()]
    assert rows == [
        ["title"],
        ["magnitude", "1", "2", "3"],
        ["rotate", "100", "75", "50"],
        ["equalize", "100"],
    ]
    styles = [next(iter(column.cells)).style for column in shown.columns[1:]]
    assert styles == [f"black on rgb(255,{light},{light})" for light in (255, 175, 95)]  # 95 + 160 / 2


def test_the_heat_map_refuses_a_table_of_another_length():
    with pytest.raises(ValueError, match=r"2 kinds with 4 levels in all need as many confidences, got 3"):
        heat_map(("rotate", "equalize"), (3, 1), [1.0, 1.0, 1.0], "title")


def test_the_summary_gives_means_of_first_middle_and_last_epoch_and_the_extremes_of_the_last():
    history = [
        LabelTable(3, {"rotate": [1.0, 1.0], "equalize": [1.0]}),
        LabelTable(4, {"rotate": [0.9, 0.7], "equalize": [0.95]}),
        LabelTable(5, {"rotate": [0.8, 0.7], "equalize": [0.4]}),
    ]
    text = printed(summary(history))
    assert [line.split() for line in text.splitlines() if "rotate" in line or "equalize" in line] == [
        ["rotate", "100.0", "80.0", "75.0", "█▆▅", "70.0", "80.0"],  # (mean - 0.4) / 0.6 of seven steps
        ["equalize", "100.0", "95.0", "40.0", "█▇▁", "40.0", "40.0"],
    ]
    assert "epoch 3  epoch 4  epoch 5  epochs 3 to 5" in text
    assert "bars from 40.0 to 100" in text


@pytest.mark.parametrize(("epochs", "columns"), [(1, 1), (2, 2), (3, 3), (200, 3)])
def test_the_summary_names_no_epoch_twice(epochs, columns):
    heads = [str(column.header) for column in summary(history_of({"1": 2}, epochs)).columns]
    assert sum(head.startswith("epoch ") for head in heads) == columns
    assert f"epoch {epochs}" in heads


def test_a_sparkline_averages_what_does_not_fit_and_is_full_where_nothing_was_lost():
    assert sparkline([1.0, 1.0, 0.5, 0.5], lowest=0.5, longest=2) == "█▁"
    assert (
        sparkline([1.0, 0.0] * 50, lowest=0.0, longest=10) == "▅" * 10
        or sparkline([1.0, 0.0] * 50, lowest=0.0, longest=10) == "▄" * 10
    )
    assert sparkline([1.0], lowest=1.0) == "█"
    assert len(sparkline([0.5] * 1000, lowest=0.5)) == 16


def test_the_chart_has_epochs_from_left_to_right_and_levels_downwards():
    values = {(1, 0): 0.9, (1, 1): 0.8, (2, 0): 0.7, (2, 1): 0.6, (3, 0): 0.55, (3, 1): 0.5}
    history = [LabelTable(epoch, {"rotate": [values[epoch, 0], values[epoch, 1]]}) for epoch in (1, 2, 3)]
    pixels = np.asarray(history_chart(history))

    def centre(value):
        """The middle of the 48 by 28 pixels of one cell."""
        same = (pixels == colour(value, 0.5)).all(axis=2)
        windows = np.lib.stride_tricks.sliding_window_view(same, (26, 46)).all(axis=(2, 3))
        down, across = np.nonzero(windows)
        assert len(down) > 0, value
        return across.mean(), down.mean()

    found = {place: centre(value) for place, value in values.items()}
    for (epoch, level), (across, down) in found.items():
        assert across == pytest.approx(found[1, 0][0] + 48 * (epoch - 1), abs=1)
        assert down == pytest.approx(found[1, 0][1] + 28 * level, abs=1)


@pytest.mark.parametrize("epochs", [1, 2, 40, 200, 2500])
@pytest.mark.parametrize(
    "kinds", [{"1": 1}, {"1": 10}, dict(zip(RandAug().grid.kinds, RandAug().grid.levels, strict=True))]
)
def test_charts_of_every_size_stay_legible(kinds, epochs):
    chart = history_chart(history_of(kinds, epochs))
    assert 450 <= chart.width <= 1400
    assert 150 <= chart.height <= 1300
    pixels = np.asarray(chart)
    for edge in (pixels[:15], pixels[-10:], pixels[:, :12], pixels[:, -5:]):
        assert (edge == 255).all()


def texts_of(history, monkeypatch):
    written = []
    real = write

    def note(draw, place, text, *rest, **more):
        written.append((text, place))
        real(draw, place, text, *rest, **more)

    monkeypatch.setattr(chart, "write", note)
    history_chart(history)
    return written


def test_ticks_are_round_numbers_far_enough_apart(monkeypatch):
    written = texts_of(history_of({"1": 10}, epochs=200), monkeypatch)
    ticks = [(int(text), place[0]) for text, place in written if text.isdigit() and int(text) >= 11]
    assert sorted(number for number, _ in ticks) == list(range(20, 201, 10))
    across = sorted(place for _, place in ticks)
    assert min(b - a for a, b in itertools.pairwise(across)) >= 48
    assert [text for text, _ in written if "%" in text] == ["100 %", "98 %", "96 %", "94 %", "92 %", "90 %"]


def test_the_scale_of_colours_is_never_narrower_than_a_hundredth(monkeypatch):
    written = texts_of([LabelTable(1, {"1": [1.0]})], monkeypatch)
    assert [text for text, _ in written if "%" in text] == [
        "100.0 %",
        "99.8 %",
        "99.6 %",
        "99.4 %",
        "99.2 %",
        "99.0 %",
    ]


def test_kinds_are_named_and_an_unnamed_one_is_not(monkeypatch):
    assert "depth 2" in [
        text for text, _ in texts_of(history_of({"depth 1": 2, "depth 2": 2}, 3), monkeypatch)
    ]
    assert [text for text, _ in texts_of(history_of({"1": 1}, 1), monkeypatch)].count("1") == 1  # the epoch


def test_an_empty_history_is_refused():
    for show in (summary, history_chart):
        with pytest.raises(ValueError, match="at least one epoch"):
            show([])


def test_colours_darken_as_confidence_falls():
    shades = [sum(colour(1 - share / 100, 0.0)) for share in range(101)]
    assert all(a > b for a, b in itertools.pairwise(shades))
    assert colour(1.0, 0.3) == (255, 250, 240)
    assert colour(0.3, 0.3) == (90, 0, 20)
    assert tint(1.0, 1.0) == (255, 255, 255)


def test_long_words_are_cut_to_their_width():
    assert shortened("short", 14, 200) == "short"
    cut = shortened("a very long name of a class", 14, 80)
    assert cut.endswith("...")
    assert 50 < width_of(cut, 14) <= 80
