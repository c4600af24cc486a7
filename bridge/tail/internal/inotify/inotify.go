// Package inotify hears what happens in directories, with two instances of inotify for the whole process: a user has 128, and other programs want some too.
package inotify

// Hints say where something happened since they were asked for last.
type Hints struct {
	Paths map[string]bool // files, and the directories of those that came or went
	All   bool            // anything may have happened anywhere: events were lost
}
