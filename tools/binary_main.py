"""What the binary's interpreter runs: the command line of momus. tools/binary.py puts it beside the interpreter."""

from momus.cli.main import main

main()
