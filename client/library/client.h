/* Takes part in a Leeway job as a worker, from any language: a C library over the client of the
 * parameter servers. It knows float32 tensors, which it keeps in one flat vector, and the clock of
 * the exchange; it knows nothing of models.
 *
 *   leeway_job* job = NULL;
 *   if (leeway_join(&options, &job) != LEEWAY_OK) die(leeway_error());
 *   while (leeway_joined(job, 0.1) == LEEWAY_AGAIN) ;
 *   float* weights = leeway_weights(job);
 *   while (leeway_begin(job, -1, &clock) == LEEWAY_OK) {
 *     leeway_wait(job, 0, total, -1);                  the weights of `clock` are there
 *     float* gradient = leeway_contribution(job);      ...fill it...
 *     leeway_final(job, 0, total);                     its blocks leave
 *     leeway_end(job, &report, -1);
 *   }
 *   while (leeway_leave(job, LEEWAY_FINISHED, "", 0.1) == LEEWAY_AGAIN) ;
 *   leeway_free(job);
 *
 * Every function that can fail returns a code; leeway_error() has its text, of this thread's last
 * call. `timeout` is in seconds, and negative for as long as the job allows; LEEWAY_AGAIN says that
 * it is over and nothing has changed: call again. One thread drives a job, but leeway_final may be
 * called by others between leeway_begin and leeway_end, one at a time, and leeway_waiting,
 * leeway_error and leeway_version by any. No function may be called in a process that was forked
 * while a job or a watch was open: LEEWAY_FORKED, and leeway_free does nothing.
 *
 * docs/client.md describes it, docs/consistency.md says what a reader sees. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct leeway_job leeway_job;
typedef struct leeway_watch leeway_watch;

typedef enum leeway_code {
  LEEWAY_OK = 0,
  /* The timeout is over, and nothing has changed. */
  LEEWAY_AGAIN = 1,
  /* leeway_begin: all clocks are done: leave with this reason. */
  LEEWAY_FINISHED = 2,
  /* leeway_begin: the job was asked to stop in order: leave with this reason. */
  LEEWAY_STOPPED = 3,
  /* leeway_leave only: this worker cannot go on, and neither could its next life. */
  LEEWAY_FAILED = 4,

  /* An argument, the job, its token, the certificate or another worker's model is wrong, and stays
   * wrong. */
  LEEWAY_INVALID_ARGUMENT = 10,
  /* Given up after the job's limit; the text says who was missing. */
  LEEWAY_DEADLINE_EXCEEDED = 11,
  /* Nobody answers. Another life of this worker may succeed. */
  LEEWAY_UNAVAILABLE = 12,
  /* A newer life of this rank exists: end. */
  LEEWAY_REPLACED = 13,
  /* This worker stands elsewhere than the servers want it. Another life may succeed. */
  LEEWAY_FAILED_PRECONDITION = 14,
  /* A value is not finite; the text names the tensor. */
  LEEWAY_NOT_FINITE = 15,
  LEEWAY_NOT_FOUND = 16,
  /* The call does not belong here: leeway_final before leeway_begin, say. */
  LEEWAY_MISUSE = 17,
  /* In a process that was forked while a job or a watch was open. */
  LEEWAY_FORKED = 18,
  LEEWAY_NO_MEMORY = 19,
  LEEWAY_INTERNAL = 20
} leeway_code;

typedef enum leeway_tensor_kind {
  LEEWAY_WEIGHT = 0,
  LEEWAY_BIAS = 1,
  /* Weight or bias of a normalisation. */
  LEEWAY_NORM = 2,
  LEEWAY_EMBEDDING = 3
} leeway_tensor_kind;

/* A tensor of the model, float32 and contiguous. All trained ones come before all averaged ones. */
typedef struct leeway_tensor {
  const char* name;
  const uint64_t* shape;
  uint32_t dimensions;
  leeway_tensor_kind kind;
  /* Not 0: no gradient moves it; the servers average the workers' values, as of running statistics.
   * Its part of a contribution is the worker's own running value after the clock's steps, begun at
   * the weights' value. */
  int averaged;
  /* Of an averaged one: how far towards a batch's value one batch moves it, in (0, 1]. */
  double momentum;
  /* What the job's learning rate and weight decay are multiplied by; 1 as a rule. */
  double learning_rate_factor;
  double weight_decay_factor;
} leeway_tensor;

typedef struct leeway_join_options {
  /* sizeof(leeway_join_options). */
  size_t size;
  /* HOST:PORT of server 0; NULL: LEEWAY_COORDINATOR, or what an orchestrator's variables say. */
  const char* coordinator;
  /* Negative: LEEWAY_RANK, an orchestrator's, or a free one. */
  int64_t rank;
  /* None: those of the others, Leeway's own workers. */
  const leeway_tensor* tensors;
  size_t tensor_count;
  /* The whole vector, tensor after tensor. Used if this is the worker that starts the model. */
  const float* initial;
  /* What the model's own optimizer is, as the job's `update` would say it in YAML, such as
   * "{sgd: {momentum: 0.9}, learning_rate: 0.1}"; NULL: nothing is known of it. */
  const char* update;
  /* How long to look for server 0; 0: 120. */
  double start_seconds;
  /* Tensors, by their place in `tensors`, rising, with which a block begins: what is before one and
   * what is behind can then be final and waited for apart, within a clock. None as a rule. Gradient
   * exchanges only; others do not look at it. */
  const size_t* begins_block;
  size_t begins_block_count;
} leeway_join_options;

typedef enum leeway_exchange {
  /* Contributions are mean gradients, and the servers update. */
  LEEWAY_GRADIENT = 0,
  /* The worker trains by itself; contributions are what its weights have lost since the clock
   * began. The library makes them. */
  LEEWAY_DELTA = 1,
  /* The same; the worker's weights and the servers' attract each other. */
  LEEWAY_ELASTIC = 2
} leeway_exchange;

typedef struct leeway_info {
  /* sizeof(leeway_info) of the caller. */
  size_t size;
  uint32_t rank;
  uint32_t workers;
  leeway_exchange exchange;
  /* Elements of the vector, and of its trained part. */
  uint64_t total;
  uint64_t trained;
  /* Clocks of one worker; 0: until leeway_begin says so. Steps of a clock. */
  uint64_t clocks;
  uint64_t steps_per_clock;
  uint64_t steps_per_epoch;
  uint64_t seed;
  /* Of the job's data: examples of a worker's step, and of a pass of all workers. */
  uint64_t batch_size;
  uint64_t examples;
  /* Of leased batches (data.assignment), in a pass of all workers together; 0: the step's number
   * says which batch is next. */
  uint64_t batches_per_epoch;
  /* Clocks between two evaluations; 0: only at the end, if at all. */
  uint64_t evaluate_every;
  /* Not 0: the job has an `update` or local optimizer of its own in YAML. */
  int has_update;
  /* Clock c begins with step first_step + (c - first_clock) * steps_per_clock: which batches come
   * next follows from the step, never from the clock. Both are 0, unless the run was resumed with
   * other workers, batches or steps of a clock. */
  uint64_t first_clock;
  uint64_t first_step;
  /* Not 0: the job's `update` moves the servers' learning rate by a schedule or a warm-up. */
  int has_schedule;
} leeway_info;

/* In place of a factor: the clock's update leaves these elements and their optimizer state as they
 * are. What their part of the contribution holds is not used. */
#define LEEWAY_SKIP (-1.0)

/* Of elements from the end of the part before up to `end`. */
typedef struct leeway_rate {
  uint64_t end;
  /* Finite, at least 0; or LEEWAY_SKIP. */
  double factor;
} leeway_rate;

/* What the steps of a clock have measured; zeroes where something is not known. */
typedef struct leeway_report {
  /* sizeof(leeway_report). */
  size_t size;
  uint64_t steps;
  /* Training examples: the contribution's weight; one of 0 moves nothing. Where blocks of a
   * gradient have left before leeway_end, it is leeway_examples that has said their weight. */
  uint64_t examples;
  /* Sum of the losses of all examples. */
  double loss_sum;
  double learning_rate;
  double data_seconds;
  double forward_seconds;
  double backward_seconds;
} leeway_report;

typedef struct leeway_evaluation {
  /* sizeof(leeway_evaluation). */
  size_t size;
  double loss;
  /* Share of examples with the right class; negative: there is none. */
  double accuracy;
  uint64_t examples;
} leeway_evaluation;

/* The library's version, such as "0.2.0". */
const char* leeway_version(void);
/* What this thread's last failed call said; never NULL. */
const char* leeway_error(void);
/* The exit code by which a program tells `leeway train`, or an orchestrator, that it ended with
 * `code`, and so whether another start would help (docs/operations.md). */
int leeway_exit_code(leeway_code code);

/* Begins to join, and returns at once. What `options` refer to is copied. */
leeway_code leeway_join(const leeway_join_options* options, leeway_job** job);
/* Waits until the worker has joined: all others are there, too, and the weights are readable. */
leeway_code leeway_joined(leeway_job* job, double timeout);

/* From here on: of a worker that has joined. */
leeway_code leeway_info_of(leeway_job* job, leeway_info* info);
/* Tensor `index` of the model, in the order of the vector; LEEWAY_NOT_FOUND behind the last one.
 * For a worker that has joined without tensors, and so has those of the others. Valid until the
 * next call for the same job. */
leeway_code leeway_tensor_of(leeway_job* job, size_t index, leeway_tensor* tensor);
/* The flat vector of weights, `total` floats, in the same place until leeway_free. The servers'
 * answers are written there, and in a gradient exchange nothing else may be: running statistics
 * that a program updates by itself need memory of its own. A worker that trains by itself (delta,
 * elastic) trains this vector. */
float* leeway_weights(leeway_job* job);
/* Where the contribution of the clock goes, `total` floats: between leeway_begin and leeway_end.
 * Elsewhere NULL. Gradient exchanges only. It may lie elsewhere at the next clock. Write an element
 * only after leeway_wait for it: until then the clock before may still be sending it. */
float* leeway_contribution(leeway_job* job);

/* The next clock. Weights may still be coming in: leeway_wait. LEEWAY_FINISHED or LEEWAY_STOPPED
 * at the end; then nothing is under way any more, and the weights are the newest ones. Where the
 * others went on without this worker, or the job has gone back to a checkpoint, it goes on where
 * the servers say: then the clock is not the last one plus one. */
leeway_code leeway_begin(leeway_job* job, double timeout, uint64_t* clock);
/* Waits for the weights of elements [first, first + count). */
leeway_code leeway_wait(leeway_job* job, uint64_t first, uint64_t count, double timeout);
/* Of a job that leases its batches: the number of the batch for the next step of the clock, counted
 * on from pass to pass: pass *batch / batches_per_epoch, and there batch *batch %
 * batches_per_epoch. It is this worker's until its contribution counts. LEEWAY_NOT_FOUND: the clock
 * has no more; end it with the examples that it has, maybe none. A clock that has not asked cannot
 * end: LEEWAY_MISUSE. */
leeway_code leeway_next_batch(leeway_job* job, double timeout, uint64_t* batch);
/* What the next calls will probably give, to read ahead: up to `size` numbers, and how many. Does
 * not wait. */
leeway_code leeway_upcoming_batches(leeway_job* job, uint64_t* batches, size_t size, size_t* count);
/* Of how many examples the contribution of this clock is made, for blocks that leave before
 * leeway_end. Without it: batch_size. Before the clock's first leeway_final. */
leeway_code leeway_examples(leeway_job* job, uint64_t examples);
/* What the learning rate is multiplied by in this clock's update, part by part of the trained
 * elements; the last part ends with them, and there are 16384 at most. Without it, and with a count
 * of 0: 1. Before the clock's first leeway_final; a program with begins_block may say it again, for
 * the elements that are not final yet. Gradient exchanges only. In sync mode all workers say the
 * same, or the clock fails. LEEWAY_SKIP needs a rule that does not count the updates of whole
 * blocks (update.steps_by_element), and no compression that keeps a residual. */
leeway_code leeway_rates(leeway_job* job, const leeway_rate* rates, size_t count);
/* These elements of the contribution are final, each told once a clock: blocks that are complete
 * leave. Gradient exchanges only. */
leeway_code leeway_final(leeway_job* job, uint64_t first, uint64_t count);
/* Ends the clock: what was not final is sent as it is. Gradient exchanges do not wait for the
 * answers; others do. */
leeway_code leeway_end(leeway_job* job, const leeway_report* report, double timeout);
/* Between leeway_end and leeway_begin: waits until nothing is under way. The weights are those
 * that the next clock begins with. */
leeway_code leeway_settle(leeway_job* job, double timeout);
/* The same of a gradient exchange, and *weights are those weights as the servers have them, read
 * anew, `total` floats: to find what a program has written into leeway_weights. Outside of sync
 * mode they may be newer ones. Valid until the next call; after LEEWAY_AGAIN call this again. */
leeway_code leeway_read_again(leeway_job* job, double timeout, const float** weights);

/* Rank 0: what an evaluation of the weights has shown. Between two clocks. */
leeway_code leeway_evaluated(leeway_job* job, const leeway_evaluation* evaluation);

/* What the worker keeps between clocks, such as its optimizer's slots, for checkpoints: whether
 * it is wanted now, between two clocks or at the end (*wanted); to hand it in; and what was handed
 * in for the checkpoint that the job goes on from: after joining, and after a leeway_begin whose
 * clock is not the last one plus one, once each (LEEWAY_NOT_FOUND: nothing; valid until the next
 * call). The library keeps the weights of elastic workers itself. A worker of a gradient exchange
 * keeps nothing as a rule. If its program hands in a state all the same, it is wanted at each
 * checkpoint from then on. A rank of which the checkpoint has none, as in a run that goes on with
 * more workers, gets that of another rank: only what all ranks have alike belongs there. */
leeway_code leeway_state_wanted(leeway_job* job, int* wanted);
leeway_code leeway_save_state(leeway_job* job, const void* bytes, size_t count);
leeway_code leeway_load_state(leeway_job* job, const void** bytes, size_t* count);

/* What the worker waits for, in words, cut to `size`; "" while it waits for nothing. */
void leeway_waiting(leeway_job* job, char* text, size_t size);

/* Leaves: LEEWAY_FINISHED, LEEWAY_STOPPED or LEEWAY_FAILED, the last with a message. Waits until
 * the job is sealed. LEEWAY_FAILED_PRECONDITION: the job has gone back to a checkpoint and needs
 * this worker: go on with leeway_begin. */
leeway_code leeway_leave(leeway_job* job, leeway_code reason, const char* message, double timeout);
/* Ends everything, without a word to the others unless the worker has left: they take it for lost,
 * and its next life goes on. NULL is legal. */
void leeway_free(leeway_job* job);

/* Reads the weights of a running job, from anywhere, and takes no part in it. One thread at a time.
 */

/* `coordinator` as in leeway_join_options. The first read waits for a job that has weights, for
 * `start_seconds` (0: 120). */
leeway_code leeway_watch_open(const char* coordinator, double start_seconds, leeway_watch** watch);
/* Reads all weights as they are now; what has not changed since the last read is not sent again.
 * Each block is what an update has left; neighbours may be some updates apart, where the servers go
 * on meanwhile. `version`: how many updates were applied to the block that has least of them. After
 * LEEWAY_AGAIN call again, and until then leave the weights alone. LEEWAY_FINISHED: the job is
 * over, or its last update was read before and nobody serves it any more. LEEWAY_UNAVAILABLE:
 * nobody answers, or the job has no weights yet; another read may succeed. */
leeway_code leeway_watch_read(leeway_watch* watch, double timeout, uint64_t* version);
/* From here on: after a read. As leeway_tensor_of. */
leeway_code leeway_watch_tensor_of(leeway_watch* watch, size_t index, leeway_tensor* tensor);
/* What was read, tensor after tensor; in the same place until leeway_watch_free. */
const float* leeway_watch_weights(leeway_watch* watch);
/* NULL is legal. */
void leeway_watch_free(leeway_watch* watch);

#ifdef __cplusplus
}
#endif
