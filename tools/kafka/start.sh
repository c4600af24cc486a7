#!/usr/bin/env bash
# Runs a Kafka broker of one node, for tests and benchmarks. What is in DIR is used again, also after kill -9; topics are there when they are first asked for.
#
#   [KAFKA_CONFIG=LINES] tools/kafka/start.sh LIBS DIR ADDRESS CONTROLLER PARTITIONS [BEHIND PROXY]
#
# LIBS is what `make kafka` installs, ADDRESS and CONTROLLER are host:port, PARTITIONS are those of each topic. Clients that come by BEHIND are told to come to PROXY.
set -eu
libs=$1 dir=$2 address=$3 controller=$4 partitions=$5
java=(java -Xms64m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$libs/*")
config=$dir/server.properties
if [ ! -e "$config" ]; then
  cat >"$config.new" <<END
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=$controller
listeners=PLAINTEXT://$address,CONTROLLER://$controller${6:+,PROXIED://$6}
advertised.listeners=PLAINTEXT://$address,CONTROLLER://$controller${7:+,PROXIED://$7}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT
log.dirs=$dir/data
num.partitions=$partitions
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
group.initial.rebalance.delay.ms=0
num.network.threads=2
num.io.threads=2
log.segment.bytes=67108864
${KAFKA_CONFIG:-}
END
  "${java[@]}" kafka.tools.StorageTool format --standalone -t dHJhaW5icmlkZ2UtdGVzdA -c "$config.new"
  mv "$config.new" "$config"
fi
exec "${java[@]}" kafka.Kafka "$config"
