"""Says what a matrix file would do, or what is wrong with it: check_matrix.py FILE."""

import sys
from pathlib import Path

import matrix as matrices

try:
    read = matrices.read(Path(sys.argv[1]))
except matrices.MatrixError as error:
    sys.exit(f"scripts/experiment: {error}")
print(f"{read.name}: {len(read.builds)} builds, {len(read.runs)} traces, {len(read.replays)} replays, {len(read.charts)} charts")
