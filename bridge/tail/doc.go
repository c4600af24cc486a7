// Package tail reads log files line by line and forgets nothing that was not accepted downstream.
//
//	globs → sweeper (which file belongs to which stream) → ready streams → workers (pread → splitter → Handler.Line) → Handler.Cut → batch
//	      → senders (small batches of many streams together, again and again) → settle (holes close, budget is given back)
//	      → checkpoint, once a second → storage
//
// A stream is the sequence of files that one path has named; it has one Handler. The sweeper alone decides which file belongs to which stream and when a stream
// is looked at. Workers read; they never wait for the consumer. Senders are few, however many files there are (outbox). Batches that are cut and not yet
// accepted fill max_in_flight_bytes, of which one stream gets a quarter; then reading waits. A stream that is idle keeps neither handler nor batch (sleep).
// Lines that wait for their other half take 96 MiB of all streams' memory at most: then the oldest are given up.
//
// A turn of a stream is bounded, whatever the file holds: 2 MiB of lines, 16 MiB of NUL bytes, 32 MiB of a compressed file on the way to where reading goes on,
// 128 MiB and a line that a handler looks ahead, one document. Files that must be compared to know whose they are cost the sweeper 16 MiB of decompressing per
// sweep; until it is known only their stream waits.
//
// A file that several Tailers may read, and that nobody has understood so far (Sorter), takes some hundred bytes, once for all of them: detectors are kept for
// the 256 files of which most was looked at, and another one is looked at again from its beginning when it grows. All new files are looked at a little before
// any is looked at further, the newest first, 2 MiB between two sweeps, by one Tailer for all. Reading goes on meanwhile; handlers of joint records begin when
// all files were looked at a little. Idle files are asked for their size at most 2,000 times a second; what inotify hears of is asked at once.
//
// Files that are open are a budget of the process: half of what it may open (RLIMIT_NOFILE) or 48 less than that, 2,048 at most. Where there are more, they
// take turns: one that was read to its end is closed when half of the budget is used, so that the other half is for those with something to read, and one that
// was not when its turn is over and others wait. It is known again by its fingerprint, under whatever name its directory has it. One line of the log says so.
//
// Where the system has inotify, a file that is created or renamed is opened at once and held until the sweeper has looked, so that it may be gone by then.
// Everything else is polled as well. All Tailers of a process share two instances of inotify, of which a user has 128 (fs.inotify.max_user_instances).
//
// # What is promised
//
// Capture: every line that stays readable, under its path or beside it under a name that rotation gives, is read. A file that was renamed or deleted is read to
// its end while this process has it open, and watched for a minute more. A rotated file is known again by device and inode, the hash of its first KiB and the
// hash of the 64 bytes before the head; the last two also find the copy that copytruncate left, and the compressed file that gzip or zstd made of a rotated
// one.
//
// Rotation may be faster than looking: with inotify, files that were rotated through the path and out of the directory between two looks are read; without it,
// only files that are still there. A file or directory that is made readable is read within five seconds. UTF-16 is decoded where a byte order mark says so;
// positions count the file's bytes, not the decoded text. The content of a compressed file behind damage, or behind a thousand times its size (and 1 GiB), is
// given up, with a count, until the file changes.
//
// A compressed file beside its original (the file with its name without .gz or .zst) waits until the original is gone, and is then known as the same file,
// compressed. Where both stay and differ, it is read as a file of its own after ten seconds. Files that came after a compressed file are read after it.
//
// At the first look at a path its rotated files (path.1, path.2.gz, path-20260101, …) that the globs match are older generations of the same stream, also when
// the path itself is free just then. They are ordered by their modification times; where these are alike, see sortGenerations.
//
// Delivery: a batch is sent until it is accepted or refused for good. Until then its lines are holes in the checkpoint.
//
// Recovery: after a crash the holes are read again, in order, then reading goes on at the head. Lines accepted since the last checkpoint (a second) come again.
// A handler that is InOrder is given everything again from the oldest batch that was not accepted. Where a line has no time but that of its arrival
// (Stream.ByArrival), that is stored before its batch is sent, and given again with the line. See docs/adr/0017-what-comes-again-says-the-same.md.
// Lines of several streams may be one record (Stream.Lend): they are in one batch, and every checkpoint has either all of them accepted or none of them. See
// docs/adr/0003-joint-records.md. A checkpoint is also stored as soon as a file is taken up, so a crash soon after knows which file the path named.
//
// # What is not promised
//
//   - The order of lines, where names of two live logs were exchanged and their files were rotated or the process was started again: each file is
//     read by one stream from its beginning to its end, and two files of one writer perhaps by two. Files that were then cut or rotated between two looks are
//     not found where the globs do not match them.
//   - Lines that were cut away, overwritten or deleted before they were read, with no copy beside them. They count as lost_files and truncations, as far as
//     that can be known: a file whose creation was heard of and that nobody found, a number that is missing in a chain of rotated files, one file at least
//     where the last one read is no longer in a chain that is all new, a deleted file that was not read to its end when the process stopped. Without inotify
//     and without numbers (dates, no rotated files at all) a jump cannot be known.
//   - More than 128 files that come and go between two looks.
//   - UTF-16 without its mark, as after a cut while the writer goes on at its old position. UTF-32.
//   - A file that is cut and rewritten with the very bytes that were before the head is taken for the old file: only the bytes behind the head are read.
//   - A file rotated out of the globs and a crash before the checkpoint that is stored when it is taken up, some milliseconds after it was met.
//   - A record that spans files which were rotated unseen while the clock was set back: the files are read, in another order or by a stream of their own;
//     outside the globs, a file that seems older than the last one read is not read.
//   - A rotated file that more than a minute later is appended to, when the globs do not match it; a deleted one when the budget of open files is used.
//   - Where files take turns: what was written to one since its last turn, when it is deleted or moved to another directory before its next one. Known unread
//     bytes count as lost_files. A record that spans files of which one was copied and cut may come apart.
//   - A line that copytruncate cut in two comes out as two. Bytes that a program writes into a hole of NULs which has later data behind it.
//   - A copy of a file of which nothing was read or even seen before it was cut is read as a file of its own if the globs match it, and not at all otherwise.
//     The same holds for a file of which nothing was read, when it begins with the same bytes (1 KiB, or as many as were seen) again after the cut.
//
// How far reading is: trainbridge.tail.bytes (read), .size (of the files), .lag (not read yet), .lag.time (how long ago the file that is furthest behind was
// read to its end), .rate (in the last 30 s) and .eta. A compressed file counts as not read at all until it is read to its end, because how far in its bytes
// reading is cannot be known. Status has the same figures for people.
//
// # Where to find the code
//
//   - The sweeper: look.go (when a stream is looked at), discover.go (globs and directories), rotate.go (what a path named before), catch.go (files that are
//     gone when it looks), probe.go (compressed files), document.go, sorter.go and sniff.go (whose a file is by its content).
//   - Workers: schedule.go (whose turn it is), read.go and ahead.go, stream.go. Senders: outbox.go, deadletter.go.
//   - A file and its life from being met to being forgotten: file.go; whose turn it is to be open: descriptors.go. Positions: store.go.
//   - Records of several streams: joint.go, and policy.go for all that such streams do differently from others.
//   - internal: lines (endings and encodings), rows (files of TensorBoard and W&B), unpack (gzip and zstd), fingerprint,
//     checkpoint, glob, rotation (names), inotify, osfile, lockorder.
//
// # Locks
//
// Who holds a lock takes only locks that stand below it in this list; under the race detector every Lock is checked (internal/lockorder):
//
//  1. Tailer.storeMu: one checkpoint at a time.
//  2. Tailer.sweepMu: the sweeper, what it knows of files and streams.
//  3. Tailer.settling: for reading, while the lines of a record are let go of; for writing, while the checkpoints of streams whose records are joint are taken.
//  4. Tailer.sharing: the bonds of shared lines.
//  5. Stream.mu: a stream, its files and its handler. Only who holds sweepMu may hold several. What a handler locks comes after it.
//  6. Sorter.looking: the one file whose lines are looked at.
//  7. All other locks (Tailer.mu of the scheduler, outbox.mu, counts.mu, Sorter.mu, …) are leaves: who holds one of them takes no other lock of this package.
//
// While a batch is sent no lock is held; while positions are stored, storeMu alone.
//
// Files are opened read-only, and only regular ones. Symbolic links are followed only with follow_symlinks.
// What was rotated is then looked for beside the link and beside what it leads to.
package tail
