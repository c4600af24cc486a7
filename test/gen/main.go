// Gen writes logs of which the truth is known, for the tests and the benchmark: see package commands. `make gen` builds it. The logs of a whole job are written
// by `trainbridge gen run`.
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
	if err != nil { // cobra has printed it
		os.Exit(1)
	}
}
