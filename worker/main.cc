#include "worker/program.h"

int main(int argc, char** argv) { return leeway::RunWorkerProgram(argc, argv); }
