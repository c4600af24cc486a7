// Gen writes logs with known truth, for the tests and the benchmark: see package commands. `make gen` builds it. `trainbridge gen run` writes the logs of a
// whole job.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/trainbridge/trainbridge/test/gen/commands"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := commands.New().ExecuteContext(ctx)
	stop()
	if err != nil { // cobra has printed the error
		os.Exit(1)
	}
}
