package report

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/outfile"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// text is the report for people: the first screen, or all.
type text struct {
	format.Request
	jobs *digest.Jobs
}

func newText(req format.Request) format.Writer { return &text{Request: req, jobs: digest.New()} }

// Sink implements format.Writer.
func (t *text) Sink() offline.Sink { return format.Digest(t.jobs) }

// Finish implements format.Writer. Jobs of which there is nothing, or nothing between --since and --until, are left out.
func (t *text) Finish(_ context.Context, read *offline.Reading) error {
	p := &page{w: t.Out, width: t.Width, colours: t.Colours, chinese: t.Chinese, steady: t.Steady}
	jobs := slices.DeleteFunc(format.Jobs(t.jobs, read), func(j *digest.Job) bool { return j.Spans == 0 && len(j.GPUs())+len(j.Units()) == 0 })
	if len(jobs) == 0 {
		p.line(t.Nothing())
	}
	if !t.Full {
		p.brief(jobs, read)
		return p.err
	}
	for i, job := range jobs {
		if i > 0 {
			p.blank()
		}
		p.job(job, read)
	}
	p.unread(read)
	return p.err
}

// job writes the report of a job: the conclusion, then the figures of each domain.
func (p *page) job(job *digest.Job, read *offline.Reading) {
	dir := directory(files(job, read), read)
	p.title(p.jobTitle(job, read, dir))
	c := conclude(p, job, read)
	c.print(dir)
	c.accounting()
	p.windows(job)
	p.training(job)
	p.queue(job)
	p.calls(job, read, dir)
	p.collectives(job)
	p.gpus(job)
	if !job.Exact() {
		p.blank()
		p.paragraph("", p.sf("Where there are very many values, medians and percentiles are within %s; all other figures are exact.",
			"值的数量极多时，其中位数与百分位数的误差在 %s 以内；其余数值均为精确值。", human.Percent(digest.QuantileError)))
	}
}

// files of a job.
func files(job *digest.Job, read *offline.Reading) []string {
	return read.FilesOf(job.Run)
}

// directory is the lowest directory with all of the files, with a slash at its end: printed names leave it out. "": there is no file, or a file has another
// name than its path, as the standard input has.
func directory(files []string, read *offline.Reading) string {
	dir := ""
	for i, path := range files {
		if f := read.File(path); f != nil && f.Name != path {
			return ""
		}
		of := filepath.Dir(path) + string(filepath.Separator)
		if i == 0 {
			dir = of
		}
		for !strings.HasPrefix(of, dir) { // go up
			dir = filepath.Dir(strings.TrimSuffix(dir, string(filepath.Separator))) + string(filepath.Separator)
			if len(dir) < 2 || dir == "//" { // paths are absolute: the root is reached
				return "/"
			}
		}
	}
	return dir
}

// jobTitle is "Run run-1: 1,200 lines in 8 files of /data/job".
func (p *page) jobTitle(job *digest.Job, read *offline.Reading, dir string) string {
	lines, of := int64(0), files(job, read)
	for _, path := range of {
		if f := read.File(path); f != nil {
			lines += f.Lines
		}
	}
	title := p.sf("Run %s", "运行 %s", name(job.Run))
	if len(of) > 0 {
		title += p.sf(": %s in %s of %s", "：%[3]s，%[2]s，共 %[1]s",
			p.in(human.Plural(lines, "line"), human.Thousands(lines)+" 行"), p.in(human.Plural(len(of), "file"), human.Thousands(len(of))+" 个文件"), p.source(dir))
	}
	return title
}

// source is where logs come from, by their directory.
func (p *page) source(dir string) string {
	switch dir {
	case "":
		return p.in("the standard input", "标准输入")
	case string(filepath.Separator):
		return dir
	}
	return reading.Clean(strings.TrimSuffix(dir, string(filepath.Separator)))
}

// unread writes a table of the files that were not read (binary, empty, unreadable, or of unknown format), and a table of the rejected lines by reason, ten
// rows of each.
func (p *page) unread(read *offline.Reading) {
	const most = 10
	var foreign, rejected [][]string
	var all []string
	for _, f := range read.Files {
		all = append(all, f.Path)
	}
	dir := directory(all, read)
	for _, f := range read.Files {
		called := name(strings.TrimPrefix(f.Name, dir))
		switch f.Unread() {
		case offline.UnreadBinary:
			foreign = append(foreign, []string{called, p.in("binary", "二进制")})
		case offline.UnreadEmpty:
			foreign = append(foreign, []string{called, p.in("empty", "空")})
		case offline.UnreadClosed:
			why := outfile.Reason(f.Err).Error()
			foreign = append(foreign, []string{called, p.in("cannot be read: "+why, "无法读取："+why)})
		case offline.UnreadUnknown:
			foreign = append(foreign, []string{called, p.in("no format that is known", "格式未知")})
		}
		for _, reason := range sortedKeys(f.Rejected) {
			r := f.Rejected[reason]
			rejected = append(rejected, []string{called, reason, human.Thousands(r.Lines), human.Thousands(r.Line)})
		}
	}
	table := func(title string, text int, head []string, rows [][]string) {
		if len(rows) == 0 {
			return
		}
		p.head(title)
		p.table(text, head, rows[:min(len(rows), most)])
		if n := len(rows) - most; n > 0 {
			p.line(p.sf("  and %s more", "  另有 %s 项", human.Thousands(n)))
		}
	}
	table(p.in("Files that were not read (trainbridge check says more)", "未读取的文件（详见 trainbridge check）"), 2,
		[]string{p.in("file", "文件"), p.in("why", "原因")}, foreign)
	table(p.in("Lines that were not understood (trainbridge check says more)", "无法理解的行（详见 trainbridge check）"), 2,
		[]string{p.in("file", "文件"), p.in("why", "原因"), p.in("lines", "行数"), p.in("first line", "首行")}, rejected)
}
