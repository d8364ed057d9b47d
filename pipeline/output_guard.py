"""Refuses an --output that would touch anything but an earlier result of the same job. Runs before Spark starts.

A folder that a job has written holds `_momus.json`, which names the job; Spark's readers skip names that begin with an
underscore. A single file (report, migrate) says in itself which job made it.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from pyarrow import fs

from pipeline.broker_address import is_broker
from pipeline.errors import PipelineError
from pipeline.files import is_directory, join_path, open_directory, read_json, write_json

if TYPE_CHECKING:
    import argparse

MARKER: Final = "_momus.json"
MADE_BY: Final = "momus pipeline"
FILE_JOBS: Final = ("report", "migrate")  # they write one file
NO_OUTPUT: Final = ("bridge",)
HEAD_BYTES: Final = 4096  # of a file that says which job made it
INPUTS: Final = ("input", "ends", "checkpoint")  # options that name folders a job reads


def check_output(args: argparse.Namespace) -> None:
    """Check --output before anything is written.

    Errors:  PipelineError: it is, holds or is within a folder that the job reads; it has content that is not an
             earlier result of this job, or is one and --overwrite is not given; the job writes nothing.
    """
    if args.output is None:
        return
    job = args.job
    if job in NO_OUTPUT:
        raise PipelineError(f"--output: the job `{job}` writes no result")
    for option in INPUTS:
        path = getattr(args, option, None)
        if path and not is_broker(path):
            _check_apart(args.output, path, option)
    files, root = open_directory(args.output)
    found = files.get_file_info(root)
    if found.type == fs.FileType.NotFound:
        return
    if job in FILE_JOBS:
        _check_file(args, files, root, found)
    else:
        _check_folder(args, files, root, found)


def owner(args: argparse.Namespace) -> str:
    """What the marker of a folder names: the job, and whether it adds to the folder."""
    return f"{args.job} --follow" if getattr(args, "follow", False) else str(args.job)


def mark(path: str, args: argparse.Namespace, **more: Any) -> None:
    """Write the marker of a folder."""
    write_json(join_path(path, MARKER), {"made_by": MADE_BY, "job": owner(args), **more})


def grown_output(args: argparse.Namespace) -> str:
    """--output of a job that adds to it, checked and marked.

    Errors:  PipelineError: it is missing, it was begun in another --format; or see check_output.
    """
    if not args.output:
        raise PipelineError(f"{owner(args)} adds to a folder: it needs --output")
    check_output(args)
    marker = read_marker(args.output)
    if marker is None:
        mark(args.output, args, format=args.format)
    begun = (marker or {}).get("format") or _format_of(args.output)
    if begun not in (None, args.format):
        raise PipelineError(
            f"--output {args.output} was begun with --format {begun}: add to it with that one, or name another folder"
        )
    return str(args.output)


def _format_of(output: str) -> str | None:
    """The format of a folder whose marker, an older one, does not name it. None: it has no table of Delta Lake."""
    files, root = open_directory(output)
    for each in files.get_file_info(fs.FileSelector(root, allow_not_found=True)):
        if each.type == fs.FileType.Directory and is_directory(join_path(output, f"{each.base_name}/_delta_log")):
            return "delta"
    return None


def read_marker(path: str) -> dict[str, Any] | None:
    """The marker of a folder. None: there is none, or it is not ours."""
    try:
        found = read_json(join_path(path, MARKER))
    except (ValueError, OSError):
        return None
    return found if isinstance(found, dict) and found.get("made_by") == MADE_BY else None


def _check_apart(output: str, path: str, option: str) -> None:
    one, other = _place(output), _place(path)
    if one == other:
        raise PipelineError(f"--output is --{option} ({output}): it would be overwritten; name a folder of its own")
    if one[0] == other[0] and other[1].startswith(one[1].rstrip("/") + "/"):
        raise PipelineError(f"--output {output} holds --{option} {path}: name a folder beside it")
    if one[0] == other[0] and one[1].startswith(other[1].rstrip("/") + "/"):
        raise PipelineError(f"--output {output} is within --{option} {path}: name a folder outside")


def _place(path: str) -> tuple[str, str]:
    """The kind of file system and the path in it; a local path is resolved, so that links do not hide a folder."""
    files, root = open_directory(path)
    return files.type_name, os.path.realpath(root) if files.type_name == "local" else root.rstrip("/")


def _check_folder(args: argparse.Namespace, files: fs.FileSystem, root: str, found: fs.FileInfo) -> None:
    job, output, mine = args.job, args.output, owner(args)
    if found.type != fs.FileType.Directory:
        raise PipelineError(f"--output {output} is a file; the job `{job}` writes a folder")
    names = [each.base_name for each in files.get_file_info(fs.FileSelector(root))]
    if not names:
        return
    marker = read_marker(output)
    adds = mine != job or job == "archive"
    if marker is None:
        if job == "archive" and {"_began", "_checkpoint"} <= set(names):
            return  # an archive that was begun before folders were marked
        raise PipelineError(
            f"--output {output} is not empty, and nothing in it says that a job made it (no {MARKER}): it is left as "
            "it is; name a new folder"
        )
    if marker.get("job") != mine:
        raise PipelineError(
            f"--output {output} holds a result of `{marker.get('job')}`, not of `{mine}`: name another folder"
        )
    if adds and args.overwrite:
        raise PipelineError(f"--overwrite: `{mine}` adds to {output}; to begin again, remove that folder")
    if not adds and not args.overwrite:
        raise PipelineError(f"--output {output} holds an earlier result: add --overwrite to replace it")


def _check_file(args: argparse.Namespace, files: fs.FileSystem, root: str, found: fs.FileInfo) -> None:
    job, output = args.job, args.output
    if found.type == fs.FileType.Directory:
        raise PipelineError(f"--output {output} is a folder; the job `{job}` writes one file")
    with files.open_input_stream(root) as stream:
        head = stream.read(HEAD_BYTES)
    if found.size and made_by(job).encode() not in head:
        raise PipelineError(
            f"--output {output} exists and was not made by `{job}`: it is left as it is; name a new file"
        )
    if found.size and not args.overwrite:
        raise PipelineError(f"--output {output} holds an earlier result: add --overwrite to replace it")


def made_by(job: str) -> str:
    """What a single file holds near its start, in quotation marks: which job made it."""
    return f'"{MADE_BY} {job}"'


def marked_json(job: str, content: dict[str, Any]) -> str:
    """A result in JSON that says which job made it."""
    return json.dumps({"made_by": json.loads(made_by(job)), **content}, indent=2)
