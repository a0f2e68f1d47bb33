"""Recipes, and YAML that runs, repeats itself or goes deep."""

from __future__ import annotations

import functools
from collections.abc import Callable

import yaml

from hostile.spoil import CANARY, Draw, Files, spoil_bytes, spoil_tree

RECIPES = (
    "epochs: 3\nregime: randaug_autolabel\nlabels: {alpha: 0.02}\n",
    "base: embedded\nseed: 4\naugment: {name: augmix, max_depth: 2}\nlabels: autolabel\n",
    "model: {name: small, widths: [4, 8, 8]}\noptimizer:\n  learning_rate: 0.1\n  clip: 1\n",
    "data: {name: cifar10, root: x}\nschedule: {name: cosine}\nregimes: {randaug_ls: {labels: {rho: 0.1}}}\n",
    "split: {train: 100, validation: 0.1}\naugment:\n  name: randaug\n  operations: [rotate]\n  m_max: 3\n",
)


TOKENS = (
    *("!!python/object/apply:os.system ['touch x']", "!!python/name:os.system", "!!binary 4oaS"),
    *("!!set {a, b}",),
    *("!!timestamp x", "!!bool maybe", "!!int ''", "!!float x", "2001-99-99", "0b_", "0x_", "1:2:3"),
    *("&a [*a]", "*a"),
    *("<<: *a", "? [a, b]", "{", "[", "}", "]", "---", "...", "%YAML 9.9", "|", ">", "''", '"\\ud800"'),
    *("~", "\t"),
    *("9" * 5000, ".nan", ".inf", "-.inf", "1e999", "os:system", "timm:x", "a:b:c", "null", "\u2028"),
    *("\ufeff", "@", "`"),
    *("name: x", "augment: {name: []}", "seed: -1", "epochs: 1.5", "base: embedded", "regime: ''", "- a"),
    *("!x y", "'"),
    *("- " * 300, "[" * 300, "{a: " * 100, "é: ü", "\x85", '"\\0"', '"a\\nb"', "model: '\\x1b[31m'"),
    *("__class__: x",),
)


def spoil_recipe(draw: Draw, files: Files) -> Files:
    content = files["recipe.yaml"]
    kind = draw.random()
    if kind < 0.3:
        return {"recipe.yaml": spoil_bytes(draw, content)}
    if kind < 0.6:
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return {"recipe.yaml": spoil_bytes(draw, content)}
        place = draw.choice([0, len(text), *(n for n, letter in enumerate(text) if letter in ":,[]{}\n ")])
        between = draw.choice(("", " ", "\n", ": "))
        text = text[:place] + between + draw.choice(TOKENS) + between + text[place:]
        return {"recipe.yaml": text.encode("utf-8", "surrogatepass")}
    try:
        tree = yaml.safe_load(content)
        text = yaml.safe_dump(spoil_tree(draw, tree), default_flow_style=draw.choice((None, True, False)))
    except Exception:  # spoilt already
        return {"recipe.yaml": spoil_bytes(draw, content)}
    return {"recipe.yaml": text.encode("utf-8", "surrogatepass")}


def recipe_cases() -> dict[str, Callable[[], Files]]:
    touch = f"touch ../{CANARY}"
    lists = "a0: &a0 [x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    maps = "a0: &a0 {x: 1}\n" + "".join(
        f"a{n}: &a{n} {{x: *a{n - 1}, y: *a{n - 1}, z: *a{n - 1}}}\n" for n in range(1, 40)
    )
    merges = "a0: &a0 {x: 1}\n" + "".join(
        f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12)
    )
    cases = {
        "a call": f"!!python/object/apply:os.system ['{touch}']\n",
        "a call for a value": f"seed: !!python/object/apply:os.system ['{touch}']\n",
        "a new object": "seed: !!python/object/new:subprocess.Popen [[touch, ../canary]]\n",
        "a module": "seed: !!python/module:antigravity\n",
        "a name": "seed: !!python/name:os.system\n",
        "a function for the network": f"model: {{name: 'os:system', command: '{touch}'}}\n",
        "a function in a regime": "regimes: {randaug: {model: 'os:system'}}\nregime: randaug\n",
        "a class path": "model: {class_path: os.system}\n",
        "laughing lists": lists,
        "laughing maps": maps,
        "laughing merges": merges,
        "a circle": "a: &a {b: *a}\n",
        "a circle of lists": "a: &a [*a]\n",
        "a merge with itself": "a: &a {<<: *a}\n",
        "deep lists": "[" * 100_000,
        "deep maps": "{a: " * 100_000,
        "deep by indentation": "".join(f"{' ' * n}a:\n" for n in range(1200)),
        "many keys": "".join(f"k{n}: {n}\n" for n in range(60_000)),
        "many empty lists": "a: [" + "[]," * 300_000 + "[]]\n",
        "one long line": "a: " + "x" * (2**20 - 10) + "\n",
        "a huge number": "seed: " + "9" * 100_000 + "\n",
        "a long sexagesimal": "seed: 1" + ":59" * 100_000 + "\n",
        "a day that is not": "seed: 2001-99-99\n",
        "a bool that is not": "seed: !!bool maybe\n",
        "a time that is not": "seed: !!timestamp x\n",
        "binary": "model: !!binary AAAA\n",
        "half a letter": 'model: "\\ud800"\n',
        "a zero byte": "model: 'a\0b'\n",
        "html": "model: '<script>alert(1)</script>'\n",
        "a base that is a device": "base: /dev/zero.yaml\n",
        "a base far up": "base: ../../../../../../etc/passwd.yaml\n",
        "itself": "base: recipe.yaml\n",
    }
    return {name: functools.partial(dict, {"recipe.yaml": text.encode()}) for name, text in cases.items()}
