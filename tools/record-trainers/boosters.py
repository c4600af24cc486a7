#!/usr/bin/env python3
"""Trains small models with XGBoost, LightGBM and CatBoost on seeded numbers, with the lines that they print by default.

    pip install xgboost==3.2.0 lightgbm==4.7.0 catboost==1.2.8 numpy
    python tools/record-trainers/boosters.py xgboost > xgboost.log
"""
import sys

import numpy as np

rng = np.random.default_rng(1)
x = rng.normal(size=(2000, 20))
y = x[:, 0] + x[:, 1] * x[:, 2] + rng.normal(size=2000)
train, valid = slice(0, 1500), slice(1500, 2000)


def xgboost():
    import xgboost

    data = {name: xgboost.DMatrix(x[part], y[part]) for name, part in (("train", train), ("eval", valid))}
    xgboost.train({"max_depth": 4, "eta": 0.5}, data["train"], 20, evals=[(data["train"], "train"), (data["eval"], "eval")])


def lightgbm():
    import lightgbm

    data = lightgbm.Dataset(x[train], y[train])
    lightgbm.train(
        {"objective": "regression", "verbosity": 1}, data, 20, valid_sets=[data, lightgbm.Dataset(x[valid], y[valid])],
        callbacks=[lightgbm.log_evaluation(1)],
    )


def catboost():
    import catboost

    catboost.CatBoostRegressor(iterations=25, random_seed=1).fit(x[train], y[train], eval_set=(x[valid], y[valid]))


{"xgboost": xgboost, "lightgbm": lightgbm, "catboost": catboost}[sys.argv[1]]()
