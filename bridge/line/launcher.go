package line

import (
	"bytes"
	"slices"
	"strconv"
	"time"
)

// The prefixes of launchers, container tools and system logs, all but the last recognized by their shapes alone:
//
//	[pod/train-0/pytorch] text                              kubectl logs --prefix
//	[Pod train-0]: text                                     Kubeflow's get_job_logs
//	[1,0]<stdout>: text                                     mpirun --tag-output; prrte adds a namespace or [host:pid]
//	[Mon Aug  3 09:14:22 2026][1,0]<stdout>: text           and --timestamp-output
//	[1,mpirank:0,algo-1]<stdout>:text                       SageMaker
//	[2026-08-03T09:14:23.8Z] f6114bb3 [rank=1] || INFO: text    Determined
//	trainer-1  | text                                       docker compose
//	trainer.1.x8m0@gpu-01    | text                         docker service logs
//	Aug 03 09:14:23 gpu-01 python3[41233]: text             journalctl, syslog
//	P1 3: text                                              srun --label of a heterogeneous job
//	gpu01: text                                             pdsh, once the log has shown the same word before

// peelLauncher removes a prefix of the list above, after peelOne found nothing. Names before a bar or colon have no blank before them. first: the line's
// beginning, the only place of pdsh's host.
func (pl *Peeler) peelLauncher(b []byte, p *Prefix, first bool) ([]byte, bool) {
	t := b
	for len(t) > 0 && (t[0] == ' ' || t[0] == '\t') {
		t = t[1:]
	}
	if len(t) < 4 {
		return nil, false
	}
	switch c := t[0]; {
	case c == '[':
		return pl.tagged(t, p)
	case c >= 'a' && c <= 'z', c-'0' <= 9:
		if len(t) < len(b) { // an indented word is the record's own
			return nil, false
		}
		if len(t) > 10 && t[10] == '.' { // ten digits of seconds
			if rest, ok := pl.peelUnix(t, p); ok {
				return rest, true
			}
		}
		return pl.peelNamed(t, p, first)
	case c >= 'A' && c <= 'Z':
		return pl.peelDated(t, p)
	}
	return nil, false
}

// tagged reads brackets that hold a pod ("[pod/…]", "[Pod …]"), a trainer's rank on its node ("[trainer3]:"), the host's uptime, or mpirun's tag.
func (pl *Peeler) tagged(b []byte, p *Prefix) ([]byte, bool) {
	in := b[1:]
	switch {
	case in[0] == 'p' && bytes.HasPrefix(in, []byte("pod/")), in[0] == 'P' && bytes.HasPrefix(in, []byte("Pod ")):
		return peelPod(in, p)
	case in[0] == 't' && bytes.HasPrefix(in, []byte("trainer")):
		rest, ok := peelRank(b, in[len("trainer"):], p)
		p.Local = p.Local || ok
		return rest, ok
	case in[0] == ' ' || in[0]-'0' <= 9:
		if rest, ok := peelUptime(in, p); ok {
			return rest, true
		}
	}
	return pl.peelMPI(b, p)
}

// peelPod reads "pod/train-0/pytorch] " (kubectl, pod and container) and "Pod train-0]: " (Kubeflow).
func peelPod(in []byte, p *Prefix) ([]byte, bool) {
	end := bytes.IndexByte(in[:min(len(in), 512)], ']')
	// The name has two bytes at least.
	if end < 6 || end+1 >= len(in) || bytes.IndexByte(in[4:end], ' ') >= 0 {
		return nil, false
	}
	name, container, _ := bytes.Cut(in[4:end], []byte("/"))
	rest := in[end+1:]
	if in[0] == 'P' {
		if rest[0] != ':' {
			return nil, false
		}
		rest = rest[1:]
	} else if len(container) == 0 || rest[0] != ' ' {
		return nil, false
	}
	if p.IP == nil {
		p.IP = name
	}
	return rest, true
}

// peelUptime reads " 5000.523417] gpu-01 python3[41233]: " of journalctl -o short-monotonic.
func peelUptime(in []byte, p *Prefix) ([]byte, bool) {
	in = bytes.TrimLeft(in, " ")
	_, n := digits(in)
	if n == 0 || len(in) < n+9 || in[n] != '.' || !allDigits(in[n+1:n+7]) || in[n+7] != ']' {
		return nil, false
	}
	return peelIdent(in[n+8:], p)
}

var tagEnd = []byte("<std")

// peelMPI reads the tag of mpirun and prterun at the beginning of b, up to its end "<stdout>:": a time, in brackets or without, the rank in brackets, and
// possibly "[host:pid]". The forms stand at the top of the file.
func (pl *Peeler) peelMPI(b []byte, p *Prefix) ([]byte, bool) {
	tag := bytes.Index(b[:min(len(b), 192)], tagEnd)
	if tag < 3 { // "[0]" at least
		return nil, false
	}
	rest := b[tag+len(tagEnd):]
	end := bytes.Index(rest[:min(len(rest), 6)], []byte(">:")) // after "out", "err" or "diag"
	if end < 0 {
		return nil, false
	}
	rest = rest[end+2:]
	var at, rank, host []byte
	for t := b[:tag]; len(t) > 0; {
		if n := ctimeLen(t); n > 0 { // without brackets
			at, t = t[:n], t[n:]
			continue
		}
		end := bytes.IndexByte(t, ']')
		if t[0] != '[' || end < 2 {
			return nil, false
		}
		in := t[1:end]
		t = t[end+1:]
		switch colon := bytes.IndexByte(in, ':'); {
		case ctimeLen(in) == len(in):
			at = in
		case rank == nil:
			rank = in
		case colon > 0 && allDigits(in[colon+1:]):
			host = in[:colon]
		default:
			return nil, false
		}
	}
	if rank != nil && !mpiRank(rank, p) {
		return nil, false
	}
	if host != nil && p.IP == nil {
		p.IP = host
	}
	if at != nil && p.Container == nil {
		p.Container = pl.ctime(at)
	}
	return rest, rank != nil || at != nil
}

// mpiRank reads what is in a tag's brackets, the number of the mpirun job and the rank: "1,0", "0" (a rank alone), "prterun-gpu01-100629@1,0" and, with the
// host, "1,mpirank:0,algo-1".
func mpiRank(in []byte, p *Prefix) bool {
	if i := bytes.IndexByte(in, '@'); i > 0 { // prterun's namespace
		in = in[i+1:]
	}
	job, rank, ok := bytes.Cut(in, []byte(","))
	if !ok {
		job, rank = []byte("1"), in
	}
	var host []byte
	if sageMaker, is := bytes.CutPrefix(rank, []byte("mpirank:")); is {
		rank, host, _ = bytes.Cut(sageMaker, []byte(","))
	}
	number, n := digits(rank)
	if n == 0 || n != len(rank) || len(job) == 0 || !allDigits(job) {
		return false
	}
	p.Rank, p.HasRank = number, true
	if host != nil && p.IP == nil {
		p.IP = host
	}
	return true
}

// peelDetermined reads " f6114bb3 [rank=1] || INFO: " after the time of Determined's master: the id of the container, and the rank and level where the master
// adds them.
func peelDetermined(b []byte, p *Prefix) ([]byte, bool) {
	head := b[:min(len(b), 64)]
	bars := bytes.Index(head, []byte(" || "))
	if bars < 2 || head[0] != ' ' {
		return nil, false
	}
	id, tag, hasRank := bytes.Cut(head[1:bars], []byte(" [rank="))
	if !isName(bytes.TrimRight(id, " ")) {
		return nil, false
	}
	if hasRank {
		rank, n := digits(tag)
		if n == 0 || string(bytes.TrimRight(tag[n:], " ")) != "]" {
			return nil, false
		}
		p.Rank, p.HasRank, p.Local = rank, true, false
	}
	b = b[bars+3:] // Peel takes the blank
	if n := levelLen(b[1:]); n > 0 && len(b) > n+2 && b[n+1] == ':' && b[n+2] == ' ' {
		p.Level, b = b[1:n+1], b[n+2:]
	}
	return b, true
}

// peelIdent reads " gpu-01 python3[41233]: ", after the time in a system log: host, program and process id.
func peelIdent(b []byte, p *Prefix) ([]byte, bool) {
	if len(b) < 6 || b[0] != ' ' {
		return nil, false
	}
	head := b[1:min(len(b), 200)] // host and program are short
	hostEnd := bytes.IndexByte(head, ' ')
	if hostEnd < 1 || !isHost(head[:hostEnd]) {
		return nil, false
	}
	ident := head[hostEnd+1:]
	programEnd := bytes.IndexByte(ident, '[')
	if programEnd < 1 || bytes.IndexByte(ident[:programEnd], ' ') >= 0 {
		return nil, false
	}
	pid, pidLen := digits(ident[programEnd+1:])
	pidEnd := programEnd + 1 + pidLen
	if pidLen == 0 || pidEnd+2 >= len(ident) || string(ident[pidEnd:pidEnd+3]) != "]: " {
		return nil, false
	}
	if p.IP == nil {
		p.IP = head[:hostEnd]
	}
	if p.PID == 0 {
		p.PID = pid
	}
	return b[1+hostEnd+1+pidEnd+2:], true // Peel takes the blank
}

// peelComponent reads "P1 3: " of srun --label, for a heterogeneous job: the number of the component, and the rank.
func peelComponent(b []byte, p *Prefix) ([]byte, bool) {
	_, n := digits(b[1:])
	if n == 0 || n > 3 || len(b) <= n+3 || b[n+1] != ' ' {
		return nil, false
	}
	rank, m := digits(b[n+2:])
	colon := n + 2 + m
	if m == 0 || m > 6 || len(b) <= colon+1 || b[colon] != ':' || b[colon+1] != ' ' {
		return nil, false
	}
	p.Rank, p.HasRank = rank, true
	return b[colon+1:], true
}

// peelDated reads a line that begins with a capital letter: the component of a heterogeneous job, or a time that begins with the name of a month or weekday,
// before the tag of mpirun or of a system log.
func (pl *Peeler) peelDated(b []byte, p *Prefix) ([]byte, bool) {
	if b[0] == 'P' {
		return peelComponent(b, p)
	}
	if len(b) < 20 || b[3] != ' ' {
		return nil, false
	}
	if n := dayLen(b); n > 0 { // "Aug  3 09:14:23 gpu-01 …"
		rest, ok := peelIdent(b[n:], p)
		if ok && p.Container == nil {
			p.Container, p.Yearless = b[:n], true
		}
		return rest, ok
	}
	if !isWeekday(b) {
		return nil, false
	}
	if n := StampLen(b[4:]); n > 0 { // journalctl -o short-full: "Mon 2026-08-03 09:14:23 UTC gpu-01 …"
		stamp, rest := b[4:4+n], b[4+n:]
		zone := bytes.IndexByte(rest[min(len(rest), 1):min(len(rest), 12)], ' ')
		if zone < 1 {
			return nil, false
		}
		utc := string(rest[:1+zone]) == " UTC"
		rest, ok := peelIdent(rest[1+zone:], p)
		if ok && p.Container == nil {
			p.Container = stamp
			if utc { // of a named zone, only UTC can be told to clock.Stamps
				p.Container = append(append(pl.stamp[:0], stamp[:min(n, len(pl.stamp)-1)]...), 'Z')
			}
		}
		return rest, ok
	}
	if ctimeLen(b) > 0 {
		return pl.peelMPI(b, p)
	}
	return nil, false
}

var monthNames = []byte("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec ")

// month returns the number of the month at the beginning of b, 0 if none.
func month(b []byte) int {
	i := bytes.Index(monthNames, b[:4])
	if i < 0 || i%4 != 0 { // each name has four bytes, with the blank
		return 0
	}
	return i/4 + 1
}

// isWeekday reports whether b begins with the name of a weekday and a blank.
func isWeekday(b []byte) bool {
	i := bytes.Index([]byte("Mon Tue Wed Thu Fri Sat Sun "), b[:4])
	return i >= 0 && i%4 == 0
}

// dayLen returns the length of "Aug  3 09:14:23.818029" at the beginning of b, 0 if absent.
func dayLen(b []byte) int {
	if len(b) < 15 || month(b) == 0 || b[4] != ' ' && b[4]-'0' > 3 || b[5]-'0' > 9 || b[6] != ' ' || !isClock(b[7:15]) {
		return 0
	}
	n := 15
	if n+1 < len(b) && b[n] == '.' && b[n+1]-'0' <= 9 {
		for n++; n < len(b) && b[n]-'0' <= 9; n++ {
		}
	}
	return n
}

// isClock reports whether b is a time of day such as "09:14:23".
func isClock(b []byte) bool {
	return b[2] == ':' && b[5] == ':' && allDigits(b[:2]) && allDigits(b[3:5]) && allDigits(b[6:8])
}

// ctimeLen returns the length of "Mon Aug  3 09:14:22 2026" at the beginning of b, 0 if absent.
func ctimeLen(b []byte) int {
	if len(b) < 24 || b[3] != ' ' || !isWeekday(b) || dayLen(b[4:19]) == 0 || b[19] != ' ' || !allDigits(b[20:24]) {
		return 0
	}
	return 24
}

// ctime rewrites "Mon Aug  3 09:14:22 2026" as "2026-08-03 09:14:22", for clock.Stamps.
func (pl *Peeler) ctime(b []byte) []byte {
	out := append(pl.stamp[:0], b[20:24]...)
	out = two(append(out, '-'), month(b[4:]))
	day := 10*int(b[8]&0xf) + int(b[9]-'0') // the blank of "Aug  3" is 0x20, and counts as 0
	out = append(two(append(out, '-'), day), ' ')
	return append(out, b[11:19]...)
}

// two appends a number to b as two digits, and returns the result.
func two(b []byte, n int) []byte { return append(b, byte('0'+n/10%10), byte('0'+n%10)) }

// peelUnix reads "1785748463.046834 gpu-01 python3[41233]: " of journalctl -o short-unix.
func (pl *Peeler) peelUnix(b []byte, p *Prefix) ([]byte, bool) {
	if len(b) < 24 || b[10] != '.' || !allDigits(b[:10]) || !allDigits(b[11:17]) {
		return nil, false
	}
	rest, ok := peelIdent(b[17:], p)
	if ok && p.Container == nil {
		s, err1 := strconv.ParseInt(string(b[:10]), 10, 64)
		us, err2 := strconv.ParseInt(string(b[11:17]), 10, 64)
		if err1 == nil && err2 == nil {
			p.Container = time.Unix(s, us*1000).UTC().AppendFormat(pl.stamp[:0], "2006-01-02T15:04:05.000000Z")
		}
	}
	return rest, ok
}

// behindTime removes prefixes between the time and the text: a system log's host, Loki's labels, a stream of CloudWatch.
func behindTime(rest []byte, p *Prefix) []byte {
	if after, ok := peelIdent(rest, p); ok {
		return after
	}
	if len(rest) > 4 && rest[1] == '{' && rest[2] >= 'a' && rest[2] <= 'z' { // Loki's {app="train",pod="train-0"}
		end := bytes.Index(rest[:min(len(rest), 2048)], []byte(`"} `))
		eq := bytes.Index(rest[:min(len(rest), 64)], []byte(`="`))
		if eq > 0 && end > eq && isName(rest[2:eq]) {
			return rest[end+2:]
		}
	}
	return behindStream(rest)
}

// behindStream removes the stream name printed by aws logs tail: "prefix/algo-1-1785748462", "prefix/container/task". A path in a record looks alike, so only a
// word with a last part of 8 bytes or more, and four digits, is taken for a stream.
func behindStream(rest []byte) []byte {
	end := bytes.IndexByte(rest[min(len(rest), 1):min(len(rest), 256)], ' ') + 1 // of the word after the blank at rest[0]
	if end < 12 || !isHostByte(rest[1]) {
		return rest
	}
	slash := bytes.LastIndexByte(rest[1:end], '/')
	if slash < 1 || end-slash < 10 { // slash counts from rest[1]: the last part has end-slash-2 bytes
		return rest
	}
	numbers := 0 // digits in the word
	for _, c := range rest[1:end] {
		switch {
		case !isHostByte(c) && c != '/' && c != '[' && c != ']' && c != '$':
			return rest
		case c-'0' <= 9:
			numbers++
		}
	}
	if numbers < 4 {
		return rest
	}
	return rest[end:]
}

// peelNamed reads a word that names the origin of the line: a service before a bar ("trainer-1  | text") or, first in the line, a host before a colon
// ("gpu01: text"). The word has a digit: text begins with a word and a colon, too ("warning: …").
func (pl *Peeler) peelNamed(b []byte, p *Prefix, first bool) ([]byte, bool) {
	n, digit, lower := 0, false, false // length of the word; whether a digit or a small letter is in the word
	for ; n < len(b) && n < 128; n++ {
		c := b[n]
		if !isHostByte(c) && c != '@' {
			break
		}
		digit = digit || c <= '9' && c >= '0'
		lower = lower || c >= 'a'
	}
	if n+2 >= len(b) || !digit {
		return nil, false
	}
	word, rest := b[:n], b[n:]
	if rest[0] == ' ' && lower {
		bar := bytes.TrimLeft(rest[:min(len(rest), 128)], " ")
		if len(bar) > 1 && bar[0] == '|' && bar[1] == ' ' && isService(word) {
			return rest[bytes.IndexByte(rest, '|')+1:], true
		}
	}
	colon := rest[0] == ':' && rest[1] == ' '
	mayBeHost := (lower || isAddress(word)) && !ofTraining(word) // capitals and digits alone are a label: "GPU0: …"
	if !first || !colon || !mayBeHost {
		return nil, false
	}
	singleValue := bytes.IndexByte(rest[2:], ' ') < 0
	if !pl.hosts.known(word, singleValue) {
		return nil, false
	}
	if p.IP == nil {
		p.IP = word
	}
	return rest[1:], true
}

// isService reports whether a word is "trainer-1" or "trainer_1" of compose, "x8m0-algo-1-a1b2" of SageMaker's local mode, or "trainer.1.x8m0@gpu-01" of a
// swarm.
func isService(b []byte) bool {
	if bytes.IndexByte(b, '@') > 0 {
		return bytes.Count(b, []byte(".")) >= 2
	}
	if bytes.Contains(b, []byte("algo-")) {
		return true
	}
	i := len(b)
	for i > 0 && b[i-1]-'0' <= 9 {
		i--
	}
	return i < len(b) && i > 1 && (b[i-1] == '-' || b[i-1] == '_') && !ofTraining(b)
}

// ofTraining reports whether a word is a training log's name rather than a host: "epoch1", "val_loss_2", "top5".
func ofTraining(b []byte) bool {
	for _, w := range [...]string{
		"epoch", "step", "iter", "loss", "acc", "top", "fold", "stage", "phase", "batch", "layer", "val", "eval", "test", "lr", "fp", "bf", "rank",
	} {
		if bytes.HasPrefix(b, []byte(w)) {
			return true
		}
	}
	return bytes.Contains(b, []byte("loss"))
}

// isAddress reports whether b may be an IPv4 address: it has three dots.
func isAddress(b []byte) bool { return bytes.Count(b, []byte(".")) == 3 }

// isHostByte reports whether a byte may be part of a host's name.
func isHostByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c == '-' || c == '.' || c == '_'
}

// isHost reports whether a text can be a host's name or address.
func isHost(b []byte) bool {
	for _, c := range b {
		if !isHostByte(c) && c != ':' {
			return false
		}
	}
	return len(b) > 0
}

// hosts are the words before a colon at the beginning of a stream's lines. A word is a host where it came before, and nearly every line begins with a host.
type hosts struct {
	words [64]uint32 // hashes of the first 64 words
	n     int        // how many words there are
	// Of the lines that are evidence, see known: how many there were, and how many began with a word and a colon.
	lines, labelled int
}

// known reports whether a word is a host, and remembers the first 64 words. Before a single value ("top5: 0.93") a word is no evidence, because a table of
// values has such lines, too: the line, which Peel has counted, does not count.
func (h *hosts) known(word []byte, singleValue bool) bool {
	if singleValue {
		h.lines--
	} else {
		h.labelled++
	}
	sum := uint32(2166136261) // FNV-1a
	for _, c := range word {
		sum = (sum ^ uint32(c)) * 16777619
	}
	if slices.Contains(h.words[:h.n], sum) {
		// Nearly every line: beyond two, at most one without a word for eight with a word.
		return 8*(h.lines-h.labelled) <= h.labelled+16
	}
	if h.n < len(h.words) && !singleValue {
		h.words[h.n] = sum
		h.n++
	}
	return false
}
