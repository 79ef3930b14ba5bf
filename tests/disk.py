"""Small disks, full ones and read-only ones."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mounts a disk of so many kilobytes."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(kilobytes: int) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)]
        if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("only root may mount a disk")
        return place

    yield mount
    subprocess.run(["umount", str(place)], capture_output=True, check=False)


def fill(place: Path) -> None:
    """Use up every byte of a disk."""
    with contextlib.suppress(OSError), (place / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))


def protect(place: Path) -> None:
    """Let nothing be written on a disk any more."""
    subprocess.run(["mount", "-o", "remount,ro", str(place)], capture_output=True, check=True)
