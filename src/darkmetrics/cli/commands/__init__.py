"""One command per file: `main` is the command, its docstring the help, EXAMPLE what stands below it."""
