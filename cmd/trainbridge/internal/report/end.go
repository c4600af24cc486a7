package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/postmortem"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// died finds how the job ended, and its last step. If the logs have an error, the end is a claim.
func (c *conclusion) died() {
	c.step = -1
	for _, at := range c.account.Attempts {
		c.step = max(c.step, at.Last)
	}
	planned := int64(0)
	for _, l := range c.job.Steps.Rows() {
		planned = max(planned, l.Planned)
	}
	c.end = postmortem.Of(&c.job.Ends, files(c.job, c.read), c.size, c.step, planned)
	if g := c.end.InFlight; g != nil {
		c.claims = append(c.claims, claim{
			kind: "in_flight", cost: math.NaN(), grade: remark,
			what: c.sf("When the dumps were written, all %d ranks of the group stood in %s, and none had completed it", "写转储时，该组全部 %d 个 rank 都在 %s 中，无一完成",
				len(g.Ranks), name(c.end.Operation())),
			advice: c.in("If the job hung, no rank is behind: look at the links and GPUs (NCCL's log, ibstat, the kernel log). If it ran, that is usual.",
				"若任务当时已挂起，则没有 rank 落后：检查链路与 GPU（NCCL 日志、ibstat、内核日志）；若仍在运行，则属正常。"),
		})
	}
	if c.end.Remark != "" {
		c.claims = append(c.claims, claim{kind: "kernel", cost: math.NaN(), grade: remark, what: c.in(c.end.Remark, "内核日志："+c.end.Remark)})
	}
	if !c.end.Failed() && c.end.Kind != postmortem.KindWaiting {
		return
	}
	cl := claim{kind: "end", what: c.in(c.end.Sentence, chineseEnd(&c.end)), cost: math.NaN(), grade: ended, advice: c.end.Advice}
	if chinese := chineseEnds[c.end.Kind].advice; chinese != "" {
		cl.advice = c.in(c.end.Advice, chinese)
	}
	for i := range c.end.Evidence[:min(len(c.end.Evidence), evidences)] {
		e := &c.end.Evidence[i]
		cl.proof = append(cl.proof, proof{what: name(e.Text), At: e.At})
	}
	c.claims = append(c.claims, cl)
	c.grewMemory()
	c.unsaved()
}

// grewMemory adds a remark about GPU memory that grew during the whole last attempt of a job that ran out of memory: the program keeps tensors from step to
// step. Each quarter of the attempt must add half of the usual growth or more: PyTorch's allocator takes most of its memory in the first steps, and the largest
// batch so far raises a peak less and less.
func (c *conclusion) grewMemory() {
	if c.end.Kind != string(events.ClassCUDAOOM) {
		return
	}
	begin := int64(0)
	if n := len(c.account.Attempts); n > 0 {
		begin = c.account.Attempts[n-1].First
	}
	for _, l := range c.job.Steps.Rows() {
		for _, f := range []digest.Figure{digest.MemoryUsage, digest.MemoryPeak} {
			in := l.Measures[f].Over.Buckets()
			in = slices.DeleteFunc(in, func(b digest.Bucket) bool { return b.At < begin })
			if !growsSteadily(in) {
				continue
			}
			first, last := &in[0], &in[len(in)-1]
			c.claims = append(c.claims, claim{
				kind: "memory", cost: math.NaN(), grade: remark,
				what: c.sf("GPU memory grew all along: %s at step %s, %s at step %s", "显存一直增长：第 %[2]s 步 %[1]s，第 %[4]s 步 %[3]s",
					human.Bytes(first.Mean()), human.Thousands(first.At), human.Bytes(last.Mean()), human.Thousands(last.At)),
				advice: c.in("Look for tensors kept from step to step: losses summed without item(), outputs in lists.", "查找逐步保留的张量：未用 item() 累加的损失、存入列表的输出。"),
			})
			return
		}
	}
}

// growsSteadily reports whether a series grew by a tenth or more, in each of its quarters by half of the mean growth or more.
func growsSteadily(in []digest.Bucket) bool {
	const parts = 4
	if len(in) < 4*parts {
		return false
	}
	var mean [parts]float64
	for i := range mean {
		var of digest.Bucket
		for _, b := range in[i*len(in)/parts : (i+1)*len(in)/parts] {
			of.Plus(&b)
		}
		mean[i] = of.Mean()
	}
	growth := mean[parts-1] - mean[0]
	for i := range parts - 1 {
		if mean[i+1]-mean[i] < growth/(parts-1)/2 {
			return false
		}
	}
	return growth > mean[0]/10
}

// unsaved adds a remark about the steps that the last attempt did after its last checkpoint: a restart does them again. A checkpoint counts once a step
// follows, as the job may have died of saving.
func (c *conclusion) unsaved() {
	if !c.account.Clock || len(c.account.Course) == 0 {
		return
	}
	steps := c.account.Course[len(c.account.Course)-1]
	saved, seen := c.account.Saved, proof{}
	for _, e := range c.eventsOf(savings) {
		if e.Time > max(saved, steps[0].Start) && e.Time < steps[len(steps)-1].End {
			saved, seen = e.Time, proof{what: name(e.Text), At: e.At}
		}
	}
	from := slices.IndexFunc(steps, func(s account.Step) bool { return s.End > saved })
	if saved == 0 || from < 1 {
		return
	}
	lost, seconds := int64(0), 0.0
	after := steps[from:]
	for i := range after {
		n := after[i].Steps
		lost, seconds = lost+int64(n), seconds+after[i].Each()*float64(n)
	}
	cl := claim{kind: "unsaved", cost: math.NaN(), grade: remark, proof: []proof{seen}}
	if before := &steps[from-1]; seen.what == "" {
		cl.proof[0] = c.proofOf(before, before.Each())
	}
	if n := steps[from-1].Number; n >= 0 {
		cl.what = c.sf("The last checkpoint that the logs tell of is of step %s: a restart does %s again (%s)", "日志中最后的检查点在第 %s 步：重启后须重做 %s（%s）",
			human.Thousands(n), c.steps(lost), human.Seconds(seconds))
	} else {
		cl.what = c.sf("After the last checkpoint that the logs tell of, %s followed (%s): a restart does this again", "日志中最后的检查点之后又做了 %s（%s）：重启后须重做",
			c.steps(lost), human.Seconds(seconds))
	}
	c.claims = append(c.claims, cl)
}

// chineseEnds has the meaning of the kinds of ends in Chinese, and the advice.
var chineseEnds = map[string]struct{ what, advice string }{
	string(events.ClassCUDAError):  {"CUDA 调用失败", "在该 rank 上设置 CUDA_LAUNCH_BLOCKING=1 定位核函数，并查看主机内核日志中的 Xid。"},
	string(events.ClassECC):        {"GPU 出现不可纠正的内存错误（ECC）", "停用该 GPU 并检测；任务可在其他节点重新启动。"},
	string(events.ClassCUDAOOM):    {"显存耗尽", "减小 micro batch 或序列长度，或增加切分。"},
	string(events.ClassXid):        {"驱动报告 Xid 错误", "在 NVIDIA 的 Xid 目录中查该编号；若为硬件故障，请隔离该节点。"},
	string(events.ClassHostOOM):    {"主机（或其 cgroup）内存耗尽", "申请更多内存，或减少数据加载进程占用的内存。"},
	string(events.ClassMismatch):   {"同组 rank 调用了不同的集合通信；哪一方有误，日志未说明", "比较双方在该步执行的分支、形状与数据类型。"},
	string(events.ClassNetwork):    {"网络出错", "检查链路两端：线缆、交换机端口、GID、防火墙；报告者往往不是故障方。"},
	string(events.ClassTimeLimit):  {"调度系统因时间限制结束了任务", ""},
	string(events.ClassCancelled):  {"任务被取消", ""},
	string(events.ClassDataLoader): {"数据加载进程死亡", ""},
	string(events.ClassCheckpoint): {"保存或加载检查点失败", ""},
	string(events.ClassException):  {"程序抛出异常", ""},
	string(events.ClassSignal):     {"进程因信号终止", ""},
	string(events.ClassExit):       {"进程以错误码退出", "查看每个 rank 的输出：torchrun --log-dir 或 --tee 3。"},
	string(events.ClassGone):       {"进程消失；原因未知", "查看该进程的日志与其主机的内核日志。"},
	string(events.ClassEngine):     {"推理引擎终止；原因不在此处", ""},
	string(events.ClassBehind):     {"该 rank 未到达其他 rank 等待的集合通信", "查看该 rank 最后做了什么：它自己的日志、调用栈（py-spy）。"},
	string(events.ClassNCCL):       {"NCCL 出错", ""},
	string(events.ClassFrozen):     {"进程在内核中挂起", ""},
	string(events.ClassTimeout): {
		"rank 在集合通信中等待直至超时；谁落后，日志未说明",
		"收集所有 rank 的 Flight Recorder 转储（TORCH_NCCL_TRACE_BUFFER_SIZE、TORCH_NCCL_DUMP_ON_TIMEOUT）：它们能说明谁落后。",
	},
	string(events.ClassPeer):     {"连接被对端关闭；谁先退出，日志未说明", "查看其他 rank 的日志：最先退出者写明了原因。"},
	postmortem.KindWaiting:       {"第一步之前在等待其他 rank 或节点", "检查所有 rank 的进程是否已启动、首个 rank 的地址是否一致，并查看它们的日志。"},
	postmortem.KindSIGKILL:       {"进程被 SIGKILL 杀死；由谁杀死，日志未说明", "查看主机内核日志中的 OOM killer 与调度系统。"},
	postmortem.KindSIGTERM:       {"进程被 SIGTERM 终止；由谁发出，日志未说明", "查看主机内核日志与调度系统。"},
	postmortem.KindNotUnderstood: {"运行以无法理解的错误结束", ""},
	postmortem.KindStuck:         {"所有 rank 都进入了集合通信而无一返回：没有 rank 落后，网络或 GPU 停滞", "检查这些 rank 的链路与 GPU：NCCL 日志、ibstat、内核日志。"},
}

// chineseEnd says how the run ended in Chinese, with the ranks and hosts to blame, and then has the English sentence, which quotes the log.
func chineseEnd(end *postmortem.End) string {
	text := cmp.Or(chineseEnds[end.Kind].what, "运行因错误结束")
	if len(end.Ranks) > 0 {
		text += "（" + human.Ranks(end.Ranks) + "）"
	}
	if len(end.Hosts) > 0 {
		text += "（主机 " + strings.Join(end.Hosts, "、") + "）"
	}
	return text + "。" + end.Sentence
}
