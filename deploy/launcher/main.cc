#include "deploy/launcher/commands.h"

int main(int argc, char** argv) { return leeway::RunLeeway(argc, argv); }
