// Package mixed names the kinds of logs that one file may hold: the output of verl's driver has steps of verl between lines of TransferQueue, which Ray
// forwards from the workers. Two receivers read such a file.
package mixed

import (
	"bytes"

	"go.opentelemetry.io/collector/component"
)

// Kind is a kind of log, by its receiver, with a text in each of its records.
type Kind struct {
	Receiver component.Type
	Text     []byte
	May      func(line []byte) bool // reports whether a line with Text may be a record
}

// The kinds. The receiver of TransferQueue is the first to read a file, whichever line comes first.
var (
	TransferQueue = Kind{component.MustNewType("tq_trace"), []byte("[TQ-TRACE]"), func([]byte) bool { return true }}
	Steps         = Kind{component.MustNewType("train_log"), step, isStep}
)

var step = []byte("step:")

// With returns the kind whose records may stand between those of a receiver; nil: none.
func With(receiver component.Type) *Kind {
	switch receiver {
	case TransferQueue.Receiver:
		return &Steps
	case Steps.Receiver:
		return &TransferQueue
	}
	return nil
}

// Mixes reports whether one file may have lines of both receivers.
func Mixes(a, b component.Type) bool {
	k := With(a)
	return k != nil && k.Receiver == b
}

// Maybe reports whether a line may be a record of the kind.
func (k *Kind) Maybe(line []byte) bool { return bytes.Contains(line, k.Text) && k.May(line) }

// isStep reports whether a line may be a step of verl's console logger: "step:12 - actor/loss:0.5 - …" (verl/utils/tracking.py).
func isStep(line []byte) bool {
	_, rest, ok := bytes.Cut(line, step)
	number := bytes.TrimLeft(rest, "0123456789")
	return ok && len(number) < len(rest) && bytes.HasPrefix(number, []byte(" - "))
}
