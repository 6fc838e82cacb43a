/* A worker in C: linear regression, y = w . x + b, on examples that each worker makes by itself.
 *
 *   cc -O2 linear.c -lleeway-client -lm -o linear
 *   leeway train linear.yaml -- ./linear
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leeway/client.h"

enum { kInputs = 8, kBatch = 32, kTotal = kInputs + 1 };

/* Ends the program with the exit code that tells `leeway train` whether another start would help. */
static void die(const char* what, leeway_code code) {
  fprintf(stderr, "linear: %s: %s\n", what, leeway_error());
  exit(leeway_exit_code(code));
}

/* In (-1, 1), of three numbers: the same example for the same rank, clock and place, always. */
static float draw(uint64_t rank, uint64_t clock, uint64_t place) {
  uint64_t x = (rank << 48) ^ (clock << 16) ^ place;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return (float)(x >> 40) / (float)(1 << 23) - 1;
}

static float target(int i) { return (float)(i % 5) - 2; }

/* The gradient of the mean of (w . x + b - y)^2 / 2 over a batch; the sum of the losses. */
static double gradient_of(uint64_t rank, uint64_t clock, const float* w, float* gradient) {
  double loss = 0;
  memset(gradient, 0, kTotal * sizeof(float));
  for (int example = 0; example < kBatch; ++example) {
    float x[kTotal], error = 0;
    for (int i = 0; i < kTotal; ++i) {
      x[i] = i < kInputs ? draw(rank, clock, (uint64_t)(example * kTotal + i)) : 1;
      error += (w[i] - target(i)) * x[i];
    }
    for (int i = 0; i < kTotal; ++i) gradient[i] += error * x[i] / kBatch;
    loss += error * error / 2;
  }
  return loss;
}

int main(void) {
  const uint64_t shape[] = {kInputs};
  const leeway_tensor tensors[] = {
      {.name = "w", .shape = shape, .dimensions = 1, .kind = LEEWAY_WEIGHT,
       .learning_rate_factor = 1, .weight_decay_factor = 1},
      {.name = "b", .kind = LEEWAY_BIAS, .learning_rate_factor = 1, .weight_decay_factor = 1}};
  const float initial[kTotal] = {0};
  const leeway_join_options options = {.size = sizeof(options), .rank = -1, .tensors = tensors,
                                       .tensor_count = 2, .initial = initial};
  leeway_job* job;
  leeway_code code = leeway_join(&options, &job);
  if (code == LEEWAY_OK) code = leeway_joined(job, -1);
  if (code != LEEWAY_OK) die("joining", code);
  leeway_info info = {.size = sizeof(info)};
  leeway_info_of(job, &info);
  const float* weights = leeway_weights(job);

  uint64_t clock;
  while ((code = leeway_begin(job, -1, &clock)) == LEEWAY_OK) {
    if ((code = leeway_wait(job, 0, kTotal, -1)) != LEEWAY_OK) die("waiting for weights", code);
    leeway_report report = {.size = sizeof(report), .steps = 1, .examples = kBatch};
    report.loss_sum = gradient_of(info.rank, clock, weights, leeway_contribution(job));
    if ((code = leeway_end(job, &report, -1)) != LEEWAY_OK) die("handing in", code);
  }
  if (code != LEEWAY_FINISHED && code != LEEWAY_STOPPED) die("beginning a clock", code);

  float most = 0;
  for (int i = 0; i < kTotal; ++i) most = fmaxf(most, fabsf(weights[i] - target(i)));
  printf("worker %u: the largest error of a weight is %g\n", info.rank, most);
  const leeway_code reason = code;
  if ((code = leeway_leave(job, reason, "", -1)) != LEEWAY_OK) die("leaving", code);
  leeway_free(job);
  return leeway_exit_code(reason);
}
