"""docs/practice.md, where running its blocks in one process shows too little."""

import subprocess
import sys
from pathlib import Path

import torch
from docs_blocks import blocks_of

TWO_PROCESSES = """
import sys, torch
rank, folder = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", f"file://{{folder}}/meet", rank=rank, world_size=2)
torch.manual_seed(0)
{blocks}
torch.save({{"table": learned.table, "images": len(own_val_loader.dataset)}}, f"{{folder}}/rank{{rank}}.pt")
torch.distributed.destroy_process_group()
"""


def test_two_processes_end_with_the_same_labels_and_share_the_validation_images(tmp_path):
    blocks = [block.text for block in blocks_of("docs/practice.md") if block.language == "python"]
    first, last = blocks[0].replace("[:200]", "[:101]"), blocks[-1]
    (tmp_path / "page.py").write_text(TWO_PROCESSES.format(blocks=f"{first}\n{last}"))
    command = [sys.executable, str(tmp_path / "page.py")]
    with_rank = [subprocess.Popen([*command, str(rank), str(tmp_path)], cwd=tmp_path) for rank in range(2)]
    assert [each.wait(timeout=120) for each in with_rank] == [0, 0]
    one, other = (torch.load(tmp_path / f"rank{rank}.pt", weights_only=True) for rank in range(2))
    assert torch.equal(one["table"], other["table"])
    assert one["table"].min() < 1
    assert (one["images"], other["images"]) == (51, 50)


def test_the_page_is_in_the_index():
    assert "(practice.md)" in (Path(__file__).parents[1] / "docs" / "index.md").read_text()
