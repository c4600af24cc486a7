package html

import (
	"fmt"
	"maps"
	"slices"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/outfile"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// verdicts is a table of all verdicts, with the worst instance of each.
func (c *composer) verdicts(j *digest.Job) section {
	s := section{Title: c.t("Verdicts", "判定")}
	out := &table{
		head: head{Kind: "table"},
		Head: []string{c.t("verdict", "判定"), c.t("severity", "严重程度"), c.t("times", "次数"), c.t("the worst", "最严重的一次")},
		Text: []bool{true, true, false, true},
	}
	for _, f := range j.Verdicts.Rows() {
		worst := ""
		if len(f.Worst) > 0 {
			worst = f.Worst[0].Of.Reason
		}
		out.Cells = append(out.Cells, []string{f.Title(), f.Severity, human.Thousands(f.Count), worst})
	}
	s.add(out)
	return s
}

// files is a table of the first thousand files: how each was read, and how many lines were records, ignored or rejected, and why.
func (c *composer) files(read *offline.Reading) section {
	s := section{Title: c.t("Files", "文件")}
	out := &table{
		head: head{Kind: "table"},
		Head: []string{
			c.t("file", "文件"), c.t("read as", "识别为"), c.t("size", "大小"), c.t("lines", "行"), c.t("records", "记录"), c.t("ignored", "忽略"),
			c.t("rejected", "拒绝"), c.t("why", "原因"),
		},
		Text: []bool{true, true, false, false, false, false, false, true},
	}
	lines := func(m map[string]*offline.Reason) (n int64) {
		for _, r := range m {
			n += r.Lines
		}
		return n
	}
	for _, f := range read.Files[:min(len(read.Files), 1000)] {
		as, why := f.Readers(), ""
		switch f.Unread() {
		case offline.UnreadBinary:
			as = c.t("binary", "二进制")
		case offline.UnreadEmpty:
			as = c.t("empty", "空")
		case offline.UnreadClosed:
			as, why = c.t("cannot be read", "无法读取"), outfile.Reason(f.Err).Error()
		case offline.UnreadUnknown:
			as = c.t("not understood", "未识别")
		}
		for _, reason := range slices.Sorted(maps.Keys(f.Rejected)) {
			r := f.Rejected[reason]
			why = joined(why, fmt.Sprintf(c.t("%s× %s, first in line %d", "%s× %s，首见于第 %d 行"), human.Thousands(r.Lines), reason, r.Line))
		}
		out.Cells = append(out.Cells, []string{
			f.Name, as, human.Bytes(float64(f.Size)), human.Thousands(f.Lines), human.Thousands(f.Records),
			human.Thousands(lines(f.Ignored)), human.Thousands(lines(f.Rejected)), why,
		})
	}
	if more := len(read.Files) - len(out.Cells); more > 0 {
		out.Note = fmt.Sprintf(c.t("%d more files.", "另有 %d 个文件。"), more)
	}
	s.add(out)
	return s
}
