// Package inotify watches directories with two instances of inotify for the whole process: a user has 128, shared with other programs.
package inotify

// Hints are the places of events since the last call.
type Hints struct {
	Paths map[string]bool // files, and the directories with added or removed files
	All   bool            // anything may have happened anywhere: events were lost
}
