// Package redact removes secrets, and on request the names of hosts, from the output of a file receiver: the finished spans and points, just before they are
// sent, and the samples of lines in the collector's own log. Ids and joins are made before, from the original texts.
package redact
