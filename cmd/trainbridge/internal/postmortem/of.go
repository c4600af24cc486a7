package postmortem

import (
	"os"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/internal/flightrecorder"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// Of is how a job ended, by the events in its logs and the dumps of PyTorch's Flight Recorder among its files. ranks is the number of ranks of the job; 0:
// unknown. lastStep is the number of the last step in the logs; -1: none. planned is the number of steps that the job is to have; 0: unknown.
func Of(job *digest.Ends, files []string, ranks, lastStep, planned int64) End {
	c := &Case{WorldSize: ranks, LastStep: lastStep, Stepped: lastStep >= 0 || job.Stepped(), Planned: planned, Events: make([]Event, 0, len(job.Events))}
	for i := range job.Events {
		switch events.Class(job.Events[i].Class) {
		case events.ClassSlowing, events.ClassStalled, events.ClassRAS: // of a live job, and perhaps past: no word on why
			continue
		}
		c.Events = append(c.Events, eventOf(&job.Events[i]))
	}
	c.setClocks()
	for i := range c.Events {
		e := &c.Events[i]
		e.wentOn = job.WentOn(&digest.Event{At: e.At, Time: e.Time})
	}
	c.Stepping = job.Ranks()
	if at, ok := job.Finished(); ok {
		c.Finished = &at
	}
	c.Groups = groups(files)
	return Judge(c)
}

// setClocks moves the times of a kernel's log whose clock is of another zone, such as UTC beside the trainer's local time: by the whole quarters of an hour
// after which the log's line about a process stands within two minutes of the launcher's line about the same process.
func (c *Case) setClocks() {
	const quarter, near, most = int64(900e9), int64(120e9), 15 * int64(3600e9)
	reaped := make(map[int64]int64) // time of the launcher's line, by process
	for i := range c.Events {
		if e := &c.Events[i]; e.Class == events.ClassSummary && e.PID != 0 && e.Time != 0 {
			reaped[e.PID] = e.Time
		}
	}
	moved := make(map[string]int64) // ns, by log
	for i := range c.Events {
		e := &c.Events[i]
		at, ok := reaped[e.PID]
		if !ok || !kernel(e) || e.Time == 0 {
			continue
		}
		by := at - e.Time
		whole := (by+quarter/2+most)/quarter*quarter - most
		if apart := by - whole; whole != 0 && whole >= -most && whole <= most && apart > -near && apart < near {
			moved[e.At.File] = whole
		}
	}
	for i := range c.Events {
		if e := &c.Events[i]; kernel(e) && e.Time != 0 && moved[e.At.File] != 0 {
			e.Time += moved[e.At.File]
			e.moved = moved[e.At.File]
		}
	}
}

// maxDump bounds the size of a dump, By. The recorder's default of 2,000 entries takes 2 MB with their stack frames.
const maxDump = 256 << 20

// groups compares the dumps among some files: each process group with the ranks behind. Files that are no dump, are larger than maxDump or cannot be read are
// passed over. One dump at a time is in memory.
func groups(files []string) []flightrecorder.Group {
	var reader flightrecorder.Reader
	var dump flightrecorder.Dump
	return flightrecorder.Analyze(func(yield func(*flightrecorder.Dump) bool) {
		for _, file := range files {
			if !flightrecorder.IsName(file) {
				continue
			}
			if fi, err := os.Stat(file); err != nil || fi.Size() > maxDump {
				continue
			}
			data, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			if reader.Read(data, &dump) != nil {
				continue
			}
			dump.Rank = flightrecorder.RankOf(file)
			if !yield(&dump) {
				return
			}
		}
	})
}

// eventOf restores the event of a line from the attributes of its span: form, class and text, then facts outside of the text, such as host and rank from the
// prefix of the line, and the exception and innermost frame of a traceback.
func eventOf(d *digest.Event) Event {
	e := events.Again(d.Form, events.Class(d.Class), d.Text)
	e.Time, e.Own = d.Time, d.Own
	if d.Host != "" {
		e.Host = d.Host
	}
	if d.PID != 0 {
		e.PID = d.PID
	}
	if d.Rank.OK {
		e.Rank = d.Rank.N
	}
	if d.Local.OK {
		e.Local = d.Local.N
	}
	e.Exception = d.ExceptionType
	if e.Exception != "" {
		e.What = d.ExceptionMessage
	}
	e.Last = events.Frame{File: d.CodeFile, Line: d.CodeLine.Or(0), Func: d.CodeFunction}
	return Event{Event: e, At: d.At}
}
