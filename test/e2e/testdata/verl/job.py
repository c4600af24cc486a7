"""A job like verl's with TransferQueue's real client, controller and storage: python job.py DIRECTORY [SWITCH]

The driver puts batches; Ray workers get their chunk of a batch, compute and put, as verl's decorator lets them, and print the lines that
it prints. DIRECTORY is Ray's, and the workers' logs are there. SWITCH is how trainbridge_trace comes in: `line` is one line in the driver,
after transfer_queue, and the module fails in the end; without it the environment says, or nothing does. The last line on stdout is the truth as JSON: for each call of a function
the id of its batch, as the driver's meta has it.
"""

import asyncio
import json
import logging
import os
import pickle
import sys
import time

import ray
import torch
import transfer_queue as tq
from tensordict import TensorDict

BATCHES, WORKERS, SAMPLES = 3, 2, 8


def traced(name, field):
    """A function of a worker as verl decorates it: the data of a meta, the function, its output into TransferQueue."""

    def decorate(compute):
        async def call(self, meta):
            trace, start = meta.extra_info.get("trace_id", "N/A"), time.perf_counter()

            def say(stage, end, *fields):
                say_trace(trace, *[f"func={name}", *([f"pid={os.getpid()}"] if stage == "FUNCTION_START" else []), f"stage={stage}", *fields, f"timestamp={end:.6f}"])
                return end

            def ended(stage, begun):
                end = time.perf_counter()
                return say(stage, end, f"duration={end - begun:.6f}s")

            say("FUNCTION_START", start)
            get = say("GET_START", time.perf_counter(), f"batch_size={meta.size}")
            data = await self.client.async_get_data(meta)
            computing = say("COMPUTE_START", got := ended("GET_END", get))
            output = await compute(self, data)
            computed = ended("COMPUTE_END", computing)
            put = say("PUT_START", computed)
            meta = await self.client.async_put(TensorDict({field: output}, batch_size=meta.size), metadata=meta)
            end = ended("PUT_END", put)
            shares = [f"{k}_ratio={100 * v / (end - start):.2f}%" for k, v in (("get", got - get), ("compute", computed - computing), ("put", end - put))]
            say("FUNCTION_END", end, f"total_duration={end - start:.6f}s", *shares)
            return meta

        return call

    return decorate


def say_trace(trace, *fields):
    logging.info("[TQ-TRACE] " + " | ".join([f"trace_id={trace}", *fields]))


@ray.remote(num_cpus=0)
class Worker:
    def __init__(self):
        logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(asctime)s:%(message)s", force=True)
        tq.init()
        self.client = tq.get_client()

    @traced("generate_sequences", "responses")
    async def generate_sequences(self, data):
        await asyncio.sleep(0.02)
        return data["prompts"] + 1

    @traced("compute_reward", "rewards")
    async def compute_reward(self, data):
        await asyncio.sleep(0.01)
        return data["responses"].float()


def id_of(meta):
    return meta.extra_info.get("trace_id", "N/A")


def split(workers, function, meta):
    """A function in all workers, each with its chunk of the batch, and what they say they have done."""
    calls = [{"func": function, "id": id_of(meta)}] * len(workers)
    done = ray.get([getattr(w, function).remote(chunk) for w, chunk in zip(workers, meta.chunk(len(workers)))])
    return tq.BatchMeta.concat(done), calls


def main(directory, switch):
    if switch == "line":
        import trainbridge_trace  # noqa: F401
    ray.init(_temp_dir=directory, _node_ip_address="127.0.0.1", include_dashboard=False, log_to_driver=False, num_cpus=8, configure_logging=False)
    tq.init()
    client, workers, calls, metas = tq.get_client(), [Worker.remote() for _ in range(WORKERS)], [], []
    for n in range(BATCHES):
        data = TensorDict({"prompts": torch.arange(SAMPLES * 4).reshape(SAMPLES, 4)}, batch_size=SAMPLES)
        meta = client.put(data, partition_id=f"train_{n}")
        first = id_of(meta)
        done, called = split(workers, "generate_sequences", meta)
        calls += called
        # What a trainer does with metas between two functions: none of it loses the id.
        meta = meta.union(done)
        meta.reorder(list(reversed(range(meta.size))))
        meta = pickle.loads(pickle.dumps(meta.select_fields(["responses"]).select_samples(list(range(meta.size)))))
        assert id_of(meta) == first, (id_of(meta), first)
        done, called = split(workers, "compute_reward", meta)
        calls += called
        assert id_of(done) == first, (id_of(done), first)
        metas.append(meta.union(done))
        # Whoever asks the controller for the samples of a batch gets the batch's id too.
        fetched = client.get_meta(data_fields=["rewards"], batch_size=SAMPLES, partition_id=f"train_{n}", task_name="update_actor")
        assert id_of(fetched) == first, (id_of(fetched), first)
    # Metas of several batches join as they do without ids, and the trainer's own ids stay.
    assert id_of(tq.BatchMeta.concat(metas)) == id_of(metas[0])
    assert [id_of(m) for m in metas] == [c["id"] for c in calls[:: 2 * WORKERS]]
    other = metas[1].copy()
    other.extra_info["trace_id"] = "mine"
    assert id_of(metas[1].union(other)) == (id_of(metas[1]) if id_of(metas[1]) != "N/A" else "mine")
    assert id_of(other.union(metas[1])) == "mine"
    if switch == "line":
        # A module that fails: the batches of the training go on, without ids.
        trainbridge_trace.uuid = None
        for partition in ("broken_0", "broken_1"):
            assert id_of(client.put(TensorDict({"prompts": torch.zeros(2, 4)}, batch_size=2), partition_id=partition)) == "N/A"
    tq.close()
    ray.shutdown()
    print(json.dumps(calls))


if __name__ == "__main__":
    main(*(sys.argv[1:] + [""])[:2])
