//go:build ignore

// A libnvidia-ml.so.1 without a GPU, for tests and benchmarks. What it answers is told by a text in the file named by
// $FAKE_NVML; the doc comment of the Go package beside it describes directives and default values.
//
// The file is mapped: 8 bytes generation, then the text. The generation is odd while the text is being written. Each
// call looks at the generation and parses the text again if it is another one, so a call costs a lock and a load.

#define _GNU_SOURCE
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "nvml.h"

#define STATE_SIZE 65536 // as in fakenvml.go
#define GIB (1ULL << 30)
#define ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

// Devices have ids: the id of a GPU is its index, the ids of MIG devices follow (8 for each GPU).
enum { GPUS = 16, MIGS = 8, IDS = GPUS * (1 + MIGS), ALL = -1, ANY = -1, RULES = 256, PROCESSES = 32, SAMPLE_KINDS = 5, SAMPLES = 120 };
#define MIG_ID(gpu, mig) (GPUS + (gpu) * MIGS + (mig))
#define IS_MIG(id) ((id) >= GPUS)
#define GPU_OF(id) (IS_MIG(id) ? ((id) - GPUS) / MIGS : (id))
#define MIG_OF(id) (((id) - GPUS) % MIGS)

// Numbers of a device: name, value of GPU 0, difference from GPU to GPU.
#define VALUES(X) \
    X(gpu_util, 40, 1) X(mem_util, 30, 1) X(enc_util, 50, 1) X(dec_util, 60, 1) X(power_mw, 300000, 10000) /* samples */ \
    X(gpu_util_now, 45, 1) X(mem_util_now, 35, 1) X(enc_util_now, 55, 1) X(dec_util_now, 65, 1) X(power_now_mw, 305000, 10000) \
    X(energy_mj, 1000000, 1000) X(mem_total, 80 * GIB, 0) X(mem_reserved, 1 * GIB, 0) X(mem_used, 10 * GIB, GIB) \
    X(temperature, 50, 1) X(memory_temperature, 60, 1) X(graphics_mhz, 1700, 10) X(sm_mhz, 1600, 10) X(mem_mhz, 2600, 10) \
    X(video_mhz, 1500, 10) X(pcie_tx_bytes, 1000000000, 1000) X(pcie_rx_bytes, 2000000000, 1000) \
    X(pcie_value_type, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 0) X(pcie_tx_kib_s, 1000, 1) X(pcie_rx_kib_s, 2000, 1) \
    X(nvlinks, 18, 0) X(nvlink_tx_kib, 1800000, 18) X(nvlink_rx_kib, 3600000, 18) \
    X(event_reasons, nvmlClocksEventReasonSwPowerCap, 0) X(violation_ns, 1000000000, 1000000) X(ecc_mode, 1, 0) \
    X(ecc_corrected, 2, 1) X(ecc_uncorrected, 0, 0) X(ecc_corrected_aggregate, 102, 1) X(ecc_uncorrected_aggregate, 100, 0) \
    X(remapped_corrected, 1, 1) X(remapped_uncorrected, 0, 0) X(remapped_pending, 0, 0) X(remapped_failure, 0, 0) \
    X(retired_pending, 0, 0) X(max_mig_devices, 7, 0) \
    X(event_types, nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError | nvmlEventTypeXidCriticalError, 0)
#define VALUE_ID(name, base, step) name,
#define VALUE_NAME(name, base, step) #name,
#define VALUE_DEFAULT(name, base, step) values[name] = (base) + i * (step);
enum { VALUES(VALUE_ID) VALUE_COUNT };
static const char *const value_names[] = {VALUES(VALUE_NAME)};

typedef unsigned long long u64;

static const struct { int sampling, value, period_us; } sample_kinds[SAMPLE_KINDS] = {
    {NVML_TOTAL_POWER_SAMPLES, power_mw, 20000},
    {NVML_GPU_UTILIZATION_SAMPLES, gpu_util, 200000},
    {NVML_MEMORY_UTILIZATION_SAMPLES, mem_util, 200000},
    {NVML_ENC_UTILIZATION_SAMPLES, enc_util, 200000},
    {NVML_DEC_UTILIZATION_SAMPLES, dec_util, 200000},
};

static struct {
    int devices;
    int hang;
    nvmlReturn_t all;
    u64 now; // µs, 0: the clock's
    char driver[96];
    int rule_count;
    struct rule {
        int id, argument; // or ALL, ANY
        char function[64];
        nvmlReturn_t code;
    } rules[RULES];
    struct device {
        int lost;
        int mig; // MIG devices, -1: MIG is disabled
        char name[96], uuid[96];
        u64 values[VALUE_COUNT];
        int process_count;
        nvmlProcessInfo_t processes[PROCESSES];
    } devs[IDS];
    struct samples {
        int count; // -1: the default ones
        nvmlSample_t list[SAMPLES];
    } samples[GPUS][SAMPLE_KINDS];
} config;

static struct event_set {
    int used, count;
    u64 types[GPUS];
    nvmlEventData_t queue[64];
} event_sets[8];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int inits;              // initialisations less shutdowns
static const char *state;      // the mapped file, or NULL
static u64 generation = ~0ULL; // of the text that config was read from
static char handles[64][IDS];  // a handle is an address in row epoch % 64, so that handles given out before a shutdown are invalid
static unsigned int epoch;

// ---- the state file

// A mistake in a test's text must not pass unseen.
static void bad(const char *what, const char *text) {
    fprintf(stderr, "fake NVML: %s: %s\n", what, text);
    abort();
}

static u64 number(const char *word) {
    char *end;
    u64 n = strtoull(word, &end, 10);
    if (*word < '0' || *word > '9' || *end) bad("number expected", word);
    return n;
}

static int limited(const char *word, int limit) {
    u64 n = number(word);
    if (n >= (u64)limit) bad("number too large", word);
    return (int)n;
}

// target reads "2" (a GPU), "2/0" (the first MIG device of it) or "*" (ALL).
static int target(char *word) {
    if (strcmp(word, "*") == 0) return ALL;
    char *mig = strchr(word, '/');
    if (!mig) return limited(word, GPUS);
    *mig = 0;
    return MIG_ID(limited(word, GPUS), limited(mig + 1, MIGS));
}

// known says whether the library has the function, with or without a version.
static int known(const char *function) {
    char name[80];
    for (int version = 1; version <= 3; version++) {
        snprintf(name, sizeof(name), version == 1 ? "%s" : "%s_v%d", function, version);
        if (dlsym(RTLD_DEFAULT, name)) return 1;
    }
    return 0;
}

static void add_rule(int id, const char *function, int argument, const char *code) {
    if (config.rule_count == RULES) bad("too many rules", function);
    struct rule *rule = &config.rules[config.rule_count++];
    const char *slash = strchrnul(function, '/');
    snprintf(rule->function, sizeof(rule->function), "%.*s", (int)(slash - function), function);
    if (!known(rule->function)) bad("no such function", rule->function);
    rule->id = id;
    rule->argument = *slash ? limited(slash + 1, INT_MAX) : argument;
    rule->code = (nvmlReturn_t)number(code);
}

static void add_samples(int id, char **words) {
    int kind = 0;
    while (kind < SAMPLE_KINDS && strcmp(words[0], value_names[sample_kinds[kind].value]) != 0) kind++;
    if (kind == SAMPLE_KINDS || IS_MIG(id)) bad("no samples of", words[0]);
    struct samples *samples = &config.samples[id][kind];
    for (words++, samples->count = 0; **words; words++) {
        nvmlSample_t *sample = &samples->list[samples->count++];
        if (samples->count > SAMPLES || sscanf(*words, "%llu=%u", &sample->timeStamp, &sample->sampleValue.uiVal) != 2)
            bad("up to 120 µs=value expected", *words);
    }
}

static void add_process(struct device *dev, char **words) {
    if (dev->process_count > 0 && dev->processes[0].pid == 0) dev->process_count = 0; // the default is replaced
    if (!*words[0]) return;
    if (dev->process_count == PROCESSES) bad("too many processes", words[0]);
    dev->processes[dev->process_count++] = (nvmlProcessInfo_t){(unsigned int)number(words[0]), number(words[1]), UINT_MAX, UINT_MAX};
}

static void add_xid(int id, u64 code) {
    int gpu = GPU_OF(id);
    nvmlEventData_t event = {{(void *)&handles[epoch % 64][gpu]}, nvmlEventTypeXidCriticalError, code, UINT_MAX, UINT_MAX};
    if (IS_MIG(id)) event.gpuInstanceId = MIG_OF(id) + 1, event.computeInstanceId = 0;
    for (struct event_set *set = event_sets; set < event_sets + ARRAY_LENGTH(event_sets); set++)
        if (set->used && set->types[gpu] & nvmlEventTypeXidCriticalError && set->count < (int)ARRAY_LENGTH(set->queue))
            set->queue[set->count++] = event;
}

static void set_value(struct device *dev, const char *name, const char *value) {
    int v = 0;
    while (v < VALUE_COUNT && strcmp(name, value_names[v]) != 0) v++;
    if (v == VALUE_COUNT) bad("no such value", name);
    dev->values[v] = number(value);
}

#define IS(name) (strcmp(verb, name) == 0)

// directive_of_device takes the text as words and as it is, both from after the device.
static void directive_of_device(const char *verb, int id, char **words, const char *text) {
    struct device *dev = &config.devs[id];
    if (IS("lost")) dev->lost = 1;
    else if (IS("name")) snprintf(dev->name, sizeof(dev->name), "%s", text);
    else if (IS("uuid")) snprintf(dev->uuid, sizeof(dev->uuid), "%s", text);
    else if (IS("mig")) dev->mig = limited(words[0], MIGS);
    else if (IS("samples")) add_samples(id, words);
    else if (IS("process")) add_process(dev, words);
    else if (IS("xid")) add_xid(id, number(words[0]));
    else if (IS("value")) set_value(dev, words[0], words[1]);
    else bad("no such directive", verb);
}

static void directive(char *line) {
    char text[4096], copy[4096], *words[SAMPLES + 12], *rest = copy;
    int count = 0, verb_length = 0, target_length = 0;
    if (snprintf(copy, sizeof(copy), "%s", line) >= (int)sizeof(copy)) bad("line too long", line);
    for (char *word; (word = strsep(&rest, " \t"));)
        if (*word && count < SAMPLES + 8) words[count++] = word;
    if (count == 0 || words[0][0] == '#') return;
    for (int w = 0; w < 4; w++) words[count + w] = ""; // words that are missing, and the end of lists

    sscanf(line, "%*s %n%*s %n", &verb_length, &target_length);
    snprintf(text, sizeof(text), "%s", line + verb_length);
    const char *verb = words[0];
    if (IS("devices")) config.devices = limited(words[1], GPUS + 1);
    else if (IS("driver")) snprintf(config.driver, sizeof(config.driver), "%.90s", text);
    else if (IS("now")) config.now = number(words[1]);
    else if (IS("hang")) config.hang = limited(words[1], 2);
    else if (IS("all")) config.all = (nvmlReturn_t)number(words[1]);
    else if (IS("init")) add_rule(ALL, "nvmlInit", ANY, words[1]);
    else if (IS("function")) add_rule(ALL, words[1], ANY, words[2]);
    else if (IS("device")) add_rule(target(words[1]), words[2], ANY, words[3]);
    else if (IS("field")) add_rule(target(words[1]), "nvmlDeviceGetFieldValues", limited(words[2], INT_MAX), words[3]);
    else if (IS("model")) for (int id = 0; id < GPUS; id++) directive_of_device("name", id, NULL, text);
    else {
        int id = target(words[1]);
        for (int i = id == ALL ? 0 : id; i < (id == ALL ? GPUS : id + 1); i++) directive_of_device(verb, i, words + 2, line + target_length);
    }
}

static void set_defaults(void) {
    memset(&config, 0, sizeof(config));
    config.devices = 1;
    strcpy(config.driver, "570.124.06");
    for (int id = 0; id < IDS; id++) {
        struct device *dev = &config.devs[id];
        u64 *values = dev->values, i = GPU_OF(id), m = IS_MIG(id) ? MIG_OF(id) : 0;
        VALUES(VALUE_DEFAULT)
        dev->mig = -1;
        for (int s = 0; s < SAMPLE_KINDS && !IS_MIG(id); s++) config.samples[id][s].count = -1;
        dev->process_count = 1; // pid 0 marks the default, see processes()
        if (IS_MIG(id)) {
            values[mem_total] = 10 * GIB, values[mem_reserved] = 0, values[mem_used] = (1 + m) * GIB;
            dev->processes[0] = (nvmlProcessInfo_t){0, GIB / 2, 0, 0};
            strcpy(dev->name, "NVIDIA H200 MIG 1g.10gb");
            snprintf(dev->uuid, sizeof(dev->uuid), "MIG-00000000-0000-0000-%04llu-%012llu", i, m);
        } else {
            dev->processes[0] = (nvmlProcessInfo_t){0, (8 + i) * GIB, UINT_MAX, UINT_MAX};
            strcpy(dev->name, "NVIDIA H200");
            snprintf(dev->uuid, sizeof(dev->uuid), "GPU-00000000-0000-0000-0000-%012llu", i);
        }
    }
}

// refresh, called with the lock held, reads the text again if it was written since.
static void refresh(void) {
    if (!state) return;
    char text[STATE_SIZE - 7];
    for (;;) {
        u64 before = __atomic_load_n((const u64 *)state, __ATOMIC_ACQUIRE);
        if (before == generation) return;
        memcpy(text, state + 8, STATE_SIZE - 8);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (before % 2 == 0 && before == __atomic_load_n((const u64 *)state, __ATOMIC_RELAXED)) {
            generation = before;
            break;
        }
    }
    text[STATE_SIZE - 8] = 0;
    set_defaults();
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) directive(line);
}

static void map_state(void) {
    if (state) munmap((void *)state, STATE_SIZE);
    state = NULL, generation = ~0ULL;
    set_defaults();
    const char *path = getenv("FAKE_NVML");
    if (!path || !*path) return;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) bad("cannot open", path);
    void *map = mmap(NULL, STATE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED) bad("cannot map", path);
    state = map;
}

// ---- what all calls have in common

static void nap(void) { nanosleep(&(struct timespec){0, 1000000}, NULL); }

static u64 now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return config.now ? config.now : (u64)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

// rule_for returns the code that the text wants from the function. Names in rules go without or with version.
static nvmlReturn_t rule_for(const char *function, int id, int argument) {
    for (int r = 0; r < config.rule_count; r++) {
        const struct rule *rule = &config.rules[r];
        size_t length = strlen(rule->function);
        if (rule->id != ALL && rule->id != id) continue;
        if (rule->argument != ANY && rule->argument != argument) continue;
        if (strncmp(function, rule->function, length) == 0 && (!function[length] || strncmp(function + length, "_v", 2) == 0))
            return rule->code;
    }
    return NVML_SUCCESS;
}

// What a function takes: INIT and SYSTEM no device, GPU no MIG device, DEVICE either.
enum { INIT, SYSTEM, GPU, DEVICE };
static const nvmlDevice_t no_device = {NULL};

// valid says whether there is a device with the id.
static int valid(int id) {
    return GPU_OF(id) < config.devices && (!IS_MIG(id) || MIG_OF(id) < config.devs[GPU_OF(id)].mig);
}

static nvmlDevice_t handle_of(int id) { return (nvmlDevice_t){(void *)&handles[epoch % 64][id]}; }

// enter locks, whatever it returns.
static nvmlReturn_t enter(const char *function, int takes, nvmlDevice_t device, int argument, int *id) {
    for (;; nap()) {
        pthread_mutex_lock(&mutex);
        refresh();
        if (!config.hang) break;
        pthread_mutex_unlock(&mutex);
    }
    if (takes != INIT && inits == 0) return NVML_ERROR_UNINITIALIZED;
    if (takes != INIT && config.all != NVML_SUCCESS && strcmp(function, "nvmlShutdown") != 0) return config.all;
    if (takes == GPU || takes == DEVICE) {
        char *handle = (char *)device.handle, *first = handles[epoch % 64];
        if (handle < first || handle >= first + IDS || !valid(handle - first)) return NVML_ERROR_INVALID_ARGUMENT;
        *id = handle - first;
        if (config.devs[GPU_OF(*id)].lost) return NVML_ERROR_GPU_IS_LOST;
        if (takes == GPU && IS_MIG(*id)) return NVML_ERROR_NOT_SUPPORTED;
    }
    return rule_for(function, *id, argument);
}

static void leave(int *id) { (void)id, pthread_mutex_unlock(&mutex); }

#define ENTER(takes, handle, argument) \
    __attribute__((cleanup(leave))) int id = ALL; \
    nvmlReturn_t entered = enter(__func__, takes, handle, argument, &id); \
    if (entered != NVML_SUCCESS) return entered; \
    struct device *dev __attribute__((unused)) = &config.devs[id == ALL ? 0 : id]

static nvmlReturn_t copy_text(const char *text, char *out, unsigned int length) {
    if (strlen(text) >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_SUCCESS;
}

// ---- library

nvmlReturn_t nvmlInit_v2(void) {
    pthread_mutex_lock(&mutex);
    if (inits == 0) map_state();
    pthread_mutex_unlock(&mutex);
    ENTER(INIT, no_device, ANY);
    if (inits++ == 0) epoch++;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) { return (void)flags, nvmlInit_v2(); }

nvmlReturn_t nvmlShutdown(void) {
    ENTER(SYSTEM, no_device, ANY);
    if (--inits == 0) memset(event_sets, 0, sizeof(event_sets));
    return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result) {
    static const char *const texts[] = {"Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
        "Already Initialized", "Not Found", "Insufficient Size", "Insufficient External Power", "Driver Not Loaded", "Timeout",
        "Interrupt Request Issue", "NVML Shared Library Not Found", "Function Not Found", "Corrupted infoROM", "GPU is lost",
        "GPU requires reset", "The operating system has blocked the request", "Driver/library version mismatch"};
    return (unsigned int)result < ARRAY_LENGTH(texts) ? texts[result] : "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    ENTER(SYSTEM, no_device, ANY);
    return copy_text(config.driver, version, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
    ENTER(SYSTEM, no_device, ANY);
    char text[128];
    snprintf(text, sizeof(text), "12.%s", config.driver);
    return copy_text(text, version, length);
}

// Without this function W&B's SDK (tools/record-trainers/wandb_offline.py) looks for no devices.
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    ENTER(SYSTEM, no_device, ANY);
    *version = 12080;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    ENTER(SYSTEM, no_device, ANY);
    *count = config.devices;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    ENTER(SYSTEM, no_device, ANY);
    if (index >= (unsigned int)config.devices) return NVML_ERROR_INVALID_ARGUMENT;
    if (config.devs[index].lost) return NVML_ERROR_GPU_IS_LOST;
    *device = handle_of(index);
    return rule_for(__func__, index, ANY);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
    ENTER(DEVICE, device, ANY);
    *index = IS_MIG(id) ? MIG_OF(id) : id;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
    ENTER(DEVICE, device, ANY);
    return copy_text(dev->uuid, uuid, length);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
    ENTER(DEVICE, device, ANY);
    return copy_text(dev->name, name, length);
}

// ---- utilisation, power, samples

// As of the driver: with samples == NULL the count is the room of the buffer, else the number of samples that were
// written, oldest first. The caller must not take the rest of the array for samples.
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, u64 last, nvmlValueType_t *value_type,
                                  unsigned int *count, nvmlSample_t *samples) {
    ENTER(GPU, device, type);
    int kind = 0;
    while (kind < SAMPLE_KINDS && sample_kinds[kind].sampling != (int)type) kind++;
    if (kind == SAMPLE_KINDS || (dev->mig >= 0 && type != NVML_TOTAL_POWER_SAMPLES)) return NVML_ERROR_NOT_SUPPORTED;
    *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    unsigned int room = *count, written = 0;
    *count = SAMPLES;
    if (!samples) return NVML_SUCCESS;
    if (room == 0) return NVML_ERROR_INVALID_ARGUMENT;
    const struct samples *listed = &config.samples[id][kind];
    u64 period = sample_kinds[kind].period_us, newest = now_us() / period * period;
    for (int s = 0; s < (listed->count < 0 ? SAMPLES : listed->count) && written < room; s++) {
        nvmlSample_t sample = listed->list[s];
        if (listed->count < 0) {
            u64 age = (SAMPLES - 1 - s) * period;
            sample = (nvmlSample_t){newest > age ? newest - age : 0, {.uiVal = dev->values[sample_kinds[kind].value]}};
        }
        if (sample.timeStamp > last) samples[written++] = sample;
    }
    *count = written;
    return written ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization) {
    ENTER(GPU, device, ANY);
    if (dev->mig >= 0) return NVML_ERROR_NOT_SUPPORTED;
    *utilization = (nvmlUtilization_t){dev->values[gpu_util_now], dev->values[mem_util_now]};
    return NVML_SUCCESS;
}

#define CODEC_UTILIZATION(function, value) \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int *utilization, unsigned int *period_us) { \
        ENTER(GPU, device, ANY); \
        if (dev->mig >= 0) return NVML_ERROR_NOT_SUPPORTED; \
        *utilization = dev->values[value], *period_us = 200000; \
        return NVML_SUCCESS; \
    }
CODEC_UTILIZATION(nvmlDeviceGetEncoderUtilization, enc_util_now)
CODEC_UTILIZATION(nvmlDeviceGetDecoderUtilization, dec_util_now)

// ---- single numbers

#define GETTER(function, type, value) \
    nvmlReturn_t function(nvmlDevice_t device, type *out) { \
        ENTER(GPU, device, ANY); \
        *out = (type)dev->values[value]; \
        return NVML_SUCCESS; \
    }
GETTER(nvmlDeviceGetPowerUsage, unsigned int, power_now_mw)
GETTER(nvmlDeviceGetTotalEnergyConsumption, u64, energy_mj)
GETTER(nvmlDeviceGetCurrentClocksEventReasons, u64, event_reasons)
GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, event_reasons)
GETTER(nvmlDeviceGetRetiredPagesPendingStatus, nvmlEnableState_t, retired_pending)
GETTER(nvmlDeviceGetMaxMigDeviceCount, unsigned int, max_mig_devices)
GETTER(nvmlDeviceGetSupportedEventTypes, u64, event_types)

#define CHOICE(function, argument_type, out_type, ...) \
    nvmlReturn_t function(nvmlDevice_t device, argument_type argument, out_type *out) { \
        static const int choices[] = {__VA_ARGS__}; \
        ENTER(GPU, device, argument); \
        if ((unsigned int)argument >= ARRAY_LENGTH(choices)) return NVML_ERROR_INVALID_ARGUMENT; \
        *out = (out_type)dev->values[choices[argument]]; \
        return NVML_SUCCESS; \
    }
CHOICE(nvmlDeviceGetTemperature, nvmlTemperatureSensors_t, unsigned int, temperature)
CHOICE(nvmlDeviceGetPcieThroughput, nvmlPcieUtilCounter_t, unsigned int, pcie_tx_kib_s, pcie_rx_kib_s)
CHOICE(nvmlDeviceGetClockInfo, nvmlClockType_t, unsigned int, graphics_mhz, sm_mhz, mem_mhz, video_mhz)

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, nvmlPerfPolicyType_t policy, nvmlViolationTime_t *time) {
    ENTER(GPU, device, policy);
    if (policy >= NVML_PERF_POLICY_COUNT || (policy > NVML_PERF_POLICY_RELIABILITY && policy < NVML_PERF_POLICY_TOTAL_APP_CLOCKS))
        return NVML_ERROR_INVALID_ARGUMENT;
    *time = (nvmlViolationTime_t){now_us(), dev->values[violation_ns] * (policy + 1)};
    return NVML_SUCCESS;
}

// ---- errors

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t error, nvmlEccCounterType_t counter, u64 *count) {
    static const int counters[2][2] = {{ecc_corrected, ecc_uncorrected}, {ecc_corrected_aggregate, ecc_uncorrected_aggregate}};
    ENTER(GPU, device, error);
    if (error >= 2 || counter >= 2) return NVML_ERROR_INVALID_ARGUMENT;
    if (!dev->values[ecc_mode]) return NVML_ERROR_NOT_SUPPORTED;
    *count = dev->values[counters[counter][error]];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending) {
    ENTER(GPU, device, ANY);
    *current = *pending = (nvmlEnableState_t)dev->values[ecc_mode];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected,
                                       unsigned int *pending, unsigned int *failure) {
    ENTER(GPU, device, ANY);
    if (dev->mig >= 0) return NVML_ERROR_NOT_SUPPORTED;
    *corrected = dev->values[remapped_corrected], *uncorrected = dev->values[remapped_uncorrected];
    *pending = dev->values[remapped_pending], *failure = dev->values[remapped_failure];
    return NVML_SUCCESS;
}

// ---- fields and NVLink

// nvlink_value divides a number of all links among them.
static nvmlReturn_t nvlink_value(const struct device *dev, u64 total, unsigned int link, int of_all, u64 *out) {
    u64 links = dev->values[nvlinks];
    if (links == 0) return NVML_ERROR_NOT_SUPPORTED;
    if (of_all && link == UINT_MAX) {
        *out = total;
    } else if (link < links) {
        *out = total / links;
    } else {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    return NVML_SUCCESS;
}

enum { LINKS_KIB = 100, LINK_BYTES, PCIE }; // beside the value types
static const struct { unsigned int id; int value, type; } fields_known[] = {
    {NVML_FI_DEV_MEMORY_TEMP, memory_temperature, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, energy_mj, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {NVML_FI_DEV_NVLINK_LINK_COUNT, nvlinks, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_PCIE_COUNT_TX_BYTES, pcie_tx_bytes, PCIE},
    {NVML_FI_DEV_PCIE_COUNT_RX_BYTES, pcie_rx_bytes, PCIE},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, nvlink_tx_kib, LINKS_KIB},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, nvlink_rx_kib, LINKS_KIB},
    {NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, nvlink_tx_kib, LINK_BYTES},
    {NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES, nvlink_rx_kib, LINK_BYTES},
};

static nvmlReturn_t field_value(const struct device *dev, nvmlFieldValue_t *field) {
    unsigned int f = 0;
    while (f < ARRAY_LENGTH(fields_known) && fields_known[f].id != field->fieldId) f++;
    if (f == ARRAY_LENGTH(fields_known)) return NVML_ERROR_NOT_SUPPORTED;
    int type = fields_known[f].type;
    u64 value = dev->values[fields_known[f].value];
    field->valueType = type == PCIE ? (int)dev->values[pcie_value_type] : type >= LINKS_KIB ? NVML_VALUE_TYPE_UNSIGNED_LONG_LONG : type;
    field->value.ullVal = value; // also the value of the smaller types: little endian
    if (type == LINKS_KIB) return nvlink_value(dev, value, field->scopeId, 1, &field->value.ullVal);
    if (type == LINK_BYTES) return nvlink_value(dev, value * 1024, field->scopeId, 0, &field->value.ullVal);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *fields) {
    ENTER(GPU, device, ANY);
    for (nvmlFieldValue_t *field = fields; field < fields + count; field++) {
        field->timestamp = now_us(), field->latencyUsec = 0;
        field->nvmlReturn = rule_for(__func__, id, field->fieldId);
        if (field->nvmlReturn == NVML_SUCCESS) field->nvmlReturn = field_value(dev, field);
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *active) {
    ENTER(GPU, device, link);
    *active = NVML_FEATURE_ENABLED;
    return nvlink_value(dev, 0, link, 0, &(u64){0});
}

// ---- memory and processes

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    ENTER(DEVICE, device, ANY);
    const u64 *v = dev->values; // used includes what is reserved; in version 2 it does not
    *memory = (nvmlMemory_t){v[mem_total], v[mem_total] - v[mem_reserved] - v[mem_used], v[mem_reserved] + v[mem_used]};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    ENTER(DEVICE, device, ANY);
    const u64 *v = dev->values;
    if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *memory = (nvmlMemory_v2_t){nvmlMemory_v2, v[mem_total], v[mem_reserved], v[mem_total] - v[mem_reserved] - v[mem_used], v[mem_used]};
    return NVML_SUCCESS;
}

// processes returns how many processes use the device: its MIG devices if MIG is enabled, else the GPU itself.
static unsigned int processes(int id, nvmlProcessInfo_t *list) {
    const struct device *dev = &config.devs[id];
    unsigned int count = 0;
    if (dev->mig >= 0) {
        for (int m = 0; m < dev->mig; m++) count += processes(MIG_ID(id, m), list + count);
        return count;
    }
    for (; count < (unsigned int)dev->process_count; count++) {
        list[count] = dev->processes[count];
        if (list[count].pid == 0) list[count].pid = IS_MIG(id) ? 2000 + 10 * GPU_OF(id) + MIG_OF(id) : 1000 + id;
        if (IS_MIG(id)) list[count].gpuInstanceId = MIG_OF(id) + 1, list[count].computeInstanceId = 0;
    }
    return count;
}

#define RUNNING_PROCESSES(function, type, ...) \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int *count, type *infos) { \
        ENTER(DEVICE, device, ANY); \
        nvmlProcessInfo_t list[PROCESSES * MIGS]; \
        unsigned int room = *count; \
        *count = processes(id, list); \
        if (*count > room) return NVML_ERROR_INSUFFICIENT_SIZE; \
        for (unsigned int p = 0; p < *count; p++) infos[p] = (type){__VA_ARGS__}; \
        return NVML_SUCCESS; \
    }
#define INFO_V1 list[p].pid, list[p].usedGpuMemory
#define INFO_V2 INFO_V1, list[p].gpuInstanceId, list[p].computeInstanceId
RUNNING_PROCESSES(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t, INFO_V1)
RUNNING_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, INFO_V2)
RUNNING_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t, INFO_V2)

// ---- MIG

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
    ENTER(GPU, device, ANY);
    *current = *pending = dev->mig >= 0 ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig) {
    ENTER(GPU, device, index);
    if (index >= dev->values[max_mig_devices]) return NVML_ERROR_INVALID_ARGUMENT;
    if ((int)index >= dev->mig) return NVML_ERROR_NOT_FOUND;
    *mig = handle_of(MIG_ID(id, index));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device) {
    ENTER(DEVICE, mig, ANY);
    if (!IS_MIG(id)) return NVML_ERROR_INVALID_ARGUMENT;
    *device = handle_of(GPU_OF(id));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig) {
    ENTER(DEVICE, device, ANY);
    *is_mig = IS_MIG(id);
    return NVML_SUCCESS;
}

// ---- events

static struct event_set *set_of(nvmlEventSet_t handle) {
    struct event_set *set = (struct event_set *)handle.handle;
    return set >= event_sets && set < event_sets + ARRAY_LENGTH(event_sets) && set->used ? set : NULL;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *handle) {
    ENTER(SYSTEM, no_device, ANY);
    for (struct event_set *set = event_sets; set < event_sets + ARRAY_LENGTH(event_sets); set++) {
        if (set->used) continue;
        *set = (struct event_set){.used = 1};
        handle->handle = (void *)set;
        return NVML_SUCCESS;
    }
    return NVML_ERROR_INSUFFICIENT_RESOURCES; // a leak, by all likelihood
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, u64 types, nvmlEventSet_t handle) {
    ENTER(GPU, device, ANY);
    struct event_set *set = set_of(handle);
    if (!set) return NVML_ERROR_INVALID_ARGUMENT;
    if (types & ~dev->values[event_types]) return NVML_ERROR_NOT_SUPPORTED;
    set->types[id] |= types;
    return NVML_SUCCESS;
}

static nvmlReturn_t take_event(const char *function, nvmlEventSet_t handle, nvmlEventData_t *data) {
    __attribute__((cleanup(leave))) int id = ALL;
    nvmlReturn_t entered = enter(function, SYSTEM, no_device, ANY, &id);
    if (entered != NVML_SUCCESS) return entered;
    struct event_set *set = set_of(handle);
    if (!set) return NVML_ERROR_INVALID_ARGUMENT;
    if (set->count == 0) return NVML_ERROR_TIMEOUT;
    *data = set->queue[0];
    memmove(set->queue, set->queue + 1, --set->count * sizeof(set->queue[0]));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t handle, nvmlEventData_t *data, unsigned int timeout_ms) {
    nvmlReturn_t taken = take_event(__func__, handle, data);
    for (; taken == NVML_ERROR_TIMEOUT && timeout_ms > 0; timeout_ms--) nap(), taken = take_event(__func__, handle, data);
    return taken;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t handle) {
    ENTER(SYSTEM, no_device, ANY);
    struct event_set *set = set_of(handle);
    if (!set) return NVML_ERROR_INVALID_ARGUMENT;
    set->used = 0;
    return NVML_SUCCESS;
}
