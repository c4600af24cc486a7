package report

import (
	"bufio"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gputable"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/regimes"
	"github.com/trainbridge/trainbridge/internal/stat"
)

// gpuFile is a table of nvidia-smi beside the logs.
type gpuFile struct {
	name string
	gpus []*gputable.GPU
}

// mostTable bounds the size of a table that is read, By.
const mostTable = 256 << 20

// gpuFiles reads, once, the tables of nvidia-smi below the directory of the job's logs.
func (c *conclusion) gpuFiles() []gpuFile {
	if c.smiRead || c.read == nil {
		return c.smi
	}
	c.smiRead = true
	dir := directory(files(c.job, c.read), c.read)
	bases := make(map[string]int)
	for _, f := range c.read.Files {
		beside := dir != "" && strings.HasPrefix(f.Path, dir) || len(c.read.Runs) == 1
		if f.Size > mostTable || !beside || !isTable(f) {
			continue
		}
		if file, err := os.Open(f.Path); err == nil {
			c.smi = append(c.smi, gpuFile{f.Path, gputable.Read(file, c.read.Zone(f))})
			bases[filepath.Base(f.Path)]++
			_ = file.Close()
		}
	}
	for i := range c.smi { // the directory tells tables of one name apart
		at, base := filepath.Split(c.smi[i].name)
		c.smi[i].name = base
		if bases[base] > 1 {
			c.smi[i].name = filepath.Join(filepath.Base(at), base)
		}
	}
	return c.smi
}

// throttledGPUs adds a claim for GPUs that heat or a power limit held at a lower clock than the others, by a tenth or more, in most of their samples while the
// job had steps. A low clock alone is none: a GPU without work has one. GPUs of several models have clocks of their own, and are not compared.
func (c *conclusion) throttledGPUs() {
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	if course := c.account.Course; c.account.Clock && len(course) > 0 && len(course[0]) > 0 {
		last := course[len(course)-1]
		from, to = course[0][0].Start, last[len(last)-1].End
	}
	type gpu struct {
		name, table string
		clocked
		clock float64
	}
	var all []gpu
	var clocks []float64
	models := make(map[string]bool)
	for _, f := range c.gpuFiles() {
		for _, g := range f.gpus {
			models[g.Model] = true
			x := gpu{name: c.sf("GPU %s in %s", "%[2]s 中的 GPU %[1]s", name(g.Index), name(f.name)), table: name(f.name), clocked: clocksIn(g, from, to)}
			if len(x.mhz) >= enough {
				x.clock = stat.MedianInPlace(x.mhz)
				all, clocks = append(all, x), append(clocks, x.clock)
			}
		}
	}
	usual := stat.MedianInPlace(clocks)
	var who []string
	in := make(map[string]bool) // tables
	lowest, why := math.Inf(1), ""
	for _, g := range all {
		held := ""
		switch {
		case g.heat > 0.5:
			held = c.in("heat", "过热")
		case g.power > 0.5:
			held = c.in("a power limit", "功率限制")
		}
		if held == "" || g.clock > 0.9*usual {
			continue
		}
		in[g.table] = true
		if who = append(who, g.name); g.clock < lowest {
			lowest, why = g.clock, held
		}
	}
	if len(all) < 4 || len(models) > 1 || len(who) == 0 || 2*len(who) >= len(all) || c.gpusTold {
		return
	}
	names := c.names(who, mostRanks)
	if len(in) == 1 && len(who) > 1 {
		for table := range in {
			names = c.sf("%d GPUs in %s", "%[2]s 中的 %[1]d 个 GPU", len(who), table)
		}
	}
	c.claims = append(c.claims, claim{
		kind: "slow_clock", cost: math.NaN(), grade: remark, advice: c.of(throttled),
		what: c.sf("%s ran at %s MHz, held down by %s; the %d GPUs of all tables at %s MHz (medians)", "%s 运行在 %s MHz（受%s所限）；全部表中的 %d 个 GPU 为 %s MHz（中位数）",
			names, human.Thousands(math.Round(lowest)), why, len(all), human.Thousands(math.Round(usual))),
	})
}

// isTable says whether a file that no receiver reads is a table of nvidia-smi. File.First may be cut off.
func isTable(f *offline.File) bool {
	if f.Unread() != offline.UnreadUnknown || !strings.HasPrefix(f.First, "timestamp,") && !strings.HasPrefix(f.First, "#Date") {
		return false
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	line, _ := bufio.NewReader(io.LimitReader(file, 1<<14)).ReadString('\n')
	return gputable.IsHead(line)
}

// slowGPU is a GPU whose clock fell with longer steps.
type slowGPU struct {
	name    string // "GPU 3 in nvidia-smi.csv"
	was, is float64
	why     string
}

// slowGPUs says which GPUs ran at a lower clock, by a tenth or more, in a segment of longer steps than in the one before, by tables of nvidia-smi beside the
// logs: " (GPU 3 in smi.csv ran at 1,200 MHz instead of 1,755 MHz)"; "": none, or nobody logged clocks.
func (l *levels) slowGPUs(before, s *regimes.Segment) string {
	if s.Level < before.Level {
		return ""
	}
	var slow []slowGPU
	all := 0
	for _, f := range l.gpuFiles() {
		for _, g := range f.gpus {
			was, is := l.clocks(g, before), l.clocks(g, s)
			if len(was.mhz) < 3 || len(is.mhz) < 3 {
				continue
			}
			all++
			if a, b := stat.MedianInPlace(was.mhz), stat.MedianInPlace(is.mhz); b <= 0.9*a {
				of := slowGPU{name: l.sf("GPU %s in %s", "%[2]s 中的 GPU %[1]s", name(g.Index), name(f.name)), was: a, is: b}
				switch {
				case is.heat > 0.5 && was.heat < 0.25:
					of.why = l.in(", held down by heat", "，因过热降频")
				case is.power > 0.5 && was.power < 0.25:
					of.why = l.in(", at its power limit", "，受功率上限限制")
				}
				slow = append(slow, of)
			}
		}
	}
	if len(slow) == 0 {
		return ""
	}
	lowest := slow[0]
	for _, g := range slow {
		if g.is < lowest.is {
			lowest = g
		}
	}
	l.gpusTold = true
	who := lowest.name
	if n := len(slow); n > 1 {
		who = l.sf("%d of %d GPUs, such as %s,", "%[2]d 个 GPU 中有 %[1]d 个（如 %[3]s）", n, all, lowest.name)
	}
	mhz := func(v float64) string { return human.Thousands(math.Round(v)) }
	return l.sf(" (%s ran at %s MHz instead of %s MHz%s)", "（%s 运行在 %s MHz，此前为 %s MHz%s）", who, mhz(lowest.is), mhz(lowest.was), lowest.why)
}

// clocked are the clocks of a GPU in a time, and the shares of samples in which power or heat held the GPU down.
type clocked struct {
	mhz         []float64
	power, heat float64
}

// clocks are the samples of a GPU within a segment.
func (l *levels) clocks(g *gputable.GPU, s *regimes.Segment) clocked {
	return clocksIn(g, l.steps[s.From].Start, l.steps[s.To-1].End)
}

// clocksIn are the samples of a GPU from a time to another, ns since 1970.
func clocksIn(g *gputable.GPU, from, to int64) (c clocked) {
	for _, x := range g.Samples {
		if x.At < from || x.At > to {
			continue
		}
		c.mhz = append(c.mhz, x.Clock)
		if x.Power {
			c.power++
		}
		if x.Heat {
			c.heat++
		}
	}
	n := float64(max(1, len(c.mhz)))
	c.power, c.heat = c.power/n, c.heat/n
	return c
}
