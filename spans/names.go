package spans

// Names, units and values stand in spans/registry, from which the other constants of this package are generated. Where the semantic conventions of
// OpenTelemetry (semconv 1.37) have a name, it is used.

// TimeSource says where the times of a span come from (attribute AttrTimeSource).
type TimeSource string

// ServerSuffix goes behind the service.name of a job, for the server that the job calls, where the client's log tells of both.
const ServerSuffix = "-server"
