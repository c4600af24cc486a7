package digest

import (
	"cmp"
	"path"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/spans"
)

// Unit is one of several alike: a NIC with VCCL's telemetry, or a storage unit of TransferQueue with an operation.
type Unit struct {
	Metric    string // of Values
	Name      string // of the NIC's log, or of the storage unit
	Operation string // of a storage unit
	Values    Values // By/s of a NIC, s of a storage unit
	Abnormal  Values // 1 or 0, of a NIC, as its log says
}

// unitKey identifies a unit.
type unitKey struct{ metric, name, operation string }

// Units returns the NICs and the storage units, in a fixed order.
func (j *Job) Units() []*Unit {
	return j.units.rows(func(a, b *Unit) int {
		return cmp.Or(cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Name, b.Name))
	})
}

// unit returns the unit of a key, made if absent.
func (j *Job) unit(k unitKey) *Unit {
	return j.units.findOrMake(k, unitKey{k.metric, Other, k.operation}, mostDistributed, func(k unitKey) (unitKey, *Unit) {
		k.name, k.operation = shortText(k.name), shortText(k.operation)
		return k, &Unit{Metric: k.metric, Name: k.name, Operation: k.operation}
	})
}

// nic returns the unit of the NIC that a point is about, by the attributes of the point.
func (j *Job) nic(attrs pcommon.Map) *Unit {
	return j.unit(unitKey{metric: spans.MetricNCCLDeviceBandwidth, name: path.Base(spans.AttrText(attrs, spans.AttrLogFile))})
}

// unitReaders read the points of units.
var unitReaders = map[string]func(j *Job, p pmetric.NumberDataPoint, res *resource){
	spans.MetricNCCLDeviceBandwidth: func(j *Job, p pmetric.NumberDataPoint, _ *resource) {
		j.nic(p.Attributes()).Values.Add(spans.PointNumber(p))
	},
	spans.MetricNCCLDeviceAbnormal: func(j *Job, p pmetric.NumberDataPoint, _ *resource) {
		j.nic(p.Attributes()).Abnormal.Add(spans.PointNumber(p))
	},
	spans.MetricTQOperationDurationAvg: func(j *Job, p pmetric.NumberDataPoint, _ *resource) {
		unit, operation := spans.AttrText(p.Attributes(), spans.AttrTQStorageUnit), spans.AttrText(p.Attributes(), spans.AttrTQOperation)
		j.unit(unitKey{spans.MetricTQOperationDurationAvg, unit, operation}).Values.Add(spans.PointNumber(p))
	},
}
