// Package collectives joins the ranks' records of a job's collectives (of NCCL or its relatives), and judges the result: who was late,
// whose clock is ahead, what went over which link and how fast. It knows no log format and no file: a record comes as an op.Op with whatever it came by (a lent
// line, an offset), which is given back when the record leaves.
//
// # The way of a record
//
//	Input.Add → add → wait → close → judged → out: take, Learned, AddSpans, Metrics, Free
//
// add (add.go) finds the communicator's sequence and in it the collective by its number; where the log has none, by counting, and where counting is refuted, by
// operation, size and time (counted.go). There the record waits for the records of the other ranks (wait.go), until all have come, or the missing ones have
// gone on, or nothing came for JoinConfig.HangTimeout, or there is no room, or reading has ended. Then close (close.go) takes the collective out and gives it
// its ids; judge.go compares clocks, finds durations and bandwidths, judges lateness, stragglers and low bandwidth, and adds up links. A collective that leaves
// is given to the take function of the input whose call made it leave (joiner.go). The caller makes batches of collectives;
// Learned adds the points that a batch taught; AddSpans and Metrics write OTLP, as often as the batch is tried, and Free ends its life.
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
