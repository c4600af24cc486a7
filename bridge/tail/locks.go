package tail

// The levels of the locks, outermost first. doc.go lists what each lock guards.
type (
	storing  struct{}
	sweeping struct{}
	freezing struct{}
	sharing  struct{}
	reading  struct{}
	sniffing struct{}
	leaf     struct{}
)

// Level and Under implement lockorder.Level.
func (storing) Level() int  { return 1 }
func (storing) Under() int  { return 0 }
func (sweeping) Level() int { return 2 }
func (sweeping) Under() int { return 0 }
func (freezing) Level() int { return 3 }
func (freezing) Under() int { return 0 }
func (sharing) Level() int  { return 4 }
func (sharing) Under() int  { return 0 }
func (reading) Level() int  { return 5 }
func (reading) Under() int  { return sweeping{}.Level() } // deciding whose a file is leads from stream to stream
func (sniffing) Level() int { return 6 }
func (sniffing) Under() int { return 0 }
func (leaf) Level() int     { return 7 }
func (leaf) Under() int     { return 0 }
