"""Converts files in the old formats of Office by LibreOffice, if it is installed."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.readers.limits import advice

OLD_FORMATS = {".doc": ".docx", ".ppt": ".pptx", ".xls": ".xlsx"}
PROGRAMS = ("soffice", "libreoffice")
SHARE_OF_SECONDS = 0.9  # of the limit: the rest is for reading the result
# LibreOffice starts processes of its own, which must not outlive this one, however it ends: the shell
# ends its group of processes when the pipe from this process closes.
GUARD = 'exec 3<&0; { cat <&3 >/dev/null; kill -9 0; } & "$@" </dev/null 3<&-'
# A profile of its own is never in use by another program. Neither macros nor linked files are loaded.
PROFILE_SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting">
<prop oor:name="DisableMacrosExecution" oor:op="fuse"><value>true</value></prop>
<prop oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop>
</item></oor:items>
"""


def office_program() -> str | None:
    """The path of LibreOffice; None if it is not installed."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def why_not_converted(suffix: str) -> str:
    """What to do about a file in an old format without LibreOffice."""
    return f"is in an older format: install LibreOffice, or save it as {OLD_FORMATS[suffix]}"


def converted(data: bytes, suffix: str, seconds: float) -> bytes:
    """The file in the newer format, within a limit of time; `ConfigError` says why not."""
    program = office_program()
    if program is None:
        raise ConfigError(why_not_converted(suffix))
    newer = OLD_FORMATS[suffix]
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        profile = Path(folder, "profile")
        profile.joinpath("user").mkdir(parents=True)
        profile.joinpath("user", "registrymodifications.xcu").write_text(
            PROFILE_SETTINGS, encoding="utf-8"
        )
        source = Path(folder, f"file{suffix}")
        source.write_bytes(data)
        results = Path(folder, "results")
        arguments = [program, "--headless", "--norestore", "--nologo"]
        arguments += [f"-env:UserInstallation={profile.as_uri()}", "--convert-to", newer[1:]]
        arguments += ["--outdir", str(results), str(source)]
        if not _has_ended(arguments, SHARE_OF_SECONDS * seconds):
            limit = f"{seconds:,g} seconds"
            raise ConfigError(f"takes more than {limit} to convert: {advice('seconds')}")
        result = results / f"file{newer}"
        if not result.is_file():
            raise ConfigError(
                f"cannot be converted by LibreOffice: it may be damaged or have a password. Save it as {newer}"
            )
        return result.read_bytes()


def _has_ended(arguments: list[str], seconds: float) -> bool:
    """Whether a program ended within the time; if not, it is ended with all its processes."""
    guarded = arguments if sys.platform == "win32" else ["/bin/sh", "-c", GUARD, "sh", *arguments]
    process = subprocess.Popen(
        guarded,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "SAL_USE_VCLPLUGIN": "svp"},  # no display
        start_new_session=True,
    )
    assert process.stdin is not None
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    finally:
        process.stdin.close()
        with contextlib.suppress(OSError):
            process.kill()
        process.wait()
    return True
