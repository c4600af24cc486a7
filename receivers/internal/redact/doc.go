// Package redact takes secrets, and where asked the names of hosts, out of what leaves a file receiver: the finished spans and points, just before
// they are handed on, and the samples of lines in the collector's own log. Ids and joins are made before that, of the original texts.
package redact
