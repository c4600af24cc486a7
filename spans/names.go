package spans

// Names, units and values are in spans/registry, from which the other constants of this package are generated. Names of OpenTelemetry's semantic conventions
// (semconv 1.37) are used where they exist.

// TimeSource says where the times of a span come from (attribute AttrTimeSource).
type TimeSource string

// ServerSuffix is appended to the service.name of a job to name the server that the job calls, where the client's log describes both.
const ServerSuffix = "-server"
