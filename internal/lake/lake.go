// Package lake keeps what reports and gateways say of all runs as tables of Parquet files:
// LAKE/<table>/day=YYYY-MM-DD/run=<run>/part-0.parquet, as Hive partitions tables.
// The columns are those of package records. day is the day, in UTC, on which the run began. The files of a run hold the whole of the run: a later writing of
// the run replaces them.
package lake

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// SchemaVersion is in the metadata of each file, and in the column schema_version. It goes up when a column goes away or means something else, not with new
// columns or tables.
const SchemaVersion = 1

// VersionKey names the version in the metadata of files.
const VersionKey = "schema_version"

// The table with a row per run, and the file of each run in each table.
const (
	RunsTable = "runs"
	FileName  = "part-0.parquet"
)

// Tables are the tables of a lake. runs comes last: a run that stands in runs stands in the others.
var Tables = []string{"steps", "breakdowns", "causes", "collectives", "lateness", "verdicts", "events", RunsTable}

// mostName bounds the name of a directory: file systems allow 255 bytes.
const mostName = 200

// noRun is Hive's name for the partition of no value.
const noRun = "__HIVE_DEFAULT_PARTITION__"

// PathOf is the file of a run in a table.
func PathOf(lake, table, day, run string) string {
	return filepath.Join(lake, table, day, run, FileName)
}

func dayName(t time.Time) string { return "day=" + t.UTC().Format(time.DateOnly) }

// RunName is the directory of a run. Like Hive and Spark it writes percent signs for what no path takes; a longer name is cut, with a hash of the whole.
func RunName(run string) string {
	if run == "" {
		return "run=" + noRun
	}
	var name strings.Builder
	for _, c := range []byte(run) {
		if c <= ' ' || c == 0x7f || strings.IndexByte(`"#%'*/:=?\{}[]^`, c) >= 0 {
			fmt.Fprintf(&name, "%%%02X", c)
		} else {
			name.WriteByte(c)
		}
	}
	text := name.String()
	if len(text) > mostName {
		hash := sha256.Sum256([]byte(run))
		text = fmt.Sprintf("%s-%x", strings.ToValidUTF8(text[:mostName], ""), hash[:8])
	}
	return "run=" + text
}

// Has says whether a lake has a run, by the name of the run's directory.
func Has(lake, runName string) bool {
	found, _ := filepath.Glob(filepath.Join(lake, RunsTable, "day=*", runName, FileName)) // names of runs have no character of a pattern
	return len(found) > 0
}
