package report

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/cause"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/trainers"
	"github.com/trainbridge/trainbridge/spans"
)

// trainer is the format (spans.AttrSource) of the training log with the most records, such as "megatron"; "": there is no training log.
func (c *conclusion) trainer() (name string) {
	most := int64(0)
	for _, l := range c.job.Steps.Rows() {
		if l.Records > most {
			name, most = l.Name, l.Records
		}
	}
	return name
}

// alone says whether the job is known to have a single rank: nobody waits for another.
func (c *conclusion) alone() bool {
	world := int64(0)
	for _, l := range c.job.Steps.Rows() {
		world = max(world, l.World)
	}
	return world == 1
}

// reasons say why the logs do not explain a cost of the part unattributed, the dearest first, each with its seconds if there are several: "3.1 s: …; 1.2 s: …";
// "": unknown.
func (c *conclusion) reasons(of *digest.Cost) string {
	var texts []string
	list := of.Reasons()
	for _, r := range list {
		text := string(cause.Reason{Of: name(r.Of), Trainer: c.trainer(), Apart: r.Apart}.Append(nil, c.chinese))
		if text == "" {
			continue
		}
		if len(list) > 1 {
			text = c.sf("%s: %s", "%s：%s", human.Seconds(r.Time.Sum()), text)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, c.in("; ", "；"))
}

// capital begins a sentence.
func (*conclusion) capital(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return strings.ToUpper(string(r)) + text[size:]
}

// unexplained is the time of slow windows without an explanation, s, and why.
func (c *conclusion) unexplained() (seconds float64, reasons string) {
	for _, of := range c.window.Costs() {
		if of.Part == spans.PartUnattributed {
			seconds += of.Time.Sum()
			reasons = c.reasons(of)
		}
	}
	return seconds, reasons
}

// advice is what to do about a part of the time that took longer. For loading data and checkpoints the trainer's own settings are named.
func (c *conclusion) advice(part string) string {
	text := c.of(adviceOf(part))
	flags, of := trainers.FlagsOf(c.trainer()), ""
	switch part {
	case spans.PartDataLoading:
		of = flags.Loading
	case spans.PartCheckpoint:
		of = flags.Checkpoint
	}
	if of != "" {
		text += c.sf(" Here: %s.", "此处为：%s。", of)
	}
	return text
}

// zones adds a claim for each group of the job's logs whose times are off by a time zone: by how much, and the flags that correct them. The spans of such logs
// were joined with no step.
func (c *conclusion) zones() {
	if c.read == nil {
		return
	}
	for _, s := range c.read.Shifts {
		if s.Run != c.job.Run {
			continue
		}
		var names, flags []string
		for _, f := range s.Files {
			names = append(names, name(filepath.Base(f.Path)))
			flags = append(flags, fmt.Sprintf("--timezone '%s=%s'", name(filepath.Base(f.Path)), s.Zone))
		}
		ahead, which := human.Seconds(max(s.Ahead, -s.Ahead).Seconds()), c.in("ahead of", "晚")
		if s.Ahead < 0 {
			which = c.in("behind", "早")
		}
		c.claims = append(c.claims, claim{
			what: c.sf(
				"%s is %s %s the other logs and states no time zone, so slow steps were not explained", "%s 的时间比其他日志%[3]s %[2]s，且未写时区：无法找出各步变慢的原因",
				strings.Join(names, ", "), ahead, which,
			),
			cost: math.NaN(), grade: remark, advice: c.sf("Add %s.", "请加上 %s 重新读取。", strings.Join(flags, " ")),
		})
	}
}
