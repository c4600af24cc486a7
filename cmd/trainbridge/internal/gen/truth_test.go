package gen

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Truth is what a truth file of `gen tq` holds.
type Truth struct {
	Run       Run
	Functions []Function
}

// TrainTruth is what a truth file of the other formats holds.
type TrainTruth struct {
	Run     TrainRun
	Records []TrainRecord
}

// ZMQTruth is what a truth file of `gen zmq` holds.
type ZMQTruth struct {
	Run    ZMQRun
	Passes []ZMQPass
}

// NCCLTruth is what a truth file of `gen nccl` holds.
type NCCLTruth struct {
	Run         NCCLRun
	Collectives []NCCLCollective
}

// ErrTruthUnfinished says that the truth file has no closing line: the generator still runs or was killed.
var ErrTruthUnfinished = errors.New("the truth has no closing run line: the generator still runs or was killed")

func ReadTruth(path string) (*Truth, error) {
	t := &Truth{}
	return t, readTruth(path, &t.Run, &t.Functions)
}

func ReadTrainTruth(path string) (*TrainTruth, error) {
	t := &TrainTruth{}
	return t, readTruth(path, &t.Run, &t.Records)
}

func ReadZMQTruth(path string) (*ZMQTruth, error) {
	t := &ZMQTruth{}
	return t, readTruth(path, &t.Run, &t.Passes)
}

func ReadNCCLTruth(path string) (*NCCLTruth, error) {
	t := &NCCLTruth{}
	return t, readTruth(path, &t.Run, &t.Collectives)
}

// readTruth reads a truth file whole: JSON lines, one record each, then {"run": …}.
func readTruth[R, T any](path string, run *R, records *[]T) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	dec := json.NewDecoder(bufio.NewReaderSize(f, 1<<20))
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", path, ErrTruthUnfinished)
		}
		end := struct {
			Run *R `json:"run"`
		}{}
		var rec T
		if err = errors.Join(err, json.Unmarshal(raw, &end)); err == nil && end.Run == nil {
			err = json.Unmarshal(raw, &rec)
		}
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", path, err)
		case end.Run != nil:
			*run = *end.Run
			return nil
		}
		*records = append(*records, rec)
	}
}
