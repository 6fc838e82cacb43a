#include "launcher/commands/commands.h"

int main(int argc, char** argv) { return leeway::RunLeeway(argc, argv); }
