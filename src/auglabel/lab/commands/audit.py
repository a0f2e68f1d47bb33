"""`auglabel audit`: which augmentations keep their label, for any trained network and any labelled images."""

from __future__ import annotations

from rich.console import Console

from auglabel.lab.audit.audit_network import AuditOptions, audit_network
from auglabel.lab.commands.arguments import name_first
from auglabel.lab.recipe.options import flags

USAGE, OPTIONS = "[RUN]", (AuditOptions,)


def run(words: list[str]) -> None:
    name, rest = name_first(words)
    options, rest = flags(AuditOptions, rest)
    for path in audit_network(name, options, rest, Console(highlight=False, emoji=False)):
        print(f"wrote {path}")
