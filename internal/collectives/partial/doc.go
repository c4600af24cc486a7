// Package partial packs the records of one log in one communicator, in the order of the log, for transport from the host of the log to the place where the
// records of all ranks are joined. A Writer packs records, column by column; Read reads them. A Stretch is the unit of transport: packed records and their
// origin, as one span named nccl.partial.
package partial
