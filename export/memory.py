"""Whether a machine has the room, asked before the work begins."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

from .errors import ExportError

GB = 1e9


def free_memory(device: torch.device) -> int | None:
    """Bytes that are free on the device; None where the system does not tell."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def check_memory(need: float, device: torch.device, less: str) -> None:
    """Raises ExportError where fewer than `need` bytes are free; `less`: how to need less."""
    free = free_memory(device)
    if free is not None and free < need:
        raise ExportError(
            f"too little memory: it takes {need / GB:.1f} GB at least, {free / GB:.1f} GB of {device} is free; {less}"
        )


def check_disk(folder: Path, need: float) -> None:
    """Raises ExportError where fewer than `need` bytes are free on the disk of `folder`, which need not exist yet."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < need:
        raise ExportError(f"{folder}: it takes {need / GB:.1f} GB of disk, {free / GB:.1f} GB is free; make room there")
