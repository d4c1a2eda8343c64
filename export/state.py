"""Where a training run stands, on disk: what a killed run goes on from, as if nothing had been."""

from __future__ import annotations

import json
import pickle
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from .data import Ids
from .errors import ExportError, one_line
from .lora import put, read_tensors, trained

_PREFIX = "state-"
_UNFINISHED = ".part"
_DAMAGED = (ValueError, KeyError, TypeError, EOFError, RuntimeError, pickle.UnpicklingError, zipfile.BadZipFile)
"""What reading a file that is not whole has been seen to raise."""
_RUN, _WEIGHTS, _OPTIMISER, _NEGATIVES = "run.json", "trained.safetensors", "optimiser.pt", "negatives.npz"


@dataclass(frozen=True)
class State:
    """What is beside the weights and the optimiser. Chance needs no place: each step's generator is of its number."""

    step: int
    """Steps that are done."""
    run: Mapping[str, Any]
    """What the weights are a function of; another run cannot go on from here."""
    negatives: Mapping[int, Ids]


def save_state(folder: Path, state: State, model: torch.nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Writes the state whole, then removes the one before it: at any moment the folder holds a whole one."""
    target = folder / f"{_PREFIX}{state.step}"
    part = target.with_name(target.name + _UNFINISHED)
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    save_file({name: value.contiguous().cpu() for name, value in trained(model).items()}, str(part / _WEIGHTS))
    torch.save(optimiser.state_dict(), part / _OPTIMISER)
    numbers = np.array(list(state.negatives), dtype=np.int64)
    table = np.array(list(state.negatives.values()), dtype=np.int64)
    np.savez(part / _NEGATIVES, numbers=numbers, table=table)
    (part / _RUN).write_text(json.dumps({"step": state.step, "run": state.run}, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)
    for old in folder.glob(f"{_PREFIX}*"):
        if old != target:
            shutil.rmtree(old, ignore_errors=True)


def load_state(
    folder: Path, run: Mapping[str, Any], model: torch.nn.Module, optimiser: torch.optim.Optimizer
) -> State | None:
    """Puts the newest state of the folder into model and optimiser; None where there is none.

    Raises ExportError where it is another run's, or damaged.
    """
    place = newest(folder)
    if place is None:
        return None
    try:
        found = json.loads((place / _RUN).read_text(encoding="utf-8"))
        theirs, step = found["run"], int(found["step"])
        moments = torch.load(place / _OPTIMISER, map_location="cpu", weights_only=True)
        with np.load(place / _NEGATIVES) as stored:
            negatives = dict(zip(stored["numbers"].tolist(), stored["table"], strict=True))
    except (OSError, *_DAMAGED) as error:
        raise ExportError(f"{place}: cannot be read ({one_line(error)}); delete it to begin anew") from None
    _check_same(folder, theirs, run)
    put(model, read_tensors(place / _WEIGHTS), place / _WEIGHTS)
    optimiser.load_state_dict(moments)
    return State(step, run, negatives)


def newest(folder: Path) -> Path | None:
    """The folder's state, None where no run has saved one."""
    whole = [path for path in folder.glob(f"{_PREFIX}*") if path.name.removeprefix(_PREFIX).isdigit()]
    return max(whole, key=lambda path: int(path.name.removeprefix(_PREFIX)), default=None)


def _check_same(folder: Path, theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    for key in [*mine, *theirs]:
        if theirs.get(key) != mine.get(key):
            raise ExportError(
                f"{folder}: holds a run with {key} {theirs.get(key)!r}, not {mine.get(key)!r}; "
                "go on with its settings, or give another --out"
            )
