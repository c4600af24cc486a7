// Package partial packs the records of one log in one communicator, in the order of the log, so that they go from the host of the log to where the records of
// all ranks are joined. A Writer packs records, column by column; Read reads them. A Stretch is what travels: packed records and where they are from, as one
// span named nccl.partial.
package partial
