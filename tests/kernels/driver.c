/* A stand-in for CUDA's driver, libcuda.so.1: one device in name, on which copies are made and no kernel runs.
 *
 * Numba's host side runs on it as on a GPU: compilation, linking, loading, arguments, streams, events, copies. What a
 * GPU would refuse is refused: names that a module has not, launches over the limits of device and kernel, arguments
 * that point to memory that is not allocated, copies past the end of an allocation. The device's memory cannot be read
 * by the host (a process that tries ends), is filled with a byte (STANDIN_FILL=..., 255), and no address is used twice.
 * standin_log() tells what was done, a line each; with STANDIN_PARAMETERS in the environment, those of launches too.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SHOWN __attribute__((visibility("default")))

enum {
    CHIP = 90,
    THREADS = 1024,           /* of a block */
    REGISTERS = 65536,        /* of a block or multiprocessor */
    SHARED = 48 * 1024,       /* bytes that a block has unasked */
    SHARED_MOST = 227 * 1024, /* that it may ask for */
    PAGE = 4096,
};
static const size_t MEMORY = (size_t)80 << 30;
static const size_t ARENA = (size_t)8 << 40; /* addresses, which are not used again */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* ---- the log ----------------------------------------------------------------------------------------------------- */

static char *text;
static size_t used, room;

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    const size_t size = length < (int)sizeof line - 1 ? (size_t)length : sizeof line - 2;
    pthread_mutex_lock(&mutex);
    if (used + size + 2 > room) {
        room = 2 * (used + size) + PAGE;
        text = realloc(text, room);
        if (!text) abort();
    }
    memcpy(text + used, line, size);
    used += size;
    text[used++] = '\n';
    text[used] = 0;
    pthread_mutex_unlock(&mutex);
}

/* What was done since the last call; the caller frees it. */
SHOWN char *standin_log(void) {
    pthread_mutex_lock(&mutex);
    char *told = text ? text : calloc(1, 1);
    text = NULL;
    used = room = 0;
    pthread_mutex_unlock(&mutex);
    return told;
}

#define GIVE(place, value) (*(place) = (value), CUDA_SUCCESS)
#define REFUSE(code, ...) (tell("refused: " __VA_ARGS__), (code))

/* ---- streams and events ------------------------------------------------------------------------------------------ */

enum { STREAM = 0x73747265, EVENT = 0x65766e74 };

typedef struct { /* of a stream or an event */
    int kind, number;
} Queue;

static int streams, events;

static Queue *queue(int kind) {
    Queue *q = malloc(sizeof *q);
    *q = (Queue){kind, kind == STREAM ? ++streams : ++events};
    return q;
}

static bool is_stream(CUstream s) {
    const uintptr_t number = (uintptr_t)s;
    return number <= 2 || ((Queue *)s)->kind == STREAM;
}

/* Its number in the log: 0 the default stream, -2 each thread's. */
static int shown(CUstream s) {
    const uintptr_t number = (uintptr_t)s;
    return number <= 1 ? 0 : number == 2 ? -2 : ((Queue *)s)->number;
}

#define NEED_STREAM(s)                                                                                                 \
    if (!is_stream(s)) return REFUSE(CUDA_ERROR_INVALID_HANDLE, "%p is no stream", (void *)(s))

SHOWN CUresult cuStreamCreate(CUstream *s, unsigned flags) { return GIVE(s, (CUstream)queue(STREAM)); }

SHOWN CUresult cuStreamDestroy(CUstream s) {
    NEED_STREAM(s);
    ((Queue *)s)->kind = 0; /* kept, so that a later use of it is seen */
    return CUDA_SUCCESS;
}

SHOWN CUresult cuStreamSynchronize(CUstream s) {
    NEED_STREAM(s);
    return tell("synchronize %d", shown(s)), CUDA_SUCCESS;
}

SHOWN CUresult cuEventCreate(CUevent *e, unsigned flags) { return GIVE(e, (CUevent)queue(EVENT)); }

SHOWN CUresult cuEventDestroy(CUevent e) {
    ((Queue *)e)->kind = 0;
    return CUDA_SUCCESS;
}

SHOWN CUresult cuEventRecord(CUevent e, CUstream s) {
    NEED_STREAM(s);
    if (((Queue *)e)->kind != EVENT) return REFUSE(CUDA_ERROR_INVALID_HANDLE, "record of what is no event");
    return tell("record e%d on %d", ((Queue *)e)->number, shown(s)), CUDA_SUCCESS;
}

SHOWN CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) {
    NEED_STREAM(s);
    if (((Queue *)e)->kind != EVENT || flags)
        return REFUSE(CUDA_ERROR_INVALID_HANDLE, "wait for what is no event, or with flags");
    return tell("wait for e%d on %d", ((Queue *)e)->number, shown(s)), CUDA_SUCCESS;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

typedef struct {
    CUdeviceptr start;
    size_t size;
    bool live;
} Block;

static Block *blocks;
static size_t count, most;
static CUdeviceptr first, next; /* addresses of the device, which the host may not read */
static char *contents;          /* of `first`, for the copies here */
static size_t in_use;
static int fill = 255; /* a byte of NaNs, and of integers that are no counts */

static void reserve(void) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *device = mmap(NULL, ARENA, PROT_NONE, flags, -1, 0);
    contents = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (device == MAP_FAILED || contents == MAP_FAILED) abort();
    first = next = (CUdeviceptr)device;
    if (getenv("STANDIN_FILL")) fill = atoi(getenv("STANDIN_FILL"));
}

static bool on_device(CUdeviceptr p) { return p - first < ARENA; }

/* The block that an address lies in, or ends; NULL if there is none, or it was freed. */
static Block *block_of(CUdeviceptr p) {
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (blocks[middle].start <= p)
            low = middle + 1;
        else
            high = middle;
    }
    Block *b = low ? &blocks[low - 1] : NULL;
    return b && b->live && p - b->start <= b->size ? b : NULL;
}

static bool holds(CUdeviceptr p, size_t size) {
    pthread_mutex_lock(&mutex);
    const Block *b = block_of(p);
    const bool held = b && size <= b->size - (p - b->start);
    pthread_mutex_unlock(&mutex);
    return held;
}

static void *content(CUdeviceptr p) { return contents + (p - first); }

SHOWN CUresult cuMemAlloc(CUdeviceptr *p, size_t size) {
    const size_t taken = (size + 2 * PAGE - 1) / PAGE * PAGE; /* with bytes behind it that are nobody's */
    if (!size) return REFUSE(CUDA_ERROR_INVALID_VALUE, "an allocation of no bytes");
    pthread_mutex_lock(&mutex);
    if (size > MEMORY - in_use || taken > ARENA - (next - first)) {
        pthread_mutex_unlock(&mutex);
        return REFUSE(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes, where %zu are in use", size, in_use);
    }
    if (count == most) {
        most = 2 * most + 1024;
        blocks = realloc(blocks, most * sizeof *blocks);
        if (!blocks) abort();
    }
    *p = next;
    blocks[count++] = (Block){next, size, true};
    in_use += size;
    next += taken;
    pthread_mutex_unlock(&mutex);
    memset(content(*p), fill, size);
    return tell("allocate %zu", size), CUDA_SUCCESS;
}

SHOWN CUresult cuMemFree(CUdeviceptr p) {
    pthread_mutex_lock(&mutex);
    Block *b = block_of(p);
    if (b && b->start == p) {
        b->live = false;
        in_use -= b->size;
        madvise(content(p), (b->size + PAGE - 1) / PAGE * PAGE, MADV_DONTNEED);
    } else {
        b = NULL;
    }
    pthread_mutex_unlock(&mutex);
    return b ? CUDA_SUCCESS : REFUSE(CUDA_ERROR_INVALID_VALUE, "%llx is freed, which is no allocation", p);
}

SHOWN CUresult cuMemGetInfo(size_t *available, size_t *total) {
    *available = MEMORY - in_use;
    *total = MEMORY;
    return CUDA_SUCCESS;
}

SHOWN CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr p) {
    if (!holds(p, 0))
        return REFUSE(CUDA_ERROR_INVALID_VALUE, "an attribute of %llx, which is no memory of the device", p);
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)value = p; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = 0; return CUDA_SUCCESS;
    default: return REFUSE(CUDA_ERROR_NOT_SUPPORTED, "attribute %d of a pointer", attribute);
    }
}

static CUresult copy(const char *how, CUdeviceptr to, CUdeviceptr from, size_t size, CUstream s, bool waits) {
    NEED_STREAM(s);
    for (int i = 0; i < 2; i++) {
        const CUdeviceptr p = i ? from : to;
        const bool device = how[0] == 'o' || (how[3] == 'd') == !i;
        if (device ? !holds(p, size) : on_device(p))
            return REFUSE(CUDA_ERROR_INVALID_VALUE, "copy %s: %zu bytes at %llx are not allocated there", how, size, p);
    }
    tell("copy %s %zu on %d%s", how, size, shown(s), waits ? ", wait" : "");
    memmove(on_device(to) ? content(to) : (void *)to, on_device(from) ? content(from) : (void *)from, size);
    return CUDA_SUCCESS;
}

#define COPIES(name, how, To, From)                                                                                    \
    SHOWN CUresult name(To to, From from, size_t size) {                                                               \
        return copy(how, (CUdeviceptr)to, (CUdeviceptr)from, size, 0, true);                                           \
    }
#define ASYNC(name, how, To, From)                                                                                     \
    SHOWN CUresult name(To to, From from, size_t size, CUstream s) {                                                   \
        return copy(how, (CUdeviceptr)to, (CUdeviceptr)from, size, s, false);                                          \
    }
COPIES(cuMemcpyHtoD, "to device", CUdeviceptr, const void *)
COPIES(cuMemcpyDtoH, "to host", void *, CUdeviceptr)
COPIES(cuMemcpyDtoD, "on device", CUdeviceptr, CUdeviceptr)
ASYNC(cuMemcpyHtoDAsync, "to device", CUdeviceptr, const void *)
ASYNC(cuMemcpyDtoHAsync, "to host", void *, CUdeviceptr)
ASYNC(cuMemcpyDtoDAsync, "on device", CUdeviceptr, CUdeviceptr)

/* ---- modules ----------------------------------------------------------------------------------------------------- */

typedef struct Kernel {
    struct Kernel *next;
    char *name;
    int registers, threads, shared, dynamic; /* dynamic: bytes of shared memory that a launch may ask for at most */
    int parameters;
    int bytes[512]; /* of a parameter */
} Kernel;

static uint32_t u32(const char *p) {
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* What .nv.info.NAME says of a kernel. */
static void read_info(Kernel *k, const char *at, size_t size) {
    enum { MAX_THREADS = 0x05, PARAMETER = 0x17, VALUES = 4 };
    for (const char *end = at + size; at + 4 <= end;) {
        const unsigned format = (uint8_t)at[0], attribute = (uint8_t)at[1], length = u32(at) >> 16;
        const char *value = at + 4;
        at = value + (format == VALUES ? length : 0);
        if (format == VALUES && attribute == MAX_THREADS)
            k->threads = (int)(u32(value) * u32(value + 4) * u32(value + 8));
        if (format == VALUES && attribute == PARAMETER) {
            const uint32_t ordinal = u32(value + 4) & 0xFFFF;
            if (ordinal >= sizeof k->bytes / sizeof *k->bytes) abort();
            k->bytes[ordinal] = (int)(u32(value + 8) >> 18);
            if ((int)ordinal >= k->parameters) k->parameters = (int)ordinal + 1;
        }
    }
}

static Kernel *kernel_of(Kernel **all, const char *name) {
    for (Kernel *k = *all; k; k = k->next)
        if (!strcmp(k->name, name)) return k;
    Kernel *k = calloc(1, sizeof *k);
    *k = (Kernel){.next = *all, .name = strdup(name), .threads = THREADS};
    return *all = k;
}

/* The kernels of a file of machine code. */
SHOWN CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options, void **values, unsigned n,
                                 CUlibraryOption *more, void **more_values, unsigned more_n) {
    const char *file = code;
    const Elf64_Ehdr *header = code;
    enum { CUDA_MACHINE = 190 };
    if (memcmp(file, ELFMAG, SELFMAG) || header->e_machine != CUDA_MACHINE)
        return REFUSE(CUDA_ERROR_INVALID_SOURCE, "a module that is no machine code");
    const Elf64_Shdr *section = (const Elf64_Shdr *)(file + header->e_shoff);
    const char *names = file + section[header->e_shstrndx].sh_offset;
    Kernel **all = calloc(1, sizeof *all);
    const Elf64_Sym *symbols = NULL;
    const char *strings = NULL;
    for (int i = 0; i < header->e_shnum; i++) {
        const Elf64_Shdr *s = &section[i];
        const char *name = names + s->sh_name;
        if (s->sh_type == SHT_SYMTAB) {
            symbols = (const Elf64_Sym *)(file + s->sh_offset);
            strings = file + section[s->sh_link].sh_offset;
        } else if (!strncmp(name, ".nv.info._", 10)) {
            read_info(kernel_of(all, name + 9), file + s->sh_offset, s->sh_size);
        } else if (!strncmp(name, ".nv.shared._", 12)) {
            kernel_of(all, name + 11)->shared = (int)s->sh_size;
        }
    }
    for (int i = 0; symbols && i < header->e_shnum; i++) {
        enum { REGISTERS_OF = 0x2F };
        const char *at = file + section[i].sh_offset;
        if (strcmp(names + section[i].sh_name, ".nv.info")) continue;
        for (const char *end = at + section[i].sh_size; at + 4 <= end; at += 4 + (at[0] == 4 ? u32(at) >> 16 : 0))
            if (at[0] == 4 && at[1] == REGISTERS_OF)
                for (Kernel *k = *all; k; k = k->next)
                    if (!strcmp(k->name, strings + symbols[u32(at + 4)].st_name)) k->registers = (int)u32(at + 8);
    }
    for (Kernel *k = *all; k; k = k->next) {
        k->dynamic = SHARED - k->shared;
        tell("load %d registers, %d shared, %d parameters: %s", k->registers, k->shared, k->parameters, k->name);
    }
    *library = (CUlibrary)all;
    return CUDA_SUCCESS;
}

SHOWN CUresult cuLibraryUnload(CUlibrary library) {
    for (Kernel *k = *(Kernel **)library, *after; k; k = after) {
        after = k->next;
        free(k->name);
        free(k);
    }
    free(library);
    return CUDA_SUCCESS;
}

SHOWN CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
    for (Kernel *k = *(Kernel **)library; k; k = k->next)
        if (!strcmp(k->name, name)) {
            *kernel = (CUkernel)k;
            return CUDA_SUCCESS;
        }
    return REFUSE(CUDA_ERROR_NOT_FOUND, "no kernel %s", name);
}

SHOWN CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
    const Kernel *k = (Kernel *)kernel;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return GIVE(value, k->threads);
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return GIVE(value, k->shared);
    case CU_FUNC_ATTRIBUTE_NUM_REGS: return GIVE(value, k->registers);
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: return GIVE(value, k->dynamic);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: return GIVE(value, 0);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return GIVE(value, 0);
    default: return REFUSE(CUDA_ERROR_NOT_SUPPORTED, "attribute %d of a kernel", attribute);
    }
}

SHOWN CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
    Kernel *k = (Kernel *)kernel;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return REFUSE(CUDA_ERROR_NOT_SUPPORTED, "attribute %d of a kernel to set", attribute);
    if (value < 0 || value > SHARED_MOST - k->shared)
        return REFUSE(CUDA_ERROR_INVALID_VALUE, "%d bytes of shared memory for %s", value, k->name);
    k->dynamic = value;
    return CUDA_SUCCESS;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* Arguments that lie among the device's addresses point to allocated memory. Numba's array of one dimension (nothing,
 * nothing, elements, bytes of an element, address, length, stride) lies in it whole. */
static CUresult check_arguments(const Kernel *k, void **arguments) {
    for (int i = 0; i < k->parameters; i++) {
        CUdeviceptr value[3] = {0};
        uint64_t elements = 0, width = 0;
        int64_t stride = 0;
        if (k->bytes[i] != sizeof *value) continue;
        memcpy(value, arguments[i], sizeof *value);
        if (!on_device(*value)) continue;
        if (!holds(*value, 0))
            return REFUSE(CUDA_ERROR_ILLEGAL_ADDRESS, "argument %d of %s points to what is not allocated", i, k->name);
        if (i < 4 || i + 2 >= k->parameters) continue;
        memcpy(&elements, arguments[i - 2], sizeof elements);
        memcpy(&width, arguments[i - 1], sizeof width);
        memcpy(&value[1], arguments[i + 1], sizeof *value);
        memcpy(&stride, arguments[i + 2], sizeof stride);
        if (!elements || value[1] != elements || width > 8) continue;
        const CUdeviceptr last = *value + (CUdeviceptr)((int64_t)(elements - 1) * stride);
        if (!holds(*value, width) || !holds(last, width))
            return REFUSE(CUDA_ERROR_ILLEGAL_ADDRESS, "argument %d of %s, %zu elements of %zu bytes, is not all there",
                          i, k->name, (size_t)elements, (size_t)width);
    }
    return CUDA_SUCCESS;
}

/* A line for each parameter: its bytes. */
static void tell_parameters(const Kernel *k, void **arguments) {
    for (int i = 0; i < k->parameters; i++) {
        char line[128] = "";
        for (int b = 0; b < k->bytes[i] && b < 32; b++)
            snprintf(line + 2 * b, sizeof line - 2 * (size_t)b, "%02x", ((uint8_t *)arguments[i])[b]);
        tell("parameter %d: %s", i, line);
    }
}

static CUresult launch(const Kernel *k, const CUlaunchConfig *c, void **arguments) {
    const uint64_t threads = (uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ;
    const uint64_t registers = (uint64_t)(k->registers + 7) / 8 * 8 * ((threads + 31) / 32 * 32);
    NEED_STREAM(c->hStream);
    tell("launch (%u, %u, %u) of (%u, %u, %u), %u shared on %d: %s", c->gridDimX, c->gridDimY, c->gridDimZ,
         c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes, shown(c->hStream), k->name);
    if (getenv("STANDIN_PARAMETERS")) tell_parameters(k, arguments);
    if (!c->gridDimX || !c->gridDimY || !c->gridDimZ || !threads)
        return REFUSE(CUDA_ERROR_INVALID_VALUE, "a launch of nothing: %s", k->name);
    if (c->gridDimX > INT32_MAX || c->gridDimY > 65535 || c->gridDimZ > 65535)
        return REFUSE(CUDA_ERROR_INVALID_VALUE, "a grid that is too large: %s", k->name);
    if (threads > (uint64_t)k->threads || c->blockDimZ > 64)
        return REFUSE(CUDA_ERROR_INVALID_VALUE, "a block of more than %d threads: %s", k->threads, k->name);
    if (registers > REGISTERS)
        return REFUSE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "%d registers of a thread are too many: %s", k->registers,
                      k->name);
    if (c->sharedMemBytes > (unsigned)k->dynamic)
        return REFUSE(CUDA_ERROR_INVALID_VALUE, "more than %d bytes of shared memory: %s", k->dynamic, k->name);
    return check_arguments(k, arguments);
}

SHOWN CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra) {
    return launch((Kernel *)function, config, arguments);
}

SHOWN CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                              unsigned block_y, unsigned block_z, unsigned shared, CUstream s, void **arguments,
                              void **extra) {
    const CUlaunchConfig config = {.gridDimX = grid_x,
                                   .gridDimY = grid_y,
                                   .gridDimZ = grid_z,
                                   .blockDimX = block_x,
                                   .blockDimY = block_y,
                                   .blockDimZ = block_z,
                                   .sharedMemBytes = shared,
                                   .hStream = s};
    return launch((Kernel *)function, &config, arguments);
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

static _Thread_local CUcontext stack[16];
static _Thread_local int depth;
static const CUcontext primary = (CUcontext)0x10;

SHOWN CUresult cuInit(unsigned flags) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, reserve);
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* NVRTC asks for the cache of what it compiles, and takes for granted that a driver answers. */
SHOWN CUresult cuGetExportTable(const void **table, const CUuuid *id) {
    *table = NULL;
    return CUDA_ERROR_NOT_SUPPORTED;
}

SHOWN CUresult cuDriverGetVersion(int *version) { return GIVE(version, 13000); }

SHOWN CUresult cuGetErrorName(CUresult error, const char **name) {
    static _Thread_local char said[32];
    snprintf(said, sizeof said, "error %d", error);
    *name = said;
    return CUDA_SUCCESS;
}

SHOWN CUresult cuDeviceGetCount(int *n) { return GIVE(n, 1); }

SHOWN CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

SHOWN CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    snprintf(name, (size_t)length, "Stand-in for an H100");
    return CUDA_SUCCESS;
}

SHOWN CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    memset(uuid, 0, sizeof *uuid);
    return CUDA_SUCCESS;
}

SHOWN CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
#define IS(name, number)                                                                                               \
    {                                                                                                                  \
        CU_DEVICE_ATTRIBUTE_##name, number                                                                             \
    }
    static const int known[][2] = {
        IS(COMPUTE_CAPABILITY_MAJOR, CHIP / 10),
        IS(COMPUTE_CAPABILITY_MINOR, CHIP % 10),
        IS(MULTIPROCESSOR_COUNT, 132),
        IS(CLOCK_RATE, 1980000),
        IS(WARP_SIZE, 32),
        IS(MAX_THREADS_PER_BLOCK, THREADS),
        IS(MAX_SHARED_MEMORY_PER_BLOCK, SHARED),
        IS(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, SHARED_MOST),
        IS(UNIFIED_ADDRESSING, 1),
        IS(CAN_MAP_HOST_MEMORY, 1),
        IS(MEMORY_POOLS_SUPPORTED, 0),
        IS(PCI_BUS_ID, 0),
        IS(PCI_DEVICE_ID, 0),
        IS(PCI_DOMAIN_ID, 0),
        IS(COMPUTE_MODE, 0),
        IS(KERNEL_EXEC_TIMEOUT, 0),
        IS(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2),
        IS(INTEGRATED, 0),
        IS(TCC_DRIVER, 0),
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i][0] == (int)attribute) return GIVE(value, known[i][1]);
    return REFUSE(CUDA_ERROR_NOT_SUPPORTED, "attribute %d of the device", attribute);
}

SHOWN CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) { return GIVE(context, primary); }

SHOWN CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return CUDA_SUCCESS; }

SHOWN CUresult cuCtxGetCurrent(CUcontext *context) { return GIVE(context, depth ? stack[depth - 1] : NULL); }

SHOWN CUresult cuCtxPushCurrent(CUcontext context) {
    if (depth == sizeof stack / sizeof *stack) return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

SHOWN CUresult cuCtxPopCurrent(CUcontext *context) {
    if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

SHOWN CUresult cuCtxSetCurrent(CUcontext context) {
    depth -= depth > 0;
    return context ? cuCtxPushCurrent(context) : CUDA_SUCCESS;
}

SHOWN CUresult cuCtxGetDevice(CUdevice *device) {
    *device = 0;
    return depth ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

SHOWN CUresult cuCtxSynchronize(void) { return tell("synchronize all"), CUDA_SUCCESS; }

/* ---- its functions by their names -------------------------------------------------------------------------------- */

SHOWN CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags,
                                CUdriverProcAddressQueryResult *found) {
    char versioned[128];
    Dl_info here;
    dladdr((void *)cuInit, &here);
    void *self = dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    *function = NULL;
    for (int v = 4; !*function && v > 0; v--) {
        snprintf(versioned, sizeof versioned, v > 1 ? "%s_v%d" : "%s", name, v);
        *function = dlsym(self, versioned);
    }
    if (found) *found = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
