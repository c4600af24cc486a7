package sim

import (
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// unknown is the cause of a step with only a time in the logs.
var unknown = fault{rank: -1}

// of is a fault in a named part.
func of(part string) fault { return fault{part: part, rank: -1} }

// setUp is common to most jobs.
func (j *job) setUp(out trainer, usual float64, n noise, shares ...share) {
	j.out, j.noise, j.shares = out, n, shares
	j.level = func(int64) float64 { return usual }
}

// whole runs a job of one attempt, with only steps.
func (j *job) whole(steps int) {
	j.start(0, 0)
	j.steps(1, int64(steps))
	j.end(0)
}

// loop are the parts of a loop that writes JSON lines.
func loop(data float64) []share {
	return []share{{"data_time", data}, {"forward_time", 0.3 * (1 - data)}, {"backward_time", 0.6 * (1 - data)}}
}

// unsaid is a pattern of a sentence about missing evidence.
const unsaid = "(?i)(does not say|do not say|no log (here )?(says|tells|explains)|not known|cannot (say|tell))"

// say adds patterns required in the conclusion.
func (j *job) say(patterns ...string) { j.truth.Must = append(j.truth.Must, patterns...) }

// Scenarios are all kinds of jobs.
func Scenarios() []Scenario {
	var all []Scenario
	for _, of := range []func() []Scenario{everyday, blame, attempts, changes, homogeneous} {
		all = append(all, of()...)
	}
	return all
}

// everyday are jobs with a log of their trainer alone.
func everyday() []Scenario {
	return []Scenario{
		{"data loading is half of every step", Faulty, func(j *job) {
			j.setUp(jsonl(), j.uniform(1, 3), lognormal(0.01), loop(0.5)...)
			j.whole(200)
			j.truth.Lost = []float64{0.5 * j.truth.States[Step]}
			j.say("(?i)data")
		}},
		{"megatron: 10 checkpoints of 40 s", Faulty, func(j *job) { megatronSaves(j, func(int) float64 { return 40 }, 10) }},
		{"megatron: one checkpoint of 400 s", Faulty, func(j *job) {
			megatronSaves(j, func(i int) float64 {
				if i == 5 {
					return 400
				}
				return 40
			}, 10)
		}},
		{"one step of 604 s", Faulty, func(j *job) {
			j.setUp(&megatron{total: 200}, 4, lognormal(0.01))
			j.add(fault{extra: 600, rank: -1}, j.pick(1, 20, 180, 1)...)
			j.start(20, 0)
			j.steps(1, 200)
			j.end(2)
			j.say("1 of 200", unsaid)
		}},
		{"every tenth step +10 s", Faulty, func(j *job) {
			j.setUp(&megatron{total: 200}, 4, lognormal(0.01))
			for n := int64(10); n <= 200; n += 10 {
				j.add(fault{extra: 10, rank: -1, open: true}, n)
			}
			j.truth.Lost = []float64{200}
			j.start(20, 0)
			j.steps(1, 200)
			j.end(2)
			j.say("(?i)(10th|tenth|10 steps|multiples of 10)")
		}},
		{"nano-gpt: 78 of 19,073 steps", Faulty, func(j *job) {
			j.setUp(buildNanoGPT(), 0.34, lognormal(0.01))
			j.add(fault{extra: 48, rank: -1}, j.pick(78, 20, 19050, 20)...)
			j.whole(19073)
			j.say("78 of 19,073", unsaid)
		}},
		{"nano-gpt: an evaluation in each 250th step", Faulty, func(j *job) {
			j.setUp(buildNanoGPT(), 0.34, autoregressive(0.8, 0.01))
			for n := int64(250); n <= 5000; n += 250 {
				j.add(fault{extra: 20, rank: -1, open: true}, n)
			}
			j.truth.Lost = []float64{400}
			j.whole(5000)
			j.say("(?i)(250th|250 steps|multiples of 250)")
		}},
		{"2 slow steps of 60,000", Faulty, func(j *job) {
			j.setUp(buildNanoGPT(), 0.25, lognormal(0.01))
			j.add(fault{extra: 9, rank: -1}, j.pick(2, 1000, 59000, 500)...)
			j.whole(60000)
			j.say("2 of 60,000", unsaid)
		}},
		{"verl: reward +60 s", Faulty, func(j *job) {
			j.setUp(verl(false), j.uniform(60, 120), lognormal(0.02), verlParts()...)
			j.add(fault{extra: 60, part: "reward", rank: -1}, j.pick(5, 8, 95, 6)...)
			j.whole(100)
			j.say("5 of 100", "(?i)reward")
		}},
		{"verl: checkpoints and tests within steps, generation slow", Faulty, func(j *job) {
			j.setUp(verl(false), 80, lognormal(0.02), verlParts()...)
			for n := int64(20); n <= 120; n += 20 {
				j.add(fault{extra: 30, part: "save_checkpoint", rank: -1, save: true}, n)
				j.add(fault{extra: 25, part: "testing", rank: -1, test: true}, n-10)
			}
			j.add(fault{extra: 70, part: "gen", rank: -1}, 33, 57, 94)
			j.truth.Lost = []float64{210, 180, 150, 540, 390, 360, 330}
			j.whole(120)
			j.say("(?i)gen")
		}},
		{"verl: console and FileLogger of one run", Faulty, func(j *job) {
			j.setUp(verl(true), 60, lognormal(0.02), verlParts()...)
			j.add(of("reward"), j.pick(4, 8, 75, 6)...)
			j.whole(80)
			j.say("4 of 80", "(?i)reward")
		}},
		{"megatron's log and a jsonl of one run", Faulty, func(j *job) {
			both := &pair{trainer: &megatron{total: 150}, second: jsonl()}
			j.setUp(both, 2, lognormal(0.01), loop(0.02)...)
			j.add(of("data_time"), j.pick(6, 8, 145, 6)...)
			j.start(15, 0)
			j.steps(1, 150)
			j.end(1)
			j.say("6 of 150", "(?i)data")
		}},
		{"two writers in one file", Faulty, func(j *job) {
			second := jsonl()
			second.name = "megatron.log"
			j.setUp(&pair{trainer: &megatron{total: 150}, second: second, one: true}, 2, lognormal(0.01), loop(0.02)...)
			j.add(of("data_time"), j.pick(6, 8, 145, 6)...)
			j.start(15, 0)
			j.steps(1, 150)
			j.end(1)
			j.say("6 of 150", "(?i)data")
		}},
		{"jsonl: faults in steps 3 to 13", Faulty, func(j *job) {
			j.setUp(jsonl(), j.uniform(1, 4), lognormal(0.015), loop(0.03)...)
			j.add(of("data_time"), j.pick(4, 3, 13, 2)...)
			j.whole(j.between(50, 70))
		}},
		{"verl: 14 steps, 2 slow", Faulty, func(j *job) {
			j.setUp(verl(false), 50, lognormal(0.015), verlParts()...)
			j.add(of("gen"), j.pick(2, 3, 13, 3)...)
			j.whole(14)
			j.say("2 of 14")
		}},
		{"megatron: batch-generator stalls at random steps", Faulty, func(j *job) {
			j.setUp(&megatron{level: 2, total: 150}, j.uniform(2, 5), collected(0.006), megatronParts()...)
			f := of("batch-generator")
			j.add(f, j.pick(8, 6, 145, 4)...)
			j.start(25, 0)
			j.steps(1, 150)
			j.end(2)
			j.say("8 of 150", "(?i)(data|batch-generator)")
		}},
		{"megatron: timers of each rank, one computes for longer at times", Faulty, func(j *job) {
			j.setUp(&megatron{level: 2, all: true, total: 120}, 3, lognormal(0.01), megatronParts()...)
			j.ranks = 8
			rank := j.between(0, 7)
			j.add(fault{part: "forward-compute", rank: rank}, j.pick(6, 12, 115, 5)...)
			j.start(25, 0)
			j.steps(1, 120)
			j.end(2)
			j.truth.Rank = rank
			j.say("6 of 120")
		}},
		{"jsonl: data loader stalls at random steps", Faulty, func(j *job) {
			j.setUp(jsonl(), j.uniform(0.5, 2), heavy(0.006), loop(0.02)...)
			j.add(of("data_time"), j.pick(15, 5, 395, 4)...)
			j.whole(400)
			j.say("15 of 400", "(?i)data")
		}},
		{"jsonl: the end of an epoch each 100 steps", Faulty, func(j *job) {
			j.setUp(jsonl(), 1, lognormal(0.01), loop(0.02)...)
			for n := int64(101); n <= 1000; n += 100 {
				j.add(fault{extra: 8, part: "data_time", rank: -1, open: true}, n)
			}
			j.truth.Lost = []float64{72}
			j.whole(1000)
			j.say("(?i)data")
		}},
		{"megatron: an evaluation each 50 steps", Faulty, func(j *job) {
			j.setUp(&megatron{total: 300}, 2.5, lognormal(0.01))
			j.start(20, 0)
			for n := int64(1); n <= 300; n++ {
				j.step(n)
				if n%50 == 0 {
					j.evaluate(22 + j.uniform(0, 0.5))
				}
			}
			j.end(2)
			j.truth.Lost, j.truth.Share = []float64{j.truth.States[Evaluation]}, 0.02 // reported, but no loss
			j.say("(?i)evaluat")
		}},
		{"torchtitan: checkpoints, a slow step", Faulty, func(j *job) {
			j.setUp(&torchtitan{}, 5, lognormal(0.01))
			j.add(fault{extra: 30, rank: -1}, j.pick(3, 7, 14, 2)...)
			j.start(30, 0)
			for n := int64(1); n <= 120; n++ {
				j.step(n)
				if n%30 == 0 {
					j.save(35)
				}
			}
			j.truth.Lost = []float64{140, 90, 230}
			j.end(1)
			j.truth.together(StartUp, Step)
		}},
		{"deepspeed: slow steps", Faulty, func(j *job) {
			j.setUp(deepspeed(), 3, lognormal(0.01))
			j.add(unknown, j.pick(5, 8, 145, 5)...)
			j.start(10, 0)
			j.steps(1, 150)
			j.end(0)
			j.truth.together(StartUp, Step)
			j.say("5 of 150", unsaid)
		}},
		{"trainer with a bar: slow steps", Faulty, func(j *job) {
			j.setUp(bar(60, false), 20, lognormal(0.01))
			j.add(fault{extra: 40, rank: -1}, j.pick(3, 8, 55, 6)...)
			j.whole(60)
			j.say("3 of 60", unsaid)
		}},
		{"nemo: slow steps", Faulty, func(j *job) {
			j.setUp(nemo(), 6, lognormal(0.01))
			j.add(unknown, j.pick(4, 8, 115, 5)...)
			j.whole(120)
			j.say("4 of 120", unsaid)
		}},
		{"a first step of 60 s", Faulty, func(j *job) {
			j.setUp(&megatron{total: 150}, 2, lognormal(0.01))
			j.add(fault{extra: 58, rank: -1, open: true}, 1)
			j.truth.Lost = []float64{58, 60}
			j.start(15, 0)
			j.steps(1, 150)
			j.end(1)
			j.say("(?i)first step")
		}},
		{"a pause of 600 s, nothing said", Faulty, func(j *job) {
			j.setUp(jsonl(), 2, lognormal(0.01), loop(0.02)...)
			at := int64(j.between(50, 150))
			j.start(0, 0)
			j.steps(1, at)
			j.spend(Stalled, 600)
			j.now += 600
			j.steps(at+1, 200)
			j.end(0)
			j.truth.Lost = []float64{600}
		}},
	}
}

// megatronSaves is a job of Megatron's default timers with checkpoints.
func megatronSaves(j *job, took func(i int) float64, count int) {
	j.setUp(&megatron{total: int64(40 * count)}, 2, lognormal(0.01))
	j.start(20, 0)
	for i := range count {
		j.steps(int64(40*i+1), int64(40*i+40))
		j.save(took(i) + j.uniform(-0.3, 0.3))
	}
	j.end(1)
	j.truth.Lost = []float64{j.truth.States[Checkpoint]}
	j.say("(?i)checkpoint")
}

// blame are jobs with logs of NCCL, which identify the rank that others waited for.
func blame() []Scenario {
	return []Scenario{
		{"nccl: one host of 8 ranks 5 % slower", Faulty, func(j *job) {
			j.withNCCL(jsonl(), 2, 16, "gpu-a", "gpu-b")
			j.always = map[int]float64{}
			for r := 8; r < 16; r++ {
				j.always[r] = 0.05
			}
			j.whole(60)
			j.truth.Lost = []float64{0.05 * j.truth.States[Step], 8 * 0.05 * j.truth.States[Step]}
			j.truth.Share, j.truth.Host = 0.05, "gpu-b"
			j.say("gpu-b")
		}},
		{"nccl: bursts of slow steps by one late rank", Faulty, func(j *job) {
			j.withNCCL(jsonl(), 1.5, 8, "gpu-a", "gpu-b")
			rank := j.between(0, 7)
			f := fault{part: "collective.wait", rank: rank, host: j.host(rank)}
			from := j.between(20, 40)
			for n := range j.between(10, 30) {
				j.add(f, int64(from+n))
			}
			from = j.between(85, 95)
			for n := range 12 {
				j.add(f, int64(from+n))
			}
			j.whole(130)
			j.truth.Rank, j.truth.Host = rank, f.host
		}},
		{"nccl: a rank late by a little in each step", Faulty, func(j *job) {
			j.withNCCL(jsonl(), 2, 8, "gpu-a", "gpu-b")
			rank := j.between(0, 7)
			j.always = map[int]float64{rank: 0.08}
			j.whole(100)
			j.truth.Lost = []float64{0.08 * j.truth.States[Step], 7 * 0.08 * j.truth.States[Step]}
			j.truth.Share, j.truth.Rank, j.truth.Host = 0.08, rank, j.host(rank)
		}},
		{"nccl: 16 to 8 ranks, one of them late in both", Faulty, func(j *job) {
			j.withNCCL(&megatron{total: 240}, 2, 16, "gpu-a", "gpu-b")
			rank := j.between(0, 7)
			for _, n := range append(j.pick(6, 12, 115, 5), j.pick(6, 135, 235, 5)...) {
				j.add(fault{extra: j.uniform(1, 3), part: "collective.wait", rank: rank, host: "gpu-a"}, n)
			}
			j.start(20, 0)
			j.steps(1, 120)
			j.crash(100)
			j.ranks, j.hosts = 8, []string{"gpu-a"}
			j.beside.usual = 0
			j.level = func(int64) float64 { return 4 }
			j.start(20, 120)
			j.steps(121, 240)
			j.end(1)
			j.truth.Rank, j.truth.Host = rank, "gpu-a"
			j.truth.Lost = []float64{100, 120, 140}
		}},
		{"nccl: a slow link at times", Faulty, func(j *job) {
			j.withNCCL(jsonl(), 2, 8, "gpu-a", "gpu-b")
			j.add(fault{part: "collective", rank: -1, link: true}, j.pick(7, 12, 95, 5)...)
			j.whole(100)
		}},
		{"nccl: clocks 50 ms apart, a late rank", Faulty, func(j *job) {
			lateRank(j, jsonl())
			j.beside.offset["gpu-b"] = 0.05
			j.whole(120)
		}},
		{"nccl: megatron's stamps in another zone", Faulty, func(j *job) {
			lateRank(j, &megatron{total: 120, shift: 8 * 3600})
			for n, f := range j.faults {
				f.unexplained = true
				j.faults[n] = f
			}
			j.start(10, 0)
			j.steps(1, 120)
			j.end(1)
			j.truth.noClock = true
			j.truth.Somewhere = []string{"--timezone", fmt.Sprintf(`rank %d\b`, j.truth.Rank)}
		}},
		{"nccl: megatron's stamps in another zone, which a flag names", Faulty, func(j *job) {
			lateRank(j, &megatron{total: 120, shift: 8 * 3600})
			j.start(10, 0)
			j.steps(1, 120)
			j.end(1)
			_, offset := j.epoch.Zone()
			zone := j.epoch.In(time.FixedZone("", offset+8*3600)).Format("-07:00")
			j.truth.Flags = []string{"--timezone", filepath.Join(j.dir, "megatron.log") + "=" + zone}
		}},
		{"nccl: megatron's stamps, a late rank", Faulty, func(j *job) {
			lateRank(j, &megatron{total: 120})
			j.start(10, 0)
			j.steps(1, 120)
			j.end(1)
		}},
	}
}

// withNCCL is a job whose ranks log their collectives.
func (j *job) withNCCL(out trainer, usual float64, ranks int, hosts ...string) {
	j.setUp(out, usual, lognormal(0.01))
	if l, ok := out.(*lines); ok && l.has.parts {
		j.shares = loop(0.02)
	}
	j.ranks, j.hosts, j.beside = ranks, hosts, &collectives{offset: map[string]float64{}}
}

// lateRank is a rank late at times, by 1 to 3.5 s.
func lateRank(j *job, out trainer) {
	j.withNCCL(out, 3, 8, "gpu-a", "gpu-b")
	rank := j.between(0, 7)
	for _, n := range j.pick(8, 12, 115, 4) {
		j.add(fault{extra: j.uniform(1, 3.5), part: "collective.wait", rank: rank, host: j.host(rank)}, n)
	}
	j.truth.Rank, j.truth.Host = rank, j.host(rank)
}

// attempts are jobs with restarts.
func attempts() []Scenario {
	return []Scenario{
		{"crash at 80, back to 70, 240 s down", Faulty, func(j *job) { restarts(j, &megatron{total: 160}, [][3]float64{{80, 70, 240}}, 160) }},
		{"three restarts", Faulty, func(j *job) {
			restarts(j, &megatron{total: 300}, [][3]float64{{85, 60, 120}, {150, 120, 300}, {215, 210, 60}}, 300)
		}},
		{"a restart into a new file", Faulty, func(j *job) {
			restarts(j, &megatron{total: 160, fresh: true}, [][3]float64{{95, 80, 180}}, 160)
		}},
		{"verl: back from 50 to 40, no clock", Faulty, func(j *job) {
			j.setUp(verl(false), 60, lognormal(0.01), verlParts()...)
			j.start(0, 0)
			j.steps(1, 50)
			j.start(0, 40)
			j.steps(41, 100)
			j.truth.Lost = []float64{j.truth.States[Redone]}
		}},
		{"killed in mid-step", Faulty, func(j *job) {
			j.setUp(&megatron{total: 500}, 4, lognormal(0.01))
			j.start(20, 0)
			j.steps(1, int64(j.between(90, 120)))
			j.spend(Unexplained+"+"+AfterEnd+"+"+Stalled+"+"+Down, 2.5)
			j.now += 2.5
			j.out.die(j, j.now)
		}},
	}
}

// restarts is a job that dies at steps and continues from checkpoints: the last step before, the loaded step, the time between.
func restarts(j *job, out trainer, at [][3]float64, last int64) {
	j.setUp(out, 4.15, lognormal(0.005))
	down, again := 0.0, 0.0
	j.start(30, 0)
	from := int64(1)
	for _, a := range at {
		j.steps(from, int64(a[0]))
		j.crash(a[2])
		j.start(30, int64(a[1]))
		from, down, again = int64(a[1])+1, down+a[2], again+4.15*(a[0]-a[1])
	}
	j.steps(from, last)
	j.end(1)
	j.truth.Lost = []float64{down, down + again, down + again + j.truth.States[StartUp], down + again + 30*float64(len(at))}
	j.say("(?i)(down|restart|between attempts)")
}

// changes are jobs whose steps become longer or shorter for good, without a slow step.
func changes() []Scenario {
	return []Scenario{
		{"16 to 8 ranks", Shrinking, func(j *job) {
			j.withNCCL(&megatron{total: 120}, 2, 16, "gpu-a", "gpu-b")
			j.start(20, 0)
			j.steps(1, 60)
			j.crash(100)
			j.ranks, j.hosts = 8, []string{"gpu-a"}
			j.beside.usual = 0
			j.level = func(int64) float64 { return 4 }
			j.start(20, 60)
			j.steps(61, 120)
			j.end(1)
			j.truth.Lost = []float64{100, 120, 140}
			j.say("(?i)(down|restart|between attempts)")
		}},
		{"sequences x1.5 from half on", Mixed, func(j *job) {
			j.setUp(&megatron{total: 200}, 3, lognormal(0.012))
			j.level = func(n int64) float64 {
				if n > 100 {
					return 4.5
				}
				return 3
			}
			j.start(20, 0)
			j.steps(1, 200)
			j.end(1)
		}},
		{"verl: sequences x1.5 from half on", Mixed, func(j *job) {
			j.setUp(verl(false), 60, lognormal(0.02), verlParts()...)
			j.level = func(n int64) float64 {
				if n > 80 {
					return 90
				}
				return 60
			}
			j.whole(160)
		}},
		{"lengths 1 s and 3 s in turn", Mixed, func(j *job) {
			j.setUp(jsonl(), 1, lognormal(0.015), loop(0.02)...)
			j.level = func(n int64) float64 { return 1 + 2*float64(n%2) }
			j.whole(200)
		}},
		{"a batch that ramps up", Mixed, func(j *job) {
			j.setUp(&megatron{total: 320}, 1, lognormal(0.012))
			j.batch = func(n int64) int { return 64 * int(min(8, 1+(n-1)/40)) }
			j.level = func(n int64) float64 { return float64(j.batch(n)) / 64 }
			j.start(20, 0)
			j.steps(1, 320)
			j.end(1)
		}},
		{"drift of +20 %", Drifting, func(j *job) {
			j.setUp(jsonl(), 2, lognormal(0.01), loop(0.02)...)
			j.level = func(n int64) float64 { return 2 * (1 + 0.2*float64(n)/200) }
			j.drifts = true
			j.whole(200)
		}},
		{"nano-gpt: drift of +20 %", Drifting, func(j *job) {
			j.setUp(nanoGPT(), 0.5, autoregressive(0.7, 0.01))
			j.level = func(n int64) float64 { return 0.5 * (1 + 0.2*float64(n)/2000) }
			j.drifts = true
			j.whole(2000)
		}},
	}
}

// homogeneous are jobs without anything to say.
func homogeneous() []Scenario {
	plain := func(name string, out func(j *job) trainer, n func() noise, low, high int, shares ...share) Scenario {
		return Scenario{name, Homogeneous, func(j *job) {
			t := out(j)
			j.setUp(t, j.uniform(0.5, 8), n(), shares...)
			start, after := 0.0, 0.0
			if t.traits().started {
				start, after = 12, 1
			}
			steps := j.between(low, high) / 10 * 10
			if low == high {
				steps = low
			}
			j.start(start, 0)
			j.steps(1, int64(steps))
			j.end(after)
			if t.traits().lines { // the first step has no line before
				j.truth.together(StartUp, Step)
			}
			if !t.traits().parts {
				j.say("(?i)data loading")
			}
		}}
	}
	white := func(sigma float64) func() noise { return func() noise { return lognormal(sigma) } }
	tails := func() noise { return heavy(0.006) }
	spikes := func() noise { return collected(0.008) }
	slow := func() noise { return autoregressive(0.9, 0.02) }
	return []Scenario{
		plain("homogeneous: jsonl, lognormal", func(j *job) trainer { return jsonl() }, white(0.02), 150, 400, loop(0.02)...),
		plain("homogeneous: jsonl, 14 steps", func(j *job) trainer { return jsonl() }, white(0.02), 14, 14, loop(0.02)...),
		plain("homogeneous: megatron, autoregressive", func(*job) trainer { return &megatron{total: 500} }, slow, 200, 500),
		plain("homogeneous: megatron timers, collector", func(*job) trainer { return &megatron{level: 2, total: 300} }, spikes, 120, 300,
			megatronParts()...),
		plain("homogeneous: nano-gpt, heavy tails", func(*job) trainer { return buildNanoGPT() }, tails, 1000, 2000),
		plain("homogeneous: verl, lognormal", func(*job) trainer { return verl(false) }, white(0.03), 30, 150, verlParts()...),
		plain("homogeneous: torchtitan, heavy tails", func(*job) trainer { return &torchtitan{} }, tails, 150, 300),
		{"homogeneous: perf_monitor", Homogeneous, func(j *job) { // the log has medians, and whole seconds
			j.setUp(perfMonitor(), 2.5, lognormal(0.02))
			j.whole(300)
			j.truth.together(Step, Unexplained, StartUp)
			j.say("(?i)data loading")
		}},
		{"homogeneous: trainer with a bar, rounded epochs", Homogeneous, func(j *job) {
			j.setUp(bar(80, true), 15, lognormal(0.01))
			j.whole(80)
			j.say("(?i)data loading")
		}},
		{"homogeneous: jsonl of 4 ranks", Homogeneous, func(j *job) {
			out := jsonl()
			one, files := out.line, [4]io.Writer{}
			out.line = func(j *job, s *step) string {
				text := one(j, s)
				for r := range 4 {
					if files[r] == nil {
						files[r] = j.create(fmt.Sprintf("metrics_rank%d.jsonl", r))
					}
					fmt.Fprintf(files[r], "%s, \"rank\": %d}\n", text[:len(text)-1], r)
				}
				return ""
			}
			out.w = io.Discard
			j.setUp(out, 2, lognormal(0.015), loop(0.02)...)
			j.whole(120)
		}},
		{"homogeneous: megatron, 2 steps", Homogeneous, func(j *job) {
			j.setUp(&megatron{total: 2}, 5, lognormal(0.01))
			j.start(30, 0)
			j.steps(1, 2)
			j.end(1)
		}},
		{"homogeneous: nccl, 8 ranks", Homogeneous, func(j *job) {
			j.withNCCL(jsonl(), 1.5, 8, "gpu-a", "gpu-b")
			j.whole(80)
		}},
	}
}
