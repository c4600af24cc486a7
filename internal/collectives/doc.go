// Package collectives joins the ranks' records of a job's collectives (of NCCL or its relatives), and judges the result: who was late,
// whose clock is ahead, what went over which link and how fast. It knows no log format and no file: a record comes as an op.Op with whatever it came by (a lent
// line, an offset), which is given back when the record leaves.
//
// # The way of a record
//
//	identify → join → close: time → judge → out: take, Learned, describe, Free
//	record     open      closed         judged        Collective
//
// Each stage fills a struct that holds the one before, and knows nothing of those behind; its file has its name.
//
//   - identify.go finds the communicator of a record, and the sequence in which its operation has a number.
//   - join.go puts the record into its collective by that number. Where the log has none, count.go counts, and where counting is refuted, joins by operation,
//     size and time. The collective waits for the records of the other ranks (wait.go), until all have come, or the missing ones have gone on, or nothing came
//     for JoinConfig.HangTimeout, or there is no room, or reading has ended. Then it ends.
//   - close.go takes the collectives that have ended, one after the other: it finds out which records are missing, and makes the ids.
//   - time.go compares clocks, and finds durations and bandwidths.
//   - judge.go judges lateness, stragglers and low bandwidth, adds up links, and decides whether the collective is sent.
//   - A collective that leaves is given to the take function of the input whose call made it leave (joiner.go). The caller makes batches of collectives;
//     Learned adds the points that a batch taught (metrics.go); AddSpans (spans.go, describe.go) and Metrics write OTLP, as often as the batch is tried, and
//     Free ends its life.
//
// # Promised
//
//   - Memory. Waiting collectives and the state of communicators are bounded by JoinConfig.MaxStateBytes each, about: the oldest collectives leave as they are,
//     idle communicators are forgotten. Ranks above MaxRank are not joined. Names, links, clocks, baselines and series have bounds of their own.
//   - Nothing is lost or doubled: each record that was added leaves once, with the value that it came by. After Expire(math.MaxInt64), repeated while something
//     leaves, nothing waits.
//   - Order. Each rank's records are to come in the order of its log. The order between records of different ranks changes neither joins nor ids, as long as
//     nothing is missing. Collectives leave when they are closed, not in the order of their numbers; their parts are in the order of ranks.
//   - Ids are made of run, family, communicator, operation and number, or of the record itself where it is not joined: of nothing that depends on when or where
//     it is read. A record that comes after its collective has left joins the collective's trace.
//
// # The lock
//
// Joiner.mu guards all state, also of the subpackages, and is the only lock. Callers may hold their own (a stream's) when they call; take is called with
// Joiner.mu held and must not call back. A Collective that has left is its taker's: nothing here changes it until Free, but for Learned, which marks the
// collective that opens its run.
package collectives
