package report

import (
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/test/sim"
)

var (
	simSeeds = flag.Int("sim.seeds", 1, "how many jobs of each kind TestSimulated simulates")
	simKeep  = flag.String("sim.keep", "", "a directory that keeps the logs of TestSimulated")
)

// checks are statements about a job that can be false.
const (
	checkRead     = "read"     // all lines are accounted for, and none is rejected
	checkFound    = "found"    // slow steps are called slow
	checkFalse    = "false"    // others are not
	checkCause    = "cause"    // the first cause of a slow step is true
	checkBlame    = "blame"    // no rank and no host is named but the true rank and host
	checkAccount  = "account"  // the time in each state, attempts, goodput
	checkDevices  = "devices"  // times the ranks of the job
	checkSentence = "sentence" // the conclusion
)

// notYet are checks that jobs do not pass yet, by the name of the scenario.
var notYet = map[string]string{}

// job1 is the report's statements about a job.
type job1 struct {
	Conclusion, Severity string
	Account              *account1
	Claims               []struct{ Text, Advice string }
	Untold               []string
	End                  struct{ Kind, Sentence string }
}

// account1 is the account.
type account1 struct {
	WallS    float64            `json:"wall_s"`
	States   map[string]float64 `json:"states"`
	Devices  map[string]float64 `json:"device_states"`
	Goodput  float64            `json:"goodput"`
	Attempts []struct {
		First, Last   int64
		Steps, Redone int
	}
}

// answer is the report's statements about all logs.
type answer struct {
	Files []struct {
		File              string
		Lines, Records    int
		Ignored, Rejected map[string]struct{ Lines int }
		Receiver          string
		Binary            bool
	}
	Jobs []job1
	// accounts are the rows of runs.csv
	accounts []map[string]string
	slow     map[int64]bool
	// causes of slow steps, the largest first
	causes map[int64][]sim.Slow
}

// ask runs the report.
func ask(t *testing.T, dir string, flags []string) (*answer, error) {
	t.Helper()
	text, err := report(t, "", append(flags, dir, "--format", "json")...)
	if err != nil {
		return nil, err
	}
	a := &answer{slow: map[int64]bool{}, causes: map[int64][]sim.Slow{}}
	require.NoError(t, json.Unmarshal([]byte(text), a))
	tables := t.TempDir()
	_, err = report(t, "", append(flags, dir, "--format", "csv", "-o", tables)...)
	require.NoError(t, err)
	for _, row := range tableOf(t, filepath.Join(tables, "verdicts.csv")) {
		if n, err := strconv.ParseInt(row["iteration"], 10, 64); err == nil && row["verdict"] == "step_slow" {
			a.slow[n] = true
		}
	}
	a.accounts = tableOf(t, filepath.Join(tables, "runs.csv"))
	for _, row := range tableOf(t, filepath.Join(tables, "causes.csv")) {
		n, err := strconv.ParseInt(row["iteration"], 10, 64)
		if err != nil || row["window"] != "step" {
			continue
		}
		c := sim.Slow{Iteration: n, Part: row["part"], Rank: -1, Host: row["host"]}
		if rank, err := strconv.Atoi(row["rank"]); err == nil {
			c.Rank = rank
		}
		c.Extra, _ = strconv.ParseFloat(row["time_s"], 64)
		c.Devices, _ = strconv.ParseFloat(row["device_time_s"], 64)
		a.causes[n] = append(a.causes[n], c)
	}
	return a, nil
}

// tableOf reads a table.
func tableOf(t *testing.T, file string) (out []map[string]string) {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	for _, row := range rows[1:] {
		one := map[string]string{}
		for i, cell := range row {
			one[rows[0][i]] = cell
		}
		out = append(out, one)
	}
	return out
}

// score is how a report holds against the truth. Wrong has the errors by check.
type score struct {
	jobs, slow, found, known, right, blamed, spurious int
	wrong                                             map[string][]string
}

func (s *score) fail(check, format string, args ...any) {
	s.wrong[check] = append(s.wrong[check], fmt.Sprintf(format, args...))
}

func (s *score) add(o *score) {
	s.jobs, s.slow, s.found, s.known, s.right = s.jobs+o.jobs, s.slow+o.slow, s.found+o.found, s.known+o.known, s.right+o.right
	s.blamed, s.spurious = s.blamed+o.blamed, s.spurious+o.spurious
	for check, texts := range o.wrong {
		s.wrong[check] = append(s.wrong[check], texts...)
	}
}

// The least shares of found slow steps, and of found steps with the true cause first.
const leastFound, leastRight = 0.98, 0.95

// settle accepts scores within the shares, and an error in a scenario of few: printScores holds the sums of all against the shares.
func (s *score) settle(t *testing.T) {
	t.Helper()
	for check, enough := range map[string]bool{
		checkFound: float64(s.found) >= min(leastFound*float64(s.slow), float64(s.slow-1)),
		checkCause: float64(s.right) >= min(leastRight*float64(s.known), float64(s.known-1)),
	} {
		if enough && s.wrong[check] != nil {
			t.Logf("%s: %s", check, strings.Join(s.wrong[check], "\n"))
			delete(s.wrong, check)
		}
	}
}

// judge holds a report against the truth.
func judge(scenario sim.Scenario, truth *sim.Truth, a *answer) *score {
	s := &score{jobs: 1, wrong: map[string][]string{}}
	s.files(a)
	s.steps(truth, a)
	if len(a.Jobs) != 1 {
		s.fail(checkAccount, "%d jobs, of one", len(a.Jobs))
		s.fail(checkSentence, "%d jobs, of one", len(a.Jobs))
		return s
	}
	s.account(truth, &a.Jobs[0])
	s.accountRow(a.Jobs[0].Account, a.accounts)
	if s.found == s.slow { // else the sentence counts the found steps
		s.sentence(truth, strings.TrimPrefix(a.Jobs[0].Conclusion, a.Jobs[0].End.Sentence))
	}
	s.severity(truth, scenario.Kind, &a.Jobs[0])
	s.somewhere(truth, &a.Jobs[0])
	return s
}

func (s *score) files(a *answer) {
	for _, f := range a.Files {
		lines, rejected := f.Records, 0
		for _, r := range f.Ignored {
			lines += r.Lines
		}
		for _, r := range f.Rejected {
			rejected += r.Lines
		}
		if lines+rejected != f.Lines || rejected > 0 || f.Records == 0 {
			s.fail(checkRead, "%s: %d lines, %d records, %d rejected, %d accounted for", filepath.Base(f.File), f.Lines, f.Records, rejected, lines)
		}
	}
}

// steps holds the slow steps and their causes against the truth.
func (s *score) steps(truth *sim.Truth, a *answer) {
	were := map[int64]sim.Slow{}
	for _, is := range truth.Slow {
		were[is.Iteration] = is
		s.slow++
		if !a.slow[is.Iteration] {
			s.fail(checkFound, "step %d is not found, %.3g s longer", is.Iteration, is.Extra)
			continue
		}
		s.found++
		s.known++
		first := sim.Slow{Rank: -1}
		if causes := a.causes[is.Iteration]; len(causes) > 0 {
			first = causes[0]
		}
		switch {
		case alike(is.Part, first.Part) && (is.Rank < 0 || first.Rank == is.Rank && first.Host == is.Host), is.Untold && alike("", first.Part):
			s.right++
		default:
			s.fail(checkCause, "step %d: %s of rank %d on %q, not %s of rank %d on %q", is.Iteration, first.Part, first.Rank, first.Host, is.Part, is.Rank, is.Host)
		}
		if ranks := is.Devices / is.Extra; is.Devices > 0 && math.Abs(first.Devices-ranks*first.Extra) > 1e-6*first.Devices {
			s.fail(checkDevices, "step %d: %.3f GPU-seconds of %.3f s, not of %g ranks", is.Iteration, first.Devices, first.Extra, ranks)
		}
	}
	for n := range a.slow {
		if _, ok := were[n]; !ok && !truth.Open[n] {
			s.spurious++
			s.fail(checkFalse, "step %d is called slow", n)
		}
	}
	for n, causes := range a.causes {
		for _, c := range causes {
			is, ok := were[n]
			if !ok {
				is = sim.Slow{Rank: truth.Rank, Host: truth.Host}
			}
			if c.Rank >= 0 && c.Rank != is.Rank && (is.Rank >= 0 || c.Host == "" || c.Host != is.Host) || c.Host != "" && c.Host != is.Host {
				s.blamed++
				s.fail(checkBlame, "step %d: rank %d on %q is blamed, not rank %d on %q", n, c.Rank, c.Host, is.Rank, is.Host)
			}
		}
	}
}

// alike says whether a part has its name, or the name of the part in all trainers.
func alike(is, called string) bool {
	switch is {
	case "":
		return called == "" || called == "unattributed"
	case "data_time", "batch-generator":
		return called == "data_loading" || strings.Contains(called, is)
	case "forward-compute":
		return called == "compute" || strings.Contains(called, is)
	case "collective.wait", "collective":
		return called == is
	}
	return strings.Contains(called, is)
}

// account holds the account against the truth: 1 s of each state, attempts, goodput.
func (s *score) account(truth *sim.Truth, j *job1) {
	a := j.Account
	if truth.Wall == 0 {
		return
	}
	if a == nil {
		s.fail(checkAccount, "there is none")
		return
	}
	left, sum := maps.Clone(a.States), 0.0
	for _, took := range a.States {
		sum += took
	}
	if math.Abs(sum-a.WallS) > 1 || math.Abs(a.WallS-truth.Wall) > 1 {
		s.fail(checkAccount, "the states have %.2f s, the wall %.2f s, not %.2f s", sum, a.WallS, truth.Wall)
	}
	for state, is := range truth.States {
		took := 0.0
		for one := range strings.SplitSeq(state, "+") {
			took += left[one]
			delete(left, one)
		}
		if math.Abs(took-is) > 1 {
			s.fail(checkAccount, "%s has %.2f s, not %.2f s", state, took, is)
		}
	}
	for state, is := range truth.Devices {
		if ranks := is / truth.States[state]; math.Abs(a.Devices[state]-is) > ranks+0.01*is {
			s.fail(checkDevices, "%s has %.1f GPU-seconds, not %.1f", state, a.Devices[state], is)
		}
	}
	for state, took := range left {
		if took > 1 {
			s.fail(checkAccount, "%s has %.2f s, not 0 s", state, took)
		}
	}
	var attempts []sim.Attempt
	for _, one := range a.Attempts {
		attempts = append(attempts, sim.Attempt(one))
	}
	if !slices.Equal(attempts, truth.Attempts) {
		s.fail(checkAccount, "attempts %v, not %v", attempts, truth.Attempts)
	}
	if truth.Goodput > 0 && math.Abs(a.Goodput-truth.Goodput) > 0.02 {
		s.fail(checkAccount, "a goodput of %.3f, not %.3f", a.Goodput, truth.Goodput)
	}
}

// accountRow holds the table of accounts against the JSON report.
func (s *score) accountRow(a *account1, rows []map[string]string) {
	if a == nil && len(rows) == 0 {
		return
	}
	if a == nil || len(rows) != 1 {
		s.fail(checkAccount, "%d rows of accounts", len(rows))
		return
	}
	for state, is := range a.States {
		if x, err := strconv.ParseFloat(rows[0][state+"_s"], 64); err != nil || math.Abs(x-is) > 1e-6 {
			s.fail(checkAccount, "runs.csv has %s s of %s, not %.6f s", rows[0][state+"_s"], state, is)
		}
	}
}

// sentence holds the conclusion against the truth.
func (s *score) sentence(truth *sim.Truth, text string) {
	for _, must := range truth.Must {
		if !regexp.MustCompile(must).MatchString(text) {
			s.fail(checkSentence, "has no %s: %s", must, text)
		}
	}
	for _, never := range truth.Never {
		if regexp.MustCompile(never).MatchString(text) {
			s.fail(checkSentence, "has %s: %s", never, text)
		}
	}
	said := durations(text)
	if len(truth.Lost) > 0 && !slices.ContainsFunc(said, func(x float64) bool {
		return slices.ContainsFunc(truth.Lost, func(is float64) bool { return math.Abs(x-is) <= 0.05*is })
	}) {
		s.fail(checkSentence, "says %.4g s, not %.4g s: %s", said, truth.Lost, text)
	}
	for _, m := range ranked.FindAllStringSubmatch(lasting.ReplaceAllString(text, ""), -1) {
		if rank, _ := strconv.Atoi(m[1]); rank != truth.Rank && (truth.Rank >= 0 || truth.Host == "" || m[2] != truth.Host) {
			s.blamed++
			s.fail(checkBlame, "rank %d is named, not rank %d: %s", rank, truth.Rank, text)
		}
	}
}

// severity holds the colour against the loss: a job without a loss is good if its log has data loading, and never bad.
func (s *score) severity(truth *sim.Truth, kind sim.Kind, j *job1) {
	quiet := j.End.Kind != "cuda_error" && kind != sim.Drifting && truth.Share == 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(truth.States)), func(state string) bool {
		return strings.Contains(state, sim.StartUp)
	})
	if truth.Share >= 0.06 && j.Severity != "bad" || quiet && (j.Severity == "bad" || truth.Parts && j.Severity != "good") {
		s.fail(checkSentence, "%s, where %.1f %% are lost: %s", j.Severity, 100*truth.Share, j.Conclusion)
	}
}

// somewhere searches the report of the job at any place.
func (s *score) somewhere(truth *sim.Truth, j *job1) {
	texts := append([]string{j.Conclusion}, j.Untold...)
	for _, c := range j.Claims {
		texts = append(texts, c.Text, c.Advice)
	}
	text := strings.Join(texts, "\n")
	for _, must := range truth.Somewhere {
		if !regexp.MustCompile(must).MatchString(text) {
			s.fail(checkSentence, "%s is nowhere in %s", must, text)
		}
	}
}

var (
	lasting = regexp.MustCompile(`([\d,]+(?:\.\d+)?) (ns|µs|ms|s|min|h|GPU-seconds)\b(?: (\d+) (s|min)\b)?`)
	ranked  = regexp.MustCompile(`rank (\d+)(?: on ([\w-]+))?`)
)

// durations are the times in a text, s.
func durations(text string) (out []float64) {
	units := map[string]float64{"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "GPU-seconds": 1, "": 0}
	for _, m := range lasting.FindAllStringSubmatch(text, -1) {
		first, _ := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
		second, _ := strconv.ParseFloat(m[3], 64)
		out = append(out, first*units[m[2]]+second*units[m[4]])
	}
	return out
}

// TestSimulated holds reports against the truth of jobs of a simulation that shares nothing with the generator.
func TestSimulated(t *testing.T) {
	scores, lock := map[string]*score{}, sync.Mutex{}
	t.Run("jobs", func(t *testing.T) {
		for _, scenario := range sim.Scenarios() {
			t.Run(scenario.Name, func(t *testing.T) {
				t.Parallel()
				all := &score{wrong: map[string][]string{}}
				for seed := range *simSeeds {
					all.add(simulate(t, scenario, uint64(seed)+1))
				}
				all.settle(t)
				lock.Lock()
				scores[scenario.Name] = all
				lock.Unlock()
				for _, check := range slices.Sorted(maps.Keys(all.wrong)) {
					say := t.Errorf
					if strings.Contains(notYet[scenario.Name], check) {
						say = t.Logf
					}
					texts := all.wrong[check]
					say("%s: %s%s", check, strings.Join(texts[:min(len(texts), 5)], "\n"), map[bool]string{true: fmt.Sprintf("\nand %d more", len(texts)-5)}[len(texts) > 5])
				}
			})
		}
	})
	printScores(t, scores)
}

// simulate is a job.
func simulate(t *testing.T, scenario sim.Scenario, seed uint64) *score {
	t.Helper()
	dir := t.TempDir()
	if *simKeep != "" {
		dir = filepath.Join(*simKeep, regexp.MustCompile(`[^\w.]+`).ReplaceAllString(scenario.Name, "_"), strconv.FormatUint(seed, 10))
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	truth, err := scenario.Write(dir, seed, time.Local)
	require.NoError(t, err)
	a, err := ask(t, dir, truth.Flags)
	if err != nil {
		s := &score{jobs: 1, wrong: map[string][]string{}}
		s.fail(checkRead, "%v", err)
		return s
	}
	return judge(scenario, truth, a)
}

// printScores writes the scores as a table, and holds the sums against the least shares.
func printScores(t *testing.T, scores map[string]*score) {
	t.Helper()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "scenario\tjobs\tslow\tfound\tcause first right\twrong ranks\tfalse slow\tfails")
	sum, held := &score{wrong: map[string][]string{}}, &score{wrong: map[string][]string{}}
	line := func(name string, s *score, fails string) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d of %d\t%d\t%d\t%s\n", name, s.jobs, s.slow, s.found, s.right, s.known, s.blamed, s.spurious, fails)
	}
	for _, scenario := range sim.Scenarios() {
		s := scores[scenario.Name]
		if s == nil { // -run chose others
			continue
		}
		fails := slices.Sorted(maps.Keys(s.wrong))
		for check := range strings.FieldsSeq(notYet[scenario.Name]) {
			if s.wrong[check] == nil {
				fails = append(fails, "("+check+" holds now)")
			}
		}
		line(scenario.Name, s, strings.Join(fails, " "))
		sum.add(s)
		if !strings.Contains(notYet[scenario.Name], checkFound) && !strings.Contains(notYet[scenario.Name], checkCause) {
			held.add(s)
		}
	}
	line("sum", sum, "")
	_ = w.Flush()
	t.Logf("\n%s", b.String())
	if float64(held.found) < leastFound*float64(held.slow) || float64(held.right) < leastRight*float64(held.known) {
		t.Errorf("%d of %d slow steps are found, %d of %d have the true cause first", held.found, held.slow, held.right, held.known)
	}
}
