// Package gputable reads the clocks of GPUs from tables of nvidia-smi written beside a job: of --query-gpu=… --format=csv, and of dmon -o DT.
//
//	timestamp, index, power.draw [W], clocks.current.sm [MHz], clocks_event_reasons.sw_power_cap
//	2026/09/14 08:30:00.120, 0, 640.12 W, 1755 MHz, Not Active
//
//	#Date       Time        gpu    pwr  gtemp   mclk   pclk  pviol  tviol
//	#YYYYMMDD   HH:MM:SS    Idx      W      C    MHz    MHz      %   bool
//	 20260914   08:30:00      0    640     64   2619   1950      0      0
package gputable

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sample is a row of a GPU.
type Sample struct {
	At          int64   // ns since 1970
	Clock       float64 // MHz
	Power, Heat bool    // held down by its power limit, or by heat
}

// GPU is a GPU with its rows.
type GPU struct {
	Index   string
	Model   string // such as "NVIDIA H100 80GB HBM3"; empty: the table does not say
	Samples []Sample
}

const mostSamples = 1 << 20 // of a GPU: 12 days of seconds

// columns are the indices of a table's columns; -1: absent.
type columns struct {
	at, index, model, clock int
	power, heat             []int
	reasons                 int // bits of all reasons
	dmon                    bool
}

// IsHead says whether a line is the head of a table with times, GPUs and clocks.
func IsHead(line string) bool {
	_, ok := head(line)
	return ok
}

// head reads the head of a table.
func head(line string) (c columns, ok bool) {
	c = columns{at: -1, index: -1, model: -1, clock: -1, reasons: -1}
	if strings.HasPrefix(line, "#Date") {
		c.dmon = true
		c.read(strings.Fields(strings.TrimPrefix(line, "#")))
		return c, c.at == 0 && c.index == 2 && c.clock >= 0
	}
	c.read(strings.Split(line, ","))
	return c, c.at >= 0 && c.index >= 0 && c.clock >= 0
}

// read finds the columns by their names, without units.
func (c *columns) read(names []string) {
	for i, name := range names {
		name, _, _ = strings.Cut(strings.TrimSpace(name), " [")
		switch {
		case name == "timestamp" || name == "Date":
			c.at = i
		case name == "index" || name == "gpu":
			c.index = i
		case name == "name" || name == "gpu_name":
			c.model = i
		case c.clock < 0 && slices.Contains([]string{"clocks.current.sm", "clocks.sm", "clocks.current.graphics", "clocks.gr", "pclk"}, name):
			c.clock = i
		case strings.HasSuffix(name, "_reasons.active"):
			c.reasons = i
		case name == "pviol" || strings.HasSuffix(name, "_reasons.sw_power_cap") || strings.HasSuffix(name, "_reasons.hw_power_brake_slowdown"):
			c.power = append(c.power, i)
		case name == "tviol" || strings.HasSuffix(name, "_reasons.hw_thermal_slowdown") || strings.HasSuffix(name, "_reasons.sw_thermal_slowdown"):
			c.heat = append(c.heat, i)
		}
	}
}

// Read reads a table. The times are of a zone. Rows that are not understood are passed over.
func Read(r io.Reader, zone *time.Location) (all []*GPU) {
	var c columns
	known := false
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if of, ok := head(line); ok {
			c, known = of, true
			continue
		}
		if !known || strings.HasPrefix(line, "#") {
			continue
		}
		index, s, ok := c.row(line, zone)
		if !ok {
			continue
		}
		i := slices.IndexFunc(all, func(g *GPU) bool { return g.Index == index })
		if i < 0 {
			i, all = len(all), append(all, &GPU{Index: index, Model: c.modelIn(line)})
		}
		if len(all[i].Samples) < mostSamples {
			all[i].Samples = append(all[i].Samples, s)
		}
	}
	return all
}

// modelIn returns the model of the GPU in a row; empty: the table has none.
func (c *columns) modelIn(line string) string {
	if fields := strings.Split(line, ","); c.model >= 0 && c.model < len(fields) {
		return strings.TrimSpace(fields[c.model])
	}
	return ""
}

// row reads a row.
func (c *columns) row(line string, zone *time.Location) (index string, s Sample, ok bool) {
	fields, layout := strings.Split(line, ","), "2006/01/02 15:04:05.999"
	if c.dmon {
		fields, layout = strings.Fields(line), "20060102 15:04:05"
	}
	at := func(i int) string {
		if i >= len(fields) {
			return ""
		}
		return strings.TrimSpace(fields[i])
	}
	stamp := at(c.at)
	if c.dmon {
		stamp += " " + at(c.at+1)
	}
	when, err := time.ParseInLocation(layout, stamp, zone)
	clock, _, _ := strings.Cut(at(c.clock), " ")
	mhz, err2 := strconv.ParseFloat(clock, 64)
	if err != nil || err2 != nil || at(c.index) == "" {
		return "", s, false
	}
	active := func(of []int) bool {
		return slices.ContainsFunc(of, func(i int) bool {
			v, err := strconv.ParseFloat(at(i), 64)
			return at(i) == "Active" || err == nil && v > 0
		})
	}
	s = Sample{when.UnixNano(), mhz, active(c.power), active(c.heat)}
	if c.reasons >= 0 {
		bits, _ := strconv.ParseUint(at(c.reasons), 0, 64) // 0: not available
		s.Power, s.Heat = s.Power || bits&powerReasons != 0, s.Heat || bits&heatReasons != 0
	}
	return at(c.index), s, true
}

// Bits of clocks_event_reasons.active (nvml.h, nvmlClocksEventReason…): the software's power cap and the hardware's power brake; the software's and the
// hardware's thermal slowdown.
const (
	powerReasons = 0x04 | 0x80
	heatReasons  = 0x20 | 0x40
)
