package offline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Copy is a file whose records are all in another file, Of, which is read in place of it.
type Copy struct {
	Path, Of string // absolute
}

// stateName is the name of the complete log of Hugging Face's Trainer, written to the directory of the run and to each of its checkpoints (transformers,
// trainer.py: TRAINER_STATE_NAME).
const stateName = "trainer_state.json"

// checkpointPattern matches the name of the directory of a checkpoint.
var checkpointPattern = regexp.MustCompile(`^checkpoint-\d+$`)

// mostState bounds the states that are compared, By: a row has some 200.
const mostState = 256 << 20

// dropCopies removes each trainer_state.json whose rows are the first rows of a longer state of the same run from the files to read: a checkpoint has a copy of
// all rows so far.
func (in *Input) dropCopies() {
	states := make(map[string][]string) // by the directory of the run
	for _, f := range in.Files {
		if filepath.Base(f) != stateName {
			continue
		}
		dir := filepath.Dir(f)
		if checkpointPattern.MatchString(filepath.Base(dir)) {
			dir = filepath.Dir(dir)
		}
		states[dir] = append(states[dir], f)
	}
	gone := make(map[string]bool) // the files removed
	for _, files := range states {
		if len(files) < 2 {
			continue
		}
		rows := make(map[string][]json.RawMessage, len(files))
		for _, f := range files {
			rows[f] = rowsOf(f)
		}
		// The longest first; of equals the shorter path, which is the run's own and not a checkpoint's: only the run's own has the summary.
		slices.SortStableFunc(files, func(a, b string) int { return cmp.Or(len(rows[b])-len(rows[a]), len(a)-len(b)) })
		for i, f := range files {
			of := slices.IndexFunc(files[:i], func(longer string) bool { return !gone[longer] && isPrefix(rows[longer], rows[f]) })
			if of < 0 || len(rows[f]) == 0 {
				continue
			}
			gone[f] = true
			in.Copies = append(in.Copies, Copy{f, files[of]})
		}
	}
	in.dropFiles(gone)
}

// dropFiles removes the files in gone from the files to read, subtracts their bytes, and sorts Copies, to which the caller has added the files.
func (in *Input) dropFiles(gone map[string]bool) {
	if len(gone) == 0 {
		return
	}
	slices.SortFunc(in.Copies, func(a, b Copy) int { return strings.Compare(a.Path, b.Path) })
	leave := func(f string) bool { return gone[f] }
	in.Files = slices.DeleteFunc(in.Files, leave)
	for i := range in.roots {
		in.roots[i].files = slices.DeleteFunc(in.roots[i].files, leave)
	}
	for path := range gone {
		if fi, err := os.Stat(path); err == nil {
			in.Bytes -= fi.Size()
		}
	}
}

// rowsOf returns the rows logged in a trainer_state.json, but for the summary at the end of each call of train(): a continued training drops the earlier
// summary. nil: the file is too large, or no state.
func rowsOf(path string) (rows []json.RawMessage) {
	if fi, err := os.Stat(path); err != nil || fi.Size() > mostState {
		return nil
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var s struct {
		History []json.RawMessage `json:"log_history"`
	}
	body = bytes.ReplaceAll(body, []byte("NaN"), []byte("0")) // Python writes NaN, unknown in JSON
	if json.Unmarshal(body, &s) != nil {
		return nil
	}
	return slices.DeleteFunc(s.History, func(row json.RawMessage) bool { return bytes.Contains(row, []byte(`"train_runtime"`)) })
}

// isPrefix reports whether the first rows of all are the rows of some.
func isPrefix(all, some []json.RawMessage) bool {
	return len(all) >= len(some) && slices.EqualFunc(all[:len(some)], some, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}
