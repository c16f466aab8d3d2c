"""Starts sessions with contestants, each in a process of its own beside the model server."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.referee.environments import environment
from benchmarks.referee.material import Material
from benchmarks.referee.server import ModelServer

Figures = dict[str, Any]
Step = Mapping[str, Any]


@dataclass(slots=True)
class Arena:
    """The contestants' interpreters by name, the model server, and a folder for their indexes."""

    pythons: Mapping[str, Path]
    server: ModelServer
    scratch: Path
    timeout: float
    materials: dict[str, Path] = field(default_factory=dict)
    sessions: int = 0

    def material_file(self, material: Material) -> Path:
        """The file of a material, written once; the server learns what was recorded."""
        if material.name not in self.materials:
            path = self.scratch / f"{material.name}.material.json"
            material.write(path)
            self.server.learn(material)
            self.materials[material.name] = path
        return self.materials[material.name]

    def folder(self, contestant: str, name: str) -> Path:
        """The folder of an index."""
        return self.scratch / f"{contestant}-{name}"

    def session(
        self, contestant: str, index: str, material: Material, steps: Sequence[Step]
    ) -> Figures:
        """Take steps with an index of a contestant; a failure is an "error" in the figures."""
        out = self.figures_file(contestant)
        process = self._started(self.command(contestant, index, material, steps, out))
        try:
            _, errors = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            return {"error": f"stopped after {self.timeout:.0f} s", "steps": []}
        if not out.exists():
            last = errors.decode(errors="replace").strip().split("\n")[-1][-300:]
            return {"error": last or f"exit status {process.returncode}", "steps": []}
        figures: Figures = json.loads(out.read_text(encoding="utf-8"))
        for result in figures["steps"]:
            if "error" in result:
                figures["error"] = f"{result['do']}: {result['error']}"
        return figures

    def killed_session(
        self,
        contestant: str,
        index: str,
        material: Material,
        steps: Sequence[Step],
        is_time: Callable[[], bool],
    ) -> bool:
        """Kill the process of a session (SIGKILL) as soon as it is time; whether it was running."""
        out = self.figures_file(contestant)
        process = self._started(self.command(contestant, index, material, steps, out))
        deadline = time.monotonic() + self.timeout
        while process.poll() is None and not is_time() and time.monotonic() < deadline:
            time.sleep(0.005)
        was_running = process.poll() is None
        _kill(process)
        return was_running

    def figures_file(self, contestant: str) -> Path:
        """Where the next session writes its figures."""
        self.sessions += 1
        return self.scratch / f"{contestant}-{self.sessions}.figures.json"

    def command(
        self,
        contestant: str,
        index: str,
        material: Material,
        steps: Sequence[Step],
        out: Path,
    ) -> list[str]:
        """The command that takes the steps of a session, which are in a file from now on."""
        steps_file = out.with_suffix(".steps")
        steps_file.write_text(json.dumps(list(steps), ensure_ascii=False), encoding="utf-8")
        print(f"{contestant}: {index}, {_summary(steps)}", file=sys.stderr, flush=True)
        command = [str(self.pythons[contestant]), "-m", "benchmarks.referee.worker", contestant]
        command += ["--folder", str(self.folder(contestant, index))]
        command += ["--material", str(self.material_file(material))]
        command += ["--steps", str(steps_file), "--out", str(out)]
        command += ["--address", self.server.address(contestant)]
        return command

    def _started(self, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            command,
            cwd=self.scratch,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )


def _summary(steps: Sequence[Step]) -> str:
    names = [step["do"] for step in steps]
    return ", ".join(dict.fromkeys(names))


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process and those that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
