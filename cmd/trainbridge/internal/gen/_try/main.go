package main
import ("context";"os";"os/signal";"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen")
func main(){ c:=gen.NewCommand(); c.SetArgs(os.Args[1:]); ctx,_:=signal.NotifyContext(context.Background(),os.Interrupt); if c.ExecuteContext(ctx)!=nil{os.Exit(1)} }
