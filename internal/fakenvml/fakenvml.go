// Package fakenvml builds a libnvidia-ml.so.1 that needs no GPU (nvml.c) and sets its answers, also while a process has the library loaded. Building needs gcc,
// and takes nvml.h from the module's go-nvml.
//
// A process finds the library by LD_LIBRARY_PATH, or by [nvml.WithLibraryPath] in a test. The dynamic linker never unloads the library and binds a process to
// the first one loaded: build the library once in a test binary (TestMain), and start a process for a library that lacks functions.
//
// # Directives
//
// The text of [State.Set] holds one directive per line and replaces the text before; an empty text stands for one healthy device. A mistake in the text aborts
// the process that loaded the library. DEVICE is the index of a GPU (2), one of its MIG devices (2/0), or * for all GPUs. CODE is a number of nvmlReturn_t.
//
//	devices N                     GPUs, 0 to 16
//	model TEXT                    name of all GPUs
//	driver TEXT                   version of the driver
//	init CODE                     nvmlInit returns it
//	all CODE                      every call but nvmlInit and nvmlShutdown returns it: the driver went away
//	hang 1                        every call blocks until the text says otherwise
//	now MICROSECONDS              the clock of samples and fields, else it is the machine's
//	function FUNCTION CODE        the function returns it, for all devices
//	device DEVICE FUNCTION CODE   the function returns it for the device
//	field DEVICE FIELD CODE       the field (a number, NVML_FI_DEV_…) has it in nvmlDeviceGetFieldValues
//	lost DEVICE                   every call on the GPU and its handle by index return NVML_ERROR_GPU_IS_LOST
//	name DEVICE TEXT              its name
//	uuid DEVICE TEXT              its UUID
//	value DEVICE NAME NUMBER      one of the values below
//	samples DEVICE NAME T=V …     the samples (µs=value, oldest first, up to 120; none: there are none) of gpu_util,
//	                              mem_util, enc_util, dec_util or power_mw
//	process DEVICE PID BYTES      a compute process, instead of the default one; without PID and BYTES there is none
//	mig DEVICE N                  MIG is enabled, with N (0 to 7) MIG devices
//	xid DEVICE CODE               one XID event for each event set that is registered when the fake first sees the text
//
// FUNCTION without a version stands for all its versions: nvmlDeviceGetMemoryInfo fails both, nvmlDeviceGetMemoryInfo_v2 one. A slash and a number restrict
// FUNCTION to one value of its enum argument: nvmlDeviceGetSamples/3 (encoder), nvmlDeviceGetClockInfo/3.
//
// # Values
//
// The values of GPU i, as NVML returns them. Values with _now are read at one instant, values without are those of the default samples, all equal: up to 120 at
// multiples of 200 ms (power: 20 ms) of the clock up to now.
//
//	gpu_util, mem_util, enc_util, dec_util       40+i, 30+i, 50+i, 60+i %
//	gpu_util_now, mem_util_now, enc_util_now …   45+i, 35+i, 55+i, 65+i %
//	power_mw, power_now_mw                       300000+10000i, 305000+10000i mW
//	energy_mj                                    1000000+1000i mJ
//	mem_total, mem_reserved, mem_used            80 GiB, 1 GiB, 10+i GiB; nvmlDeviceGetMemoryInfo (version 1) returns
//	                                             used and reserved together: 11+i GiB. Free is 69-i GiB.
//	temperature, memory_temperature              50+i, 60+i °C
//	graphics_mhz, sm_mhz, mem_mhz, video_mhz     1700+10i, 1600+10i, 2600+10i, 1500+10i MHz
//	pcie_tx_bytes, pcie_rx_bytes                 10⁹+1000i, 2·10⁹+1000i bytes; pcie_value_type: their nvmlValueType_t, 3
//	pcie_tx_kib_s, pcie_rx_kib_s                 1000+i, 2000+i KiB/s of nvmlDeviceGetPcieThroughput
//	nvlinks                                      18
//	nvlink_tx_kib, nvlink_rx_kib                 1800000+18i, 3600000+18i KiB over all links; each link has its share, as
//	                                             KiB in fields 138 and 139, as bytes in 202 and 204 (which have no total)
//	event_reasons                                4: software power cap
//	violation_ns                                 10⁹+10⁶i ns, times (policy+1): power 1 s, thermal 2 s, …, total base clocks 12 s
//	ecc_mode                                     1; at 0 nvmlDeviceGetTotalEccErrors is not supported
//	ecc_corrected, ecc_uncorrected               2+i, 0 (volatile); ecc_corrected_aggregate 102+i, ecc_uncorrected_aggregate 100
//	remapped_corrected, remapped_uncorrected     1+i, 0; remapped_pending, remapped_failure: 0
//	retired_pending                              0
//	max_mig_devices                              7
//	event_types                                  11: single and double bit ECC errors, XID errors
//
// UUID GPU-00000000-0000-0000-0000-00000000000i (12 decimal digits), name NVIDIA H200, driver 570.124.06, one compute process with pid 1000+i and 8+i GiB.
//
// MIG device m of GPU i: UUID MIG-00000000-0000-0000-000i-00000000000m, name NVIDIA H200 MIG 1g.10gb, memory 10 GiB, none reserved, 1+m GiB used, one process
// with pid 2000+10i+m and 0.5 GiB, GPU instance m+1, compute instance 0. The GPU then lists its MIG devices' processes instead of its own, and has neither
// utilisation nor remapped rows, as a real GPU. MIG devices have index, UUID, name, memory and processes; everything else is not supported.
//
// As the driver does, nvmlDeviceGetSamples without a buffer returns the room (120), with one the number of samples, or NVML_ERROR_NOT_FOUND. Handles from
// before an nvmlShutdown are invalid afterwards.
package fakenvml

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	// Env names the state file to the library, read at nvmlInit. Without Env there is one healthy device.
	Env = "FAKE_NVML"
	// Library is the name of the library's file.
	Library = "libnvidia-ml.so.1"

	stateSize = 64 << 10 // as in nvml.c
)

//go:embed nvml.c
var source string

// Build is BuildDir in a temporary folder of the test, and returns the folder.
func Build(tb testing.TB, without ...string) string {
	tb.Helper()
	dir := tb.TempDir()
	if err := BuildDir(dir, without...); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// BuildDir compiles nvml.c into a library in dir, with gcc and the nvml.h of the module's go-nvml. Functions named by without are missing, as in an old driver.
func BuildDir(dir string, without ...string) error {
	header, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml/pkg/nvml").Output()
	if err != nil {
		return fmt.Errorf("folder of nvml.h: %w", err)
	}
	symbols := filepath.Join(dir, "fakenvml.map") // an exact name wins over nvml*
	if err := os.WriteFile(symbols, []byte("{ global: nvml*; local: "+strings.Join(append(without, "*"), "; ")+"; };\n"), 0o600); err != nil {
		return err
	}
	//nolint:gosec // G204: the arguments are the test's
	gcc := exec.Command("gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-Wl,-soname,"+Library, "-Wl,--version-script,"+symbols,
		"-I", strings.TrimSpace(string(header)), "-o", filepath.Join(dir, Library), "-x", "c", "-", "-lpthread", "-ldl")
	gcc.Stdin = strings.NewReader(source)
	if out, err := gcc.CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return nil
}

// State has the answers of the fake, in a file that the fake maps into memory: 8 bytes of the generation, then the text up to a zero byte.
type State struct {
	file       *os.File
	generation uint64 // a number of versions, odd while the text is being written: the fake reads again
}

// New creates the state file. The text is as for [State.Set].
func New(path, text string) (*State, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	s := &State{file: file}
	if err := file.Truncate(stateSize); err != nil {
		_ = file.Close()
		return nil, err
	}
	return s, s.Set(text)
}

// Use creates a state file for the test and names the file in the test's environment. The calling test cannot be parallel.
func Use(tb testing.TB, text string) *State {
	tb.Helper()
	s, err := New(filepath.Join(tb.TempDir(), "state"), text)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	tb.Setenv(Env, s.Path())
	return s
}

// Path is the value for Env.
func (s *State) Path() string { return s.file.Name() }

// Set replaces the text, visible to the next call into the library. The generation is raised before and after. An error is one of the file, or a text of 64 KiB
// or more.
func (s *State) Set(text string) error {
	if len(text) > stateSize-8-1 {
		return fmt.Errorf("state of %d bytes", len(text))
	}
	for _, write := range []func() error{s.bump, func() error { return s.write(append([]byte(text), 0), 8) }, s.bump} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the file. A process that mapped the file goes on with the last text.
func (s *State) Close() error { return s.file.Close() }

// bump raises the generation by one.
func (s *State) bump() error {
	s.generation++
	return s.write(binary.NativeEndian.AppendUint64(nil, s.generation), 0)
}

func (s *State) write(p []byte, offset int64) error {
	_, err := s.file.WriteAt(p, offset)
	return err
}
