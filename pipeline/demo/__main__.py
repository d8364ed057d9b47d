"""`python -m pipeline.demo`: the demo from a checkout."""

from __future__ import annotations

import sys

from pipeline.demo.play import main
from pipeline.errors import PipelineError

try:
    sys.exit(main(sys.argv[1:]))
except PipelineError as error:
    sys.exit(f"momus pipeline: {error}")
