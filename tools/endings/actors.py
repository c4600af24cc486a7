"""Endings of Ray: four actors train, the second comes to an end that the driver's output tells of.

    pip install ray
    tools/endings/machine.sh VENV OUT unshare --pid --fork --mount-proc /opt/venv/bin/python /job/actors.py [NAME...]

Ray lists the largest processes of the machine, hence the unshare.
"""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time

NOTE = "Ray's reasons are guesses."


def driver(ending):
    import ray

    ray.init(num_cpus=4, include_dashboard=False, _temp_dir="/tmp/ray")

    @ray.remote(num_cpus=1, max_restarts=0)
    class WorkerDict:
        __qualname__ = "WorkerDict"  # as if it were not local

        def __init__(self, rank):
            self.rank = rank

        def step(self, step):
            time.sleep(0.1)
            if self.rank == 0:
                print(f"step:{step} - actor/pg_loss:{1 / (step + 1):.3f} - timing_s/step:0.1", flush=True)
            if self.rank == 1 and step == 5:
                match ending:
                    case "kill":
                        os.kill(os.getpid(), 9)
                    case "segv":
                        import ctypes

                        ctypes.string_at(0)
                    case "exit":
                        os._exit(3)
                    case "sys-exit":
                        sys.exit(1)
                    case "raise":
                        float("n/a")
                    case "memory":
                        keep = []
                        while True:
                            keep.append(b"1" * (100 << 20))
                            time.sleep(0.1)
            return self.rank

    @ray.remote(num_cpus=0, max_retries=0)
    def task():
        os.kill(os.getpid(), 9)

    workers = [WorkerDict.remote(rank) for rank in range(4)]
    for step in range(8):
        ray.get([w.step.remote(step) for w in workers])
        if ending == "task-kill" and step == 5:
            ray.get(task.remote())
        if ending == "ray-kill" and step == 5:
            ray.kill(workers[1])
    print("training is done", flush=True)


def main():
    import endings
    from endings import Case

    cases = {
        "ray-healthy": Case("none", "none", "healthy"),
        "ray-actor-kill": Case("kill", "rank 1's actor was killed by 9", "process_gone", note=NOTE),
        "ray-actor-segv": Case("segv", "rank 1's actor: segmentation fault", "signal", note=NOTE),
        "ray-actor-exit": Case("exit", "rank 1's actor left with exit code 3", "process_gone", note=NOTE),
        "ray-actor-sys-exit": Case("sys-exit", "rank 1's actor left with sys.exit(1)", "process_gone"),
        "ray-actor-raise": Case("raise", "rank 1's actor: ValueError", "exception"),
        "ray-actor-memory": Case("memory", "Ray's memory monitor killed workers; one of them held all the memory", "host_oom"),
        "ray-task-kill": Case("task-kill", "the worker of a task was killed by 9", "process_gone", note=NOTE),
        "ray-kill": Case("ray-kill", "the driver killed an actor with ray.kill", "process_gone"),
    }
    for name in sys.argv[1:] or cases:
        case = dataclasses.replace(cases[name], innocent=[0, 2, 3])  # the files have pids, no ranks
        dir = endings.JOB / name
        shutil.rmtree(dir, ignore_errors=True)
        dir.mkdir()
        env = {"PATH": "/opt/venv/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "PYTHONUNBUFFERED": "1"}
        if case.ending == "memory":
            total, free = (int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith(("MemTotal", "MemAvailable")))
            env |= {"RAY_memory_usage_threshold": f"{(total - free) / total + 0.15:.2f}", "RAY_memory_monitor_refresh_ms": "100"}
        started = time.time()
        with open(dir / "driver.log", "w") as out:
            code = subprocess.run(["/opt/venv/bin/python", "/job/actors.py", "--driver", case.ending], cwd=dir, env=env, stdout=out, stderr=out).returncode
        if case.ending in ("kill", "memory"):  # what the node's daemon tells of it
            lines = pathlib.Path("/tmp/ray/session_latest/logs/raylet.out").read_text().splitlines(keepends=True)
            (dir / "raylet.out").write_text("".join(lines[-60:]))
        shutil.rmtree("/tmp/ray", ignore_errors=True)
        endings.truth(dir, name, case, "Ray 2.60.0")
        print(name, "exit", code, int(time.time() - started), "s", flush=True)


if __name__ == "__main__":
    driver(sys.argv[2]) if sys.argv[1:2] == ["--driver"] else main()
