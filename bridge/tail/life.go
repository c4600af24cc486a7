package tail

// life is where a file stands between being met and being forgotten.
type life uint8

const (
	lifeUnread   life = iota // it has, or may have, something to read
	lifeRead                 // read to its end; a compressed file is opened again only when it changes
	lifeCut                  // found cut or rewritten: the sweeper decides what happens next
	lifeMissing              // from a checkpoint: the sweeper still looks for the file, and later files of the stream wait
	lifeRetired              // read, accepted and closed; remembered so that it is not read again
	lifeVanished             // retired, and not seen by the last full scan
	lifeDead                 // nothing more can be read from it
	lives
)

// becomes lists the lives that can follow each life.
var becomes = [lives][]life{
	lifeUnread:   {lifeRead, lifeCut, lifeMissing, lifeRetired, lifeDead},
	lifeRead:     {lifeUnread, lifeCut, lifeRetired, lifeDead},
	lifeCut:      {lifeUnread, lifeDead}, // unread: the rest is read in the copy that was made before
	lifeMissing:  {lifeUnread, lifeDead},
	lifeRetired:  {lifeUnread, lifeRead, lifeVanished}, // read: its path names it again
	lifeVanished: {lifeUnread, lifeRead, lifeRetired},
	lifeDead:     nil,
}

func (l life) String() string {
	return [lives]string{"unread", "read", "cut", "missing", "retired", "vanished", "dead"}[l]
}

// onImpossible is told of a turn that becomes does not list. The tests panic; a running collector goes on.
var onImpossible = func(*file, life) {}

// turn begins the next life of a file. The caller holds the stream's lock.
func (f *file) turn(to life) {
	if f.life == to {
		return
	}
	possible := false
	for _, l := range becomes[f.life] {
		possible = possible || l == to
	}
	if !possible {
		onImpossible(f, to)
	}
	f.life = to
}

// isRetired says that the file is done with but for being remembered.
func (f *file) isRetired() bool { return f.life == lifeRetired || f.life == lifeVanished }

// isComplete says that nothing comes any more: a compressed file is written once.
func (f *file) isComplete() bool { return f.compressed && f.life == lifeRead }
