package main

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// oldest is the glibc of manylinux2014: pip knows no manylinux_2_N below.
const oldest = 17

var (
	elfMachines   = map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "aarch64"}
	machoMachines = map[macho.Cpu]string{macho.CpuAmd64: "x86_64", macho.CpuArm64: "arm64"}
)

// platforms returns the tags of the systems that the program runs on: its least glibc, musl for a program without libraries, or its least macOS. A static
// program gets no tag of glibc, though it would run: pip would find it as good a match as the program with NVML.
func platforms(program []byte) ([]string, error) {
	if f, err := elf.NewFile(bytes.NewReader(program)); err == nil {
		machine, ok := elfMachines[f.Machine]
		if !ok {
			return nil, fmt.Errorf("no tag for %v", f.Machine)
		}
		libraries, err := f.ImportedLibraries()
		if err != nil {
			return nil, err
		}
		if len(libraries) == 0 {
			return []string{"musllinux_1_1_" + machine}, nil
		}
		minor, err := glibc(f)
		if err != nil {
			return nil, err
		}
		tags := []string{fmt.Sprintf("manylinux_2_%d_%s", minor, machine)}
		if minor == oldest { // a pip of before 2021 knows no other name
			tags = append(tags, "manylinux2014_"+machine)
		}
		return tags, nil
	}
	f, err := macho.NewFile(bytes.NewReader(program))
	if err != nil {
		return nil, errors.New("neither ELF nor Mach-O")
	}
	machine, ok := machoMachines[f.Cpu]
	if !ok {
		return nil, fmt.Errorf("no tag for %v", f.Cpu)
	}
	const buildVersion, size = 0x32, 16 // LC_BUILD_VERSION: command, its size, platform, least version as xxxx.yy.zz
	for _, l := range f.Loads {
		if raw := l.Raw(); len(raw) >= size && f.ByteOrder.Uint32(raw) == buildVersion {
			least := f.ByteOrder.Uint32(raw[12:])
			return []string{fmt.Sprintf("macosx_%d_%d_%s", least>>16, least>>8&0xff, machine)}, nil
		}
	}
	return nil, errors.New("it does not say for which macOS it is")
}

// glibc returns N of the least glibc 2.N with all symbol versions of the program.
func glibc(f *elf.File) (int, error) {
	versions, err := f.DynamicVersionNeeds()
	if err != nil {
		return 0, err
	}
	minor := oldest
	for _, library := range versions {
		for _, need := range library.Needs {
			version, found := strings.CutPrefix(need.Dep, "GLIBC_2.")
			if !found {
				return 0, fmt.Errorf("%s of %s is not of glibc", need.Dep, library.Name)
			}
			text, _, _ := strings.Cut(version, ".") // 2.2.5
			n, err := strconv.Atoi(text)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", need.Dep, err)
			}
			minor = max(minor, n)
		}
	}
	return minor, nil
}
