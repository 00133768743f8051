/* Runs the threads of a kernel that translator.py has translated: conversions, checked memory, warps and blocks.

   The file that includes this one defines THREADS, the number of threads of a block; SITES, the number of accesses to
   global memory in the code; REGISTERS, the members of a thread; and the two functions that are declared next. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef uint8_t u8; typedef uint16_t u16; typedef uint32_t u32; typedef uint64_t u64; typedef unsigned __int128 u128;
typedef int8_t s8; typedef int16_t s16; typedef int32_t s32; typedef int64_t s64; typedef __int128 s128;

#define DIVERGED "threads of a warp that diverge at a meeting"
enum { READ, WRITE };
enum { ENDED, WAITS_FOR_BLOCK, WAITS_FOR_WARP };
typedef struct { u64 start, stop, writable; } Range;
typedef struct { u64 instructions, read, written, sectors, widths[5]; } Count;
typedef struct { int pc, op; u32 tid, carry, temp, in[12], out[4]; u64 SP, SPL; REGISTERS } Thread;

/* Run a thread until it ends or waits. */
static int step(Thread* t, u32 block, u32 blocks, u64 params, u8* shared);
static int is_constant(u64 at, u32 size);

static Count count; static const char* fault;
static const Range* ranges; static u32 range_count, shared_size;

static inline float as_f32(u32 x) { float f; memcpy(&f, &x, 4); return f; }
static inline u32 of_f32(float f) { u32 x; memcpy(&x, &f, 4); return x; }
static inline double as_f64(u64 x) { double f; memcpy(&f, &x, 8); return f; }
static inline u64 of_f64(double f) { u64 x; memcpy(&x, &f, 8); return x; }
static inline _Float16 as_f16(u16 x) { _Float16 f; memcpy(&f, &x, 2); return f; }
static inline u16 of_f16(_Float16 f) { u16 x; memcpy(&x, &f, 2); return x; }
static inline float as_bf16(u16 x) { return as_f32((u32)x << 16); }
static inline u16 of_bf16(float f) {
  u32 b = of_f32(f);
  return f != f ? 0x7fff : (u16)((b + 0x7fff + ((b >> 16) & 1)) >> 16);
}
static inline float flushed(float f) { return fpclassify(f) == FP_SUBNORMAL ? copysignf(0.f, f) : f; }
#define WHOLE(T, low, high) static inline T whole_##T(double x) { \
  if (x != x) return 0; if (x <= (double)(low)) return (T)(low); \
  if (x >= (double)(high)) return (T)(high); return (T)x; }
WHOLE(s8, -128, 127) WHOLE(u8, 0, 255) WHOLE(s16, INT16_MIN, INT16_MAX) WHOLE(u16, 0, UINT16_MAX)
WHOLE(s32, INT32_MIN, INT32_MAX) WHOLE(u32, 0, UINT32_MAX) WHOLE(s64, INT64_MIN, INT64_MAX) WHOLE(u64, 0, UINT64_MAX)

static inline u64 joined(u32 low, u32 high) { return (u64)high << 32 | low; }
static inline u64 carried(Thread* t, u128 sum, int bits) { t->carry = (sum >> bits) & 1; return (u64)sum; }
static inline u32 permuted(u32 a, u32 b, u32 how) {
  u32 out = 0;
  for (int i = 0; i < 4; i++) {
    u32 k = (how >> (4 * i)) & 15, y = (joined(a, b) >> (8 * (k & 7))) & 255;
    if (k & 8) y = (y & 128) ? 255 : 0;
    out |= y << (8 * i);
  }
  return out;
}
static inline u32 looked_up(u32 a, u32 b, u32 c, u32 table) {
  u32 out = 0;
  for (int i = 0; i < 32; i++) out |= ((table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1))) & 1) << i;
  return out;
}

/* The sectors of 32 bytes that each access of a warp takes. Threads run one after another, so an access is known by its
   place in the program and by how often a thread has been there since the warp last met; what one of them took is not
   counted again. */
static u32 visits[SITES]; static struct { u64 key; u32 segment; } taken[1 << 16]; static u32 segment, taken_count;
static inline void take(u64 at, u32 site) {
  u64 key = (at >> 5) * 0x9E3779B97F4A7C15 ^ ((u64)site << 32 | visits[site]++) * 0xC2B2AE3D27D4EB4F;
  u32 i = (key ^ key >> 29) & 0xFFFF;
  while (taken[i].segment == segment && taken[i].key != key) i = (i + 1) & 0xFFFF;
  if (taken[i].segment == segment) return;
  count.sectors++;
  if (taken_count < 0xF000) { taken[i].key = key; taken[i].segment = segment; taken_count++; }
}

static u8* refused(const char* why) { fault = why; return 0; }
/* Accesses lie in one range, whole, and at a multiple of their size, or in a constant of the program. */
static inline u8* global_at(u64 at, u32 size, int way, u32 site) {
  if (at % size) return refused("a misaligned access");
  for (u32 i = 0; i < range_count; i++)
    if (at >= ranges[i].start && at + size <= ranges[i].stop && (way == READ || ranges[i].writable)) {
      *(way == READ ? &count.read : &count.written) += size;
      count.widths[size >= 16 ? 4 : size >= 8 ? 3 : size >= 4 ? 2 : size >= 2 ? 1 : 0]++;
      take(at, site);
      return (u8*)(uintptr_t)at;
    }
  if (way == READ && is_constant(at, size)) return (u8*)(uintptr_t)at;
  return refused(way == READ ? "a read outside of its tensors" : "a write outside of its tensors");
}
static inline u8* inside(u8* memory, u32 length, u32 at, u32 size) {
  if (at + size > length) return refused("an access outside of shared or local memory");
  return at % size ? refused("a misaligned access") : memory + at;
}

static void shuffle(Thread* w, u32 out[32][4]) {
  int op = w[0].op;
  for (int i = 0; i < 32; i++) {
    u32 b = w[i].in[1], c = w[i].in[2];
    int part = (c >> 8) & 31, limit = c & 31, low = i & part, high = low | (limit & ~part);
    int j = op == 1 ? (int)(i ^ b) : op == 2 ? i - (int)b : op == 3 ? i + (int)b : (int)(low | (b & ~part));
    int inside = op == 2 ? j >= high : j <= high;
    out[i][0] = w[(inside ? j : i) & 31].in[0]; out[i][1] = inside;
  }
}
static u32 reduced(Thread* w) {
  u32 all = w[0].in[0];
  for (int i = 1; i < 32; i++) {
    u32 x = w[i].in[0];
    switch (w[0].op) {
      case 10: all += x; break;
      case 11: all = (s32)x < (s32)all ? x : all; break;
      case 12: all = (s32)x > (s32)all ? x : all; break;
      case 13: all = x < all ? x : all; break;
      case 14: all = x > all ? x : all; break;
      case 15: all &= x; break;
      case 16: all |= x; break;
      case 17: all ^= x; break;
    }
  }
  return all;
}
/* The fragments of mma.m16n8k32: lane / 4 is the row of A and the column of B, lane % 4 chooses four bytes in a row. */
static void multiply(Thread* w, u32 out[32][4]) {
  static s8 a[16][32], b[8][32];
  for (int i = 0; i < 32; i++) {
    for (int r = 0; r < 4; r++) memcpy(&a[i / 4 + 8 * (r & 1)][4 * (i % 4) + 16 * (r >> 1)], &w[i].in[r], 4);
    for (int r = 0; r < 2; r++) memcpy(&b[i / 4][4 * (i % 4) + 16 * r], &w[i].in[4 + r], 4);
  }
  for (int i = 0; i < 32; i++)
    for (int r = 0; r < 4; r++) {
      const s8 *row = a[i / 4 + 8 * (r >> 1)], *column = b[2 * (i % 4) + (r & 1)];
      s64 sum = (s32)w[i].in[6 + r];
      for (int k = 0; k < 32; k++) sum += row[k] * column[k];
      out[i][r] = (u32)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
    }
}
/* Matrices of 8 rows of 16 bytes, up to four in shared memory; eight threads name the rows of each. */
static void move_matrices(Thread* w, u32 out[32][4], u8* shared, int number, int stores) {
  for (int i = 0; i < 32; i++)
    for (int m = 0; m < number; m++) {
      u8* at = inside(shared, shared_size, w[8 * m + i / 4].in[0] + 4 * (i % 4), 4);
      if (!at) return;
      if (stores) memcpy(at, &w[i].in[1 + m], 4); else memcpy(&out[i][m], at, 4);
    }
}
/* The operations of a warp, by the numbers that translator.py gives them. */
static void meet(Thread* w, u8* shared) {
  u32 out[32][4] = {{0}}, all = 0; int op = w[0].op;
  for (int i = 0; i < 32; i++) if (w[i].op != op || w[i].pc != w[0].pc) { fault = DIVERGED; return; }
  if (op < 10) shuffle(w, out);
  else if (op == 40) multiply(w, out);
  else if (op >= 20) move_matrices(w, out, shared, op % 10, op >= 30);
  else {
    if (op == 18) for (int i = 0; i < 32; i++) all |= (w[i].in[0] & 1) << i; /* a ballot */
    else all = reduced(w);
    for (int i = 0; i < 32; i++) out[i][0] = all;
  }
  for (int i = 0; i < 32; i++) memcpy(w[i].out, out[i], 16);
}

/* Run the threads of a warp until each waits for the block or has ended; return how many wait. */
static int run_warp(Thread* w, u32 block, u32 blocks, u64 params, u8* shared) {
  for (;;) {
    int waiting[3] = {0};
    segment++; taken_count = 0;
    for (int i = 0; i < 32; i++) {
      if (w[i].pc < 0) continue;
      memset(visits, 0, sizeof visits);
      int why = step(&w[i], block, blocks, params, shared);
      if (fault) return 0;
      if (why == ENDED) w[i].pc = -1;
      waiting[why]++;
    }
    if (!waiting[WAITS_FOR_WARP]) return waiting[WAITS_FOR_BLOCK];
    if (waiting[WAITS_FOR_WARP] != 32) fault = DIVERGED; else meet(w, shared);
    if (fault) return 0;
  }
}

/* Run the blocks of a launch from the given one on, and add to its counts; return the fault that ended it, or 0. */
const char* run(u32 first, u32 blocks, u64 params, u32 shared_bytes, const Range* given, u32 given_count, Count* counted) {
  static Thread threads[THREADS];
  u8* shared = aligned_alloc(128, (shared_bytes + 255) / 128 * 128);
  ranges = given; range_count = given_count; shared_size = shared_bytes; fault = 0; count = *counted;
  for (u32 block = first; block < blocks && !fault; block++) {
    memset(threads, 0, sizeof threads); memset(shared, 0xCD, shared_bytes);
    for (int i = 0; i < THREADS; i++) threads[i].tid = i;
    for (int waiting = 1; waiting && !fault;) {
      waiting = 0;
      for (int w = 0; w < THREADS && !fault; w += 32) waiting += run_warp(threads + w, block, blocks, params, shared);
      if (waiting && waiting != THREADS && !fault) fault = "threads of a block that wait at no barrier";
    }
  }
  free(shared); *counted = count;
  return fault;
}
