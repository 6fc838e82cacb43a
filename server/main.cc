#include "server/node/program.h"

int main(int argc, char** argv) { return leeway::RunServer(argc, argv); }
