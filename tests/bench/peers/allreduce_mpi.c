/* All-reduce of a float vector between the processes of an MPI job: seconds of each, from rank 0.
 * Usage: allreduce_mpi FLOATS REPEATS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 3) {
    fprintf(stderr, "usage: allreduce_mpi FLOATS REPEATS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int floats = atoi(argv[1]);
  const int repeats = atoi(argv[2]);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float* contribution = malloc(sizeof(float) * (size_t)floats);
  float* sum = malloc(sizeof(float) * (size_t)floats);
  for (int i = 0; i < floats; ++i) contribution[i] = sum[i] = 1;
  for (int i = 0; i < repeats + 2; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    MPI_Allreduce(contribution, sum, floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const double seconds = MPI_Wtime() - began;
    /* Two to warm up. */
    if (rank == 0 && i >= 2) printf("%.6f\n", seconds);
  }
  free(contribution);
  free(sum);
  MPI_Finalize();
  return 0;
}
