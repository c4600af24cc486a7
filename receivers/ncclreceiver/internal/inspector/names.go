package inspector

// name is a member with a known meaning. The functions that read objects know the object of each name.
type name uint8

const (
	other name = iota // is skipped

	// Of the whole.
	header
	metadata
	collPerf
	p2pPerf
	proxyTrace
	proxyOp // of Datadog's plugin
	dumpStats

	// Of the header.
	commID
	commName
	rank
	nRanks
	nNodes

	// Of the metadata.
	version
	dumpTime
	hostname
	pid

	// Of an operation, collective or point-to-point.
	operation
	algorithm
	protocol
	sequence
	peer
	messageSize
	execTime
	timing
	algBandwidth
	busBandwidth
	channels
	traceTS
	opStart
	kernelEvents
	channel
	kernelStart
	kernelStop
	kernelTime // of ACCL, where start and stop are of the GPU's clock

	// Of a proxy's record.
	recordType
	parentType
	parentSN
	proxySN
	direction
	isSend
	isFinal
	transferSize
	total
	steps
	stepIndex
	gpuProduce
	peerCredit
	wire
	flush
	gpuConsume
	proxyStart
	proxyStop
	stepStart
	stepStop
	sendGPUWait // this and the next in the order of phases
	sendPeerWait
	sendWait
	recvWait
	recvFlushWait
	recvGPUWait

	// Of the statistics of a dump: the records in the order of their kinds (collectives, …), then the counters in the order of drops.
	collRecords
	p2pRecords
	proxyRecords
	collDropped
	p2pDropped
	proxyDropped
	proxyOpsDropped
	proxyStepsDropped
	proxyPXNSkipped
)

// keys are the members as written. Members without a meaning are listed for fast recognition, and skipped.
var keys = [...]struct {
	text string // with quotes and colon
	name name
}{
	{"", other}, // none
	{`"header":`, header},
	{`"metadata":`, metadata},
	{`"coll_perf":`, collPerf},
	{`"p2p_perf":`, p2pPerf},
	{`"proxy_trace":`, proxyTrace},
	{`"proxy_op":`, proxyOp},
	{`"dump_stats":`, dumpStats},

	{`"id":`, commID},
	{`"comm_name":`, commName},
	{`"rank":`, rank},
	{`"n_ranks":`, nRanks},
	{`"nnodes":`, nNodes},
	{`"inspector_output_format_version":`, version},
	{`"git_rev":`, other},
	{`"rec_mechanism":`, other},
	{`"dump_timestamp_us":`, dumpTime},
	{`"hostname":`, hostname},
	{`"pid":`, pid},

	{`"coll":`, operation},
	{`"coll_algo":`, algorithm},
	{`"coll_proto":`, protocol},
	{`"coll_sn":`, sequence},
	{`"coll_msg_size_bytes":`, messageSize},
	{`"coll_exec_time_us":`, execTime},
	{`"coll_timing_source":`, timing},
	{`"coll_algobw_gbs":`, algBandwidth},
	{`"coll_busbw_gbs":`, busBandwidth},
	{`"coll_n_channels":`, channels},
	{`"coll_n_channels_reported":`, other},
	{`"decomposition":`, other},
	{`"coll_start_ts":`, opStart},
	{`"coll_stop_ts":`, other},
	{`"p2p":`, operation},
	{`"p2p_algo":`, algorithm},
	{`"p2p_proto":`, protocol},
	{`"p2p_sn":`, sequence},
	{`"p2p_peer":`, peer},
	{`"p2p_msg_size_bytes":`, messageSize},
	{`"p2p_exec_time_us":`, execTime},
	{`"p2p_timing_source":`, timing},
	{`"p2p_algobw_gbs":`, algBandwidth},
	{`"p2p_busbw_gbs":`, busBandwidth},
	{`"p2p_start_ts":`, opStart},
	{`"p2p_stop_ts":`, other},
	{`"event_trace_sn":`, other},
	{`"event_trace_ts":`, traceTS},
	{`"kernel_events":`, kernelEvents},
	{`"events":`, kernelEvents},
	{`"channel_id":`, channel},
	{`"kernel_start_ts":`, kernelStart},
	{`"kernel_stop_ts":`, kernelStop},
	{`"kernel_record_ts":`, other},
	{`"duration_us":`, kernelTime},

	{`"record_type":`, recordType},
	{`"record_sn":`, other},
	{`"parent_type":`, parentType},
	{`"parent_sn":`, parentSN},
	{`"proxy_op_sn":`, proxySN},
	{`"peer":`, peer},
	{`"direction":`, direction},
	{`"timing_source":`, timing},
	{`"is_final":`, isFinal},
	{`"n_steps":`, other},
	{`"chunk_size_bytes":`, other},
	{`"n_steps_started":`, other},
	{`"n_steps_completed":`, other},
	{`"n_steps_dropped":`, other},
	{`"trans_size_bytes":`, transferSize},
	{`"total_us":`, total},
	{`"op_bw_gbs":`, other},
	{`"steps":`, steps},
	{`"proxy_step_sn":`, other},
	{`"step":`, stepIndex},
	{`"gpu_produce_us":`, gpuProduce},
	{`"peer_credit_us":`, peerCredit},
	{`"wire_us":`, wire},
	{`"flush_us":`, flush},
	{`"gpu_consume_us":`, gpuConsume},
	{`"proxy_op_start_ts":`, proxyStart},
	{`"proxy_op_in_progress_ts":`, other},
	{`"proxy_op_stop_ts":`, proxyStop},
	{`"proxy_step_start_ts":`, stepStart},
	{`"proxy_step_stop_ts":`, stepStop},
	{`"send_gpu_wait_ts":`, sendGPUWait},
	{`"send_peer_wait_ts":`, sendPeerWait},
	{`"send_wait_ts":`, sendWait},
	{`"recv_wait_ts":`, recvWait},
	{`"recv_flush_wait_ts":`, recvFlushWait},
	{`"recv_gpu_wait_ts":`, recvGPUWait},
	{`"is_send":`, isSend}, // this and the next four are Datadog's
	{`"start_us":`, proxyStart},
	{`"stop_us":`, proxyStop},
	{`"net_time_us":`, total},
	{`"proxy_op_network_time_us":`, total},

	{`"coll_records":`, collRecords},
	{`"coll_dropped_total":`, collDropped},
	{`"coll_dropped_since_last_dump":`, other},
	{`"p2p_records":`, p2pRecords},
	{`"p2p_dropped_total":`, p2pDropped},
	{`"p2p_dropped_since_last_dump":`, other},
	{`"proxy_records":`, proxyRecords},
	{`"proxy_dropped_total":`, proxyDropped},
	{`"proxy_dropped_since_last_dump":`, other},
	{`"proxy_ops_dropped_total":`, proxyOpsDropped},
	{`"proxy_ops_dropped_since_last_dump":`, other},
	{`"proxy_steps_overwritten_total":`, proxyStepsDropped},
	{`"proxy_steps_overwritten_since_last_dump":`, other},
	{`"proxy_output_mode":`, other},
	{`"proxy_segment_step_capacity":`, other},
	{`"proxy_pxn_skipped_process_total":`, proxyPXNSkipped},
	{`"proxy_steps_enabled":`, other},
	{`"summary":`, dumpStats}, // this and the rest are ACCL's, once at its end
	{`"dropped_collectives":`, collDropped},
	{`"dropped_proxy_ops":`, proxyOpsDropped},
	{`"dropped_proxy_steps":`, proxyStepsDropped},
}

// byText finds a key by its name alone.
var byText = func() map[string]uint8 {
	m := make(map[string]uint8, len(keys))
	for i := 1; i < len(keys); i++ {
		t := keys[i].text
		m[t[1:len(t)-2]] = uint8(i)
	}
	return m
}()
