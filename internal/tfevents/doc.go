// Package tfevents reads and writes scalars in event files of TensorBoard (events.out.tfevents.*). Sources:
//   - the framing of records: tensorflow/tensorflow tensorflow/core/lib/io/record_writer.cc @09860328 (WriteRecord), and with its masked checksums
//     tensorflow/tensorboard tensorboard/data/server/{tf_record,masked_crc}.rs @70b76c92;
//   - the numbers of fields: tensorflow/tensorboard tensorboard/compat/proto/{event,summary,tensor,tensor_shape,types}.proto @70b76c92;
//   - which values are scalars: tensorflow/tensorboard tensorboard/data/server/data_compat.rs @70b76c92 (initial_metadata, tensor_proto_to_scalar), and
//     tensorboard/data_compat.py (migrate_value).
//
// # Scalars
//
// A simple_value is a scalar: TensorFlow 1, torch.utils.tensorboard and tensorboardX write float32 so. A tensor of rank 0 is a scalar where the metadata of its
// tag name the plugin "scalars": TensorFlow 2, Keras, JAX (clu, flax), and torch with new_style. The first metadata of a tag hold for the whole file, since the
// writer of TensorFlow 1 leaves them out afterwards (tensorboard/backend/event_processing/plugin_event_accumulator.py @70b76c92, _ProcessEvent); the writer of
// TensorFlow 2 repeats them. TensorBoard ignores tensors of a tag without metadata. Here a number of rank 0 is a scalar then, since a Decoder may begin behind
// the metadata. TensorBoard's data server reads float32 only; here all types of numbers are read, to the precision of float64.
//
// # Damage
//
// The last record of a file that grows may be torn. A Decoder waits for its rest, as TensorBoard does. Where the checksum of a length is wrong, the beginning
// of the next record is unknown: reading ends. Where the checksum of the data is wrong, only one record is lost. TensorBoard reads no further in both cases
// (tensorboard/data/server/run.rs, reload_files).
package tfevents
