"""The facts of `auglabel doctor` as one screen of text."""

from __future__ import annotations

import textwrap
from typing import Any

from auglabel.lab.doctor.probe import DEFAULT, PRECISIONS

WIDTH = 100
TOGETHER = "\N{NO-BREAK SPACE}"  # a space that no line is broken at
CLEARLY = 1.1  # times as fast as the default, to be worth another flag

Facts = dict[str, Any]
Lines = list[tuple[str, str]]  # what a line begins with, and its words


def fastest(precisions: Facts) -> str | None:
    """The precision that trains fastest; the default unless another is clearly faster."""
    rates = {name: tried["images_per_second"] or 0 for name, tried in precisions.items()}
    best = max(rates, key=lambda name: rates[name], default=None)
    if best is None or not rates[best]:
        return None
    return DEFAULT if rates[best] < CLEARLY * rates.get(DEFAULT, 0) else best


def verdict(precisions: Facts) -> str:
    """Which precision to train with here, in a sentence."""
    best = fastest(precisions)
    if best is None:
        return "Fastest here: not known, since no precision could be tried."
    if best == DEFAULT:
        return f"Fastest here: {best}, which auglabel train uses unless told otherwise."
    ours, default = (precisions[name]["images_per_second"] for name in (best, DEFAULT))
    than = f", {ours / default:.1f} times as fast as {DEFAULT}" if default else ""
    return f"Fastest here: {best}{than}. Use it: auglabel train ... {PRECISIONS[best].flags}"


def screen(facts: Facts) -> str:
    """Problems first, then what there is, then which precision to use."""
    versions = [f"{name}{TOGETHER}{version or 'missing'}" for name, version in facts["versions"].items()]
    parts: dict[str, Lines] = {
        "Problems": _problems(facts),
        "Versions": [("", ", ".join(versions)), ("", facts["system"])],
        "Extras": _named(_extras(facts)),
        "Machine": _named(_machine(facts)),
        "Training": _training(facts),
        "Files": _named(_files(facts)),
        "Data": _named(_data(facts)),
    }
    blocks = ["\n".join([title, *(_wrapped(*line) for line in lines)]) for title, lines in parts.items()]
    return "\n\n".join([*blocks, facts["verdict"]])


def _named(told: dict[str, str]) -> Lines:
    return [(f"{name:14} ", words) for name, words in told.items()]


def _problems(facts: Facts) -> Lines:
    lines: Lines = []
    for number, each in enumerate(facts["problems"], start=1):
        lines += [(f"{number}. ", each["problem"]), ("   ", each["way_out"])]
    return lines or [("", "none found")]


def _extras(facts: Facts) -> dict[str, str]:
    extras, versions = facts["extras"].items(), facts["versions"]
    told = {"complete": ", ".join(name for name, extra in extras if not extra["missing"]) or "none"}
    for name, extra in extras:
        if extra["missing"]:
            install = extra["install"].replace(" ", TOGETHER)
            told[name] = f"missing {', '.join(extra['missing'])}: {install}"
    others = [f"{n}{TOGETHER}{each['version']}" for n, each in facts["packages"].items() if n not in versions]
    return {**told, "installed": ", ".join(others) or "none"}


def _machine(facts: Facts) -> dict[str, str]:
    cpu, torch, memory = facts["cpu"], facts["torch"], facts["memory"]
    amx = "AMX" if cpu["amx"] else "no AMX"
    if cpu["amx_hidden"]:
        amx = "AMX, announced but hidden, so that oneDNN must be kept from using it"
    threads = f"; torch uses {torch['threads']} threads" if torch["threads"] else ""
    load = f"; load {cpu['load']:g}" if cpu["load"] is not None else ""
    gpus = [f"{gpu['name']}, {_size(gpu['memory'])}" for gpu in facts["gpus"]]
    return {
        "CPU": f"{cpu['name']}; torch uses {torch['instructions'] or 'unknown instructions'}; {amx}",
        "cores": f"{cpu['cores']}, of which this process may use {cpu['usable_cores']:g}{threads}{load}",
        "memory": f"{_size(memory['total'])}, {_size(memory['available'])} available",
        "GPU": "; ".join(gpus) or "none",
        "variables": ", ".join(f"{name}={value}" for name, value in facts["variables"].items()) or "none",
    }


def _training(facts: Facts) -> Lines:
    if facts["torch"]["error"]:
        return [("", "not tried: torch cannot be used")]
    rates = [(f"{name:22} ", _rate(tried)) for name, tried in facts["precisions"].items()]
    return [("", f"{facts['torch']['trial']}:"), *rates]


def _rate(tried: Facts) -> str:
    if tried["images_per_second"] is not None:
        return f"{tried['images_per_second']:9,.0f} images/s"
    return tried["death"] or (f"fails: {tried['error']}" if tried["error"] else "not tried: no time was left")


def _files(facts: Facts) -> dict[str, str]:
    cache, free = facts["cache"], f"{_size(facts['folder']['free'])} free"
    kept = f"{cache['path']}: {cache['files']} files, {_size(cache['bytes'])}; {_size(cache['free'])} free"
    return {"cache": kept if cache["path"] else "none", "this folder": free}


def _data(facts: Facts) -> dict[str, str]:
    data = facts["data"].items()
    told = {name: each["where"] or "cannot be read" for name, each in data if "sought" not in each}
    missing = {name: each["sought"] for name, each in data if "sought" in each}
    if missing:
        sought = next(iter(missing.values()))
        told["not found"] = f"{', '.join(missing)}: not in {sought}; --data.root DIR looks there"
    return told


def _wrapped(start: str, words: str) -> str:
    indents = {"initial_indent": f"  {start}", "subsequent_indent": " " * (2 + len(start))}
    whole = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(words, WIDTH, **indents, **whole).replace(TOGETHER, " ")  # type: ignore[arg-type]


def _size(count: float | None) -> str:
    if count is None:
        return "unknown"
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.2f} MB"
