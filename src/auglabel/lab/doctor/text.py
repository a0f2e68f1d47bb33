"""The facts of `auglabel doctor` as one screen of text."""

from __future__ import annotations

import textwrap
from typing import Any

from auglabel.lab.doctor.probe import DEFAULT, PRECISIONS

WIDTH = 100
TOGETHER = "\N{NO-BREAK SPACE}"  # a space that no line is broken at
CLEARLY = 1.1  # times as fast as the default, to be worth another flag


def fastest(precisions: dict[str, Any]) -> str | None:
    """The precision that trains fastest; the default unless another is clearly faster."""
    rates = {name: tried["images_per_second"] for name, tried in precisions.items()}
    done = {name: rate for name, rate in rates.items() if rate is not None}
    if not done:
        return None
    best = max(done, key=lambda name: done[name])
    return DEFAULT if done[best] < CLEARLY * done.get(DEFAULT, 0) else best


def verdict(precisions: dict[str, Any]) -> str:
    """Which precision to train with here, in a sentence."""
    best = fastest(precisions)
    if best is None:
        return "Fastest here: not known, since no precision could be tried."
    if best == DEFAULT:
        return f"Fastest here: {best}, which auglabel train uses unless told otherwise."
    ours, default = precisions[best]["images_per_second"], precisions[DEFAULT]["images_per_second"]
    than = f", {ours / default:.1f} times as fast as {DEFAULT}" if default else ""
    return f"Fastest here: {best}{than}. Use it: auglabel train ... {PRECISIONS[best].flags}"


def screen(facts: dict[str, Any]) -> str:
    """Problems first, then what there is, then which precision to use."""
    parts = {
        "Problems": _problems(facts),
        "Versions": _versions(facts),
        "Extras": _extras(facts),
        "Machine": _machine(facts),
        "Training": _training(facts),
        "Files": _files(facts),
        "Data": _data(facts),
    }
    blocks = [f"{title}\n" + "\n".join(lines) for title, lines in parts.items()]
    return "\n\n".join([*blocks, facts["verdict"]])


def _problems(facts: dict[str, Any]) -> list[str]:
    lines = []
    for number, each in enumerate(facts["problems"], start=1):
        lines.append(_wrapped(f"  {number}. ", each["problem"]))
        lines.append(_wrapped("     ", each["way_out"]))
    return lines or ["  none found"]


def _versions(facts: dict[str, Any]) -> list[str]:
    told = [f"{name}{TOGETHER}{version or 'missing'}" for name, version in facts["versions"].items()]
    return [_wrapped("  ", ", ".join(told)), _wrapped("  ", facts["system"])]


def _extras(facts: dict[str, Any]) -> list[str]:
    complete = [name for name, extra in facts["extras"].items() if not extra["missing"]]
    lines = [_line("complete", ", ".join(complete) or "none")]
    for name, extra in facts["extras"].items():
        if extra["missing"]:
            install = extra["install"].replace(" ", TOGETHER)
            lines.append(_line(name, f"missing {', '.join(extra['missing'])}: {install}"))
    others = {name: each for name, each in facts["packages"].items() if name not in facts["versions"]}
    told = [f"{name}{TOGETHER}{package['version']}" for name, package in others.items()]
    return [*lines, _line("installed", ", ".join(told) or "none")]


def _machine(facts: dict[str, Any]) -> list[str]:
    cpu, torch, memory = facts["cpu"], facts["torch"], facts["memory"]
    used = f"torch uses {torch['instructions'] or 'unknown instructions'}"
    amx = "AMX" if cpu["amx"] else "no AMX"
    if cpu["amx_hidden"]:
        amx = "AMX, announced but hidden, so that oneDNN must be kept from using it"
    gpus = [f"{gpu['name']}, {_size(gpu['memory'])}" for gpu in facts["gpus"]]
    threads = f"; torch uses {torch['threads']} threads" if torch["threads"] else ""
    load = f"; load {cpu['load']:g}" if cpu["load"] is not None else ""
    cores = f"{cpu['cores']}, of which this process may use {cpu['usable_cores']:g}{threads}{load}"
    variables = ", ".join(f"{name}={value}" for name, value in facts["variables"].items())
    return [
        _line("CPU", f"{cpu['name']}; {used}; {amx}"),
        _line("cores", cores),
        _line("memory", f"{_size(memory['total'])}, {_size(memory['available'])} available"),
        _line("GPU", "; ".join(gpus) or "none"),
        _line("variables", variables or "none"),
    ]


def _training(facts: dict[str, Any]) -> list[str]:
    if facts["torch"]["error"]:
        return ["  not tried: torch cannot be used"]
    rates = [_wrapped(f"  {name:22} ", _rate(tried)) for name, tried in facts["precisions"].items()]
    return [f"  {facts['torch']['trial']}:", *rates]


def _rate(tried: dict[str, Any]) -> str:
    if tried["images_per_second"] is not None:
        return f"{tried['images_per_second']:9,.0f} images/s"
    return tried["death"] or (f"fails: {tried['error']}" if tried["error"] else "not tried: no time was left")


def _files(facts: dict[str, Any]) -> list[str]:
    cache, folder = facts["cache"], facts["folder"]
    kept = f"{cache['path']}: {cache['files']} files, {_size(cache['bytes'])}; {_size(cache['free'])} free"
    return [
        _line("cache", kept if cache["path"] else "none"),
        _line("this folder", f"{_size(folder['free'])} free"),
    ]


def _data(facts: dict[str, Any]) -> list[str]:
    lines = []
    for name, data in facts["data"].items():
        if data["where"] or data.get("error"):
            lines.append(_line(name, data["where"] or "cannot be read"))
    missing = {name: data["sought"] for name, data in facts["data"].items() if "sought" in data}
    if missing:
        words = f"{', '.join(missing)}: not in {next(iter(missing.values()))}; --data.root DIR looks there"
        lines.append(_line("not found", words))
    return lines


def _line(name: str, words: str) -> str:
    return _wrapped(f"  {name:14} ", words)


def _wrapped(start: str, words: str) -> str:
    lines = textwrap.fill(
        words,
        WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace(TOGETHER, " ")


def _size(count: float | None) -> str:
    if count is None:
        return "unknown"
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.2f} MB"
