// Package lake keeps what reports say of all runs as tables of Parquet files: LAKE/<table>/day=YYYY-MM-DD/run=<run>/part-0.parquet, as Hive partitions tables.
// The columns are those of package records. day is the day, in UTC, on which the run began. The files of a run hold the whole of the run: a later report of the
// run replaces them.
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

// versionKey names the version in the metadata of files.
const versionKey = "schema_version"

const (
	runsTable = "runs"
	fileName  = "part-0.parquet"
)

// tables are the tables of a lake. runs comes last: a run that stands in runs stands in the others.
var tables = []string{"steps", "breakdowns", "causes", "collectives", "lateness", "verdicts", "events", runsTable}

// mostName bounds the name of a directory: file systems allow 255 bytes.
const mostName = 200

// noRun is Hive's name for the partition of no value.
const noRun = "__HIVE_DEFAULT_PARTITION__"

// pathOf is the file of a run in a table.
func pathOf(lake, table, day, run string) string {
	return filepath.Join(lake, table, day, run, fileName)
}

func dayName(t time.Time) string { return "day=" + t.UTC().Format(time.DateOnly) }

// runName is the directory of a run. Like Hive and Spark it writes percent signs for what no path takes; a longer name is cut, with a hash of the whole.
func runName(run string) string {
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
