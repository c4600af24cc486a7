package digest

import (
	"cmp"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// GPU has the samples of a GPU.
type GPU struct {
	Host, ID    string // ID: hw.id, the GPU's UUID or its number in its record
	Name, Model string
	Rank        view.Int // of the log with the values
	Utilization Values   // share
	Power       Values   // W
	Temperature Values   // Cel
	Clock       Values   // Hz, of the SMs
	Memory      Values   // By, in use
}

// gpuKey identifies a GPU. rank: absent in a driver's metrics.
type gpuKey struct {
	host, id string
	rank     view.Int
}

// GPUs returns the GPUs, by host and id.
func (j *Job) GPUs() []*GPU {
	return j.gpus.rows(func(a, b *GPU) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Rank.Or(-1), b.Rank.Or(-1)), compareNumbers(a.ID, b.ID))
	})
}

// Metrics adds metrics of logs and drivers: samples of GPUs, and the traffic of links between ranks and hosts.
func (j *Jobs) Metrics(md pmetric.Metrics) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var res resource
	for _, rm := range md.ResourceMetrics().All() {
		res.Read(rm.Resource().Attributes())
		var job *Job // nil for a resource without relevant metrics
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				addPoint := readers[m.Name()] // nil: no metric of interest
				if g, ok := gpuReaders[m.Name()]; ok {
					addPoint = g.point
				} else if addPoint == nil {
					addPoint = unitReaders[m.Name()]
				}
				if addPoint == nil {
					continue
				}
				if job == nil {
					job = j.job(&res)
				}
				points := spans.Points(m)
				for _, p := range points.All() {
					addPoint(job, p, &res)
				}
				j.kept.count(points.Len(), j.each)
			}
		}
	}
}

// GPUs adds values of a GPU from a log, as Metrics adds points. Metrics without an entry in gpuReaders, and values of another kind, are left out.
func (j *Jobs) GPUs(v *spans.GPUValues) {
	reader, ok := gpuReaders[v.Metric]
	otherKind := v.Label != "" && v.Label == reader.attr && v.Of != reader.value // such as the clock of the memory
	if !ok || otherKind || len(v.Values) == 0 {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var res resource
	res.Service, res.Run = v.Service, v.RunID
	k := gpuKey{host: v.Host, id: v.Device}
	if v.Rank >= 0 {
		k.rank = view.Int{N: v.Rank, OK: true}
	}
	to := reader.values(j.job(&res).gpu(k, "", ""))
	for _, x := range v.Values {
		to.Add(x)
	}
	j.kept.count(len(v.Values), j.each)
}

// gpuReader reads the samples of a metric of GPUs: those whose attribute attr is absent, or has the value.
type gpuReader struct {
	attr, value string
	values      func(*GPU) *Values // of the GPU, to add to
}

var gpuReaders = map[string]gpuReader{
	spans.MetricGPUUtilization:      {spans.AttrGPUTask, "general", func(g *GPU) *Values { return &g.Utilization }},
	spans.MetricHardwarePower:       {"", "", func(g *GPU) *Values { return &g.Power }},
	spans.MetricHardwareTemperature: {spans.AttrSensorLocation, "gpu", func(g *GPU) *Values { return &g.Temperature }},
	spans.MetricGPUClock:            {spans.AttrGPUClockDomain, "sm", func(g *GPU) *Values { return &g.Clock }},
	"hw.gpu.memory.usage":           {"", "", func(g *GPU) *Values { return &g.Memory }},
}

// readers read the points of a metric.
var readers = map[string]func(j *Job, p pmetric.NumberDataPoint, res *resource){
	spans.MetricNCCLLinkIO: func(j *Job, p pmetric.NumberDataPoint, _ *resource) {
		if l := j.Collectives.rankLinkOf(p); l != nil {
			l.setBytes(p)
		}
	},
	spans.MetricNCCLLinkBandwidth: func(j *Job, p pmetric.NumberDataPoint, _ *resource) {
		if l := j.Collectives.rankLinkOf(p); l != nil && p.Timestamp() >= l.at {
			l.Bandwidth, l.at = spans.PointNumber(p), p.Timestamp()
		}
	},
	spans.MetricNCCLNodeIO: func(j *Job, p pmetric.NumberDataPoint, _ *resource) {
		from, to := spans.AttrText(p.Attributes(), spans.AttrNCCLSourceHost), spans.AttrText(p.Attributes(), spans.AttrNCCLDestHost)
		linkOf(&j.Collectives.nodes, cmp.Or(from, Other), cmp.Or(to, Other)).setBytes(p)
	},
}

// point adds a data point to its GPU. Points of another value of the reader's attribute, and of hardware other than GPUs, are left out.
func (r *gpuReader) point(j *Job, p pmetric.NumberDataPoint, res *resource) {
	k := gpuKey{host: res.Host, rank: res.Rank}
	name, model := "", ""
	for key, v := range p.Attributes().All() {
		switch key {
		case r.attr:
			if text := spans.ValueText(v); text != r.value {
				return
			}
		case spans.AttrHostName:
			k.host = spans.ValueText(v)
		case spans.AttrRank:
			k.rank = view.IntOf(v)
		case spans.AttrHardwareID:
			k.id = spans.ValueText(v)
		case spans.AttrHardwareName:
			name = spans.ValueText(v)
		case spans.AttrDeviceModel:
			model = spans.ValueText(v)
		case spans.AttrHardwareType:
			if text := spans.ValueText(v); text != "gpu" {
				return
			}
		}
	}
	r.values(j.gpu(k, name, model)).Add(spans.PointNumber(p))
}

// gpu returns the GPU of a key, made if absent with a name and a model.
func (j *Job) gpu(k gpuKey, name, model string) *GPU {
	return j.gpus.findOrMake(k, gpuKey{id: Other}, mostDistributed, func(k gpuKey) (gpuKey, *GPU) {
		k.host, k.id = shortText(k.host), shortText(k.id)
		return k, &GPU{Host: k.host, ID: k.id, Rank: k.rank, Name: shortText(name), Model: shortText(model)}
	})
}

// rankLinkOf returns the link between the ranks of a point, made if absent; nil: the point has no ranks, as the sum of links without a series of their own.
func (d *Collectives) rankLinkOf(p pmetric.NumberDataPoint) *Link {
	from, okFrom := rankIn(p.Attributes(), spans.AttrNCCLSource)
	to, okTo := rankIn(p.Attributes(), spans.AttrNCCLDestination)
	if !okFrom || !okTo {
		return nil
	}
	return linkOf(&d.links, from, to)
}

// rankIn returns a rank in an attribute, as text; false: absent.
func rankIn(m pcommon.Map, name string) (string, bool) {
	v, ok := m.Get(name)
	if !ok {
		return "", false
	}
	n := view.IntOf(v)
	return strconv.FormatInt(n.N, 10), n.OK
}

// setBytes sets the bytes of a link from a counter: the highest value is the latest.
func (l *Link) setBytes(p pmetric.NumberDataPoint) {
	if x := spans.PointNumber(p); !(l.Bytes > x) { // also where Bytes is NaN
		l.Bytes = x
	}
}
