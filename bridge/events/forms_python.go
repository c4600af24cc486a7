package events

// python are lines of CPython and of its libraries. Tracebacks are assembled by traceback.go; a form of this table classifies their exception.
var python = []Form{
	{
		Name: "python.disk_full", Writer: "OSError", Class: ClassDisk, Text: "No space left on device", Pattern: `(?:Error|error|failed).*No space left on device`,
		Example: "OSError: [Errno 28] No space left on device: '/ckpt/step_100/model.pt'",
	},
	{
		Name: "python.disk_quota", Writer: "OSError", Class: ClassDisk, Text: "Disk quota exceeded",
		Example: "OSError: [Errno 122] Disk quota exceeded",
	},
	{
		Name: "python.stale", Writer: "OSError", Class: ClassException, Text: "[Errno 116] Stale file handle",
		Example: "OSError: [Errno 116] Stale file handle: '/data/shard-00311.tar'",
	},
	{
		Name: "python.torch_save", Writer: "PyTorch inline_container.cc", Class: ClassCheckpoint, Text: "PytorchStreamWriter failed", Pattern: `(?P<what>PytorchStreamWriter failed[^\n]{0,80})`,
		Example: "RuntimeError: PytorchStreamWriter failed writing file data/12: file write failed",
	},
	{
		Name: "python.torch_save_pos", Writer: "PyTorch inline_container.cc", Class: ClassCheckpoint, Text: "inline_container.cc", Pattern: `enforce fail at inline_container.cc:\d+\] ?\. ?(?P<what>[^\n]{0,80})`,
		Example: "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 1473185024 vs 1473184912",
	},
	{
		Name: "python.torch_load", Writer: "PyTorch inline_container.cc", Class: ClassCheckpoint, Text: "PytorchStreamReader failed", Pattern: `(?P<what>PytorchStreamReader failed[^\n]{0,80})`,
		Example: "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
	},
	{
		Name: "python.safetensors", Writer: "safetensors", Class: ClassCheckpoint, Text: "Error while deserializing header", Pattern: `(?P<what>Error while deserializing header: \w+)`,
		Example: "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
	},
	{
		Name: "python.memory", Writer: "CPython", Class: ClassException, Text: "MemoryError", Pattern: `(?:^|\W)(?P<what>(?:\w+\.)*_?(?:Array)?MemoryError)(?:: |$)`,
		Example: "MemoryError: Unable to allocate 12.0 GiB for an array with shape (40000, 40000) and data type float64",
	},
	{
		Name: "python.cannot_allocate", Writer: "PyTorch CPUAllocator", Class: ClassException, Text: "DefaultCPUAllocator: ", Pattern: `DefaultCPUAllocator: (?:can't allocate memory|not enough memory)`,
		Example: "RuntimeError: [enforce fail at alloc_cpu.cpp:116] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 137438953472 bytes. Error code 12 (Cannot allocate memory)",
	},
	{
		Name: "python.errno12", Writer: "OSError", Class: ClassException, Text: "[Errno 12] Cannot allocate memory",
		Example: "OSError: [Errno 12] Cannot allocate memory",
	},
	{
		Name: "datasets.map_died", Writer: "datasets utils/py_utils.py", Class: ClassGone, Text: "subprocesses has abruptly died", Pattern: `One of the subprocesses has abruptly died (?P<what>during map operation)`,
		Example: "RuntimeError: One of the subprocesses has abruptly died during map operation.To debug the error, disable multiprocessing.",
	},
	{
		Name: "python.segfault", Writer: "faulthandler", Class: ClassSignal, Text: "Fatal Python error: ", Pattern: `Fatal Python error: (?P<what>Segmentation fault|Aborted|Bus error|Floating[- ]point exception|Illegal instruction)`,
		Example: "Fatal Python error: Segmentation fault",
	},
	{
		Name: "python.signal", Writer: "PyTorch, shells", Class: ClassSignal, Text: "egmentation fault", Pattern: `(?:^|[:\]\d] +)(?:line \d+: +(?P<pid>\d+) +)?(?P<what>[Ss]egmentation fault)(?:\s*\(core dumped\).*|: 11.*|\s{2,}.*|\s*$)`,
		Example: "Segmentation fault (core dumped)",
	},
	{
		Name: "python.core", Writer: "shells", Class: ClassSignal, Text: "(core dumped)", Pattern: `(?:line \d+: +(?P<pid>\d+) +)?(?P<what>Aborted|Bus error|Floating point exception|Illegal instruction|Quit)\s+\(core dumped\)`,
		Example: "Aborted (core dumped)",
	},
	{
		Name: "python.killed", Writer: "shells", Class: ClassSignal, Text: "Killed", Pattern: `^(?:\[[\w.]+\]:? ?|\S+: line \d+: +(?P<pid>\d+) |\*\*)?(?P<what>Killed)(?:\s{2,}.*|\**\s*)$`,
		Example: "Killed",
	},
	{
		Name: "zsh.killed", Writer: "zsh", Class: ClassSignal, Text: " killed ", Pattern: `^\[\d+\] +(?:[-+] +)?(?P<pid>\d+) (?P<what>killed) `,
		Example: "[1]    75076 killed     python main.py",
	},
	{
		Name: "python.threads", Writer: "libstdc++", Class: ClassException, Text: "Resource temporarily unavailable", Pattern: `(?P<what>(?:thread|fork|pthread_create|clone)[^\n]*Resource temporarily unavailable)`,
		Example: "[2025-03-04 19:28:30,014 E 27497 27497] logging.cc:113: Unhandled exception: boost::system::system_error. what(): thread: Resource temporarily unavailable [system:11]",
	},
	{
		Name: "python.arguments", Writer: "CPython argparse.py", Class: ClassException, Text: ": error: ",
		Pattern: `^[\w./-]+(?: \w+)?: error: (?P<what>(?:unrecognized arguments|the following arguments are required|ambiguous option|argument \S+): [^\n]+|one of the arguments [^\n]+ is required)`,
		Example: "train.py: error: unrecognized arguments: --learning-rat 3e-4",
	},
	wentOn,
	{
		Name: "python.exit_functions", Writer: "CPython atexit", Class: ClassExiting, Text: "Error in atexit._run_exitfuncs", Example: "Error in atexit._run_exitfuncs:",
	},
	{
		Name: "python.interrupt", Writer: "CPython", Class: ClassCancelled, Text: "KeyboardInterrupt", Pattern: `(?:^|[\s:])(?P<what>KeyboardInterrupt)\b`,
		Example: "KeyboardInterrupt",
	},
	{
		Name: "python.peer", Writer: "CPython", Class: ClassPeer, Text: "Error", Pattern: `^(?:\w+\.)*(?:BrokenPipeError|ConnectionResetError|ConnectionAbortedError|EOFError|ConnectionRefusedError)(?:: |$)`,
		Example: "BrokenPipeError: [Errno 32] Broken pipe",
	},
	{
		Name: "python.leaked", Writer: "multiprocessing/resource_tracker.py", Class: ClassWarning, Text: "resource_tracker: There appear",
		Example: "UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects to clean up at shutdown",
	},
}
