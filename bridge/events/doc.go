// Package events finds in a log the lines about the end of a run: a process that died, a timeout, a kill, and the consequences of these.
//
// One table, Forms, is the vocabulary: a form is a row, with its writer and an example. Claims has the possible conclusions from each class of events. A
// Scanner reads the lines of one log after the prefixes of launchers; a first filter skips lines without any form's text.
package events
