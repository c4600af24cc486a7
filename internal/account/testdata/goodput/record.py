"""Writes jobs.json: jobs, and what others call their goodput.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install ml-goodput-measurement==0.2.3
    /tmp/venv/bin/python internal/account/testdata/goodput/record.py > internal/account/testdata/goodput/jobs.json

google is what GoodputCalculator.get_job_goodput of that library answers, by 100: its own code runs, with a list in place of Cloud Logging. null: the library raises.
steps_only is likewise, where the job starts with its first step, ends with its last, and tells of nothing else.
cre is CalculateGoodput of NVIDIA's Cluster Readiness Engine (pkg/goodput/calculator.go, v0.8), its inputs from what the simulation did.
ettr is R / (Q + R + U) of arXiv 2410.21680, likewise. All times are whole us since 1970.
"""

import datetime
import json
import random
import sys
import tempfile

from ml_goodput_measurement.src import goodput


class List:
    """In place of the library's _CloudLogger."""

    job_start_time = None

    def __init__(self):
        self.entries = []

    def write_cloud_logging_entry(self, entry):
        self.entries.append(entry)

    def read_cloud_logging_entries(self, *_, **__):
        return self.entries, (datetime.datetime.now(datetime.timezone.utc), 'last')


def google(events):
    """events: (us, what, value) in order of time."""
    log = List()
    recorder = goodput.GoodputRecorder('job', 'log', True, log)
    for us, what, value in events:
        at = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(microseconds=us)
        match what:
            case 'job_start':
                recorder.record_job_start_time(at)
            case 'job_end':
                recorder.record_job_end_time(at)
            case 'step':
                recorder.record_step_start_time(value, at)
            case 'eval_start':
                recorder.record_custom_badput_event_start_time(at, 'eval_step')
            case 'eval_end':
                recorder.record_custom_badput_event_end_time(at, 'eval_step')
            case 'save':  # as Orbax logs it
                step, seconds = value
                log.write_cloud_logging_entry({
                    'job_name': 'job', 'event_type': 'save', 'step': step, 'directory': 'gs://bucket', 'checkpoint_manager_blocking_duration_secs': seconds,
                    'checkpointer_blocking_duration_secs': seconds, 'wait_for_prev_duration_secs': 0, 'get_old_steps_duration_secs': 0,
                })
    with tempfile.TemporaryDirectory() as d:
        try:
            return goodput.GoodputCalculator('job', 'log', log, cache_dir=d).get_job_goodput()[0] / 100
        except ValueError as e:
            print(e, file=sys.stderr)
            return None


def cre(t_w, t_ch, t_re, t_rm, t_save):
    whole, useful = t_w - t_re, t_w - t_rm - t_ch - t_re - t_save
    return 0 if whole <= 0 or useful < 0 else useful / whole


class Job:
    def __init__(self, seed, name, first=1, attempts=1, steps=60, back='checkpoint', save=0, evaluate=0, holes=0.0, warm=True, ends=True):
        r = self.r = random.Random(seed)
        self.out = {'name': f'{name}, seed {seed}', 'begins': [], 'steps': [], 'checkpoints': [], 'evaluations': []}
        self.events, self.us = [], 1_790_000_000_000_000 + r.randrange(10**12)
        self.startup = self.down = self.redone = self.saving = self.t_ch = self.t_re = self.t_rm = 0
        start, number, done, saved, line = self.us, first, set(), None, None
        for attempt in range(attempts):
            self.out['begins'].append(self.us)
            self.events.append((self.us, 'job_start', None))
            began = self.us
            self.pass_(20, 60)
            self.startup += self.us - began
            until = number + steps + r.randrange(10)
            at_saved, began_steps = None, self.us
            own = number
            while number < until:
                since = self.us
                told = number == own or r.random() >= holes
                self.events += [(self.us, 'step', number)] if told else []
                took = self.pass_(4, 4.4) if number != own or not warm else self.pass_(25, 40)
                if told:
                    self.out['steps'].append([number, since, self.us])
                self.redone += took if number in done else 0
                line = line or self.us
                if number == own:
                    self.t_rm += self.us - began
                done.add(number)
                if save and number % save == 0:
                    since = self.us
                    took = self.pass_(8, 12)
                    self.saving += took
                    self.out['checkpoints'].append([since, self.us])
                    self.events.append((self.us, 'save', (number, took / 1e6)))
                    saved, at_saved = number, self.us
                if evaluate and number % evaluate == 0:
                    self.events.append((self.us, 'eval_start', None))
                    since = self.us
                    self.pass_(10, 20)
                    self.out['evaluations'].append([since, self.us])
                    self.events.append((self.us, 'eval_end', None))
                number += 1
            if attempt == attempts - 1:
                break
            self.t_ch += self.us - (at_saved or began_steps)
            stopped = self.us
            self.pass_(100, 400)
            self.down += self.us - stopped
            self.t_re += self.us - stopped
            match back:
                case 'checkpoint':
                    number = (saved or first - 1) + 1
                case 'start':
                    number = first
                case 'further':
                    number = max(first, number - steps - r.randrange(20))
        if ends:
            self.pass_(3, 9)
        end = self.us
        self.events.append((end, 'job_end', None))
        wall = end - start
        self.out |= {
            'start': start, 'end': end, 'google': google(self.events), 'steps_only': google(self.steps_only()),
            'cre': cre(end - line, self.t_ch, self.t_re, self.t_rm, self.saving), 'ettr': 1 - (self.startup + self.down + self.redone + self.saving) / wall,
        }
        if holes or attempts > 1 and (back == 'further' or save == 0):
            del self.out['cre']  # by a checkpoint that no log tells of
        if holes:
            del self.out['ettr']

    def steps_only(self):
        steps = self.out['steps']
        return [(steps[0][1], 'job_start', None)] + [(s[1], 'step', s[0]) for s in steps] + [(steps[-1][2], 'job_end', None)]

    def pass_(self, least, most):
        took = int(self.r.uniform(least, most) * 1e6)
        self.us += took
        return took


jobs = []
for seed in range(3):
    jobs += [j.out for j in (
        Job(seed, 'plain'), Job(seed, 'one step', steps=1), Job(seed, 'two steps', steps=2), Job(seed, 'from 0', first=0), Job(seed, 'from 1000', first=1000),
        Job(seed, 'no warm-up', warm=False), Job(seed, 'ends with its last step', ends=False), Job(seed, 'checkpoints', save=10), Job(seed, 'evaluations', evaluate=7),
        Job(seed, 'both', save=10, evaluate=15), Job(seed, 'a restart', attempts=2, save=10), Job(seed, 'five restarts', attempts=6, save=25, evaluate=20),
        Job(seed, 'restart from 0', first=0, attempts=3, back='start'), Job(seed, 'restart from 1', attempts=3, back='start'),
        Job(seed, 'goes back further', attempts=4, back='further'), Job(seed, 'left-out rows', holes=0.1), Job(seed, 'left-out rows and restarts', holes=0.1, attempts=3, save=10),
    )]
jobs.append(Job(9, 'long', steps=1000, save=250, attempts=2).out)
print('[\n' + ',\n'.join(json.dumps(j, separators=(',', ':')) for j in jobs) + '\n]')
