// Package tail reads log files line by line and forgets nothing before downstream has accepted it.
//
//	globs → sweeper (assigns files to streams) → ready streams → workers (pread → splitter → Handler.Line) → Handler.Cut → batch
//	      → senders (small batches of many streams joined, with retries) → settle (holes close, budget is returned)
//	      → checkpoint, once a second → storage
//
// A stream is the sequence of files that one path has named, with one Handler. Only the sweeper assigns files to streams and decides when to look at a stream.
// Workers read, and never wait for the consumer. Senders are few, however many files exist (outbox). Batches cut and not yet accepted fill max_in_flight_bytes,
// of which a stream gets at most a quarter, unless records are joint; then reading waits. An idle stream keeps neither handler nor batch (suspend). Held lines
// of all streams take at most 96 MiB: then the oldest are given up.
//
// A turn of a stream is bounded for any content: 2 MiB of lines, 16 MiB of NUL bytes, 32 MiB of a compressed file on the way to the read position, 128 MiB and
// a line read ahead by a handler, one document. Comparing files to identify them costs the sweeper up to 16 MiB of decompression per sweep; meanwhile only
// their stream waits.
//
// A file in the globs of several Tailers, not yet assigned (Sorter), takes some hundred bytes, shared by all Tailers: detectors are kept for the 256 files with
// the most bytes sniffed, and any other file is sniffed again from the beginning when it grows. All new files are sniffed briefly before any is sniffed
// further, the newest first, 2 MiB between two sweeps, by one Tailer for all. Reading continues meanwhile; handlers of joint records begin after all files were
// sniffed once. Idle files are checked for growth at a rate of at most 2,000 per second; files with inotify events at once.
//
// Open files are a budget of the process: half of the limit (RLIMIT_NOFILE) or the limit minus 48, at most 2,048. Beyond the budget, files take turns: a fully
// read file is closed once half of the budget is used, to leave the other half for files with unread bytes; an unfinished file is closed when its turn is over
// and others wait. A closed file is recognized by fingerprint, under any name in its directory. One line of the log reports the turns.
//
// With inotify, a created or renamed file is opened at once and held until the sweeper has looked, even if gone by then. Everything is polled as well. All
// Tailers of a process share two instances of inotify, of which a user has 128 (fs.inotify.max_user_instances).
//
// # Guarantees
//
// Capture: every line still readable, under its path or beside it under a rotated name, is read. A renamed or deleted file is read to the end while this
// process has it open, and watched for a minute more. A rotated file is recognized by device and inode, the hash of the first KiB and the hash of the 64 bytes
// before the head; the hashes also find the copy left by copytruncate, and the compressed form of a rotated file.
//
// Rotation may be faster than looking: with inotify, files rotated through the path and out of the directory between two looks are read; without inotify, only
// files still present. A file or directory that becomes readable is read within five seconds. UTF-16 is decoded after a byte order mark; positions count the
// file's bytes, not the decoded text. The content of a compressed file after damage, or beyond a thousand times the file's size (and 1 GiB), is given up, with
// a count, until the file changes.
//
// A compressed file beside its original (the file named without .gz or .zst) waits for the original's removal, and then continues it. If both stay and differ,
// the compressed file counts as a file of its own after ten seconds. Files newer than a compressed file are read later.
//
// At the first look at a path, rotated files in the globs (path.1, path.2.gz, path-20260101, …) are older generations of the same stream, even if the path
// itself is free just then. They are ordered by modification time; for equal times, see sortGenerations.
//
// Delivery: a batch is sent until accepted or refused for good. Until then the lines are holes in the checkpoint.
//
// Recovery: after a crash the holes are read again, in order, then reading continues at the head. Lines accepted since the last checkpoint (a second) are
// repeated. An InOrder handler gets everything again from the oldest unaccepted batch. For a line with only the time of arrival (Stream.ByArrival), the arrival
// is stored before the batch is sent, and restored with the line. See docs/reference/adr/0017-what-comes-again-says-the-same.md. Lines of several streams may
// be one record (Stream.Lend): they are in one batch, and every checkpoint has either all of them accepted or none. See
// docs/reference/adr/0003-joint-records.md. A checkpoint is also stored as soon as a file is taken up, so a crash soon afterwards knows the path's file.
//
// # Limits
//
//   - The order of lines, if the names of two live logs were swapped and the files rotated or the process restarted: each file is read by one stream from
//     beginning to end, but two files of one writer perhaps by two streams. Files truncated or rotated between two looks afterwards are not found outside
//     the globs.
//   - Lines truncated, overwritten or deleted before reading, without a copy beside them. They count as lost_files and truncations, as far as detectable: a
//     created file never found, a number missing in a chain of rotated files, at least one file if the last file read is no longer in an all new chain, a
//     deleted file not read to the end at shutdown. Without inotify and without numbers (dates, or no rotated files at all) a gap is undetectable.
//   - More than 128 files that come and go between two looks.
//   - UTF-16 without the mark, for instance after a truncation while the writer continues at the old position. UTF-32.
//   - A file truncated and rewritten with the very bytes before the head counts as the old file: only the bytes after the head are read.
//   - A file rotated out of the globs, with a crash before the first checkpoint of the file, some milliseconds after the first look.
//   - A record across files rotated unseen while the clock was set back: the files are read in another order or by a stream of their own; outside the globs,
//     a file seemingly older than the last file read is not read.
//   - A rotated file appended to more than a minute later, outside the globs; a deleted file beyond the budget of open files.
//   - While files take turns: data written to a file since its last turn, if the file is deleted or moved to another directory before the next. Known unread
//     bytes count as lost_files. A record across files, some of them copied and truncated, may come apart.
//   - A line split by copytruncate becomes two lines. Bytes that a program writes into a hole of NULs before later data.
//   - A copy of a file of which nothing was read or even seen before its truncation is read as a file of its own in the globs, and not at all outside. The
//     same holds for an unread file that begins with the same bytes (1 KiB, or as many as were seen) again after the truncation.
//
// Progress: trainbridge.tail.bytes (read), .size (of the files), .lag (unread), .lag.time (time since the file furthest behind was last fully read), .rate (in
// the last 30 s) and .eta. A compressed file counts as unread until the end, because progress in compressed bytes is unknown. Status has the same figures for
// people.
//
// # Where to find the code
//
//   - The sweeper: look.go (when a stream is looked at), discover.go (globs and directories), rotate.go (former files of a path), capture.go (files gone before
//     the look), probe.go (compressed files), document.go, sorter.go and sniff.go (assignment by content).
//   - Workers: schedule.go (turns), read.go and ahead.go, stream.go. Senders: outbox.go, deadletter.go.
//   - A file's lives: file.go (with a table of transitions, at becomes); turns to be open: descriptors.go. Positions: store.go.
//   - Records of several streams: joint.go, and policy.go for all differences of such streams.
//   - internal: lines (endings and encodings), rows (files of TensorBoard and W&B), unpack (gzip and zstd), fingerprint,
//     checkpoint, glob, rotation (names), inotify, osfile, lockorder.
//
// # Locks
//
// The holder of a lock takes only later locks of this list; under the race detector every Lock is checked (internal/lockorder):
//
//  1. Tailer.storeMu: one checkpoint at a time.
//  2. Tailer.sweepMu: the sweeper, with all files and streams.
//  3. Tailer.settling: for reading, during the release of a record's lines; for writing, during the checkpoints of streams with joint records.
//  4. Tailer.sharing: the bonds of shared lines.
//  5. Stream.mu: a stream, its files and its handler. Only the holder of sweepMu may hold several. Locks of handlers come after it.
//  6. Sorter.looking: the file being sniffed.
//  7. All other locks (Tailer.mu of the scheduler, outbox.mu, counts.mu, Sorter.mu, …) are leaves: their holder takes no other lock of this package.
//
// No lock is held while a batch is sent; only storeMu while positions are stored.
//
// Files are opened read-only, and only regular files. Symbolic links are followed only with follow_symlinks. Rotated files are then looked for beside the link
// and beside the link's target.
package tail
