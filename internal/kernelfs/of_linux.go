package kernelfs

import "golang.org/x/sys/unix"

// names of the file systems by their numbers in statfs(2). devtmpfs has the number of tmpfs, a possible place of logs: its devices are no regular files.
var names = map[int64]string{
	unix.PROC_SUPER_MAGIC: "proc", unix.SYSFS_MAGIC: "sysfs", unix.CGROUP_SUPER_MAGIC: "cgroup", unix.CGROUP2_SUPER_MAGIC: "cgroup2",
	unix.DEBUGFS_MAGIC: "debugfs", unix.TRACEFS_MAGIC: "tracefs", unix.DEVPTS_SUPER_MAGIC: "devpts", unix.SECURITYFS_MAGIC: "securityfs",
	unix.SELINUX_MAGIC: "selinuxfs", unix.SMACK_MAGIC: "smackfs", unix.AAFS_MAGIC: "apparmorfs", unix.BPF_FS_MAGIC: "bpf", unix.PSTOREFS_MAGIC: "pstore",
	unix.EFIVARFS_MAGIC: "efivarfs", unix.BINFMTFS_MAGIC: "binfmt_misc", unix.HUGETLBFS_MAGIC: "hugetlbfs", unix.NSFS_MAGIC: "nsfs",
	unix.RDTGROUP_SUPER_MAGIC: "resctrl", unix.BINDERFS_SUPER_MAGIC: "binder", unix.XENFS_SUPER_MAGIC: "xenfs",
	// Of linux/magic.h and of the kernel's own sources, without a name in package unix.
	0x62656570: "configfs", 0x65735543: "fusectl", 0x19800202: "mqueue", 0x67596969: "rpc_pipefs", 0x6e667364: "nfsd",
}

// Of returns the name of the kernel's file system of a directory; "": none, or unknown.
func Of(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	return names[int64(st.Type)&0xffffffff] //nolint:unconvert // other architectures have other types
}
