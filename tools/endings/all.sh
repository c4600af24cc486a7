#!/usr/bin/env bash
# Makes all endings anew and keeps them as fixtures: half an hour on two idle cores, as root.
#
#   tools/endings/all.sh VENV RAYVENV OUT FIXTURES
set -eu
venv=$1 ray=$2 out=$3 fixtures=$4
machine=$(dirname "$0")/machine.sh
rm -rf "$out"
"$machine" "$venv" "$out" python3 /job/endings.py
"$machine" "$venv" "$out" /job/slurm.sh $(sed -n 's/^    "\(slurm-[a-z-]*\)": Case.*/\1/p' "$(dirname "$0")/slurm.py" | grep -v over-memory)
OVER_MEMORY=OverMemoryKill CONSTRAIN=no "$machine" "$venv" "$out" /job/slurm.sh slurm-over-memory
"$machine" "$ray" "$out" unshare --pid --fork --mount-proc /opt/venv/bin/python /job/actors.py
mkdir -p "$fixtures"
find "$fixtures" -mindepth 1 -maxdepth 1 ! -name "cuda-*" ! -name "nccl-*" -exec rm -r {} + # those of gpu.py stay
for truth in "$out"/*/truth.json; do cp -r "$(dirname "$truth")" "$fixtures"; done
find "$fixtures" -type f -empty -delete
find "$fixtures" -type d -empty -delete
