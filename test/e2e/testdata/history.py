"""Asks an engine: a JSON list of texts, of which the first makes the views. Prints the rows of the others as JSON, and how long each took to stderr."""
import datetime
import decimal
import json
import sys
import time

engine, (views, *questions) = sys.argv[1], json.load(sys.stdin)


def plain(v):
    if isinstance(v, bool) or v is None or isinstance(v, (int, float)):
        return v
    if isinstance(v, datetime.datetime):
        v = v.date()
    return float(v) if isinstance(v, decimal.Decimal) else str(v)


if engine == "duckdb":
    import duckdb

    connection = duckdb.connect()
    ask = lambda sql: connection.sql(sql)
    rows = lambda sql: [[plain(v) for v in row] for row in connection.sql(sql).fetchall()]
else:
    from chdb import session

    connection = session.Session()
    ask = lambda sql: connection.query(sql)
    rows = lambda sql: [list(map(plain, json.loads(line))) for line in
                        str(connection.query(sql, "JSONCompactEachRow")).splitlines()]

for view in views.split(";"):
    if view.strip():
        ask(view)
answers = []
for question in questions:
    start = time.monotonic()
    answers.append(rows(question.strip().rstrip(";")))
    print(f"{engine} {time.monotonic() - start:.3f} s", file=sys.stderr)
json.dump(answers, sys.stdout)
