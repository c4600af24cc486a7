package tail

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	onImpossible = func(f *file, to life) { panic(fmt.Sprintf("%s: from %v to %v", f.path, f.life, to)) }
	goleak.VerifyTestMain(m)
}
