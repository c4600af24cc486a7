package reading

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// JSON is the name of the format that commands write for programs.
const JSON = "json"

// Choice adds a flag with a fixed set of values, the first by default.
func Choice(cmd *cobra.Command, to *string, flag, usage string, names ...string) {
	*to = names[0]
	cmd.Flags().Var(&choice{to, names}, flag, usage+": "+strings.Join(names, ", "))
}

// choice is a pflag.Value that takes one of some names.
type choice struct {
	value *string
	names []string
}

func (c *choice) String() string { return *c.value }
func (c *choice) Type() string   { return "name" }

func (c *choice) Set(name string) error {
	if !slices.Contains(c.names, name) {
		return fmt.Errorf("use one of %s", strings.Join(c.names, ", "))
	}
	*c.value = name
	return nil
}
