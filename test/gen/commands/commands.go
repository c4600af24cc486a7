// Package commands has the commands of bin/gen, which write logs in the originals' formats from a seeded simulation, and the exact ground truth: verl with
// TransferQueue (TQ-TRACE and TQ-DETAIL lines of verl/utils/transferqueue_utils.py @c55ddc26), training logs of several formats, the log of a client of RPCs
// over ZeroMQ, logs about collectives, and the messages of agents about them. Each domain is a package, which documents its simulation.
package commands

import (
	"github.com/spf13/cobra"

	"github.com/trainbridge/trainbridge/test/gen/nccl"
	"github.com/trainbridge/trainbridge/test/gen/tq"
	"github.com/trainbridge/trainbridge/test/gen/train"
	"github.com/trainbridge/trainbridge/test/gen/zmq"
)

// domains make the commands. To add a domain, add its line.
var domains = []func() []*cobra.Command{tq.Commands, train.Commands, zmq.Commands, nccl.Commands}

// New is `gen`.
func New() *cobra.Command {
	cmd := &cobra.Command{Use: "gen", Short: "Generate seeded, realistic logs with their exact ground truth"}
	for _, domain := range domains {
		cmd.AddCommand(domain()...)
	}
	return cmd
}
