package html

// words are the texts of the page itself, by language.
var words = map[string]map[string]string{
	"en": {
		"theme": "colours", "auto": "as the system", "light": "light", "dark": "dark",
		"contents": "sections", "gaps": "Not known from these logs", "jobs": "jobs", "evidence": "evidence", "drawn": "see it drawn", "numbers": "numbers",
		"more":   "%d more rows are in --format csv",
		"toggle": "show or hide", "median": "median", "from": "from", "to": "to", "values": "values",
		"search": "search rows", "previous": "previous (Shift+Enter)", "next": "next (Enter)",
		"zoomIn": "zoom in (+)", "zoomOut": "zoom out (-)", "zoomAll": "all of it (0)", "unfold": "unfold", "fold": "fold",
		"chartKeys": "Arrow keys move the cursor, + and - zoom, 0 shows all.",
		"heatKeys":  "Arrow keys read the cells.",
		"treeKeys":  "Arrow keys move and fold, + and - zoom, Enter zooms to a row, 0 shows all.",
		"keys": "Charts: drag to zoom, double-click for all; with the keyboard arrow keys, + - 0. Traces: drag on the ruler or Ctrl+wheel to zoom, " +
			"arrow keys move and fold, Enter zooms to a row.",
		"link": "link to this trace", "noTrace": "Trace %s is not drawn on this page.", "noStep": "Step %d is not on this page, which has steps %d to %d.",
		"noSteps": "No steps are on this page.", "reading": "reading the logs: %d%", "asOf": "as of %s",
		"gone":   "The server does not answer: trainbridge report --serve has ended, or cannot be reached.",
		"served": "Served by trainbridge report --serve, from logs alone. This page asks its own server and nothing else.",
		"made":   "Made by trainbridge report from logs alone. This file asks nothing of any network.",
	},
	"zh": {
		"theme": "配色", "auto": "跟随系统", "light": "浅色", "dark": "深色",
		"contents": "章节", "gaps": "这些日志无法说明的", "jobs": "任务", "evidence": "依据", "drawn": "查看调用链", "numbers": "数据", "more": "其余 %d 行见 --format csv",
		"toggle": "显示或隐藏", "median": "中位数", "from": "从", "to": "到", "values": "个值",
		"search": "搜索", "previous": "上一个 (Shift+Enter)", "next": "下一个 (Enter)",
		"zoomIn": "放大 (+)", "zoomOut": "缩小 (-)", "zoomAll": "全部 (0)", "unfold": "全部展开", "fold": "全部折叠",
		"chartKeys": "方向键移动光标，+ 和 - 缩放，0 显示全部。",
		"heatKeys":  "方向键读取单元格。",
		"treeKeys":  "方向键移动和折叠，+ 和 - 缩放，Enter 放大到该行，0 显示全部。",
		"keys":      "图表：拖动放大，双击还原；键盘：方向键、+ - 0。调用链：在标尺上拖动或 Ctrl+滚轮缩放，方向键移动和折叠，Enter 放大到该行。",
		"link":      "本调用链的链接", "noTrace": "本页未画出调用链 %s。", "noStep": "本页没有第 %d 步，只有第 %d 至 %d 步。",
		"noSteps": "本页没有步。", "reading": "正在读取日志：%d%", "asOf": "截至 %s",
		"gone":   "服务器没有应答：trainbridge report --serve 已结束，或无法访问。",
		"served": "由 trainbridge report --serve 仅根据日志提供。本页只向该服务器请求数据。",
		"made":   "由 trainbridge report 仅根据日志生成。本文件不访问任何网络。",
	},
}
