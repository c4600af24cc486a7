"""Trains a tiny model on CPU with Keras: its bar goes to standard output, and TRUTH gets the begin and end of each step, s since the epoch.

    pip install keras==3.15.1 torch==2.6.0
    KERAS_BACKEND=torch python keras_bar.py TRUTH | cat > keras.log
"""
import json
import sys
import time

import keras
import numpy as np


class Truth(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.steps = []

    def on_train_batch_begin(self, batch, logs=None):
        self.began = time.time()

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.03)
        self.steps.append({"batch": batch, "start": self.began, "end": time.time(), "running_loss": float(logs["loss"])})


def main(path):
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((640, 16)).astype("float32"), rng.integers(0, 10, 640)
    model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(10, activation="softmax")])
    model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    truth = Truth()
    model.fit(x, y, epochs=3, batch_size=32, validation_split=0.1, callbacks=[truth])
    model.evaluate(x, y)
    with open(path, "w") as f:
        json.dump(truth.steps, f)


main(sys.argv[1])
