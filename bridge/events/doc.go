// Package events finds in a log the lines that tell how a run ends: what died, who gave up waiting, what was killed, and what only follows from these.
//
// One table, Forms, is the vocabulary: a form is a row, with its writer and an example. What a class of events may claim is Claims. A Scanner reads the
// lines of one log behind the prefixes of launchers; a first filter passes over lines that hold no text of any form.
package events
