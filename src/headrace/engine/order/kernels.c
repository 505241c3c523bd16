/* The arithmetic of permutation.py and row_hash.py once more, compiled: both are tens of plain integer operations for
   each row, of which numpy makes as many passes over memory. The Python files define the results, to the last bit, and
   say what they mean; tests hold the two against each other. Called by kernels.py, built by headrace/native.py.

   Every loop here is one over independent rows without a branch, so that any optimising compiler makes vector
   instructions of it, of whatever kind the processor has. Nothing is allocated, kept or printed. */

#include <stddef.h>
#include <stdint.h>

/* A build must run on every x86-64, and be as fast as a newer one allows: gcc compiles the function several times, and
   the loader of glibc picks one. Elsewhere the plain function is the only one. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EVERY_PROCESSOR __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define FOR_EVERY_PROCESSOR
#endif
#define INLINE static inline __attribute__((always_inline))

enum {
    ROUNDS = 8,
    BLOCK = 1024, /* its halves take 8 KiB, a quarter of a first-level cache */
    CHUNK = 128,  /* of the values one in 256 may lie outside the order, and usually far fewer do */
};

/* --------------------------------------------------------------------------- keyed-1, the network of permutation.py */

typedef struct {
    uint64_t num_positions, height, right_bits, keys[ROUNDS][2]; /* multiplier, offset */
} Network;

INLINE uint32_t hash_half(uint32_t half, const uint32_t key[2])
{
    uint32_t hash = half * key[0] + key[1];
    hash ^= hash >> 15;
    return hash * UINT32_C(0xD35A2D97);
}

INLINE uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

INLINE void run_round(const Network *network, int round, int undo, uint32_t *restrict left, uint32_t *restrict right,
                      size_t num)
{
    const uint32_t key[2] = {(uint32_t)network->keys[round][0], (uint32_t)network->keys[round][1]};
    const uint32_t height = (uint32_t)network->height, bits = (uint32_t)network->right_bits;
    const uint32_t mask = (UINT32_C(1) << bits) - 1;
    if (round % 2) {
        for (size_t i = 0; i < num; i++) {
            uint32_t move = hash_half(left[i], key) >> (32 - bits);
            right[i] = (undo ? right[i] - move : right[i] + move) & mask;
        }
    } else {
        for (size_t i = 0; i < num; i++) {
            uint32_t move = (uint32_t)((uint64_t)hash_half(right[i], key) * height >> 32);
            uint32_t moved = undo ? left[i] - move : left[i] + move;
            left[i] = smaller(moved, undo ? moved + height : moved - height);
        }
    }
}

/* At most BLOCK values; `results` may be `values`. */
INLINE void encipher(const Network *network, int undo, const int64_t *values, int64_t *results, size_t num)
{
    uint32_t left[BLOCK], right[BLOCK];
    const uint32_t bits = (uint32_t)network->right_bits, mask = (UINT32_C(1) << bits) - 1;
    for (size_t i = 0; i < num; i++) {
        left[i] = (uint32_t)((uint64_t)values[i] >> bits);
        right[i] = (uint32_t)values[i] & mask;
    }
    for (int i = 0; i < ROUNDS; i++)
        run_round(network, undo ? ROUNDS - 1 - i : i, undo, left, right, num);
    for (size_t i = 0; i < num; i++)
        results[i] = (int64_t)((uint64_t)left[i] << bits | right[i]);
}

/* At most CHUNK values. Looking at all of them at once, and again only if one of them lies outside, is twice as fast. */
INLINE void walk_on(const Network *network, int undo, int64_t *results, size_t num)
{
    uint64_t differences = 0;
    for (size_t i = 0; i < num; i++)
        differences |= network->num_positions - 1 - (uint64_t)results[i]; /* wraps, and has its highest bit, outside */
    if (differences >> 63)
        for (size_t i = 0; i < num; i++)
            while ((uint64_t)results[i] >= network->num_positions)
                encipher(network, undo, results + i, results + i, 1);
}

INLINE void walk(const Network *network, int undo, const int64_t *values, int64_t *results, size_t num)
{
    for (size_t start = 0; start < num; start += BLOCK)
        encipher(network, undo, values + start, results + start, num - start < BLOCK ? num - start : BLOCK);
    for (size_t start = 0; start < num; start += CHUNK)
        walk_on(network, undo, results + start, num - start < CHUNK ? num - start : CHUNK);
}

FOR_EVERY_PROCESSOR void headrace_run_network(const Network *network, int undo, const int64_t *values,
                                              int64_t *results, size_t num)
{
    if (undo)
        walk(network, 1, values, results, num);
    else
        walk(network, 0, values, results, num);
}

/* ------------------------------------------------------------------------------------- the row hashes of row_hash.py */

#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)

INLINE uint64_t stir(uint64_t value)
{
    value ^= value >> 27;
    value *= UINT64_C(0x94D049BB133111EB);
    return value ^ value >> 31;
}

INLINE uint64_t mix(uint64_t value)
{
    value ^= value >> 30;
    return stir(value * UINT64_C(0xBF58476D1CE4E5B9));
}

/* Adds the rows' hashes to four sums: of orders, low and high, and of ids, low and high. */
FOR_EVERY_PROCESSOR void headrace_add_hashes(uint64_t start, const int64_t *positions, const int64_t *indices,
                                             size_t num, uint64_t *sums)
{
    uint64_t order_low = 0, order_high = 0, id_low = 0, id_high = 0;
    for (size_t i = 0; i < num; i++) {
        uint64_t id = mix(start + (uint64_t)indices[i] * GOLDEN);
        uint64_t order = mix(id + (uint64_t)positions[i]);
        order_low += order;
        order_high += stir(order);
        id_low += id;
        id_high += stir(id);
    }
    sums[0] += order_low;
    sums[1] += order_high;
    sums[2] += id_low;
    sums[3] += id_high;
}
