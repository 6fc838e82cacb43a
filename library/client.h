/* A C library through which a program in any language takes part in a Leeway job as a worker. It
 * stands on the client of the parameter servers. It knows float32 tensors, which it keeps in one
 * flat vector, and the clock of the exchange. It knows nothing of models.
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
 * last error. `timeout` is in seconds; a negative timeout means as long as the job allows.
 * LEEWAY_AGAIN means that the timeout is over and nothing has changed: call the function again.
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
  /* Only leeway_begin returns this: all clocks are done. Leave with this reason. */
  LEEWAY_FINISHED = 2,
  /* Only leeway_begin returns this: the job was asked to stop in order. Leave with this reason. */
  LEEWAY_STOPPED = 3,
  /* Only a reason for leeway_leave: this worker cannot go on, and neither could its next life. */
  LEEWAY_FAILED = 4,

  /* An argument, the job, its token, the certificate or another worker's model is wrong, so that
   * another attempt would fail, too. */
  LEEWAY_INVALID_ARGUMENT = 10,
  /* The job's time limit is over. The text names the missing processes. */
  LEEWAY_DEADLINE_EXCEEDED = 11,
  /* A process does not answer. Another life of this worker may succeed. */
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
  /* The weight or bias of a normalisation layer. */
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
  /* If not 0, no gradient moves the tensor. Instead the servers average the workers' values, as for
   * running statistics. The tensor's part of a contribution is the worker's own running value after
   * the clock's steps. At the beginning of a clock the running value is the one in the weights. */
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
  /* HOST:PORT of server 0. If NULL, LEEWAY_COORDINATOR or the variables of an orchestrator specify
   * it. */
  const char* coordinator;
  /* The worker's rank. If negative, LEEWAY_RANK or the orchestrator specifies it, or else the
   * worker gets a free rank. */
  int64_t rank;
  /* The model's tensors. Without any, the worker uses the tensors of the other workers, which are
   * Leeway's own. */
  const leeway_tensor* tensors;
  size_t tensor_count;
  /* The initial weights of the whole vector, tensor after tensor. They are used if this worker
   * sends the first weights to the servers. */
  const float* initial;
  /* The model's own optimizer, in the YAML of a job's `update`, such as "{sgd: {momentum: 0.9},
   * learning_rate: 0.1}". NULL if it is not known. */
  const char* update;
  /* How many seconds to look for server 0. 0 means 120. */
  double start_seconds;
  /* The tensors with which a block begins, by their place in `tensors`, rising. The elements before
   * and after such a tensor's beginning can be final and waited for separately within a clock.
   * Usually there are none. For gradient exchanges only; others ignore it. */
  const size_t* begins_block;
  size_t begins_block_count;
} leeway_join_options;

typedef enum leeway_exchange {
  /* Contributions are mean gradients, and the servers update the weights. */
  LEEWAY_GRADIENT = 0,
  /* The worker trains by itself. Its contribution is its weights at the beginning of the clock
   * minus its weights now. The library computes it. */
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
  /* The number of elements of the vector, and of its trained part. */
  uint64_t total;
  uint64_t trained;
  /* The number of clocks of one worker, and of steps in a clock. If `clocks` is 0, the worker goes
   * on until leeway_begin returns LEEWAY_FINISHED or LEEWAY_STOPPED. */
  uint64_t clocks;
  uint64_t steps_per_clock;
  uint64_t steps_per_epoch;
  uint64_t seed;
  /* The number of examples in a worker's step, and in a pass of all workers over the job's data. */
  uint64_t batch_size;
  uint64_t examples;
  /* The number of leased batches (data.assignment) in a pass of all workers together. If 0, batches
   * are not leased, and the number of the step decides which batch is next. */
  uint64_t batches_per_epoch;
  /* The number of clocks between two evaluations. If 0, there is at most one evaluation, at the
   * end. */
  uint64_t evaluate_every;
  /* If not 0, the job's YAML has an `update` or a local optimizer of its own. */
  int has_update;
  /* Clock c begins with step first_step + (c - first_clock) * steps_per_clock. Choose batches by
   * the step, never by the clock. Both values are 0, unless the run was resumed with another number
   * of workers, batch size or number of steps in a clock. */
  uint64_t first_clock;
  uint64_t first_step;
  /* If not 0, the job's `update` changes the servers' learning rate by a schedule or a warm-up. */
  int has_schedule;
} leeway_info;

/* In place of a factor: the clock's update leaves these elements and their optimizer state as they
 * are. What their part of the contribution holds is not used. */
#define LEEWAY_SKIP (-1.0)

/* A factor of the learning rate, for the elements from the end of the previous part up to `end`. */
typedef struct leeway_rate {
  uint64_t end;
  /* Finite, and at least 0; or LEEWAY_SKIP. */
  double factor;
} leeway_rate;

/* The measurements of a clock's steps. Values that are not known are 0. */
typedef struct leeway_report {
  /* sizeof(leeway_report). */
  size_t size;
  uint64_t steps;
  /* The number of training examples, which is the weight of the contribution. A contribution of 0
   * examples moves nothing. If blocks were sent before leeway_end, leeway_examples has set their
   * weight. */
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
  /* The share of examples with the right class. Negative if it is not known. */
  double accuracy;
  uint64_t examples;
} leeway_evaluation;

/* The library's version, such as "0.2.0". */
const char* leeway_version(void);
/* The text of this thread's last failed call. Never NULL. */
const char* leeway_error(void);
/* Returns the exit code with which a program reports `code` to `leeway train` or to an
 * orchestrator. It shows whether another start would help (docs/operations.md). */
int leeway_exit_code(leeway_code code);

/* Begins to join, and returns at once. The library copies everything that `options` refers to. */
leeway_code leeway_join(const leeway_join_options* options, leeway_job** job);
/* Waits until the worker has joined, so that all other workers are there and the weights are
 * readable. */
leeway_code leeway_joined(leeway_job* job, double timeout);

/* Fills in what the worker should know of the job. This function and all that follow need a worker
 * that has joined. */
leeway_code leeway_info_of(leeway_job* job, leeway_info* info);
/* Fills in tensor `index` of the model, in the order of the vector. Returns LEEWAY_NOT_FOUND after
 * the last tensor. It is useful if the worker has joined without tensors, and so uses those of the
 * other workers. The result is valid until the next call for the same job. */
leeway_code leeway_tensor_of(leeway_job* job, size_t index, leeway_tensor* tensor);
/* Returns the flat vector of weights, `total` floats, which stays in place until leeway_free. The
 * library writes the servers' answers to this vector. In a gradient exchange the program must not
 * write to it, so a program that updates running statistics itself needs other memory for them. A
 * worker that trains by itself (delta, elastic) trains this vector. */
float* leeway_weights(leeway_job* job);
/* Returns memory for the clock's contribution, `total` floats. Returns NULL except between
 * leeway_begin and leeway_end of a gradient exchange. The next clock may have other memory. Write
 * to an element only after leeway_wait for it, because until then the library may still be sending
 * the previous clock's value. */
float* leeway_contribution(leeway_job* job);

/* Begins the next clock, and sets *clock to its number. Weights may still be arriving (see
 * leeway_wait). Returns LEEWAY_FINISHED or LEEWAY_STOPPED at the end; then nothing is in progress
 * any more, and the weights are the newest ones. If the other workers went on without this one, or
 * if the job has gone back to a checkpoint, the servers decide where this worker goes on. Then
 * *clock is not the last clock plus one. */
leeway_code leeway_begin(leeway_job* job, double timeout, uint64_t* clock);
/* Waits until the weights of elements [first, first + count) have arrived. */
leeway_code leeway_wait(leeway_job* job, uint64_t first, uint64_t count, double timeout);
/* Use this in a job that leases its batches. Sets *batch to the number of the batch for the clock's
 * next step. Numbers go on from pass to pass: *batch / batches_per_epoch is the pass, and *batch %
 * batches_per_epoch is the number in that pass. No other worker gets the batch unless this worker
 * is lost or its contribution is dropped. Returns LEEWAY_NOT_FOUND if no batch is left for the
 * clock; end the clock with the examples that it has, which may be none. leeway_end returns
 * LEEWAY_MISUSE for a clock that has not asked for a batch. */
leeway_code leeway_next_batch(leeway_job* job, double timeout, uint64_t* batch);
/* Writes the numbers that the next calls of leeway_next_batch will probably return to `batches`, so
 * that the program can read ahead. Writes at most `size` numbers, and sets *count to how many it
 * wrote. Does not wait. */
leeway_code leeway_upcoming_batches(leeway_job* job, uint64_t* batches, size_t size, size_t* count);
/* Sets the number of examples of this clock's contribution, for blocks that are sent before
 * leeway_end. The default is batch_size. Call it before the clock's first leeway_final. */
leeway_code leeway_examples(leeway_job* job, uint64_t examples);
/* Sets factors of the learning rate in this clock's update, for successive parts of the trained
 * elements. The last part must end with the last trained element. There are at most 16384 parts.
 * Without this call, or with a count of 0, the factor is 1. Call it before the clock's first
 * leeway_final, in gradient exchanges only; a program with begins_block may call it again, for the
 * elements that are not final yet. In sync mode all workers must set the same factors, or the clock
 * fails. LEEWAY_SKIP needs an update rule that does not count the updates of whole blocks
 * (update.steps_by_element), and no compression that keeps a residual. */
leeway_code leeway_rates(leeway_job* job, const leeway_rate* rates, size_t count);
/* Declares that these elements of the contribution are final, so the library sends the blocks that
 * are complete now. Declare each element once in a clock, and only in a gradient exchange. */
leeway_code leeway_final(leeway_job* job, uint64_t first, uint64_t count);
/* Ends the clock. Elements that were not declared final yet are sent as they are. A gradient
 * exchange does not wait for the answers. Other exchanges do. */
leeway_code leeway_end(leeway_job* job, const leeway_report* report, double timeout);
/* Waits until nothing is in progress. The weights are then those with which the next clock begins.
 * Call it between leeway_end and leeway_begin. */
leeway_code leeway_settle(leeway_job* job, double timeout);
/* Settles, and reads the same weights again from the servers, in a gradient exchange only. Sets
 * *weights to memory of `total` floats, which is valid until the next call. A comparison with
 * leeway_weights shows whether the program has changed the weights by mistake. Outside of sync mode
 * *weights may be newer. After LEEWAY_AGAIN call this function again. */
leeway_code leeway_read_again(leeway_job* job, double timeout, const float** weights);

/* Reports an evaluation of the weights. Only rank 0 may call it, between two clocks. */
leeway_code leeway_evaluated(leeway_job* job, const leeway_evaluation* evaluation);

/* Three functions for the state that the worker keeps between clocks, such as its optimizer's
 * slots:
 * - leeway_state_wanted sets *wanted to 1 if a checkpoint needs the state now, and to 0 if not.
 *   Call it between two clocks or at the end.
 * - leeway_save_state sends the state for that checkpoint.
 * - leeway_load_state returns the state in the checkpoint from which the job goes on. It can be
 *   called once after joining, and once after each leeway_begin whose clock is not the last clock
 *   plus one. It returns LEEWAY_NOT_FOUND if there is no state. The bytes are valid until the next
 *   call.
 * The library itself saves the weights of elastic workers. A worker of a gradient exchange usually
 * has no state. If its program saves one all the same, each later checkpoint needs it. If a run
 * goes on with more workers, the checkpoint has no state for the new ranks. They get the state of
 * another rank, so save only what is the same in all ranks. */
leeway_code leeway_state_wanted(leeway_job* job, int* wanted);
leeway_code leeway_save_state(leeway_job* job, const void* bytes, size_t count);
leeway_code leeway_load_state(leeway_job* job, const void** bytes, size_t* count);

/* Writes what the worker waits for to `text`, cut to `size` bytes. Writes "" while it waits for
 * nothing. */
void leeway_waiting(leeway_job* job, char* text, size_t size);

/* Leaves the job, with LEEWAY_FINISHED, LEEWAY_STOPPED, or LEEWAY_FAILED and a message. Waits until
 * the coordinator has sealed the job, because until then the job may still go back to a checkpoint
 * and need this worker. Returns LEEWAY_FAILED_PRECONDITION if it does so; go on with leeway_begin
 * then. */
leeway_code leeway_leave(leeway_job* job, leeway_code reason, const char* message, double timeout);
/* Ends everything that the job runs in this process, and frees it. If the worker has not left, the
 * coordinator is not told. It considers the worker lost, and the worker's next life goes on. `job`
 * may be NULL. */
void leeway_free(leeway_job* job);

/* A watch reads the weights of a running job, from anywhere, and takes no part in the job. One
 * thread at a time may use it.
 */

/* Opens a watch. For `coordinator` see leeway_join_options. The first read waits up to
 * `start_seconds` (0 means 120) for a job that has weights. */
leeway_code leeway_watch_open(const char* coordinator, double start_seconds, leeway_watch** watch);
/* Reads all weights as they are now. The servers do not send blocks again that have not changed
 * since the last read. Each block holds the result of one update. While the servers go on,
 * neighbouring blocks may be some updates apart. Sets *version to the number of updates of the
 * block that has had the fewest. After LEEWAY_AGAIN call this function again, and until then do not
 * use the weights. Returns LEEWAY_FINISHED if the job is over, or if its last update was read and
 * no server answers any more. Returns LEEWAY_UNAVAILABLE if no server answers, or if the job has no
 * weights yet; another read may succeed. */
leeway_code leeway_watch_read(leeway_watch* watch, double timeout, uint64_t* version);
/* Works as leeway_tensor_of. This function and leeway_watch_weights need a successful
 * leeway_watch_read first. */
leeway_code leeway_watch_tensor_of(leeway_watch* watch, size_t index, leeway_tensor* tensor);
/* Returns the weights that were read, tensor after tensor. They stay in place until
 * leeway_watch_free. */
const float* leeway_watch_weights(leeway_watch* watch);
/* Closes the watch. `watch` may be NULL. */
void leeway_watch_free(leeway_watch* watch);

#ifdef __cplusplus
}
#endif
