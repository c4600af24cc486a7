// Package collectives joins the ranks' records of a job's collectives (of NCCL or its relatives), and judges the result: late ranks, clocks ahead, the traffic
// and speed of links. Log formats and files are unknown here: a record is an op.Op with its origin (a lent line, an offset), returned when the record leaves.
//
// # The way of a record
//
//	identify → join → close: time → judge → out: take, Learned, describe, Free
//	record     open      closed         judged        Collective
//
// Each stage fills a struct that embeds the previous stage's, independent of later stages; the file of a stage has its name.
//
//   - identify.go finds the communicator of a record, and the sequence of its operation's number.
//   - join.go puts the record into its collective by number. Without numbers in the log count.go counts, and joins by operation, size and time where counts
//     contradict the records. The collective waits for the records of the other ranks (wait.go) and ends by one of the transitions below.
//   - close.go takes the ended collectives in order, finds the missing records, and makes the ids.
//   - time.go compares clocks, and finds durations and bandwidths.
//   - judge.go judges lateness, stragglers and low bandwidth, adds up links, and decides whether the collective is drawn.
//   - A leaving collective is passed to the take function of the input whose call ended the wait (joiner.go). The caller makes batches of collectives; Learned
//     adds the points of a batch (metrics.go); AddSpans (spans.go, describe.go) and Metrics write OTLP, as often as the batch is tried, and Free recycles the
//     collectives.
//
// # Transitions of a collective
//
//	state  event                                                        next    outcome
//	open   all ranks have a record                                      ended   Complete
//	open   all missing ranks have gone on                               ended   Gap
//	open   all missing ranks were given up before                       ended   Gone
//	open   no record for HangTimeout                                    ended   TimedOut
//	open   the same, and the reader of a missing rank's log is silent   ended   Unheard
//	open   MaxStateBytes is exceeded                                    ended   Evicted
//	open   reading ends                                                 ended   Ended
//	open   counted records contradict each other                        loose   (count.go: its records, each alone)
//	loose  all ranks have gone on; the records match, or do not         ended   Complete, or as above
//	ended  close, time, judge                                           left    the same
//	left   a record of the same number comes                            left    Late: a Collective of its own, below the root that left
//	left   Free                                                         reused
//
// # Promised
//
//   - Memory. Waiting collectives and the state of communicators are bounded by JoinConfig.MaxStateBytes each, about: the oldest collectives leave incomplete,
//     idle communicators are forgotten. Ranks above MaxRank are not joined. Names, links, clocks, baselines and series have bounds of their own.
//   - Nothing is lost or doubled: each record added leaves once, with its origin. After Expire(math.MaxInt64), repeated while collectives leave, nothing waits.
//   - Order. Each rank's records are to come in the order of its log. The order between records of different ranks changes neither joins nor ids, as long as
//     nothing is missing. Collectives leave when closed, not in the order of their numbers; their parts are in the order of ranks.
//   - Ids are made of run, family, communicator, operation and number, or of the record itself if not joined: neither the time nor the place of reading
//     matters. A record of a collective that has left joins the collective's trace.
//
// # The lock
//
// Joiner.mu guards all state, also of the subpackages, and is the only lock. Callers may hold a lock of their own (a stream's); take is called with Joiner.mu
// held and must not call back. A Collective that has left belongs to its taker: the package leaves it alone until Free, but for Learned, which marks the first
// collective of a run.
package collectives
