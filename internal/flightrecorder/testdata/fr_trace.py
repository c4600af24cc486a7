"""Writes what PyTorch's fr_trace finds in sets of dumps, a line each set, as JSON.

    python3 fr_trace.py TORCH SETS

TORCH is a directory with torch/distributed/flight_recorder, as in PyTorch's wheel (2.15.0): site-packages, or the wheel unzipped. torch itself is not imported.
SETS holds directories of dumps named nccl_trace_rank_N. A line is {"set": its name, "missing": [ranks without a dump], "odd": [[group's name, its description,
collective_seq_id, p2p_seq_id, [ranks that lack it], {rank: what differs}], …], "error": what fr_trace died of}.
"""

import argparse
import json
import logging
import os
import re
import sys
import types


def stub(name, path=None):
    module = types.ModuleType(name)
    if path:
        module.__path__ = [path]
    sys.modules[name] = module
    return module


def main():
    torch, sets = sys.argv[1:]
    stub("torch", os.path.join(torch, "torch"))
    stub("torch.distributed", os.path.join(torch, "torch", "distributed"))
    stub("tabulate").tabulate = lambda *_, **__: ""
    from torch.distributed.flight_recorder.components import builder, loader

    logging.disable(logging.CRITICAL)
    for name in sorted(os.listdir(sets)):
        print(json.dumps(answer(builder, loader, os.path.join(sets, name)), separators=(",", ":")))


def answer(builder, loader, directory):
    def build(incomplete):
        files = sorted(os.listdir(directory), key=lambda f: int(f.rsplit("_", 1)[1]))
        dumps = {f: loader.read_dump("nccl_trace_rank_", os.path.join(directory, f)) for f in files}
        args = argparse.Namespace(verbose=False, just_print_entries=False, allow_incomplete_ranks=incomplete, mismatch_cap=10**9)
        return builder.build_db(dumps, args, next(iter(dumps.values()))["version"])

    out = {"set": os.path.basename(directory), "missing": [], "odd": [], "error": ""}
    try:
        db = build(False)
    except AssertionError as e:
        if "Missing dump files" not in str(e):
            out["error"] = repr(e)
            return out
        out["missing"] = sorted(int(n) for n in re.findall(r"\d+", str(e)))
        db = None
    except Exception as e:
        out["error"] = repr(e)
        return out
    try:
        db = db or build(True)
    except Exception as e:
        out["error"] = repr(e)
        return out
    for c in db.collectives:
        lacking = sorted(c.missing_ranks or [])
        differ = {str(r): o.type_of_mismatch.state.name for r, o in sorted((c.mismatch_collectives or {}).items())}
        if lacking or differ:
            name, _, desc = c.pg_desc.partition(":")
            out["odd"].append([name, desc or "undefined", c.collective_seq_id, c.p2p_seq_id, lacking, differ])
    return out


if __name__ == "__main__":
    main()
