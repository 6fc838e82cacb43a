/* Takes part in a Leeway job as a worker, from any language: a C library over the client of the
 * parameter servers. It knows float32 tensors, which it keeps in one flat vector, and the clock of
 * the exchange. It knows nothing of models.
 *
 *   leeway_job* job = NULL;
 *   if (leeway_join(&options, &job) != LEEWAY_OK) die(leeway_error());
 *   while (leeway_joined(job, 0.1) == LEEWAY_AGAIN) ;
 *   float* weights = leeway_weights(job);
 *   while (leeway_begin(job, -1, &clock) == LEEWAY_OK) {
 *     leeway_wait(job, 0, total, -1);                  waits for the weights of `clock`
 *     float* gradient = leeway_contribution(job);      ...fill it...
 *     leeway_final(job, 0, total);                     its blocks leave
 *     leeway_end(job, &report, -1);
 *   }
 *   while (leeway_leave(job, LEEWAY_FINISHED, "", 0.1) == LEEWAY_AGAIN) ;
 *   leeway_free(job);
 *
 * Every function that can fail returns a code. leeway_error() returns the text of this thread's
 * last error. `timeout` is in seconds; a negative one means as long as the job allows. LEEWAY_AGAIN
 * says that the timeout is over and nothing has changed: call again.
 *
 * One thread drives a job, with two exceptions. Other threads may call leeway_final between
 * leeway_begin and leeway_end, one at a time. Any thread may call leeway_waiting, leeway_error and
 * leeway_version. Do not call the library in a process that was forked while a job or a watch was
 * open: functions return LEEWAY_FORKED there, and leeway_free does nothing.
 *
 * docs/client.md describes the library. docs/consistency.md says what a reader sees. */
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
  /* leeway_begin only: all clocks are done. Leave with this reason. */
  LEEWAY_FINISHED = 2,
  /* leeway_begin only: the job was asked to stop in order. Leave with this reason. */
  LEEWAY_STOPPED = 3,
  /* leeway_leave only: this worker cannot go on, and neither could its next life. */
  LEEWAY_FAILED = 4,

  /* An argument, the job, its token, the certificate or another worker's model is wrong, and stays
   * wrong. */
  LEEWAY_INVALID_ARGUMENT = 10,
  /* The job's limit is over. The text says who was missing. */
  LEEWAY_DEADLINE_EXCEEDED = 11,
  /* Nobody answers. Another life of this worker may succeed. */
  LEEWAY_UNAVAILABLE = 12,
  /* A newer life of this rank exists: end this process. */
  LEEWAY_REPLACED = 13,
  /* This worker is at another clock than the servers expect. Another life may succeed. */
  LEEWAY_FAILED_PRECONDITION = 14,
  /* A value is not finite. The text names the tensor. */
  LEEWAY_NOT_FINITE = 15,
  LEEWAY_NOT_FOUND = 16,
  /* The function cannot be called now, such as leeway_final before leeway_begin. */
  LEEWAY_MISUSE = 17,
  /* The process was forked while a job or a watch was open. */
  LEEWAY_FORKED = 18,
  LEEWAY_NO_MEMORY = 19,
  LEEWAY_INTERNAL = 20
} leeway_code;

typedef enum leeway_tensor_kind {
  LEEWAY_WEIGHT = 0,
  LEEWAY_BIAS = 1,
  /* The weight or bias of a normalisation. */
  LEEWAY_NORM = 2,
  LEEWAY_EMBEDDING = 3
} leeway_tensor_kind;

/* A tensor of the model, float32 and contiguous. All trained tensors come before all averaged
 * tensors. */
typedef struct leeway_tensor {
  const char* name;
  const uint64_t* shape;
  uint32_t dimensions;
  leeway_tensor_kind kind;
  /* Not 0: no gradient moves the tensor; the servers average the workers' values, as they do with
   * running statistics. Its part of a contribution is the worker's own running value after the
   * clock's steps. The running value begins at the weights' value. */
  int averaged;
  /* For an averaged tensor: how far one batch moves it towards the batch's value, in (0, 1]. */
  double momentum;
  /* Factors of the job's learning rate and weight decay, usually 1. */
  double learning_rate_factor;
  double weight_decay_factor;
} leeway_tensor;

typedef struct leeway_join_options {
  /* sizeof(leeway_join_options). */
  size_t size;
  /* HOST:PORT of server 0. NULL: LEEWAY_COORDINATOR, or the variables of an orchestrator. */
  const char* coordinator;
  /* Negative: LEEWAY_RANK, the rank from an orchestrator, or a free rank. */
  int64_t rank;
  /* No tensors: the worker takes those of the other workers, which are Leeway's own. */
  const leeway_tensor* tensors;
  size_t tensor_count;
  /* The whole vector, tensor after tensor. It is used if this worker starts the model. */
  const float* initial;
  /* The model's own optimizer, in the YAML of a job's `update`, such as
   * "{sgd: {momentum: 0.9}, learning_rate: 0.1}". NULL: it is not known. */
  const char* update;
  /* How long to look for server 0. 0 means 120. */
  double start_seconds;
} leeway_join_options;

typedef enum leeway_exchange {
  /* Contributions are mean gradients, and the servers update the weights. */
  LEEWAY_GRADIENT = 0,
  /* The worker trains by itself. Contributions are what its weights have lost since the clock
   * began. The library computes them. */
  LEEWAY_DELTA = 1,
  /* The worker trains by itself. Its weights and the servers' attract each other. */
  LEEWAY_ELASTIC = 2
} leeway_exchange;

typedef struct leeway_info {
  /* The caller's sizeof(leeway_info). */
  size_t size;
  uint32_t rank;
  uint32_t workers;
  leeway_exchange exchange;
  /* Elements of the vector, and of its trained part. */
  uint64_t total;
  uint64_t trained;
  /* Clocks of one worker, and steps of a clock. 0 clocks: until leeway_begin says so. */
  uint64_t clocks;
  uint64_t steps_per_clock;
  uint64_t steps_per_epoch;
  uint64_t seed;
  /* The job's data: examples in a worker's step, and in a pass of all workers. */
  uint64_t batch_size;
  uint64_t examples;
  /* Leased batches (data.assignment) in a pass of all workers together. 0: the number of the step
   * says which batch is next. */
  uint64_t batches_per_epoch;
  /* Clocks between two evaluations. 0: there is at most one, at the end. */
  uint64_t evaluate_every;
  /* Not 0: the job's YAML has an `update` or a local optimizer of its own. */
  int has_update;
  /* Clock c begins with step first_step + (c - first_clock) * steps_per_clock. The next batches
   * follow from the step, never from the clock. Both values are 0, unless the run was resumed with
   * another number of workers, batch size or number of steps in a clock. */
  uint64_t first_clock;
  uint64_t first_step;
  /* Not 0: the job's `update` changes the servers' learning rate by a schedule or a warm-up. */
  int has_schedule;
} leeway_info;

/* A factor for the elements from the end of the previous part up to `end`. */
typedef struct leeway_rate {
  uint64_t end;
  /* Finite, and at least 0. */
  double factor;
} leeway_rate;

/* What the steps of a clock have measured. Values that are not known are 0. */
typedef struct leeway_report {
  /* sizeof(leeway_report). */
  size_t size;
  uint64_t steps;
  /* Training examples: the weight of the contribution. A contribution of 0 examples moves nothing.
   * If blocks of a gradient have left before leeway_end, leeway_examples has set their weight. */
  uint64_t examples;
  /* The sum of the losses of all examples. */
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
  /* The share of examples with the right class. Negative: it is not known. */
  double accuracy;
  uint64_t examples;
} leeway_evaluation;

/* The library's version, such as "0.2.0". */
const char* leeway_version(void);
/* The text of this thread's last failed call. Never NULL. */
const char* leeway_error(void);
/* The exit code by which a program tells `leeway train` or an orchestrator that it ended with
 * `code`. It says whether another start would help (docs/operations.md). */
int leeway_exit_code(leeway_code code);

/* Begins to join, and returns at once. The library copies everything that `options` refer to. */
leeway_code leeway_join(const leeway_join_options* options, leeway_job** job);
/* Waits until the worker has joined: all other workers are there, and the weights are readable. */
leeway_code leeway_joined(leeway_job* job, double timeout);

/* The functions from here on need a worker that has joined. */
leeway_code leeway_info_of(leeway_job* job, leeway_info* info);
/* Gives tensor `index` of the model, in the order of the vector. LEEWAY_NOT_FOUND after the last
 * tensor. Use it if the worker has joined without tensors, and so takes those of the others. The
 * result is valid until the next call for the same job. */
leeway_code leeway_tensor_of(leeway_job* job, size_t index, leeway_tensor* tensor);
/* The flat vector of weights, `total` floats, which stays in place until leeway_free. The library
 * writes the servers' answers there. In a gradient exchange nothing else may write there: a program
 * that updates running statistics by itself needs memory of its own for them. A worker that trains
 * by itself (delta, elastic) trains this vector. */
float* leeway_weights(leeway_job* job);
/* Memory for the clock's contribution, `total` floats, between leeway_begin and leeway_end. NULL at
 * other times. Gradient exchanges only. It may be other memory at the next clock. Write an element
 * only after leeway_wait for it: until then the previous clock may still be sending it. */
float* leeway_contribution(leeway_job* job);

/* Begins the next clock. Weights may still be arriving: see leeway_wait. LEEWAY_FINISHED or
 * LEEWAY_STOPPED at the end: then nothing is in progress any more, and the weights are the newest
 * ones. If the others went on without this worker, or if the job has gone back to a checkpoint, the
 * worker goes on where the servers say. Then `clock` is not the last clock plus one. */
leeway_code leeway_begin(leeway_job* job, double timeout, uint64_t* clock);
/* Waits for the weights of elements [first, first + count). */
leeway_code leeway_wait(leeway_job* job, uint64_t first, uint64_t count, double timeout);
/* For a job that leases its batches: gives the number of the batch for the next step of the clock.
 * Numbers go on from pass to pass: *batch / batches_per_epoch is the pass, and
 * *batch % batches_per_epoch is the batch in it. The batch is this worker's until its contribution
 * counts. LEEWAY_NOT_FOUND: the clock has no more batches; end it with the examples that it has,
 * which may be none. A clock that has not asked for a batch cannot end: LEEWAY_MISUSE. */
leeway_code leeway_next_batch(leeway_job* job, double timeout, uint64_t* batch);
/* Gives the numbers that the next calls will probably give, so that the program can read ahead.
 * `count` is how many there are, up to `size`. Does not wait. */
leeway_code leeway_upcoming_batches(leeway_job* job, uint64_t* batches, size_t size, size_t* count);
/* Sets the number of examples of this clock's contribution, for blocks that leave before
 * leeway_end. The default is batch_size. Call it before the clock's first leeway_final. */
leeway_code leeway_examples(leeway_job* job, uint64_t examples);
/* Sets factors of the learning rate in this clock's update, for successive parts of the trained
 * elements. The last part ends at the last trained element. There are at most 16384 parts. Without
 * this call, or with a count of 0, the factor is 1. Call it before the clock's first leeway_final,
 * in gradient exchanges only. In sync mode all workers must set the same factors, or the clock
 * fails. */
leeway_code leeway_rates(leeway_job* job, const leeway_rate* rates, size_t count);
/* These elements of the contribution are final: blocks that are complete leave. Name each element
 * once a clock. Gradient exchanges only. */
leeway_code leeway_final(leeway_job* job, uint64_t first, uint64_t count);
/* Ends the clock. Elements that were not final yet are sent as they are. A gradient exchange does
 * not wait for the answers. Other exchanges do. */
leeway_code leeway_end(leeway_job* job, const leeway_report* report, double timeout);
/* Call this between leeway_end and leeway_begin. It waits until nothing is in progress. The weights
 * are then those with which the next clock begins. */
leeway_code leeway_settle(leeway_job* job, double timeout);
/* Settles, and reads the same weights again from the servers, in a gradient exchange only. *weights
 * points to `total` floats. A comparison with leeway_weights shows what a program has written
 * there. Outside of sync mode *weights may be newer. They are valid until the next call. After
 * LEEWAY_AGAIN call this function again. */
leeway_code leeway_read_again(leeway_job* job, double timeout, const float** weights);

/* For rank 0, between two clocks: reports an evaluation of the weights. */
leeway_code leeway_evaluated(leeway_job* job, const leeway_evaluation* evaluation);

/* What the worker keeps between clocks for checkpoints, such as its optimizer's slots:
 * - leeway_state_wanted: *wanted says whether a checkpoint wants it now, between two clocks or at
 *   the end.
 * - leeway_save_state hands it in.
 * - leeway_load_state gives what was handed in for the checkpoint from which the job goes on. It
 *   can be called once after joining, and once after each leeway_begin whose clock is not the last
 *   clock plus one. LEEWAY_NOT_FOUND: there is nothing. The bytes are valid until the next call.
 * The library itself keeps the weights of elastic workers. A worker of a gradient exchange usually
 * keeps nothing. If its program hands in a state all the same, each later checkpoint wants it. In a
 * run that goes on with more workers, the checkpoint has nothing from some ranks. They get the
 * state of another rank, so keep only what is alike in all ranks. */
leeway_code leeway_state_wanted(leeway_job* job, int* wanted);
leeway_code leeway_save_state(leeway_job* job, const void* bytes, size_t count);
leeway_code leeway_load_state(leeway_job* job, const void** bytes, size_t* count);

/* Writes what the worker waits for to `text`, cut to `size`. "" while it waits for nothing. */
void leeway_waiting(leeway_job* job, char* text, size_t size);

/* Leaves the job, with LEEWAY_FINISHED, LEEWAY_STOPPED, or LEEWAY_FAILED and a message. Waits until
 * the job is sealed. LEEWAY_FAILED_PRECONDITION: the job has gone back to a checkpoint and needs
 * this worker: go on with leeway_begin. */
leeway_code leeway_leave(leeway_job* job, leeway_code reason, const char* message, double timeout);
/* Ends everything. Unless the worker has left, the others are not told: they take it for lost, and
 * its next life goes on. NULL is legal. */
void leeway_free(leeway_job* job);

/* Reads the weights of a running job, from anywhere, and takes no part in it. One thread at a time.
 */

/* For `coordinator` see leeway_join_options. The first read waits up to `start_seconds` (0 means
 * 120) for a job that has weights. */
leeway_code leeway_watch_open(const char* coordinator, double start_seconds, leeway_watch** watch);
/* Reads all weights as they are now. What has not changed since the last read is not sent again.
 * Each block holds the result of one update. While the servers go on, neighbouring blocks may be
 * some updates apart. `version` is the number of updates of the block that has had the fewest.
 * After LEEWAY_AGAIN call again, and until then do not use the weights. LEEWAY_FINISHED: the job is
 * over, or its last update was read and nobody serves it any more. LEEWAY_UNAVAILABLE: nobody
 * answers, or the job has no weights yet; another read may succeed. */
leeway_code leeway_watch_read(leeway_watch* watch, double timeout, uint64_t* version);
/* The functions from here on need a read. This one works as leeway_tensor_of. */
leeway_code leeway_watch_tensor_of(leeway_watch* watch, size_t index, leeway_tensor* tensor);
/* What was read, tensor after tensor. It stays in place until leeway_watch_free. */
const float* leeway_watch_weights(leeway_watch* watch);
/* NULL is legal. */
void leeway_watch_free(leeway_watch* watch);

#ifdef __cplusplus
}
#endif
