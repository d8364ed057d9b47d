"""Giving up what a damaged log holds from its first bad byte on: only ever when someone asks for it."""

from __future__ import annotations

from fastcrc.crc32 import iscsi as crc32c

from protocol.record_batch import ATTRIBUTES_POSITION
from storage.files.env import Env
from storage.segments.recovery import RecoveryReport, remove_segment, tidy
from storage.segments.segment import INDEX_SUFFIX, TIME_INDEX_SUFFIX, Segment


def repair(env: Env, directory: str, *, may_have_gaps: bool = True) -> RecoveryReport:
    """Cut a log before its first bad batch and remove every later segment; the report says what was lost.

    may_have_gaps: it was compacted once, or may have been. In others a batch that leaves out offsets is bad too.
    Durable: when this returns. A log without damage is left as it is.
    """
    files = env.files
    bases = tidy(files, directory)
    next_offset = 0
    for at, base_offset in enumerate(bases):
        segment = Segment(files, directory, base_offset)
        position = 0
        for start, header, batch in segment.batches(0):
            whole = crc32c(batch[ATTRIBUTES_POSITION:]) == header.crc and header.last_offset_delta >= 0
            expected = max(next_offset, base_offset)
            if not whole or header.base_offset < expected or (header.base_offset > expected and not may_have_gaps):
                break
            next_offset = header.next_offset
            position = start + header.size
        dropped = segment.size - position
        if not dropped and (at + 1 == len(bases) or next_offset <= bases[at + 1]):
            continue
        for later in reversed(bases[at + 1 :]):
            dropped += files.file_size(f"{directory}/{later:020d}.log")
            remove_segment(files, directory, later)
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            if files.exists(segment.stem + suffix):
                files.remove(segment.stem + suffix)
        files.sync_dir(directory)
        segment.file.truncate(position)
        segment.file.sync()
        segment.file.close()
        return RecoveryReport(0, dropped, segment.file.path, position, "cut on request")
    return RecoveryReport()
