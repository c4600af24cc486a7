package gen

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen/nccl"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen/run"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen/tq"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen/train"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen/zmq"
)

// UsageError is a command line that asks for something that does not exist.
type UsageError struct{ error }

// domains make the commands of `trainbridge gen`. To add a domain, add its line.
var domains = []func() []*cobra.Command{tq.Commands, train.Commands, zmq.Commands, nccl.Commands, run.Commands}

// NewCommand is `trainbridge gen`.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gen",
		Short: "Generate seeded, realistic logs with their exact ground truth",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &UsageError{fmt.Errorf("there is no generator %q: trainbridge gen -h lists them", args[0])}
			}
			return cmd.Help()
		},
	}
	for _, domain := range domains {
		cmd.AddCommand(domain()...)
	}
	return cmd
}
