package gen

import "github.com/spf13/cobra"

// NewCommand is `trainbridge gen`.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gen",
		Short: "Generate seeded, realistic logs with their exact ground truth",
	}
	cmd.AddCommand(newTQ())
	return cmd
}
