/* One multiplicative half-step of I-divergence NMF as plain C: the yardstick for our kernels.

       out = A * ((X / (A B')) B) * inverse          over the nonzeros of X (CSR), in float32

   Rows are handed to threads in tasks of about equal numbers of nonzeros. With RANK defined the
   compiler knows how long the inner loops are. */

#include <omp.h>
#include <stddef.h>
#include <stdint.h>

#ifdef RANK
enum { MAX_RANK = RANK };
#else
enum { MAX_RANK = 1024 };
#endif
enum { AHEAD = 8, LINE = 16 };

int max_rank(void) { return MAX_RANK; }

void set_threads(int n) { omp_set_num_threads(n); }

void half_step(int32_t n_tasks, const int64_t *restrict tasks, const int32_t *restrict indptr,
               const int32_t *restrict indices, const float *restrict data,
               const float *restrict A, const float *restrict B, const float *restrict inverse,
               float *restrict out, int32_t rank)
{
#ifdef RANK
    const int32_t r = RANK;
    (void)rank;
#else
    const int32_t r = rank;
#endif
    const int64_t last = (int64_t)indptr[tasks[n_tasks]] - 1;
#pragma omp parallel for schedule(dynamic, 1)
    for (int32_t t = 0; t < n_tasks; t++) {
        float sums[MAX_RANK] __attribute__((aligned(64)));
        for (int64_t i = tasks[t]; i < tasks[t + 1]; i++) {
            const float *a = A + i * r;
            for (int32_t k = 0; k < r; k++)
                sums[k] = 0;
            for (int64_t p = indptr[i]; p < indptr[i + 1]; p++) {
                const int64_t soon = p + AHEAD < last ? p + AHEAD : last;
                const float *next = B + (size_t)indices[soon] * r;
                for (int32_t k = 0; k < r; k += LINE)
                    __builtin_prefetch(next + k);
                const float *b = B + (size_t)indices[p] * r;
                float fitted = 0;
                for (int32_t k = 0; k < r; k++)
                    fitted += a[k] * b[k];
                if (fitted > 1e-30f) {
                    const float ratio = data[p] / fitted;
                    for (int32_t k = 0; k < r; k++)
                        sums[k] += ratio * b[k];
                }
            }
            for (int32_t k = 0; k < r; k++)
                out[i * r + k] = a[k] * sums[k] * inverse[k];
        }
    }
}
