"""Lets the writers of TensorBoard event files write one each, and TensorBoard's loader say what each holds: fixtures for internal/tfevents.

    python -m venv tf && tf/bin/pip install tensorflow-cpu==2.21.0 tensorboard==2.21.0 clu==0.0.12 flax==0.12.8 jax==0.10.2 tbparse==0.0.9
    python -m venv torch && torch/bin/pip install torch==2.15.0 lightning==2.6.6 tensorboardX==2.6.5 tensorboard==2.21.0 pillow==13.0.0
    for w in tf2 tf1 keras clu flax tensorboard written; do tf/bin/python tfevents.py $w ../../internal/tfevents/testdata; done
    for w in torch torch_purge tensorboardx lightning; do torch/bin/python tfevents.py $w ../../internal/tfevents/testdata; done
    tf/bin/python tfevents.py check ../../internal/tfevents/testdata

needs no GPU. WRITER writes DIR/WRITER.tfevents and beside it the truth, WRITER.json: the scalars in the order of the file, as [tag, step, wall time,
value], where a number is Python's repr of a double; how many other values there are; and where a session starts, as [step, wall time].
`written` writes only the truth of written.tfevents, which `go test ./internal/tfevents -run TestWriter -update` wrote.
`check` compares all truths with tbparse, which leaves out what the start of a session voids, in tf1 and written, and reads no bfloat16.
"""

import collections
import json
import math
import os
import pathlib
import shutil
import sys
import tempfile

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu", KERAS_BACKEND="tensorflow")

# Values of which none but a careful reader gives back all bits.
VALUES = [0.0, -0.0, 1.5, 0.1, 1 / 3, -2.5e-8, 3.4e38, 1e-45, float("nan"), float("inf"), float("-inf"), 16777217.0, 1e300]
STEPS = [0, 1, 2, 127, 128, 2**31, 2**40, -1, 5, 6, 7, 8, 9]


def rows():
    for step, value in zip(STEPS, VALUES):
        yield step, value


def torch(out, kind="torch", **more):
    import numpy as np

    if kind == "tensorboardx":
        from tensorboardX import SummaryWriter
    else:
        from torch.utils.tensorboard import SummaryWriter
    writer = SummaryWriter(out, **more)
    for step, value in rows():
        if abs(value) < 3.5e38 or not math.isfinite(value):
            writer.add_scalar("train/loss", value, step)
        if kind == "torch":
            writer.add_scalar("new style", value if abs(value) < 3.5e38 else 0, step, new_style=True)
            writer.add_scalar("double", value, step, new_style=True, double_precision=True)
    writer.add_scalar("Größe/学习率", np.float32(0.1), 3, walltime=1700000000.123456789)
    writer.add_scalar("", 1)
    writer.add_scalar("no step", 7)
    writer.add_histogram("weights", np.arange(10.0), 3)
    writer.add_text("config", "lr: 0.1", 3)
    writer.add_image("image", np.zeros((3, 4, 4), np.uint8), 3)
    writer.add_scalar("train/loss", 0.25, 4)
    writer.close()


def torch_purge(out):
    torch(out, purge_step=3)


def tensorboardx(out):
    torch(out, "tensorboardx")


def tf2(out):
    import numpy as np
    import tensorflow as tf
    from tensorboard.plugins.scalar import metadata

    with tf.summary.create_file_writer(out).as_default():
        for step, value in rows():
            if step >= 0:
                tf.summary.scalar("loss", np.float32(value), step=step, description="of a batch" if step == 1 else None)
        with tf.name_scope("train"):
            tf.summary.scalar("lr", 1e-4, step=3)
        tf.summary.histogram("weights", tf.range(10.0), step=3, buckets=3)
        tf.summary.text("config", "lr: 0.1", step=3)
        tf.summary.image("image", tf.zeros((1, 4, 4, 3)), step=3)
        tf.summary.trace_on(graph=True)
        tf.function(lambda x: x + 1)(tf.constant(1.0))
        tf.summary.trace_export("graph", step=3)
        scalars = metadata.create_summary_metadata(display_name=None, description=None)
        for kind in (tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32, tf.int64, tf.uint64):
            for step in (1, 2):
                tf.summary.write(f"kind/{kind.name}", tf.cast(100 / step, kind), step=step, metadata=scalars)
        tf.summary.write("vector", tf.constant([1.0, 2.0]), step=3, metadata=metadata_of("mine"))
        tf.summary.write("of another plugin", tf.constant(1.0), step=3, metadata=metadata_of("mine"))


def metadata_of(plugin):
    from tensorboard.compat.proto.summary_pb2 import SummaryMetadata

    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin))


def tf1(out):
    """The writer of TensorFlow 1: several values an event, metadata with the first value of a tag only, and sessions."""
    import tensorflow as tf
    from tensorboard.plugins.scalar import summary as scalar_v1

    tf1 = tf.compat.v1
    tf1.disable_eager_execution()
    writer = tf1.summary.FileWriter(out, graph=tf1.Graph())
    for start in 0, 3:
        writer.add_session_log(tf1.SessionLog(status=tf1.SessionLog.START), start)
        for step in range(start, start + 5):
            both = tf1.Summary(value=[
                tf1.Summary.Value(tag="loss_1", simple_value=1 / (1 + step)),
                tf1.Summary.Value(tag="weights", histo=tf1.HistogramProto(min=0, max=1, num=1, bucket_limit=[1], bucket=[1])),
                tf1.Summary.Value(tag="learning_rate_1", simple_value=0.1),
            ])
            writer.add_summary(both, step)
            writer.add_summary(tf1.Summary.FromString(scalar_v1.pb("accuracy", step / 10).SerializeToString()), step)
    writer.add_session_log(tf1.SessionLog(status=tf1.SessionLog.STOP), 8)
    writer.close()


def keras(out):
    import keras
    import numpy as np

    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae"])
    x = np.random.rand(32, 2)
    model.fit(x, x.sum(1), batch_size=8, epochs=3, verbose=0, callbacks=[keras.callbacks.TensorBoard(out, write_graph=False, update_freq="batch")])


def clu(out):
    import jax.numpy as jnp
    from clu import metric_writers

    writer = metric_writers.SummaryWriter(out)
    for step, value in rows():
        if step >= 0:
            writer.write_scalars(step, {"loss": jnp.float32(value), "lr": 1e-3 * step, "bf16": jnp.bfloat16(0.1)})
    writer.write_texts(3, {"config": "lr: 0.1"})
    writer.write_histograms(3, {"weights": jnp.arange(10.0)}, num_buckets={"weights": 3})
    writer.write_hparams({"lr": 0.1})
    writer.flush()
    writer.close()


def flax(out):
    import jax.numpy as jnp
    from flax.metrics.tensorboard import SummaryWriter

    writer = SummaryWriter(out)
    for step, value in rows():
        if step >= 0:
            writer.scalar("train_loss", jnp.float32(value), step)
    writer.hparams({"lr": 0.1})
    writer.text("config", "lr: 0.1", 3)
    writer.close()


def lightning(out):
    import lightning
    import torch

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)
            self.save_hyperparameters({"lr": 0.1})

        def training_step(self, batch, _):
            loss = self.layer(batch[0]).square().mean()
            self.log("train_loss", loss, on_step=True, on_epoch=True)
            return loss

        def validation_step(self, batch, _):
            self.log("val_loss", self.layer(batch[0]).square().mean())

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    torch.manual_seed(1)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(16, 2)), batch_size=4)
    trainer = lightning.Trainer(
        max_epochs=3, log_every_n_steps=2, accelerator="cpu", enable_progress_bar=False, enable_checkpointing=False, enable_model_summary=False,
        logger=lightning.pytorch.loggers.TensorBoardLogger(out), callbacks=[lightning.pytorch.callbacks.LearningRateMonitor()])
    trainer.fit(Model(), data, data)


def tensorboard(out):
    """TensorBoard's own writer, with what protobuf allows and no trainer writes: tensors of all kinds in both encodings, odd orders, and no values."""
    import numpy as np
    import tensorflow as tf
    from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2
    from tensorboard.plugins.scalar import metadata
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(out)
    scalars = metadata.create_summary_metadata(display_name=None, description=None)

    def add(tensor, tag, step, metadata=scalars):
        value = summary_pb2.Summary.Value(tag=tag, tensor=tensor, metadata=metadata)
        writer.add_event(event_pb2.Event(wall_time=1700000000 + step / 8, step=step, summary=summary_pb2.Summary(value=[value])))

    floats = np.float32, np.float64, np.float16, tf.bfloat16.as_numpy_dtype
    for kind in floats + (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        for step, value in enumerate([0, 1, 100, -3, 0.1, 2**63, float("nan"), float("inf"), -0.0, 6e-8, 65504]):
            if np.issubdtype(kind, np.integer) and not (math.isfinite(value) and np.iinfo(kind).min <= value <= np.iinfo(kind).max):
                continue
            array = np.array(value).astype(kind)
            name = np.dtype(kind).name
            content = tensor_pb2.TensorProto(dtype=tf.as_dtype(kind).as_datatype_enum, tensor_content=array.tobytes())
            content.tensor_shape.SetInParent()
            add(content, f"content/{name}", step)
            add(tensor_pb2.TensorProto.FromString(tf.compat.v1.make_tensor_proto(array).SerializeToString()), f"values/{name}", step)
    for step in 1, 2:
        add(tensor_pb2.TensorProto(dtype="DT_FLOAT", float_val=[step]), "metadata once", step, scalars if step == 1 else None)
        add(tensor_pb2.TensorProto(dtype="DT_FLOAT", float_val=[step]), "of another plugin once", step, metadata_of("mine") if step == 1 else None)
    writer.add_event(event_pb2.Event(step=1))
    writer.add_event(event_pb2.Event(step=1, summary=summary_pb2.Summary()))
    writer.add_event(event_pb2.Event(step=1, summary=summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="only metadata", metadata=metadata_of("mine"))])))
    writer.close()


def truth(path):
    """What TensorBoard's EventFileLoader says: it turns all values into tensors with metadata."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.util import tensor_util

    try:
        import tensorflow as tf

        # TensorBoard's lacks bfloat16 and unsigned integers.
        array_of = lambda tensor: tf.make_ndarray(tf.compat.v1.make_tensor_proto(0).FromString(tensor.SerializeToString()))
    except ImportError:
        array_of = tensor_util.make_ndarray
    scalars, others, starts, plugins = [], 0, [], {}
    for event in EventFileLoader(str(path)).Load():
        if event.HasField("session_log") and event.session_log.status == event.session_log.START:
            starts.append([event.step, repr(event.wall_time)])
        for value in event.summary.value if not event.HasField("graph_def") else ():
            if value.tag == "__run_graph__":
                continue  # the loader made a value of a graph
            if plugins.setdefault(value.tag, value.metadata.plugin_data.plugin_name) == "scalars":
                scalars.append([value.tag, event.step, repr(event.wall_time), repr(float(array_of(value.tensor).item()))])
            else:
                others += 1
    return {"scalars": scalars, "others": others, "starts": starts}


def check(folder):
    """tbparse reads simple_value as scalars and tensors as tensors, keeps all steps, and drops nothing."""
    from tbparse import SummaryReader

    for path in sorted(pathlib.Path(folder).glob("*.tfevents")):
        with tempfile.TemporaryDirectory() as scratch:
            shutil.copy(path, f"{scratch}/events.out.tfevents.1700000000.host.1.0")
            try:
                reader = SummaryReader(scratch, extra_columns={"wall_time"})
            except TypeError as e:
                print(path.name, "is not read by tbparse:", e)  # bfloat16 in tensor_content
                continue
            found = collections.Counter()
            for frame in reader.scalars, reader.tensors:
                for row in frame.itertuples():
                    if not hasattr(row.value, "__len__"):
                        found[row.tag, row.step, repr(float(row.wall_time)), repr(float(row.value))] += 1
        wanted = collections.Counter(tuple(row) for row in json.loads(path.with_suffix(".json").read_text())["scalars"])
        print(path.name, sum(wanted.values()), "missed by tbparse:", dict(wanted - found), "more in tbparse:", dict(found - wanted))


def main():
    name, folder = sys.argv[1:]
    if name == "check":
        return check(folder)
    path = pathlib.Path(folder, name + ".tfevents")
    if name != "written":
        with tempfile.TemporaryDirectory() as scratch:
            globals()[name](scratch)
            [made] = pathlib.Path(scratch).rglob("*tfevents*")
            shutil.copy(made, path)
    path.chmod(0o644)
    rest = truth(path)
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rest.pop("scalars"))
    rest = json.dumps(rest)[1:]
    path.with_suffix(".json").write_text('{"scalars": [\n%s\n ],\n %s\n' % (lines, rest))
    print(name, path.stat().st_size, "B", rest)


main()
