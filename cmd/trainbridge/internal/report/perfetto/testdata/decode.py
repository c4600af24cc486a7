"""Prints what a trace holds, by the messages of the perfetto package of PyPI.

Its TraceProcessor is not used: it runs a binary that it loads from the network. The events of a track are paired as that binary does
(src/trace_processor/importers/common/slice_tracker.cc): sorted by time, and of one time by their place in the file; an end ends the slice that was begun last.

One line each, fields separated by tabs:
    slice    process  track  name  start  duration  depth
    instant  process  track  name  start
    counter  process  track  name  time  value
    flow     id  slices, comma separated: name@start
"""

import collections
import sys
import zlib

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

REALTIME, OFFSET = 1, 64


def packets(path):
    """The packets of a trace, and their place."""
    with open(path, "rb") as f:
        trace = pb.Trace.FromString(f.read())
    for outer in trace.packet:
        assert outer.WhichOneof("data") == "compressed_packets" and len(outer.compressed_packets) < 512 * 1024
        yield from pb.Trace.FromString(zlib.decompress(outer.compressed_packets)).packet


def main(path):
    tracks, events = {}, []
    names, origin, default = {}, None, None
    for place, p in enumerate(packets(path)):
        assert p.trusted_packet_sequence_id == 1
        if p.sequence_flags & pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            names, default = {}, None
        if p.HasField("trace_packet_defaults"):
            default = p.trace_packet_defaults.timestamp_clock_id
        for entry in p.interned_data.event_names:
            assert entry.iid not in names
            names[entry.iid] = entry.name
        kind = p.WhichOneof("data")
        if kind == "clock_snapshot":
            at = {c.clock_id: c.timestamp for c in p.clock_snapshot.clocks}
            assert p.clock_snapshot.primary_trace_clock == REALTIME
            origin = at[REALTIME] - at[OFFSET]
        elif kind == "track_descriptor":
            d = p.track_descriptor
            assert d.uuid not in tracks
            parent = tracks.get(d.parent_uuid)
            process = parent[0] if parent else d.process.process_name
            tracks[d.uuid] = (process, (parent[1] + "/" if parent and parent[1] else "") + d.name)
        elif kind == "track_event":
            clock = p.timestamp_clock_id or default
            assert clock in (REALTIME, OFFSET)
            e = p.track_event
            value = None
            if e.HasField("counter_value"):
                value = e.counter_value
            elif e.HasField("double_counter_value"):
                value = e.double_counter_value
            name = names[e.name_iid] if e.name_iid else ""
            at = p.timestamp + (origin if clock == OFFSET else 0)
            events.append((at, place, e.type, e.track_uuid, name, value, list(e.flow_ids)))
    events.sort(key=lambda e: e[:2])

    open_slices, flows, out = collections.defaultdict(list), collections.defaultdict(list), []
    for at, _, kind, uuid, name, value, ids in events:
        process, track = tracks[uuid]
        stack = open_slices[uuid]
        if kind == pb.TrackEvent.TYPE_SLICE_BEGIN:
            stack.append((name, at))
        elif kind == pb.TrackEvent.TYPE_SLICE_END:
            name, start = stack.pop()
            out.append(("slice", process, track, name, start, at - start, len(stack)))
        elif kind == pb.TrackEvent.TYPE_INSTANT:
            out.append(("instant", process, track, name, at))
        else:
            assert kind == pb.TrackEvent.TYPE_COUNTER
            out.append(("counter", process, track, name, at, repr(value)))
        for i in ids:
            flows[i].append(f"{name}@{at}")
    assert not any(open_slices.values())
    for row in out:
        print(*row, sep="\t")
    for i, slices in flows.items():
        if len(slices) > 1:
            print("flow", i, ",".join(slices), sep="\t")


main(sys.argv[1])
